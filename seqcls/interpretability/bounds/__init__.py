"""Proved bounds of a logit, and where its sign changes."""
