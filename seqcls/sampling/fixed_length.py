"""Every string of one length, shuffled anew each epoch."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from seqcls.errors import ConfigError
from seqcls.kinds import Examples, examples_of
from seqcls.tasks.base import Task
from seqcls.tokens.strings import TokenStrings

MAX_FIXED_LENGTH_STRINGS = 1_000_000


@dataclass(frozen=True)
class FixedLength:
    """All strings of `sequence_length` tokens, `CLS` counted: n^(sequence_length - 1) of them."""

    task: Task
    sequence_length: int
    batch_size: int
    seed: int

    reads: ClassVar[frozenset[str]] = frozenset({"sequence_length", "batch_size", "seed"})
    reads_of_part: ClassVar[Mapping[str, frozenset[str]]] = {}

    def __post_init__(self) -> None:
        letters = len(self.task.alphabet)
        if letters**self._length > MAX_FIXED_LENGTH_STRINGS:
            raise ConfigError(
                f"sequence_length={self.sequence_length}: fixed_length would train on all "
                f"{letters}^{self._length} strings, expected at most "
                f"{MAX_FIXED_LENGTH_STRINGS:,}; lower sequence_length or num_letters"
            )

    @classmethod
    def obstacle(cls, task: Task) -> str | None:
        """It can draw the strings of any task."""
        del task
        return None

    @property
    def lengths(self) -> range:
        return range(self._length, self._length + 1)

    @property
    def epoch_size(self) -> int:
        return int(len(self.task.alphabet) ** self._length)

    @property
    def repeats(self) -> bool:
        return True

    def epochs(self) -> Iterator[Examples]:
        """Epochs of all strings, in the order of PyTorch's shuffling data loader.

        Each epoch the loader draws two numbers of the Mersenne Twister to seed its workers,
        shuffles by Fisher and Yates, and shuffles once more for nothing. Drawn here without
        PyTorch, which takes long to load; a test holds it against the loader.
        """
        strings = self._all_strings()
        twister = np.random.MT19937()
        # As PyTorch seeds it; `MT19937(seed)` would hash the seed first.
        state: Any = np.random.RandomState(self.seed).get_state(legacy=False)
        twister.state = state
        while True:
            twister.random_raw(2)
            order = list(range(len(strings)))
            raw = twister.random_raw(len(order) - 1).tolist()
            for first, number in enumerate(raw):
                other = first + number % (len(order) - first)
                order[first], order[other] = order[other], order[first]
            twister.random_raw(len(raw))
            yield strings.take(np.array(order))

    @property
    def _length(self) -> int:
        return self.sequence_length - 1

    def _all_strings(self) -> Examples:
        n = len(self.task.alphabet)
        numbers = np.arange(n**self._length)
        place_values = n ** np.arange(self._length)[::-1]
        letters = numbers[:, None] // place_values % n
        return examples_of(self.task, TokenStrings.of_letters(n, letters))
