"""Each stream of strings is drawn once in a process, however many groups read it."""

from collections.abc import Iterator
from functools import lru_cache

from seqcls.sampling.strings import Sampler, Strings


class Stream:
    """The epochs of one sampler, drawn when first asked for and kept."""

    def __init__(self, sampler: Sampler) -> None:
        self._source: Iterator[Strings] = sampler.epochs()
        self._epochs: list[Strings] = []

    def epoch(self, index: int) -> Strings:
        """The strings of an epoch; the first has the index 0."""
        while len(self._epochs) <= index:
            self._epochs.append(next(self._source))
        return self._epochs[index]


@lru_cache(maxsize=64)
def stream(sampler: Sampler) -> Stream:
    """The one stream of this sampler in this process."""
    return Stream(sampler)
