"""How seldom this program's processes look for garbage that refers to itself.

Python looks after every 700 new objects, now and then through all there are. A process that loads
PyTorch makes a million that stay: the search took a third of its start, and half a second of its
end (CPython 3.11, PyTorch 2.13).
"""

import gc

OBJECTS = 50_000
"""Containers made and not freed until Python looks again: a few megabytes."""


def collect_seldom() -> None:
    """To be called before anything large is loaded."""
    gc.set_threshold(OBJECTS)


def end_without_collecting() -> None:
    """To be called last: all that is in memory is left to the system."""
    gc.freeze()
