"""What is the product of the group elements up to each?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqcls.errors import InvalidStringError
from seqcls.functions.permutation_groups import GroupName, group_tokens, prefix_products
from seqcls.tasks.language import LetterRow
from seqcls.tasks.transductions.base import TargetRow, Transduction


@dataclass(frozen=True)
class WriteProducts(Transduction):
    """With the group Z5, the numbers added modulo 5, `134` becomes `143`."""

    group: GroupName

    reads: ClassVar[frozenset[str]] = frozenset({"group"})

    @property
    def alphabet(self) -> Sequence[str]:
        return group_tokens(self.group)

    def target(self, letters: LetterRow) -> TargetRow:
        if not len(letters):
            raise InvalidStringError("expected at least one element")
        return prefix_products(self.group, letters)

    def has_input(self, length: int) -> bool:
        return length >= 1

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        return rng.integers(len(self.alphabet), size=length, dtype=np.uint8)

    def describe(self) -> str:
        return (
            f"Elements of the group {self.group}: the output holds the product of those up to "
            "each, the first of them applied first."
        )
