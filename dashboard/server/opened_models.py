"""Models that a server has opened, and what they answered: shared by all sessions, latest first."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import psutil

from seqcls import cancellation
from seqcls.cache import bytes_of

MOST_BYTES = min(2**30, psutil.virtual_memory().total // 16)
"""The size of all models and answers at most."""

Answer = TypeVar("Answer")


class OpenedModels:
    """Answers by their keys, which who asks may not change.

    Streamlit's cache of resources counts entries, while an answer has a hundred bytes or a hundred
    million.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._answers: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()
        # A lock for each answer that is being made, while any session waits for it.
        self._making: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._answers

    def answer(self, key: Hashable, make: Callable[[], Answer]) -> Answer:
        """The answer of that key, made once however many sessions ask at the same time.

        An error is raised to the session that made it, and not remembered.
        """
        cancellation.check()
        with self._lock:
            making = self._making.setdefault(key, Lock())
        with making:
            # Another session may have made it while this one waited for the lock.
            if key not in self:
                self._keep(key, make())
            with self._lock:
                self._answers.move_to_end(key)
                answer: Answer = self._answers[key][0]
                return answer

    def _keep(self, key: Hashable, answer: Any) -> None:
        size = bytes_of(answer) + bytes_of(key)
        with self._lock:
            self._answers[key] = (answer, size)
            self._bytes += size
            # What was made just now is handed out, however large it is.
            while self._bytes > self._most_bytes and len(self._answers) > 1:
                _, (_, size) = self._answers.popitem(last=False)
                self._bytes -= size


MODELS = OpenedModels()
"""Those of this server."""
