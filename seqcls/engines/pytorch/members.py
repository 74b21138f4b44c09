"""The members of a group with stacked parameters, where each model is a view of its row.

Members share their strings and nothing else. A GPU computes all of them in one step, by `vmap`. On
a CPU, with dropout and for pictures, one after another is as fast, and a member then agrees to the
last bit with itself trained alone. On a GPU it agrees to 1e-6: the order of its sums depends on the
number of members.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int64, Integer
from torch import Tensor
from torch.func import functional_call, vmap
from torch.nn import functional
from torch.optim.adamw import adamw

from seqcls.cancellation import check_each
from seqcls.config import NetworkConfig
from seqcls.counts import read_counts
from seqcls.curricula import frozen_parameters
from seqcls.engines.member import is_matrix, steps_of_epoch
from seqcls.models.base import Outputs
from seqcls.models.batches import Batch, compute
from seqcls.models.initialization import make_model
from seqcls.models.pictures import pictures_at_once
from seqcls.models.positions import read_ids, special_tokens
from seqcls.models.positions.places import TrainingPlaces, positions_of
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import PAD

# Strings in batches and pieces.


def training_batches(
    config: NetworkConfig,
    strings: TokenStrings,
    batch_size: int,
    places: TrainingPlaces,
    device: torch.device,
) -> Iterator[Batch]:
    """Yields an epoch's batches, in order."""
    # Dropout's draws depend on the width, which is the epoch's, as in the report's program.
    widest = int(strings.lengths.max(initial=0)) + special_tokens(config)
    for start in range(0, len(strings), batch_size):
        ids = trimmed_ids(config, strings, slice(start, start + batch_size))
        drawn = places.draw(ids)
        if config.dropout_rate > 0:
            more = (0, widest - ids.shape[1])
            ids, drawn = functional.pad(ids, more, value=PAD), functional.pad(drawn, more)
        yield Batch(config, ids.to(device), drawn.to(device))


PAIRS_AT_ONCE = 2**22
"""Largest number of scores of one head in a piece: some tens of megabytes."""

STATES_AT_ONCE = 2**23
"""Largest number of values in the widest state of a piece, which has a row for each token."""

COUNTED_AT_ONCE = 2**20
"""The same for strings that are read by counts, so that the state stays in the processor's cache.
"""


def testing_pieces(
    config: NetworkConfig, strings: TokenStrings, device: torch.device
) -> Iterator[tuple[Int64[np.ndarray, " row"], Batch]]:
    """Yields pieces of strings that fit in memory, with their rows, shortest strings first."""
    # Strings of like length share a piece, which wastes little on padding.
    order = np.argsort(strings.lengths, kind="stable")
    widths = strings.lengths[order] + special_tokens(config)
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and _fits(config, end + 1 - start, int(widths[end])):
            end += 1
        rows = order[start:end]
        ids = trimmed_ids(config, strings, rows)
        yield rows, Batch(config, ids.to(device), positions_of(config, ids).to(device))
        start = end


def trimmed_ids(
    config: NetworkConfig, strings: TokenStrings, rows: slice | Int64[np.ndarray, " row"]
) -> Integer[Tensor, "string position"]:
    """Returns the token ids of some strings, no wider than the longest of them."""
    taken = strings.take(rows)
    ids = read_ids(taken, config.readout)
    width = int(taken.lengths.max(initial=0)) + special_tokens(config)
    return torch.from_numpy(ids[:, :width].astype(np.int32))


def _fits(config: NetworkConfig, strings: int, width: int) -> bool:
    heads = max(config.num_attention_heads, 1)
    answers = config.num_outputs if config.head != "string" else 0
    widest = max(4 * config.hidden_size, config.feed_forward_size, 2 * answers)
    return (
        strings <= pictures_at_once(config)
        and strings * width * width * heads <= PAIRS_AT_ONCE
        and strings * width * widest <= STATES_AT_ONCE
    )


# The members.


Losses = Callable[[Float[Tensor, "..."]], Float[Tensor, "*member string"]]
"""The loss of every string of a batch as a function of the head's outputs."""

ALIGNED = 64
"""Alignment of each member's values in bytes, at least that of vector instructions: so a member is
computed to the last bit as it is alone."""


class Members:
    """The models of a group.

    Args:
        initial: the initial parameters of each, by name.
        seed: that of each member's own generator of dropout, as in the report's program, so that
            its draws do not depend on the other members.
        by_counts: whether strings are read by their letter counts, by all members in one step.
    """

    def __init__(
        self,
        config: NetworkConfig,
        initial: Sequence[Weights],
        device: torch.device,
        *,
        seed: int = 0,
        by_counts: bool = False,
    ) -> None:
        self.config, self.device, self.by_counts = config, device, by_counts
        on_gpu = device.type == "cuda" and not (config.dropout_rate or config.picture)
        self.at_once = by_counts or on_gpu
        self._shapes = {name: value.shape for name, value in initial[0].items()}
        self.rows: dict[str, Tensor] = {}
        """By parameter a row for each member, filled up with zeros to a multiple of `ALIGNED`."""
        for name, value in initial[0].items():
            step = ALIGNED // value.itemsize
            rows = np.zeros((len(initial), -(-value.size // step) * step), value.dtype)
            rows[:, : value.size] = [weights[name].ravel() for weights in initial]
            self.rows[name] = torch.from_numpy(rows).to(device)
        dtype = getattr(torch, config.precision)
        self.models = [make_model(config).to(device, dtype).eval() for _ in initial]
        for model in self.models:
            model.use_dropout_generator(torch.Generator(device).manual_seed(seed))
        self._bind()

    def __len__(self) -> int:
        return len(self.models)

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Every parameter with a leading member axis, as views of the rows."""
        return {name: self._view(name, rows) for name, rows in self.rows.items()}

    @property
    def gradients(self) -> dict[str, Tensor]:
        """The gradients of the parameters' rows, which accumulate."""
        return {name: rows.grad for name, rows in self.rows.items() if rows.grad is not None}

    def backward(self, batch: Batch, losses: Losses, units: int) -> Float[Tensor, " member"]:
        """Returns each member's losses, summed and divided by `units`; writes the gradients."""
        for gradient in self.gradients.values():
            gradient.zero_()
        if self.at_once:
            means = losses(self._compute_at_once(batch)).sum(dim=1) / units
            # Members share no parameter, so the sum's gradient is that of each one's own loss.
            means.sum().backward()
            return means.detach()
        found = []
        for model in self.models:
            if self.config.dropout_rate > 0:
                model.train()
            mean = losses(compute(model, batch)).sum() / units
            mean.backward()
            found.append(mean.detach())
            model.eval()
        return torch.stack(found)

    @torch.no_grad()
    def logits(self, piece: Batch) -> Float[Tensor, "member string *output"]:
        """Returns the members' outputs without dropout: one member after another, since the states
        of all would not fit in memory.
        """
        return torch.stack([compute(model, piece) for model in self.models])

    def batches(
        self, strings: TokenStrings, batch_size: int, places: TrainingPlaces
    ) -> Iterator[Batch]:
        """Returns an epoch's batches, in order."""
        if self.by_counts:
            return (batch for _, batch in self._split_counts(strings, batch_size))
        return training_batches(self.config, strings, batch_size, places, self.device)

    def pieces(self, strings: TokenStrings) -> Iterator[tuple[Int64[np.ndarray, " row"], Batch]]:
        """Returns all of the strings in pieces that fit in memory, with their rows."""
        if self.by_counts:
            config, tokens = self.config, strings.counts.shape[1] + 1
            scores = config.num_attention_heads * tokens
            widest = max(config.hidden_size, config.feed_forward_size, scores, 1)
            return self._split_counts(strings, max(COUNTED_AT_ONCE // (tokens * widest), 1))
        return testing_pieces(self.config, strings, self.device)

    def answer(self, strings: TokenStrings) -> Float[np.ndarray, "member string *output"]:
        """Returns every member's logits of every string, computed piece by piece."""
        logits: np.ndarray | None = None
        width = int(strings.lengths.max(initial=0)) + 1
        for rows, piece in check_each(self.pieces(strings)):
            piece_logits = self.logits(piece).cpu().numpy()
            if self.config.head == "places":
                piece_logits = _by_string(piece_logits, strings.lengths[rows] + 1, width)
            if logits is None:
                shape = (len(self), len(strings), *piece_logits.shape[2:])
                logits = np.empty(shape, dtype=piece_logits.dtype)
            logits[:, rows] = piece_logits
        return np.empty((len(self), 0)) if logits is None else logits

    def keep(self, rows: Sequence[int]) -> None:
        """Drops all members but these."""
        self.rows = {name: values.detach()[list(rows)] for name, values in self.rows.items()}
        self.models = [self.models[row] for row in rows]
        self._bind()

    def _bind(self) -> None:
        """Makes the parameters and gradients of every model views of its row."""
        for name, rows in self.rows.items():
            zeros = torch.zeros_like(rows)
            # An empty parameter has no gradient.
            if rows.numel():
                rows.requires_grad_().grad = zeros
            values, gradients = self._view(name, rows.detach()), self._view(name, zeros)
            for row, model in enumerate(self.models):
                parameter = model.get_parameter(name)
                parameter.data = values[row]
                parameter.grad = gradients[row] if values.numel() else None

    def _view(self, name: str, rows: Tensor) -> Tensor:
        shape = self._shapes[name]
        return rows[:, : math.prod(shape)].view(len(rows), *shape)

    def _split_counts(
        self, strings: TokenStrings, size: int
    ) -> Iterator[tuple[Int64[np.ndarray, " row"], Batch]]:
        """Yields `size` strings at a time, each letter once, with their rows."""
        ids, counts = map(torch.from_numpy, read_counts(self.config.readout, strings.counts))
        times = counts.to(self.device, getattr(torch, self.config.precision))
        for start in range(0, len(times), size):
            part = times[start : start + size]
            read = ids.int().to(self.device).expand(len(part), -1)
            yield np.arange(start, start + len(part)), Batch(self.config, read, None, part)

    def _compute_at_once(self, batch: Batch) -> Float[Tensor, "member string *output"]:
        model = self.models[0]

        def compute_one(weights: Mapping[str, Tensor]) -> Outputs:
            outputs: Tensor = functional_call(model, dict(weights), batch.arguments)
            return batch.select_predicted(outputs)

        outputs: Tensor = vmap(compute_one)(self.parameters)
        return outputs


def _by_string(
    outputs: Float[np.ndarray, "member token output"],
    tokens: Int64[np.ndarray, " string"],
    width: int,
) -> Float[np.ndarray, "member string place output"]:
    """Arranges outputs of tokens by string, with NaN after each string's end."""
    by_string = np.full(
        (len(outputs), len(tokens), width, outputs.shape[-1]), np.nan, dtype=outputs.dtype
    )
    by_string[:, np.arange(width) < tokens[:, None]] = outputs
    return by_string


# Their optimizer.


class AdamW:
    """The optimizer `torch.optim.AdamW`, by the function that it calls.

    The function works on each number alone, so no member's step depends on the others. PyTorch's
    class, at its first step, imports the compiler, which takes as long as all else of PyTorch.

    Args:
        problem: the problem of its members, with learning rates and frozen parts.
        weights: those of a member, whose shapes distinguish matrices.
    """

    def __init__(self, problem: Problem, members: Members, weights: Weights) -> None:
        self._config = config = problem.config
        steps = config.max_num_epochs * steps_of_epoch(problem)
        self._frozen = frozen_parameters(config.freeze, weights, steps)
        self._decays = {x for x, y in weights.items() if config.decay == "all" or is_matrix(y)}
        self._first = {name: torch.zeros_like(rows) for name, rows in members.rows.items()}
        self._second = {name: torch.zeros_like(rows) for name, rows in members.rows.items()}
        self._steps = {name: torch.zeros((), device=x.device) for name, x in members.rows.items()}

    @torch.no_grad()
    def step(self, members: Members, learning_rate: float, done: int) -> None:
        """Makes one step, each member's gradient being clipped.

        Args:
            done: the number of training steps before it. Parts that are still frozen make no step.
        """
        moving = [name for name in members.gradients if done >= self._frozen.get(name, 0)]
        if self._config.gradient_clip:
            _clip([members.gradients[name] for name in moving], self._config.gradient_clip)
        for decays in (True, False):
            names = [name for name in moving if (name in self._decays) == decays]
            if not names:
                continue
            adamw(
                [members.rows[name] for name in names],
                [members.gradients[name] for name in names],
                [self._first[name] for name in names],
                [self._second[name] for name in names],
                [],
                [self._steps[name] for name in names],
                fused=True,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=learning_rate,
                weight_decay=self._config.weight_decay if decays else 0.0,
                eps=1e-8,
                maximize=False,
            )

    def keep(self, rows: Sequence[int]) -> None:
        """Drops the moments of all members but these."""
        self._first = {name: x[list(rows)] for name, x in self._first.items()}
        self._second = {name: x[list(rows)] for name, x in self._second.items()}


def _clip(gradients: Sequence[Float[Tensor, "member number"]], most: float) -> None:
    """Clips gradients as `torch.nn.utils.clip_grad_norm_` does, for every member by itself."""
    if not gradients:
        return
    # One parameter after another: the order of a sum over an axis depends on the number of rows.
    squares = sum(gradient.square().sum(dim=1, keepdim=True) for gradient in gradients)
    share = (most / (torch.as_tensor(squares).sqrt() + 1e-6)).clamp_max(1)
    for gradient in gradients:
        gradient.mul_(share)
