"""Transformers of any depth, one group of strings after another."""
