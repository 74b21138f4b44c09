"""How long work says how far it is."""

from collections.abc import Callable

OnProgress = Callable[[float, int], None]
"""Told how many runs are done, parts of runs included where they are known, and of how many."""
