"""How types are checked at every call, where a run of tests asks for it."""

from beartype import BeartypeConf, beartype

typed = beartype(conf=BeartypeConf(is_pep484_tower=True))
"""A whole number may stand for a fraction, as for every type checker."""
