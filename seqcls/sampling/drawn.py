"""What samplers share that draw `size` strings an epoch, each of a length within bounds."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from seqcls.config import PARTS
from seqcls.errors import ConfigError
from seqcls.kinds import Examples

MAX_TOKENS = 2**30
"""Tokens that the strings of an epoch may have, each as long as the longest."""


@dataclass(frozen=True)
class DrawnByLength(ABC):
    """Epochs of `size` strings, drawn anew for each epoch, or once and shuffled.

    The streams of training, validation and test differ where all settings are the same.
    """

    task: Any
    part: str
    min_length: int
    max_length: int
    size: int
    batch_size: int
    seed: int

    def __post_init__(self) -> None:
        if self.min_length > self.max_length:
            raise ConfigError(
                f"min_length={self.min_length}: expected at most max_length={self.max_length}"
            )
        if self.size * self.max_length > MAX_TOKENS:
            raise ConfigError(
                f"size={self.size}: {self.size:,} strings of up to {self.max_length:,} tokens take "
                f"more memory than {MAX_TOKENS:,} tokens; lower size or max_length"
            )

    @property
    def epoch_size(self) -> int:
        return self.size

    @property
    @abstractmethod
    def repeats(self) -> bool:
        """As `Sampler.repeats`."""

    def epochs(self) -> Iterator[Examples]:
        """Epochs of `size` strings.

        Raises:
            ConfigError: nearly all strings of the allowed lengths were trained on, where they
                must not be.
        """
        if not self.repeats:
            for epoch in count():
                yield self._epoch(self._generator(epoch))
        first = self._epoch(self._generator(0))
        yield first
        for epoch in count(1):
            yield first.take(self._generator(epoch).permutation(self.size))

    def _generator(self, epoch: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, PARTS.index(self.part), epoch])

    @abstractmethod
    def _epoch(self, rng: np.random.Generator) -> Examples:
        """The strings of one epoch."""
