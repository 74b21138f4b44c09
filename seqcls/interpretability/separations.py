"""Bounds of the length, or of a feature of the task, that separate errors from right answers.

A bound is sought for all errors; else for false positives and for false negatives, against right
answers of the same label, or against those of both labels alike, which separates errors from what
gets the same answer. It is sought among the test strings and among all short ones. Where it is
found, its balanced accuracy is at least `FOUND_AT`. Among the other strings it is at least
`HOLDS_AT`; without errors there, `FOUND_AT` of the right answers lie on their side.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from seqcls.interpretability.domains import TriedStrings
from seqcls.interpretability.mechanisms import BEYOND, LONGER, AttributedError
from seqcls.interpretability.rules import Bound, bounds
from seqcls.tasks import Task

FOUND_AT, HOLDS_AT = 0.9, 0.75

MIN_GROUP_SIZE = 5
"""With fewer errors, or right answers, no bound is sought, which would always be found."""

LENGTH = "the length"

KINDS = ("false positives", "false negatives")
"""Errors that a bound may be of, beside all of them."""

Rows = Bool[np.ndarray, " string"]
Features = Mapping[str, np.ndarray]


Group = tuple[AttributedError, Rows]
"""A cause of an error, and the test strings that it is the cause of."""


class _Sides(NamedTuple):
    """The errors and the right answers that a bound is to separate, and their features."""

    errors: Rows
    right: Sequence[Rows]
    """Groups that weigh the same."""
    features: Features

    @property
    def are_many(self) -> bool:
        return all(int(rows.sum()) >= MIN_GROUP_SIZE for rows in (self.errors, *self.right))

    @property
    def weights(self) -> Float[np.ndarray, " string"]:
        """Errors and right answers weigh the same."""
        shares = [rows / rows.sum() / len(self.right) for rows in self.right]
        return np.asarray(self.errors / self.errors.sum() + sum(shares))

    def score(self, beyond: Rows) -> float:
        """Balanced accuracy; without errors, the share of right answers on their side."""
        spared = [float((~beyond)[rows].mean()) for rows in self.right if rows.any()]
        parts = [float(np.mean(spared))] if spared else []
        if self.errors.any():
            parts.append(float(beyond[self.errors].mean()))
        return float(np.mean(parts)) if parts else 1.0


def separations(
    task: Task, test: TriedStrings, short: TriedStrings, *, by_length: bool
) -> Iterator[Group]:
    """Yields a bound that separates all errors, or else at most one for each kind.

    Args:
        by_length: whether a bound of the length may be one. If it may not, and separates errors
            better than any feature, there is none: the features would be proxies of the length.
    """
    features = [_features(task, tried) for tried in (test, short)]
    for kind in ("", *KINDS):
        # The first of equals: a feature comes before the length.
        best = max(_find_bounds(kind, (test, short), features), key=lambda x: x[0], default=None)
        if best is not None and (by_length or best[1] != LENGTH):
            _, name, bound = best
            beyond = _sides(kind, test, features[0])[0].errors & bound.says(features[0][name])
            text = f"{kind}: " * bool(kind) + f"{name} is {bound}"
            cause = LONGER if name == LENGTH else BEYOND
            yield AttributedError("", cause, None, text), beyond
            # One bound for all errors is more informative than one for each kind.
            if not kind:
                return


def _find_bounds(
    kind: str, tried: tuple[TriedStrings, TriedStrings], features: Sequence[Features]
) -> Iterator[tuple[float, str, Bound]]:
    """Bounds that hold for both, each with how well; of the length last."""
    both = [_sides(kind, strings, values) for strings, values in zip(tried, features, strict=True)]
    for test, short in zip(*both, strict=True):
        # The strings that chose a bound cannot test it, so the others do.
        for sought, other in ((test, short), (short, test)):
            if not sought.are_many:
                continue
            least = HOLDS_AT if other.errors.any() else FOUND_AT
            for name, values in sought.features.items():
                for bound in bounds(values.astype(float), sought.errors, sought.weights):
                    score = sought.score(bound.says(values))
                    if score >= FOUND_AT and other.score(bound.says(other.features[name])) >= least:
                        yield score, name, bound


def _sides(kind: str, tried: TriedStrings, features: Features) -> list[_Sides]:
    if not kind:
        return [_Sides(tried.wrong, [~tried.wrong], features)]
    answer = kind == KINDS[0]
    # Answer of the errors: false positives are predicted positive, and their label is negative.
    same_answer, same_label = (
        ~tried.wrong & (tried.labels == label) for label in (answer, not answer)
    )
    errors = tried.wrong & (tried.labels != answer)
    return [_Sides(errors, right, features) for right in ([same_label], [same_label, same_answer])]


def _features(task: Task, tried: TriedStrings) -> dict[str, np.ndarray]:
    features = task.features(tried.strings)
    named = {
        # Features called such as a's are numbers of tokens.
        f"the number of {x}" if x.endswith("'s") else f"the {x}": v
        for x, v in features.items()
    }
    # Last, so that a feature that separates as well is found before.
    return {**named, LENGTH: tried.strings.lengths}
