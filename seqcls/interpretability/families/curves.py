"""What is said of a family of strings: where its answer changes, as a curve or a map."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.interpretability.families.notation import Family
from seqcls.interpretability.model.network import sigmoid


@dataclass(frozen=True)
class Change:
    """The string with `n - 1` is answered otherwise than with `n`."""

    n: int
    answer: bool
    """From `n` on: true means in the language."""
    logit_before: float
    logit: float


@dataclass(frozen=True, eq=False)
class Curve:
    """Labels and answers of a family with one free count."""

    family: Family
    n: Int64[np.ndarray, " string"]
    """From 1 on, evenly on a logarithmic scale, both sides of each change among them."""
    labels: Bool[np.ndarray, " string"]
    logits: Float[np.ndarray, " string"]
    changes: tuple[Change, ...]
    """Changes of the answer, in order, each exact. By letter counts all up to `MAX_COUNT`; else
    there may
    be more between the values that were tried."""
    limit: float | None
    """The logit as n grows without end, by letter counts; None where strings were run."""

    @property
    def probability(self) -> Float[np.ndarray, " string"]:
        return sigmoid(self.logits)

    @property
    def first_wrong(self) -> int | None:
        """The least n, of those tried, whose string is misclassified."""
        wrong = np.flatnonzero((self.logits > 0) != self.labels)
        return int(self.n[wrong[0]]) if len(wrong) else None


@dataclass(frozen=True, eq=False)
class Map:
    """Labels and answers of a family with two free counts, on a logarithmic grid."""

    family: Family
    first: Int64[np.ndarray, " row"]
    """Values of the first free count."""
    second: Int64[np.ndarray, " column"]
    labels: Bool[np.ndarray, "row column"]
    logits: Float[np.ndarray, "row column"]
    """NaN where the model has no places for so long a string."""
    changes: tuple[tuple[Change, ...], ...]
    """For each value of the first free count, of the answer over the second; as of a `Curve`."""
    exact: bool
    """By letter counts, and not by running strings."""

    @property
    def wrong(self) -> Bool[np.ndarray, "row column"]:
        """Which strings are misclassified."""
        known = ~np.isnan(self.logits)
        return np.asarray(known & ((self.logits > 0) != self.labels))


def grid(longest: int, points: int) -> Int64[np.ndarray, " string"]:
    """Values of a free count, evenly on a logarithmic scale."""
    return np.unique(np.geomspace(1, longest, points).round().astype(np.int64))
