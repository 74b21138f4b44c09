"""Backends that run strings: any model, scored by a sample of its test strings, in PyTorch.

Parts are a Transformer's heads, feed-forwards and their units, and a recurrent network's units,
whose states are replaced after every token. Means are those over all tokens of the sample. Models
that write are teacher forced.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from seqcls.errors import ConfigError
from seqcls.evaluation import DistinctStrings
from seqcls.interpretability.backends import Ablation, Backend
from seqcls.interpretability.domains import sampled_strings
from seqcls.interpretability.readable_model import (
    PAIRS_AT_ONCE,
    Changing,
    from_separator,
    plain_model,
    plain_network,
)
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.base import Classifier
from seqcls.models.parts import Part, PartKind
from seqcls.models.pictures import pictures_at_once
from seqcls.models.positions import read_ids
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import PAD


class Strings(Backend):
    """A model that answers a string at once, and a sample of its distinct test strings.

    The sample is spread evenly over the lengths, and each of its strings counts once.
    """

    max_pruned = 24

    def __init__(self, model: TrainedModel, sample: int) -> None:
        """Takes a model.

        Args:
            model: the model; strings that it has no places for are left out.
            sample: strings at most.
        """
        super().__init__(model)
        self._sample = sample
        self._plain = plain_model(model)

    @cached_property
    def tested(self) -> DistinctStrings:
        """The sample, the shortest strings first."""
        chosen = sampled_strings(self.model.problem, self._sample)
        return replace(chosen, occurrences=np.ones_like(chosen.occurrences))

    def parts(self, kinds: Sequence[PartKind] = ()) -> tuple[Part, ...]:
        """Implements `Backend.parts`.

        If no kinds are named, units, of which there may be hundreds, are left out where there are
        any others.
        """
        parts = tuple(self._plain.parts())
        if not parts:
            raise ConfigError(
                f"architecture={self.model.config.architecture!r} names no parts that it could do "
                "without"
            )
        main = tuple(part for part in parts if part.kind in (kinds or ("head", "feed-forward")))
        return main if kinds or main else parts

    def loss(self, outputs: Float[np.ndarray, "string *output"]) -> float:
        losses = self.model.problem.kind.losses(torch.from_numpy(outputs), self._encoded, "default")
        return float(losses.mean())

    def outputs(self, ablation: Ablation) -> Float[np.ndarray, "string *output"]:
        values = {
            part: self._means[part] if how == "mean" else 0.0 for part, how in ablation.items()
        }
        with torch.no_grad():
            outputs = [self._judge(x, _run(self._plain, x, values)) for x in self._batches]
        return torch.cat(outputs).numpy()

    def _judge(self, ids: Tensor, outputs: Tensor) -> Tensor:
        """What is judged of that which the head gives for a batch: all, or at every place."""
        return outputs[ids != PAD] if self.model.problem.at_places else outputs

    @cached_property
    def _encoded(self) -> Tensor:
        model = self.model
        encode = model.problem.kind.encoded
        return torch.from_numpy(encode(model.task, self.tested.examples, plain_network(model)))

    @cached_property
    def _batches(self) -> list[Tensor]:
        model = self.model
        read = model.problem.kind.reading(model.task, self.tested.examples)
        return list(_batches(self._plain, read))

    @cached_property
    def _means(self) -> "_Means":
        return _Means(self._plain, self._batches)


class Outputs(Strings):
    """A model that writes, and a sample of its distinct test inputs with their targets.

    An input is answered right where every token of its target and `END` has the highest output
    after those before it, as greedy decoding would write it.
    """

    def loss(self, outputs: Float[np.ndarray, "token output"]) -> float:
        """The mean over inputs of the cross entropy of all tokens of the target and `END`."""
        return float(-self.model.problem.kind.margins(outputs, self.tested.targets).mean())

    def _judge(self, ids: Tensor, outputs: Tensor) -> Tensor:
        """What the head gives at the tokens of target and `END`, input by input."""
        return outputs[from_separator(self.model, ids)]


Value = Tensor | float


def _run(model: Classifier, ids: Tensor, values: dict[Part, Value]) -> Tensor:
    states = model.parts()
    changes: dict[str, list[tuple[Part, Value]]] = {}
    for part, value in values.items():
        changes.setdefault(states[part], []).append((part, value))

    def change(name: str, _position: int | None, state: Tensor) -> Tensor:
        changed_parts = changes.get(name)
        if changed_parts is None:
            return state
        changed = state.clone()
        for part, value in changed_parts:
            part.within(changed)[...] = value
        return changed

    return model.run(ids, Changing(change), None)


class _Means:
    """The means of parts' states over all tokens of all strings."""

    def __init__(self, model: Classifier, batches: Sequence[Tensor]) -> None:
        self._states = model.parts()
        self._sums: dict[str, Tensor] = {}
        self._tokens: dict[str, int] = {}
        for ids in batches:
            for name, state in _record_averaged(model, ids).items():
                real = model.tokens_of(ids, name).double()
                self._tokens[name] = self._tokens.get(name, 0) + int(real.sum())
                # A head's states have the head before the position.
                weights = real[:, None, :, None] if state.dim() == 4 else real[:, :, None]
                summed = (state * weights).sum(dim=(0, -2))
                self._sums[name] = self._sums.get(name, torch.zeros_like(summed)) + summed

    def __getitem__(self, part: Part) -> Tensor:
        name = self._states[part]
        mean = self._sums[name] / max(self._tokens[name], 1)
        return mean if part.kind == "feed-forward" else mean[part.number]


def _record_averaged(model: Classifier, ids: Tensor) -> dict[str, Tensor]:
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
    start, most = 0, min(100, pictures_at_once(model.config))
    while start < len(strings):
        end = len(strings)
        width = int(strings.lengths[start:end].max(initial=0)) + 1
        end = min(end, start + max(PAIRS_AT_ONCE // width**2, 1), start + most)
        ids = read_ids(strings.take(slice(start, end)), model.config.readout)
        yield torch.from_numpy(ids).long()
        start = end
