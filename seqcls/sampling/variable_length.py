"""Strings of all lengths up to a limit, with balanced sets of required letters."""

from collections.abc import Callable, Iterator
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
        draws = _Draws(self.seed)
        seed = self.seed
        while True:
            counts: list[list[int]] = []
            for _ in range(self.size // self.batch_size):
                draws.rng.seed(seed)
                counts.extend(self._batch(draws))
                seed = draws.raw()
            yield Strings.of_counts(self.language, np.array(counts, dtype=np.int64))

    def _batch(self, draws: "_Draws") -> Iterator[list[int]]:
        required = self.language.required
        sets = [
            [letter for bit, letter in enumerate(required) if number >> bit & 1]
            for number in range(2 ** len(required))
        ]
        budgets = self._budgets(len(sets), len(required))
        for _ in range(self.batch_size):
            available = [number for number, budget in enumerate(budgets) if budget]
            chosen = available[draws.below(len(available))]
            budgets[chosen] -= 1
            yield self._string(draws, sets[chosen])

    def _budgets(self, num_sets: int, num_required: int) -> list[int]:
        # The set of all required letters, the only positive one, gets 1 + num_required parts more.
        part, remainder = divmod(self.batch_size, num_sets + num_required + 1)
        budgets = [part + (number < remainder) for number in range(num_sets - 1)]
        return [*budgets, self.batch_size - sum(budgets)]

    def _string(self, draws: "_Draws", letters: list[int]) -> list[int]:
        counts = [0] * self.language.num_letters
        least = len(letters)
        shortest = max(least, 1)
        length = shortest + draws.below(self.max_length + 1 - shortest)
        required = 0
        if letters:
            required = least + draws.below(length + 1 - least)
            shares = draws.dirichlet(self.alpha / least, least)
            further = draws.rng.multinomial(required - least, shares).tolist()
            for letter, more in zip(letters, further, strict=True):
                counts[letter] = 1 + more
        others = self.language.others
        if len(others) == 1:
            # The draw of one letter out of one consumes no randomness, only time.
            counts[others[0]] = length - required
        elif length > required:
            for number in draws.rng.randint(len(others), size=length - required).tolist():
                counts[others[number]] += 1
        return counts


class _Draws:
    """`RandomState`'s numbers, drawn one at a time at a fraction of its cost a call."""

    def __init__(self, seed: int) -> None:
        twister = np.random.MT19937()
        # One generator, reseeded: building one costs a hundred times as much.
        self.rng = RandomState(twister)
        self.rng.seed(seed)
        self.raw: Callable[[], int] = twister.random_raw

    def below(self, limit: int) -> int:
        """As `rng.randint(limit)`: bits of one raw number after another until they are less."""
        mask = (1 << (limit - 1).bit_length()) - 1
        if mask == 0:
            return 0
        while (number := self.raw() & mask) >= limit:
            pass
        return number

    def dirichlet(self, alpha: float, size: int) -> list[float]:
        """As `rng.dirichlet([alpha] * size)`: gamma variates, divided by their sum."""
        gammas = [self.rng.standard_gamma(alpha) for _ in range(size)]
        inverse = 1 / sum(gammas)
        return [gamma * inverse for gamma in gammas]
