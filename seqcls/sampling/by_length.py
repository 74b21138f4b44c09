"""The samplers of the first version: all strings of one length, or balanced strings by counts."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.random import RandomState
from pydantic import Field

from seqcls.declarations import About, Fields
from seqcls.errors import ConfigError
from seqcls.kinds import Examples, examples_of
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.base import Task
from seqcls.tasks.letter_counts import ContainsAll

MAX_FIXED_LENGTH_STRINGS = 1_000_000
"""The most strings: all are in memory, and in every epoch."""


class LengthFields(Fields, alone=True):
    """sequence_length: Tokens of each string of `fixed_length`, `CLS` counted."""

    sequence_length: Annotated[int, Field(ge=2, le=100), About("Strings", 13)] = 10


@dataclass(frozen=True)
class FixedLength:
    """All strings of `sequence_length` tokens, `CLS` counted: n^(sequence_length - 1) of them."""

    task: Task
    sequence_length: int
    batch_size: int
    seed: int

    reads_of_part: ClassVar[Mapping[str, frozenset[str]]] = {}
    repeats = True

    def __post_init__(self) -> None:
        letters = len(self.task.alphabet)
        if letters**self._length > MAX_FIXED_LENGTH_STRINGS:
            raise ConfigError(
                f"sequence_length={self.sequence_length}: fixed_length would train on all "
                f"{letters}^{self._length} strings, expected at most "
                f"{MAX_FIXED_LENGTH_STRINGS:,}; lower sequence_length or num_letters"
            )

    @property
    def lengths(self) -> range:
        return range(self._length, self._length + 1)

    @property
    def epoch_size(self) -> int:
        return int(len(self.task.alphabet) ** self._length)

    def epochs(self) -> Iterator[Examples]:
        """Epochs of all strings, in the order of PyTorch's shuffling data loader.

        Each epoch the loader draws two numbers of the Mersenne Twister to seed its workers,
        shuffles by Fisher and Yates, and shuffles once more without effect. This is done here
        without PyTorch, which takes long to load; a test compares it with the loader.
        """
        letters = len(self.task.alphabet)
        place_values = letters ** np.arange(self._length)[::-1]
        every = np.arange(letters**self._length)[:, None] // place_values % letters
        strings = examples_of(self.task, TokenStrings.of_letters(letters, every))
        twister = np.random.MT19937()
        # Seeded like PyTorch; `MT19937(seed)` would hash the seed first.
        state: Any = np.random.RandomState(self.seed).get_state(legacy=False)
        twister.state = state
        while True:
            twister.random_raw(2)
            order = list(range(len(strings)))
            raw = twister.random_raw(len(order) - 1).tolist()
            for first, number in enumerate(raw):
                # PyTorch's `randperm` takes the remainder too, which is slightly uneven.
                other = first + number % (len(order) - first)
                order[first], order[other] = order[other], order[first]
            twister.random_raw(len(raw))
            yield strings.take(np.array(order))

    @property
    def _length(self) -> int:
        return self.sequence_length - 1


@dataclass(frozen=True)
class VariableLength:
    """Batches in which every set of required letters has its budget of strings.

    The letters' shares of a string are drawn from a symmetric Dirichlet distribution with
    concentrations that sum to `alpha`; the smaller it is, the more one letter dominates.
    """

    task: ContainsAll
    max_length: int
    alpha: float
    size: int
    batch_size: int
    seed: int

    reads_of_part: ClassVar[Mapping[str, frozenset[str]]] = {"train": frozenset({"lengths"})}
    repeats = False

    def __post_init__(self) -> None:
        required = self.task.required_letters
        if not self.task.others:
            raise ConfigError(
                f"required_letters={required!r} leaves no other letters of the alphabet "
                f"{self.task.alphabet!r} to draw strings from; raise num_letters or require fewer"
            )
        if self.max_length < len(required):
            raise ConfigError(
                f"max_length={self.max_length}: no string of that length holds all required "
                f"letters {required!r}; expected at least {len(required)}"
            )
        if self.size < self.batch_size:
            raise ConfigError(
                f"size={self.size} is less than one batch of batch_size={self.batch_size}; "
                "raise size or lower batch_size"
            )

    @property
    def lengths(self) -> range:
        return range(1, self.max_length + 1)

    @property
    def epoch_size(self) -> int:
        return self.size // self.batch_size * self.batch_size

    def epochs(self) -> Iterator[Examples]:
        """Epochs of `size // batch_size` full batches each."""
        draws = _Draws(self.seed)
        seed = self.seed
        while True:
            counts: list[list[int]] = []
            for _ in range(self.size // self.batch_size):
                # The first version seeds each batch by a number drawn after the one before.
                draws.rng.seed(seed)
                counts.extend(self._batch(draws))
                seed = draws.raw()
            drawn = TokenStrings.of_counts(self.task.num_letters, np.array(counts, dtype=np.int64))
            yield examples_of(self.task, drawn)

    def _batch(self, draws: "_Draws") -> Iterator[list[int]]:
        required = self.task.required
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
        # The set of all required letters, the only positive one, gets num_required + 1 more parts.
        part, remainder = divmod(self.batch_size, num_sets + num_required + 1)
        budgets = [part + (number < remainder) for number in range(num_sets - 1)]
        return [*budgets, self.batch_size - sum(budgets)]

    def _string(self, draws: "_Draws", letters: list[int]) -> list[int]:
        counts = [0] * self.task.num_letters
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
        others = self.task.others
        if len(others) == 1:
            # The draw of one letter out of one consumes no randomness, only time.
            counts[others[0]] = length - required
        elif length > required:
            for number in draws.rng.randint(len(others), size=length - required).tolist():
                counts[others[number]] += 1
        return counts


class _Draws:
    """The numbers of `RandomState`, drawn one at a time at a fraction of the cost of a call."""

    def __init__(self, seed: int) -> None:
        twister = np.random.MT19937()
        # One generator, reseeded: building one costs a hundred times as much.
        self.rng = RandomState(twister)
        self.rng.seed(seed)
        self.raw: Callable[[], int] = twister.random_raw

    def below(self, limit: int) -> int:
        """Draw like `rng.randint(limit)`: masked raw numbers until one is less."""
        # NumPy's `randint` masks and rejects in this way, so that the stream is the same.
        mask = (1 << (limit - 1).bit_length()) - 1
        if mask == 0:
            return 0
        while (number := self.raw() & mask) >= limit:
            pass
        return number

    def dirichlet(self, alpha: float, size: int) -> list[float]:
        """Draw like `rng.dirichlet([alpha] * size)`: gamma variates, divided by their sum."""
        gammas = [self.rng.standard_gamma(alpha) for _ in range(size)]
        # NumPy multiplies by the inverse too: divisions would round differently.
        inverse = 1 / sum(gammas)
        return [gamma * inverse for gamma in gammas]
