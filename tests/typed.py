"""The type checker of calls, for runs of tests that use it."""

from beartype import BeartypeConf, beartype

typed = beartype(conf=BeartypeConf(is_pep484_tower=True))
"""Accepts an int for a float, as every type checker does."""
