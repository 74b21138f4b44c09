"""Ablation: what a model can do without, each part alone, and pruned from the cheapest on.

How a model answers without parts, and which test strings that is judged by, its backend says.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64

from seqcls.cancellation import check
from seqcls.errors import ConfigError
from seqcls.interpretability.backends import Ablation, AblationMethod, Backend, Counts
from seqcls.interpretability.network import as_network
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.parts import Part
from seqcls.results import Confusion

SAMPLE = 400
"""Distinct test strings that are run, unless another number is asked for."""


def backend_of(model: TrainedModel, sample: int = SAMPLE) -> Backend:
    """All test strings where letter counts decide; else a sample of them, which is run."""
    network = as_network(model, "labels")
    return running(model, sample) if network is None else Counts(network)


def running(model: TrainedModel, sample: int = SAMPLE) -> Backend:
    """The backend of any model, which runs so many of its distinct test strings at most."""
    # Imported where it is used: PyTorch takes a second or two to load.
    from seqcls.interpretability.backends_by_strings import Outputs, Strings

    # An output has as many answers as tokens.
    return Outputs(model, sample) if model.problem.writes else Strings(model, sample)


@dataclass(frozen=True, eq=False)
class Ablated:
    """What is left of a model without some of its parts."""

    parts: tuple[Part, ...]
    errors: int
    accuracy: float
    """In [0, 1]."""
    confusion: Confusion | None
    """The confusion, of a language."""
    loss: float
    """Mean over the strings, in nats."""
    logit_change: float
    """Mean |change of the logit|; of a model that writes, of the target's log-probability."""
    lengths: Int64[np.ndarray, " length"]
    """Those of the strings, ascending."""
    strings: Int64[np.ndarray, " length"]
    right: Int64[np.ndarray, " length"]
    """How many strings of each length there are, and how many are answered rightly."""

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        return {
            "without": [part.text for part in self.parts],
            "misclassified": self.errors,
            "accuracy": self.accuracy,
            "loss": self.loss,
            "logit_change": self.logit_change,
            "lengths": self.lengths.tolist(),
            "strings": self.strings.tolist(),
            "right": self.right.tolist(),
        }


def ablate(backend: Backend, ablation: Ablation) -> Ablated:
    """What is left of a model without these parts."""
    check()
    scores, tested = backend.score(ablation), backend.tested
    lengths, rows, strings = backend.lengths
    wrong = np.flatnonzero(scores.wrong)
    wrong_by_length = np.bincount(rows[wrong], tested.occurrences[wrong], len(lengths))
    right = strings - wrong_by_length.astype(np.int64)
    confusion = None
    if backend.model.problem.kind.cells:
        cell = 2 * tested.targets.astype(np.int64) + (tested.targets ^ scores.wrong)
        cells = np.bincount(cell, tested.occurrences, 4)
        confusion = Confusion(*cells.astype(np.int64).tolist())
    change = np.abs(scores.margins - backend.before)
    return Ablated(
        parts=tuple(ablation),
        errors=int((strings - right).sum()),
        accuracy=float(right.sum() / strings.sum()),
        confusion=confusion,
        loss=scores.loss,
        logit_change=float(np.average(change, weights=tested.occurrences)),
        lengths=lengths,
        strings=strings,
        right=right,
    )


def rank(
    backend: Backend, parts: Sequence[Part], how: AblationMethod = "zero"
) -> tuple[Ablated, ...]:
    """What the model is without each part alone, the dearest first."""
    outcomes = [ablate(backend, {part: how}) for part in parts]
    return tuple(sorted(outcomes, key=lambda left: (-left.errors, -left.logit_change)))


def prune(
    backend: Backend, parts: Sequence[Part], how: AblationMethod = "zero"
) -> Iterator[Ablated]:
    """Without more and more parts, each time that one which costs the fewest errors.

    On a tie, the one with the least loss. The first has all parts (Michel, Levy & Neubig 2019, *Are
    Sixteen Heads Really Better than One?*).

    Raises:
        ConfigError: more than the backend's `max_pruned` parts.
    """
    if len(parts) > backend.max_pruned:
        others = any(part.kind != "unit" for part in backend.parts())
        raise ConfigError(
            f"{len(parts)} parts are too many to prune one by one: expected at most "
            f"{backend.max_pruned}; "
            + ("take heads, or feed-forwards" if others else "ablate each on its own instead")
        )
    best = ablate(backend, {})
    yield best
    while len(best.parts) < len(parts):
        gone = dict.fromkeys(best.parts, how)
        tried = [ablate(backend, {**gone, part: how}) for part in parts if part not in gone]
        best = min(tried, key=lambda left: (left.errors, left.loss))
        yield best
