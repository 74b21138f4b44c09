"""Large values that are kept in memory to be used again, up to so many bytes in all."""

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
Value = TypeVar("Value")

MAX_BYTES = 500_000_000
"""What all of them may take together, in one process."""


class Memory:
    """Values by their keys; those used longest ago make room for others."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> Any:
        """What is kept under a key; None where nothing is."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def keep(self, key: Hashable, value: Any) -> None:
        """Keeps a value, alone where it is larger than all may be."""
        size = bytes_of(value)
        with self._lock:
            self._bytes += size - self._kept.pop(key, (None, 0))[1]
            self._kept[key] = (value, size)
            while self._bytes > self._max_bytes and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1][1]


MEMORY = Memory(MAX_BYTES)


def remembered(make: Callable[P, Value]) -> Callable[P, Value]:
    """The same function, whose values are kept in `MEMORY`."""

    @wraps(make)
    def kept(*args: P.args, **kwargs: P.kwargs) -> Value:
        key = (make, args, tuple(kwargs.items()))
        value: Value | None = MEMORY.get(key)
        if value is None:
            value = make(*args, **kwargs)
            MEMORY.keep(key, value)
        return value

    return kept


def bytes_of(value: object) -> int:
    """About what a value takes with all that it holds, each part once."""
    return _bytes_of(value, {})


def _bytes_of(value: object, counted: dict[int, object]) -> int:
    if id(value) in counted:
        return 0
    # Held while it is counted: of what is gone, the id would be another's.
    counted[id(value)] = value
    if hasattr(type(value), "memory_usage"):
        # A frame, whose columns stand in no `__dict__`.
        return sys.getsizeof(value)
    if isinstance(size := getattr(value, "nbytes", None), int):
        # An array, or a tensor.
        return size
    content = getattr(value, "__dict__", value)
    if isinstance(content, dict):
        content = [*content, *content.values()]
    if isinstance(content, list | tuple | set | frozenset):
        return sys.getsizeof(content) + sum(_bytes_of(part, counted) for part in content)
    return sys.getsizeof(value)
