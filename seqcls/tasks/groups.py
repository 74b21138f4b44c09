"""Products of group elements: whether they are the identity, and the product up to each."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated

import numpy as np

from seqcls.cache import remembered
from seqcls.declarations import About, Fields
from seqcls.errors import InvalidStringError
from seqcls.permutation_groups import GroupName, group_tokens, products
from seqcls.tasks.automaton import Automaton, AutomatonLanguage
from seqcls.tasks.base import LetterRow
from seqcls.tasks.transductions import TargetRow, Transduction


@dataclass(frozen=True)
class Elements(Fields):
    """group: Whose elements are the tokens of `word_problem` and `write_products`."""

    group: Annotated[GroupName, About("Task", 7)] = "Z5"


@dataclass(frozen=True)
class WordProblem(Elements, AutomatonLanguage):
    """Elements of a group whose product, the first of them applied first, is the identity.

    With the group Z5, the numbers added modulo 5: `14`, `212` and the empty string are positive;
    `1` and `24` are negative.
    """

    @property
    def alphabet(self) -> Sequence[str]:
        return group_tokens(self.group)

    @property
    @remembered
    def automaton(self) -> Automaton:
        """The minimal automaton: its states are the elements."""
        table = products(self.group)
        # To read an element is to multiply by it, beginning with the identity, which is 0.
        return Automaton(table, np.arange(len(table)) == 0)

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: all tokens but the last are, and it undoes their product."""
        letters = rng.integers(len(self.alphabet), size=length, dtype=np.uint8)
        product = self.automaton.path(letters[:-1].tolist())[-1]
        # The product with the inverse is the identity, the least of all elements.
        letters[-1:] = self.automaton.table[product].argmin()
        return letters

    def describe(self) -> str:
        return (
            f"Elements of the group {self.group} whose product, the first of them applied first, "
            "is the identity are positive."
        )


@dataclass(frozen=True)
class WriteProducts(Elements, Transduction):
    """With the group Z5, the numbers added modulo 5, `134` becomes `143`."""

    @property
    def alphabet(self) -> Sequence[str]:
        return group_tokens(self.group)

    def target(self, letters: LetterRow) -> TargetRow:
        if not len(letters):
            raise InvalidStringError("expected at least one element")
        table = products(self.group)
        written = accumulate(letters.tolist(), lambda before, letter: int(table[before, letter]))
        return np.array(list(written), dtype=np.uint8)

    def describe(self) -> str:
        return (
            f"Elements of the group {self.group}: the output holds the product of those up to "
            "each, the first of them applied first."
        )
