"""What all sessions of a server share, those used last: answers, opened models and theirs."""

import pickle
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import psutil

from seqcls import cancellation
from seqcls.cache import bytes_of

MOST_BYTES = min(2**30, psutil.virtual_memory().total // 16)
"""The size of all answers at most; of a hundred thousand models, the largest take 7 MB, of a
million 70."""

Answer = TypeVar("Answer")


class SharedAnswers:
    """Answers by their keys.

    Args:
        most_bytes: of all that is kept.
        copied: whether who asks gets a copy, and may change it; else all share what is kept.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, *, copied: bool = True) -> None:
        self._most_bytes = most_bytes
        self._copied = copied
        self._bytes = 0
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()
        # A lock for each answer that is being made, while any session waits for it.
        self._making: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._kept

    def answer(self, key: Hashable, make: Callable[[], Answer]) -> Answer:
        """The answer of that key, made once however many sessions ask at the same time.

        An error is raised to the session that made it, and not remembered.
        """
        cancellation.check()
        kept = self._find(key)
        if kept is None:
            with self._lock:
                making = self._making.setdefault(key, Lock())
            with making:
                kept = self._find(key)
                if kept is None:
                    kept = self._keep(key, make())
        value: Answer = pickle.loads(kept[0]) if self._copied else kept[0]
        return value

    def _find(self, key: Hashable) -> tuple[Any, int] | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _keep(self, key: Hashable, answer: Any) -> tuple[Any, int]:
        packed = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL) if self._copied else None
        size = bytes_of(answer) if packed is None else len(packed)
        # A key may name a hundred thousand configurations.
        kept = (answer if packed is None else packed, size + bytes_of(key))
        with self._lock:
            self._kept[key] = kept
            self._bytes += kept[1]
            while self._bytes > self._most_bytes:
                _, (_, size) = self._kept.popitem(last=False)
                self._bytes -= size
        return kept


ANSWERS = SharedAnswers()
"""The answers of this server."""

MODELS = SharedAnswers(copied=False)
"""Its opened models, and what they answered."""
