"""Strings of all lengths up to a limit, with balanced sets of required letters."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.random import RandomState

from seqcls.sampling.strings import Strings
from seqcls.tasks.contains_all import ContainsAll

if TYPE_CHECKING:
    from seqcls.config import RunConfig


@dataclass(frozen=True)
class VariableLength:
    """Batches in which every set of required letters has its budget of strings.

    The letters' shares of a string are drawn from a symmetric Dirichlet distribution whose
    concentrations sum to `alpha`; the smaller it is, the more one letter prevails.
    """

    language: ContainsAll
    max_length: int
    alpha: float
    size: int
    batch_size: int
    seed: int

    @classmethod
    def of_part(cls, config: "RunConfig", part: str) -> Self:
        """The sampler of a configuration's part: `train`, `validation` or `test`."""
        names = ("max_length", "alpha", "size", "batch_size", "seed")
        return cls(config.language, *(getattr(config, f"{part}_{name}") for name in names))

    def epochs(self) -> Iterator[Strings]:
        """Epochs of `size // batch_size` full batches each."""
        # One generator, reseeded: building one costs a hundred times as much.
        rng = RandomState(self.seed)
        seed = self.seed
        while True:
            counts: list[list[int]] = []
            for _ in range(self.size // self.batch_size):
                rng.seed(seed)
                counts.extend(self._batch(rng))
                seed = rng.randint(2**32)
            yield Strings.of_counts(self.language, np.array(counts, dtype=np.int64))

    def _batch(self, rng: RandomState) -> Iterator[list[int]]:
        required = self.language.required
        sets = [
            [letter for bit, letter in enumerate(required) if number >> bit & 1]
            for number in range(2 ** len(required))
        ]
        alphas = [self.alpha * np.ones(len(s)) / max(len(s), 1) for s in sets]
        budgets = self._budgets(len(sets), len(required))
        for _ in range(self.batch_size):
            available = [number for number, budget in enumerate(budgets) if budget]
            chosen = available[rng.randint(len(available))]
            budgets[chosen] -= 1
            yield self._string(rng, sets[chosen], alphas[chosen])

    def _budgets(self, num_sets: int, num_required: int) -> list[int]:
        # The set of all required letters, the only positive one, gets 1 + num_required parts more.
        part, remainder = divmod(self.batch_size, num_sets + num_required + 1)
        budgets = [part + (number < remainder) for number in range(num_sets - 1)]
        return [*budgets, self.batch_size - sum(budgets)]

    def _string(self, rng: RandomState, letters: list[int], alpha: np.ndarray) -> list[int]:
        counts = [0] * self.language.num_letters
        least = len(letters)
        length = rng.randint(max(least, 1), self.max_length + 1)
        required = 0
        if letters:
            required = rng.randint(least, length + 1)
            further = rng.multinomial(required - least, rng.dirichlet(alpha))
            for letter, more in zip(letters, further.tolist(), strict=True):
                counts[letter] = 1 + more
        others = self.language.others
        if len(others) == 1:
            # The draw of one letter out of one consumes no randomness, only time.
            counts[others[0]] = length - required
        elif length > required:
            for number in rng.randint(len(others), size=length - required).tolist():
                counts[others[number]] += 1
        return counts
