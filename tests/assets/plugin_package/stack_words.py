"""A package as somebody else would write it: two languages whose tokens have names."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqcls.tasks.base import Language

TOKENS = ("push", "pop", "a")


@dataclass(frozen=True)
class SafePops(Language):
    """Strings in which nothing is popped that was not pushed before."""

    alphabet: ClassVar[tuple[str, ...]] = TOKENS

    def accepts(self, text):
        held = 0
        for token in text.split():
            held += {"push": 1, "pop": -1}.get(token, 0)
            if held < 0:
                return False
        return True

    def has_positive(self, length):
        return length >= 0

    def positive(self, rng, length):
        letters, held = np.zeros(length, dtype=np.uint8), 0
        for position in range(length):
            letters[position] = rng.choice([0, 1, 2] if held else [0, 2])
            held += {0: 1, 1: -1}.get(int(letters[position]), 0)
        return letters

    def describe(self):
        return "Strings in which every pop has a push before it are positive."


@dataclass(frozen=True)
class MorePushes(Language):
    """Strings with more pushes than pops."""

    order_sensitive: ClassVar[bool] = False
    alphabet: ClassVar[tuple[str, ...]] = TOKENS

    def labels_of_counts(self, counts):
        return counts[:, 0] > counts[:, 1]

    def accepts(self, text):
        tokens = text.split()
        return tokens.count("push") > tokens.count("pop")

    def has_positive(self, length):
        return length > 0

    def positive(self, rng, length):
        while True:
            letters = rng.integers(3, size=length, dtype=np.uint8)
            if (letters == 0).sum() > (letters == 1).sum():
                return letters

    def describe(self):
        return "Strings with more pushes than pops are positive."
