"""Ablation: what any model can do without, on a sample of its test strings.

A part that is ablated by *zero* adds nothing; by *mean*, it has its mean over all tokens of the
sample, whatever the string. Parts are a Transformer's heads, feed-forwards and their units, and a
recurrent network's units, whose states are replaced after every token.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from seqcls.errors import ConfigError
from seqcls.evaluation import distinct_test_strings, readable_strings
from seqcls.interpretability.strings.asked import AskedModel
from seqcls.interpretability.strings.plain import PAIRS_AT_ONCE, Changing, plain_model
from seqcls.models.base import Classifier, read_ids
from seqcls.models.parts import PART_KINDS, Part, PartKind
from seqcls.tokens.strings import TokenStrings
from seqcls.tokens.tokenizer import PAD

AblationMethod = Literal["zero", "mean"]
SAMPLE = 400
"""Distinct test strings that ablations are judged by, unless more are asked for."""

MAX_PRUNED = 24
"""Parts that greedy pruning begins with at most: it tries all that are left at every step."""


@dataclass(frozen=True, eq=False)
class Ablated:
    """What is left of a model without some of its parts."""

    parts: tuple[Part, ...]
    errors: int
    accuracy: float
    """In [0, 1], each distinct string of the sample once."""
    loss: float
    """Mean binary cross entropy, in nats."""
    logit_change: float
    """Mean |change of the logit|."""
    lengths: Int64[np.ndarray, " length"]
    """Those of the sample's strings, ascending."""
    strings: Int64[np.ndarray, " length"]
    right: Int64[np.ndarray, " length"]
    """How many strings of each length there are, and how many are answered rightly."""


def parts_of(model: AskedModel, kinds: Iterable[PartKind] = PART_KINDS) -> tuple[Part, ...]:
    """The parts that a model has of these kinds.

    Raises:
        ConfigError: an architecture from outside that names none.
    """
    parts = tuple(plain_model(model).parts())
    if not parts:
        raise ConfigError(
            f"architecture={model.config.architecture!r} names no parts that it could do without"
        )
    wanted = set(kinds)
    return tuple(own for own in parts if own.kind in wanted)


def main_parts(model: AskedModel) -> tuple[Part, ...]:
    """A model's parts without units, of which there may be hundreds, where it has any others.

    Raises:
        ConfigError: as `parts_of`.
    """
    return parts_of(model, ("head", "feed-forward")) or parts_of(model)


def rank(
    judge: "Judge", parts: Sequence[Part], how: AblationMethod = "zero"
) -> tuple[Ablated, ...]:
    """What the model is without each part alone, the dearest first."""
    found = [judge.without([part], how) for part in parts]
    return tuple(sorted(found, key=lambda own: (-own.errors, -own.logit_change)))


def prune(judge: "Judge", parts: Sequence[Part], how: AblationMethod = "zero") -> Iterator[Ablated]:
    """Without more and more parts, each time that one which costs the fewest errors.

    On a tie, the one with the least loss. The first has all parts (Michel, Levy & Neubig 2019, *Are
    Sixteen Heads Really Better than One?*).

    Raises:
        ConfigError: more than `MAX_PRUNED` parts.
    """
    if len(parts) > MAX_PRUNED:
        raise ConfigError(
            f"{len(parts)} parts are too many to prune one by one: expected at most {MAX_PRUNED}; "
            "take heads, or feed-forwards"
        )
    gone: tuple[Part, ...] = ()
    yield judge.without(gone, how)
    while len(gone) < len(parts):
        tried = [judge.without((*gone, own), how) for own in parts if own not in gone]
        best = min(tried, key=lambda own: (own.errors, own.loss))
        gone = best.parts
        yield best


class Judge:
    """A model and the strings that its ablations are judged by."""

    def __init__(self, model: AskedModel, sample: int = SAMPLE) -> None:
        """Takes a sample of the distinct test strings, spread evenly over their lengths.

        Args:
            model: the model; strings that it has no places for are left out.
            sample: strings at most.
        """
        test = distinct_test_strings(model.problem.test)
        rows = np.flatnonzero(readable_strings(model.problem, test.strings))
        rows = rows[np.argsort(test.strings.lengths[rows], kind="stable")]
        if len(rows) > sample:
            rows = rows[len(rows) * np.arange(sample) // sample]
        self.strings = test.strings.take(rows)
        self.targets = test.targets[rows]
        self._kind = model.problem.kind
        self._own = plain_model(model)
        self._batches = list(_batches(self._own, self.strings))

    @cached_property
    def before(self) -> Float[np.ndarray, " string"]:
        """The logits, or margins, of the whole model."""
        return self._kind.margins(self.outputs((), "zero"), self.targets)

    def without(self, parts: Sequence[Part], how: AblationMethod) -> Ablated:
        """What is left without these parts."""
        outputs = self.outputs(parts, how)
        right = self._kind.answers(outputs) == self.targets
        margins = self._kind.margins(outputs, self.targets)
        lengths, rows = np.unique(self.strings.lengths, return_inverse=True)
        return Ablated(
            parts=tuple(parts),
            errors=int((~right).sum()),
            accuracy=float(right.mean()),
            loss=self._loss(outputs),
            logit_change=float(np.abs(margins - self.before).mean()),
            lengths=lengths,
            strings=np.bincount(rows, minlength=len(lengths)),
            right=np.bincount(rows, right, len(lengths)).astype(np.int64),
        )

    def _loss(self, outputs: np.ndarray) -> float:
        """The mean over the strings, in nats; no logit is scaled."""
        targets = torch.from_numpy(self._kind.encoded(self.targets, "float64"))
        losses = self._kind.losses(torch.from_numpy(outputs), targets, "default")
        return float(losses.mean())

    def outputs(
        self, parts: Sequence[Part], how: AblationMethod
    ) -> Float[np.ndarray, "string *output"]:
        """What the head gives without these parts."""
        values = {part: self._means[part] if how == "mean" else 0.0 for part in parts}
        with torch.no_grad():
            found = [_run(self._own, ids, values) for ids in self._batches]
        return torch.cat(found).numpy()

    @cached_property
    def _means(self) -> "_Means":
        return _Means(self._own, self._batches)


Value = Tensor | float


def _run(model: Classifier, ids: Tensor, values: dict[Part, Value]) -> Tensor:
    states = model.parts()
    changes: dict[str, list[tuple[Part, Value]]] = {}
    for part, value in values.items():
        changes.setdefault(states[part], []).append((part, value))

    def change(name: str, _position: int | None, state: Tensor) -> Tensor:
        own = changes.get(name)
        if own is None:
            return state
        changed = state.clone()
        for part, value in own:
            part.within(changed)[...] = value
        return changed

    return model.run(ids, Changing(change), None)


class _Means:
    """The means of parts' states over all tokens of all strings."""

    def __init__(self, model: Classifier, batches: Sequence[Tensor]) -> None:
        self._states = model.parts()
        self._sums: dict[str, Tensor] = {}
        tokens = 0
        for ids in batches:
            kept = _kept(model, ids)
            real = (ids != PAD).double()
            tokens += int(real.sum())
            for name, state in kept.items():
                # A head's states have the head before the position.
                weights = real[:, None, :, None] if state.dim() == 4 else real[:, :, None]
                summed = (state * weights).sum(dim=(0, -2))
                self._sums[name] = self._sums.get(name, torch.zeros_like(summed)) + summed
        self._tokens = max(tokens, 1)

    def __getitem__(self, part: Part) -> Tensor:
        mean = self._sums[self._states[part]] / self._tokens
        return mean if part.kind == "feed-forward" else mean[part.number]


def _kept(model: Classifier, ids: Tensor) -> dict[str, Tensor]:
    """The states that are averaged, and no others: attention between all pairs would be much."""
    averaged, kept = set(model.parts().values()), dict[str, Tensor]()

    def keep(name: str, position: int | None, state: Tensor) -> Tensor:
        if position is None and name in averaged:
            kept[name] = state
        return state

    with torch.no_grad():
        model.run(ids, Changing(keep), None)
    return kept


def _batches(model: Classifier, strings: TokenStrings) -> Iterator[Tensor]:
    """The strings' token ids, which are sorted by length, some at a time, as narrow as can be."""
    start = 0
    while start < len(strings):
        end = len(strings)
        width = int(strings.lengths[start:end].max(initial=0)) + 1
        end = min(end, start + max(PAIRS_AT_ONCE // width**2, 1), start + 100)
        ids = read_ids(strings.take(slice(start, end)), model.config.readout)
        yield torch.from_numpy(ids).long()
        start = end
