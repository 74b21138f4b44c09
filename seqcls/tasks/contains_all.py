"""Does the string contain at least one of each required letter?"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from seqcls.tokenizer import Tokenizer


@dataclass(frozen=True)
class ContainsAll:
    """Strings with every required letter are positive.

    With the letters `a` and `b` required: `baac` is positive; `aac`, `c{9}` and the empty string
    are negative.
    """

    num_letters: int
    required_letters: str

    @cached_property
    def required(self) -> tuple[int, ...]:
        """The numbers of the required letters, ascending."""
        return tuple(Tokenizer(self.num_letters).alphabet.index(x) for x in self.required_letters)

    @cached_property
    def others(self) -> tuple[int, ...]:
        """The numbers of all other letters, ascending."""
        return tuple(x for x in range(self.num_letters) if x not in self.required)

    def positive(self, counts: Int[np.ndarray, "string letter"]) -> Bool[np.ndarray, " string"]:
        """Which of the strings with these letter counts are in the language."""
        return np.asarray((counts[:, self.required] > 0).all(axis=1))
