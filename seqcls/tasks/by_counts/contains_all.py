"""Does the string contain at least one of each required letter?"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Int64, UInt8

from seqcls.caching.remembered import remembered
from seqcls.errors import ConfigError
from seqcls.tasks.automata.automaton import Automaton
from seqcls.tasks.language import DrawnInBulk, OfCounts
from seqcls.tokens.tokenizer import LETTERS


@dataclass(frozen=True)
class ContainsAll(OfCounts, DrawnInBulk):
    """Strings with every required letter are positive.

    With the letters `a` and `b` required: `baac` is positive; `aac`, `c{9}` and the empty string
    are negative.
    """

    num_letters: int
    required_letters: str

    reads: ClassVar[frozenset[str]] = frozenset({"num_letters", "required_letters"})

    def __post_init__(self) -> None:
        outside = sorted(set(self.required_letters) - set(self.alphabet))
        if outside:
            raise ConfigError(
                f"required_letters={self.required_letters!r}: {outside[0]!r} is outside the "
                f"alphabet {self.alphabet!r}; raise num_letters or require other letters"
            )

    @property
    def alphabet(self) -> str:
        return LETTERS[: self.num_letters]

    @property
    def automaton(self) -> Automaton:
        """The minimal automaton: its states are the sets of required letters that occurred."""
        return _automaton(self.num_letters, self.required)

    @cached_property
    def required(self) -> tuple[int, ...]:
        """The numbers of the required letters, ascending."""
        return tuple(self.alphabet.index(x) for x in self.required_letters)

    @cached_property
    def others(self) -> tuple[int, ...]:
        """The numbers of all other letters, ascending."""
        return tuple(x for x in range(self.num_letters) if x not in self.required)

    def labels_of_counts(
        self, counts: Int64[np.ndarray, "string letter"]
    ) -> Bool[np.ndarray, " string"]:
        return np.asarray((counts[:, self.required] > 0).all(axis=1))

    def has(self, length: int, positive: bool) -> bool:
        """Whether any string of that many letters is positive, or negative."""
        if positive:
            return length >= len(self.required)
        return length < len(self.required) or self.num_letters > 1

    def draw_many(
        self, rng: np.random.Generator, lengths: Int64[np.ndarray, " string"], positive: bool
    ) -> UInt8[np.ndarray, "string position"]:
        return self.automaton.draw(rng, lengths, positive)

    def describe(self) -> str:
        """The language in one sentence."""
        letters = [f"at least one {letter}" for letter in self.required_letters]
        return f"Strings with {' and '.join(letters)} are positive."


@remembered
def _automaton(num_letters: int, required: tuple[int, ...]) -> Automaton:
    """Its states are the sets of required letters that have occurred, as bits."""
    bits = np.zeros(num_letters, dtype=np.int64)
    bits[list(required)] = 1 << np.arange(len(required))
    sets = np.arange(1 << len(required))
    return Automaton(sets[:, None] | bits, sets == len(sets) - 1)
