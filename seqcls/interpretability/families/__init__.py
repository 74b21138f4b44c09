"""Strings with free counts."""
