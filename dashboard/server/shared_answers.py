"""Finished answers that all sessions of a server share: those used last, of so many bytes."""

import pickle
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import psutil

MOST_BYTES = min(2**30, psutil.virtual_memory().total // 16)
"""Of all answers; of a hundred thousand models, the largest take 7 MB, of a million 70."""

Answer = TypeVar("Answer")


class Remembered:
    """Answers by their keys; who asks gets a copy, and may change it."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._lock = Lock()
        # A lock for each answer that is being made, while any session waits for it.
        self._making: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()

    def answer(self, key: Hashable, make: Callable[[], Answer]) -> Answer:
        """The answer of that key, made once however many sessions ask at the same time.

        An error is raised to the session that made it, and not remembered.
        """
        kept = self._find(key)
        if kept is None:
            with self._lock:
                making = self._making.setdefault(key, Lock())
            with making:
                kept = self._find(key)
                if kept is None:
                    kept = pickle.dumps(make(), pickle.HIGHEST_PROTOCOL)
                    self._keep(key, kept)
        found: Answer = pickle.loads(kept)
        return found

    def _find(self, key: Hashable) -> bytes | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _keep(self, key: Hashable, answer: bytes) -> None:
        with self._lock:
            self._kept[key] = answer
            self._bytes += len(answer)
            while self._bytes > self._most_bytes:
                _, oldest = self._kept.popitem(last=False)
                self._bytes -= len(oldest)


ANSWERS = Remembered()
"""Of this server."""
