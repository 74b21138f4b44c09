"""Models that a server has opened, and what they answered: shared by all sessions, latest first."""

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import psutil

from seqcls import cancellation
from seqcls.cache import Memory

MOST_BYTES = min(2**30, psutil.virtual_memory().total // 16)
"""The size of all models and answers at most."""

Answer = TypeVar("Answer")


class OpenedModels:
    """Answers by their keys; callers may not change them.

    Streamlit's cache of resources counts entries, while an answer has a hundred bytes or a hundred
    million.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._answers = Memory(most_bytes)
        self._lock = Lock()
        # A lock for each answer that is being made, while any session waits for it.
        self._making: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()

    def __contains__(self, key: Hashable) -> bool:
        return self._answers.get(key) is not None

    def answer(self, key: Hashable, make: Callable[[], Answer]) -> Answer:
        """The answer of that key, made once however many sessions ask at the same time.

        An error is raised to the session that made it, and not remembered.
        """
        cancellation.check()
        with self._lock:
            making = self._making.setdefault(key, Lock())
        with making:
            # Another session may have made it while this one waited for the lock.
            cached: tuple[Answer] | None = self._answers.get(key)
            if cached is None:
                # Some questions are answered by None.
                cached = (make(),)
                self._answers.keep(key, cached)
            return cached[0]


MODELS = OpenedModels()
"""Those of this server."""
