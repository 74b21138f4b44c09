"""Strings with free counts, `ab{n}` or `a{m}b{n}`: where does the answer change as they grow?

A family is a fixed string and, for each free count, the letters that it counts. Its strings exist
only as counts, so a million letters cost what ten do.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int64

from seqcls.errors import StringError
from seqcls.inside.network import Network, sigmoid
from seqcls.tokenizer import Tokenizer

MAX_COUNT = 1_000_000
"""The largest value that a free count is given."""

_FREE = re.compile(r"([^{}])\{([a-z])\}", re.DOTALL)


@dataclass(frozen=True)
class Family:
    """Strings that differ in one or two counts, each from 1 on."""

    text: str
    names: tuple[str, ...]
    """Of the free counts, sorted, such as `("n",)` or `("m", "n")`."""
    fixed: tuple[int, ...]
    """How often each letter of the alphabet occurs besides."""
    free: tuple[tuple[int, ...], ...]
    """For each free count, how many of each letter one more of it brings: `a{n}b{n}` has (1, 1)."""

    def counts(
        self, values: Int64[np.ndarray, "string free"]
    ) -> Int64[np.ndarray, "string letter"]:
        """The letter counts of the strings whose free counts have these values."""
        return np.asarray(np.array(self.fixed) + values @ np.array(self.free, dtype=np.int64))

    def member(self, values: Sequence[int]) -> str:
        """One string of the family, in the usual notation."""
        numbers = dict(zip(self.names, values, strict=True))
        return _FREE.sub(lambda match: f"{match[1]}{{{numbers[match[2]]}}}", self.text)


@dataclass(frozen=True)
class Flip:
    """A change of the model's answer: the string with `n - 1` is answered otherwise than with `n`."""

    n: int
    answer: bool
    """From `n` on: true means in the language."""
    logit_before: float
    logit: float


@dataclass(frozen=True, eq=False)
class Curve:
    """A family with one free count."""

    family: Family
    label: bool
    """The same for all its strings, whose letters are the same."""
    n: Int64[np.ndarray, " string"]
    """From 1 to `MAX_COUNT`, evenly on a logarithmic scale, and both sides of each flip."""
    logit: Float[np.ndarray, " string"]
    probability: Float[np.ndarray, " string"]
    flips: tuple[Flip, ...]
    """Every one up to `MAX_COUNT`, in order."""
    limit: float
    """The logit as n grows without end."""

    @property
    def first_wrong(self) -> int | None:
        """The least n whose string is misclassified."""
        if bool(self.logit[0] > 0) != self.label:
            return 1
        return self.flips[0].n if self.flips else None


@dataclass(frozen=True, eq=False)
class Map:
    """A family with two free counts, on a logarithmic grid."""

    family: Family
    label: bool
    first: Int64[np.ndarray, " row"]
    """Values of the first free count."""
    second: Int64[np.ndarray, " column"]
    logit: Float[np.ndarray, "row column"]
    boundary: tuple[tuple[Flip, ...], ...]
    """For each value of the first free count every flip over the second, exactly."""
