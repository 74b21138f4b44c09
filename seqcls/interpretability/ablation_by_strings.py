"""Parts of any model ablated, judged by a sample of its test strings, which are run.

Parts are a Transformer's heads, feed-forwards and their units, and a recurrent network's units,
whose states are replaced after every token. Means are those over all tokens of the sample.

Models that write are teacher forced. An input is answered right where every token of its target and
`END` has the highest output after those before it, as greedy decoding would write it. The loss is
the cross entropy of all of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from seqcls.errors import ConfigError
from seqcls.interpretability.ablation_judge import Ablation, Judge
from seqcls.interpretability.domains import sampled_strings
from seqcls.interpretability.readable_model import (
    PAIRS_AT_ONCE,
    Changing,
    from_separator,
    plain_model,
    plain_network,
)
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.kinds import Examples
from seqcls.models.base import Classifier
from seqcls.models.parts import PART_KINDS, Part, PartKind
from seqcls.models.pictures import pictures_at_once
from seqcls.models.positions import read_ids
from seqcls.strings.token_strings import TokenStrings


def parts_of(model: TrainedModel, kinds: Iterable[PartKind] = PART_KINDS) -> tuple[Part, ...]:
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
    return tuple(part for part in parts if part.kind in wanted)


def main_parts(model: TrainedModel) -> tuple[Part, ...]:
    """A model's parts without units, of which there may be hundreds, where it has any others.

    Raises:
        ConfigError: as `parts_of`.
    """
    return parts_of(model, ("head", "feed-forward")) or parts_of(model)


class SampledJudge(Judge):
    """A model, and a sample of its distinct test strings, each of which counts once."""

    max_pruned = 24

    def __init__(self, model: TrainedModel, sample: int) -> None:
        """Takes strings that are spread evenly over their lengths.

        Args:
            model: the model; strings that it has no places for are left out.
            sample: strings at most.
        """
        self._asked = model
        self._model = plain_model(model)
        chosen = sampled_strings(model.problem, sample)
        once = np.ones(len(chosen.texts), dtype=np.int64)
        super().__init__(model.problem.kind, chosen.strings, chosen.targets, once)
        read = self.kind.reading(model.task, chosen.examples)
        self._batches = list(_batches(self._model, read))

    @property
    def parts(self) -> tuple[Part, ...]:
        """The main parts, as `main_parts` has them."""
        return main_parts(self._asked)

    def loss(self, outputs: Float[np.ndarray, "string *output"]) -> float:
        """Implements `Judge.loss`."""
        if self._is_of_tokens:
            return float(-self.margins(outputs).mean())
        examples = Examples(self.strings, self.targets)
        encoded = self.kind.encoded(self._asked.task, examples, plain_network(self._asked))
        targets = torch.from_numpy(encoded)
        return float(self.kind.losses(torch.from_numpy(outputs), targets, "default").mean())

    def outputs(self, ablation: Ablation) -> Float[np.ndarray, "string *output"]:
        """Implements `Judge.outputs`."""
        values = {
            part: self._means[part] if how == "mean" else 0.0 for part, how in ablation.items()
        }
        with torch.no_grad():
            pairs = [(ids, _run(self._model, ids, values)) for ids in self._batches]
        if self._is_of_tokens:
            # What the head gives at the tokens of target and `END`, input by input.
            pairs = [(ids, given[from_separator(self._asked, ids)]) for ids, given in pairs]
        return torch.cat([given for _, given in pairs]).numpy()

    @property
    def _is_of_tokens(self) -> bool:
        """Whether the head answers token by token."""
        return self._model.config.head != "string"

    @cached_property
    def _means(self) -> "_Means":
        return _Means(self._model, self._batches)


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
            for name, state in _kept(model, ids).items():
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
    start, most = 0, min(100, pictures_at_once(model.config))
    while start < len(strings):
        end = len(strings)
        width = int(strings.lengths[start:end].max(initial=0)) + 1
        end = min(end, start + max(PAIRS_AT_ONCE // width**2, 1), start + most)
        ids = read_ids(strings.take(slice(start, end)), model.config.readout)
        yield torch.from_numpy(ids).long()
        start = end
