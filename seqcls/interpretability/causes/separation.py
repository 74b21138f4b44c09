"""Bounds of the length, or of a feature of the task, that tell a model's errors from right answers.

A bound is sought for all errors; else for false positives and for false negatives, against right
answers of the same label, or against those of both labels alike: that tells what is wrong of what
gets the same answer. It is sought among the test strings and among all short ones. Where it is
found, its balanced accuracy is at least `PARTS`. Among the other strings it is at least `HALFWAY`;
without errors there, `PARTS` of the right answers lie on their side.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from seqcls.interpretability.causes.tried_strings import Tried
from seqcls.interpretability.rules import Bound, bounds
from seqcls.tasks import Task

PARTS, HALFWAY = 0.9, 0.75

FEWEST = 5
"""With fewer errors, or right answers, no bound is sought, which would always be found."""

LENGTH = "the length"

Rows = Bool[np.ndarray, " string"]


@dataclass(frozen=True, eq=False)
class Separation:
    """A bound, and the strings beyond it."""

    kind: str
    """`false positives`, `false negatives`, or nothing of all errors."""
    name: str
    bound: Bound
    beyond: Rows
    """The errors of this kind among the test strings that lie beyond it."""

    @property
    def text(self) -> str:
        """Such as `false positives: the nesting depth is above 3`."""
        return f"{self.kind}: " * bool(self.kind) + f"{self.name} is {self.bound}"


@dataclass(frozen=True, eq=False)
class _Sides:
    """The errors and the right answers that a bound is to tell apart, and their features."""

    errors: Rows
    right: Sequence[Rows]
    """Groups that weigh the same."""
    features: Mapping[str, np.ndarray]

    @property
    def are_many(self) -> bool:
        return all(int(rows.sum()) >= FEWEST for rows in (self.errors, *self.right))

    @property
    def weights(self) -> Float[np.ndarray, " string"]:
        """Errors and right answers weigh the same."""
        weights = self.errors / self.errors.sum()
        for rows in self.right:
            weights = weights + rows / rows.sum() / len(self.right)
        return np.asarray(weights)

    def score(self, beyond: Rows) -> float:
        """Balanced accuracy; without errors, the share of right answers on their side."""
        spared = [float((~beyond)[rows].mean()) for rows in self.right if rows.any()]
        parts = [float(np.mean(spared))] if spared else []
        if self.errors.any():
            parts.append(float(beyond[self.errors].mean()))
        return float(np.mean(parts)) if parts else 1.0


def separations(task: Task, test: Tried, short: Tried, *, by_length: bool) -> list[Separation]:
    """One of all errors, or else at most one of each kind.

    Args:
        task: whose features are tried.
        test: the test strings.
        short: all short strings.
        by_length: whether a bound of the length may be one. If it may not, and tells errors apart
            better than any feature, there is none: the features would stand for the length.
    """
    features = [_features(task, tried) for tried in (test, short)]
    separations = []
    for kind in ("", "false positives", "false negatives"):
        best = max(_found(kind, (test, short), features), key=lambda x: x[0], default=None)
        if best is not None and (by_length or best[1] != LENGTH):
            _, name, bound = best
            errors = _sides(kind, test, features[0])[0].errors
            separations.append(
                Separation(kind, name, bound, errors & bound.says(features[0][name]))
            )
            if not kind:
                break
    return separations


def _found(
    kind: str, tried: tuple[Tried, Tried], features: Sequence[Mapping[str, np.ndarray]]
) -> Iterator[tuple[float, str, Bound]]:
    """Bounds that hold for both, each with how well; of the length last."""
    both = [_sides(kind, strings, values) for strings, values in zip(tried, features, strict=True)]
    for test, short in zip(*both, strict=True):
        for sought, other in ((test, short), (short, test)):
            if not sought.are_many:
                continue
            for name, values in sought.features.items():
                for bound in bounds(values.astype(float), sought.errors, sought.weights):
                    score = sought.score(bound.says(values))
                    least = HALFWAY if other.errors.any() else PARTS
                    if score >= PARTS and other.score(bound.says(other.features[name])) >= least:
                        yield score, name, bound


def _sides(kind: str, tried: Tried, features: Mapping[str, np.ndarray]) -> list[_Sides]:
    if not kind:
        return [_Sides(tried.wrong, [~tried.wrong], features)]
    answer = kind == "false positives"
    same_answer, same_label = (
        ~tried.wrong & (tried.labels == label) for label in (answer, not answer)
    )
    errors = tried.wrong & (tried.labels != answer)
    return [_Sides(errors, right, features) for right in ([same_label], [same_label, same_answer])]


def _features(task: Task, tried: Tried) -> dict[str, np.ndarray]:
    features = task.features(tried.strings)
    named = {
        f"the number of {x}" if x.endswith("'s") else f"the {x}": v for x, v in features.items()
    }
    return {**named, LENGTH: tried.strings.lengths}
