"""Every string of one length, shuffled anew each epoch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from seqcls.sampling.strings import Strings
from seqcls.tasks.contains_all import ContainsAll

if TYPE_CHECKING:
    from seqcls.config import RunConfig

MAX_FIXED_LENGTH_STRINGS = 1_000_000


@dataclass(frozen=True)
class FixedLength:
    """All strings of `sequence_length` tokens, `CLS` counted: n^(sequence_length - 1) of them."""

    language: ContainsAll
    sequence_length: int
    batch_size: int
    seed: int

    @classmethod
    def of_part(cls, config: "RunConfig", part: str) -> Self:
        """The sampler of a configuration's part, `train`."""
        return cls(
            config.language,
            config.sequence_length,
            getattr(config, f"{part}_batch_size"),
            getattr(config, f"{part}_seed"),
        )

    def epochs(self) -> Iterator[Strings]:
        """Epochs of all strings, in the order of PyTorch's shuffling data loader.

        Each epoch the loader draws two numbers of the Mersenne Twister to seed its workers,
        shuffles by Fisher and Yates, and shuffles once more for nothing. Drawn here without
        PyTorch, which takes long to load; a test holds it against the loader.
        """
        strings = self._all_strings()
        twister = np.random.MT19937()
        twister._legacy_seeding(self.seed)
        while True:
            twister.random_raw(2)
            order = list(range(len(strings)))
            raw = twister.random_raw(len(order) - 1).tolist()
            for first, number in enumerate(raw):
                other = first + number % (len(order) - first)
                order[first], order[other] = order[other], order[first]
            twister.random_raw(len(raw))
            yield strings.take(np.array(order))

    def _all_strings(self) -> Strings:
        n = self.language.num_letters
        length = self.sequence_length - 1
        numbers = np.arange(n**length)
        place_values = n ** np.arange(length)[::-1]
        return Strings.of_letters(self.language, numbers[:, None] // place_values % n)
