"""A group's parameters and how they are moved, and what a computation answers."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.optim.adamw import adamw

from seqcls.cancellation import check_each
from seqcls.config import Decay
from seqcls.curricula import frozen_parameters
from seqcls.engines.member import is_matrix
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings

# AdamW of PyTorch on the values of a group, all in one step.


class AdamW:
    """Steps as `torch.optim.AdamW` makes them, by the function that it calls.

    Made and asked for a step, that class imports PyTorch's compiler, which takes a process as long
    as all else of PyTorch.

    Args:
        values: with their gradients, each with a leading member axis.
        weight_decay: as that class has it.
        decays: which numbers of each value decay, of any member; None where all do.
    """

    def __init__(
        self,
        values: Sequence[Tensor],
        *,
        weight_decay: float,
        decays: Sequence[Bool[Tensor, "..."]] | None = None,
    ) -> None:
        self._weight_decay = weight_decay
        self._decays = decays
        self._values = list(values)
        self._first = [torch.zeros_like(x) for x in values]
        self._second = [torch.zeros_like(x) for x in values]
        self._steps = [torch.zeros((), device=x.device) for x in values]

    def step(self, learning_rate: float) -> None:
        """Moves every value that has a gradient."""
        moved = [place for place, value in enumerate(self._values) if value.grad is not None]
        gradients = [value.grad for value in self._values if value.grad is not None]
        weight_decay = self._weight_decay
        with torch.no_grad():
            if self._decays is not None:
                kept, weight_decay = 1 - learning_rate * weight_decay, 0.0
                for place in moved:
                    value = self._values[place]
                    value.copy_(torch.where(self._decays[place], value * kept, value))
            adamw(
                [self._values[place] for place in moved],
                gradients,
                [self._first[place] for place in moved],
                [self._second[place] for place in moved],
                [],
                [self._steps[place] for place in moved],
                fused=True,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=learning_rate,
                weight_decay=weight_decay,
                eps=1e-8,
                maximize=False,
            )

    def keep(self, values: Sequence[Tensor], rows: Sequence[int]) -> None:
        """Goes on with these rows of its values, which are other tensors now."""
        self._values = list(values)
        self._first = [x[list(rows)] for x in self._first]
        self._second = [x[list(rows)] for x in self._second]


# How the members of a group compute their logits and gradients: what each way answers.


class Losses(NamedTuple):
    """The loss of every string of one batch, from what the head gives of each."""

    of: Callable[[Float[Tensor, "..."]], Float[Tensor, "*member string"]]
    units: int
    """By what their sum is divided, to be trained on."""

    def __call__(self, outputs: Float[Tensor, "..."]) -> Float[Tensor, "*member string"]:
        return self.of(outputs)


@runtime_checkable
class Members(Protocol):
    """The parameters of a group's members, and the optimizer that moves them.

    It works on each value alone, so no member's step depends on who trains beside it.
    """

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """Every parameter, with a leading member axis."""
        ...

    def __len__(self) -> int: ...

    def step(self, learning_rate: float, done: int = 0) -> None:
        """One step of AdamW down the gradients, each member's no longer than it may be.

        Args:
            done: the steps of training before it, by which parts are held fixed: they have no
                gradient, and their optimizer has no step yet.
        """
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Drops all members but these, with their optimizer state."""
        ...


@runtime_checkable
class Computation(Protocol):
    """One way through the models of a group, which share their strings and nothing else."""

    def batches(self, strings: TokenStrings) -> Iterator[Any]:
        """An epoch's batches, in order, as this way reads them."""
        ...

    def backward(self, batch: Any, losses: Losses) -> Float[Tensor, " member"]:
        """Each member's mean loss, its gradients left with the group's parameters."""
        ...

    def pieces(self, strings: TokenStrings) -> Iterator[tuple[Int64[np.ndarray, " row"], Any]]:
        """All of the strings in pieces that fit in memory, with their rows."""
        ...

    def logits(self, piece: Any) -> Float[Tensor, "member string *output"]:
        """Every member's logits, without dropout and without gradients."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Drops all members but these; the group has already dropped them."""
        ...


def all_logits(
    computation: Computation, strings: TokenStrings, members: int, *, at_places: bool = False
) -> Float[np.ndarray, "member string *output"]:
    """Every member's logits for every string, piece by piece."""
    logits: np.ndarray | None = None
    width = int(strings.lengths.max(initial=0)) + 1
    for rows, piece in check_each(computation.pieces(strings)):
        piece_logits = computation.logits(piece).cpu().numpy()
        if at_places:
            piece_logits = _by_string(piece_logits, strings.lengths[rows] + 1, width)
        if logits is None:
            logits = np.empty(
                (members, len(strings), *piece_logits.shape[2:]), dtype=piece_logits.dtype
            )
        logits[:, rows] = piece_logits
    return np.empty((members, 0)) if logits is None else logits


def _by_string(
    outputs: Float[np.ndarray, "member token output"],
    tokens: Int64[np.ndarray, " string"],
    width: int,
) -> Float[np.ndarray, "member string place output"]:
    """Outputs of all tokens, string after string, with NaN after each string's."""
    of_strings = np.full(
        (len(outputs), len(tokens), width, outputs.shape[-1]), np.nan, dtype=outputs.dtype
    )
    of_strings[:, np.arange(width) < tokens[:, None]] = outputs
    return of_strings


# The parameters of a group's members, stacked, and the optimizer that moves them.


class StackedGroup:
    """Members' parameters, each with a leading member axis, and their AdamW.

    The optimizer works on each value alone, so stacking members changes none of them.
    """

    def __init__(
        self,
        initial: Sequence[Weights],
        device: torch.device,
        *,
        weight_decay: float = 0.0,
        decay: Decay = "all",
        gradient_clip: float = 0.0,
        freeze: str = "",
        steps: int = 0,
    ) -> None:
        self._frozen = frozen_parameters(freeze, initial[0], steps)
        self.parameters = {
            name: torch.from_numpy(np.stack([weights[name] for weights in initial]))
            .to(device)
            .requires_grad_()
            for name in initial[0]
        }
        self._gradient_clip = gradient_clip
        matrices = [torch.tensor(is_matrix(x), device=device) for x in initial[0].values()]
        self._optimizer = AdamW(
            list(self.parameters.values()),
            weight_decay=weight_decay,
            decays=matrices if decay == "matrices" else None,
        )

    def __len__(self) -> int:
        return len(next(iter(self.parameters.values())))

    def step(self, learning_rate: float, done: int = 0) -> None:
        for name, until in self._frozen.items():
            if done < until:
                self.parameters[name].grad = None
        if self._gradient_clip:
            self._clip()
        self._optimizer.step(learning_rate)

    def _clip(self) -> None:
        gradients = [x.grad for x in self.parameters.values() if x.grad is not None]
        squares = torch.stack([x.square().flatten(1).sum(dim=1) for x in gradients])
        # As `torch.nn.utils.clip_grad_norm_` does it, for every member by itself.
        share = (self._gradient_clip / (squares.sum(dim=0).sqrt() + 1e-6)).clamp_max(1)
        for gradient in gradients:
            gradient.mul_(share.view(-1, *[1] * (gradient.ndim - 1)))

    def keep(self, rows: Sequence[int]) -> None:
        self.parameters = {
            name: values.detach()[list(rows)].requires_grad_()
            for name, values in self.parameters.items()
        }
        self._optimizer.keep(list(self.parameters.values()), rows)


# The parameters of a group's members in blocks of memory, a member a row: one block, or one for
# each number of steps for which parts are held fixed.

ALIGNED = 64
"""Each parameter begins at a multiple of so many bytes: where memory has parts of such a size and
is read by them, a member is computed to the last bit as it is alone."""


@dataclass
class _Block:
    """Parameters that move together after so many steps of training, with their gradients."""

    until: int
    values: Tensor
    optimizer: AdamW
    gradients: Tensor

    @classmethod
    def of(
        cls, until: int, values: Tensor, matrices: Tensor | None, weight_decay: float
    ) -> "_Block":
        """A block of these values; only `matrices` of them decay, where they are given."""
        decays = None if matrices is None else [matrices]
        optimizer = AdamW([values], weight_decay=weight_decay, decays=decays)
        block = cls(until, values, optimizer, values)
        block.forget()
        return block

    def forget(self) -> None:
        """Makes gradients of its own for the values, all zero."""
        self.values.requires_grad_()
        self.gradients = self.values.grad = torch.zeros_like(self.values)


class FlatGroup:
    """Members' parameters and gradients, and one AdamW over all of them.

    As `seqcls.engines.pytorch.groups.StackedGroup`; but every member's values are tensors by
    themselves, which share memory with a block, so one step over the block moves all members.
    """

    def __init__(
        self,
        initial: Sequence[Weights],
        device: torch.device,
        *,
        weight_decay: float = 0.0,
        decay: Decay = "all",
        gradient_clip: float = 0.0,
        freeze: str = "",
        steps: int = 0,
    ) -> None:
        some, frozen = next(iter(initial[0].values())), frozen_parameters(freeze, initial[0], steps)
        self._gradient_clip = gradient_clip
        self._places: dict[str, tuple[int, int, tuple[int, ...]]] = {}
        self._blocks: list[_Block] = []
        step, dtype = ALIGNED // some.itemsize, torch.from_numpy(some).dtype
        for until in sorted({frozen.get(name, 0) for name in initial[0]}):
            own, end = [x for x in initial[0] if frozen.get(x, 0) == until], 0
            for name in own:
                value = initial[0][name]
                self._places[name] = (len(self._blocks), end, value.shape)
                end += math.ceil(value.size / step) * step
            values = torch.zeros(len(initial), end, dtype=dtype, device=device)
            matrices = torch.zeros(end, dtype=torch.bool, device=device)
            for name in own:
                _, start, shape = self._places[name]
                matrices[start : start + math.prod(shape)] = is_matrix(initial[0][name])
                for row, weights in enumerate(initial):
                    self._slice(values, name)[row].copy_(torch.from_numpy(weights[name]))
            decaying = matrices if decay == "matrices" else None
            self._blocks.append(_Block.of(until, values, decaying, weight_decay))
        # In the order of the model.
        self._places = {name: self._places[name] for name in initial[0]}

    def __len__(self) -> int:
        return len(self._blocks[0].values)

    @property
    def parameters(self) -> dict[str, Tensor]:
        return {name: self._slice(self._block(name).values, name) for name in self._places}

    def member(self, row: int) -> Iterator[tuple[str, Tensor]]:
        """One member's parameters by name, as parts of the blocks."""
        for name, values in self.parameters.items():
            yield name, values[row]

    def bind(self, row: int, model: nn.Module) -> None:
        """Makes a model's parameters and gradients one member's parts of the blocks."""
        for name, values in self.member(row):
            parameter = model.get_parameter(name)
            parameter.data = values
            # What has no values has no gradient either.
            gradients = self._slice(self._block(name).gradients, name)[row]
            parameter.grad = gradients if values.numel() else None

    def forget_gradients(self) -> None:
        """Makes all gradients zero, from where they add up."""
        for block in self._blocks:
            block.gradients.zero_()

    def step(self, learning_rate: float, done: int = 0) -> None:
        moving = [block for block in self._blocks if done >= block.until]
        if self._gradient_clip and moving:
            # As `torch.nn.utils.clip_grad_norm_` does it, for every member by itself.
            squares = [block.gradients.square().sum(dim=1, keepdim=True) for block in moving]
            norms = torch.stack(squares).sum(dim=0).sqrt()
            for block in moving:
                block.gradients.mul_((self._gradient_clip / (norms + 1e-6)).clamp_max(1))
        for block in moving:
            block.optimizer.step(learning_rate)

    def keep(self, rows: Sequence[int]) -> None:
        """Drops all members but these, with their optimizer state; models are to be bound again."""
        for block in self._blocks:
            block.values = block.values.detach()[list(rows)]
            block.forget()
            block.optimizer.keep([block.values], rows)

    def _block(self, name: str) -> _Block:
        return self._blocks[self._places[name][0]]

    def _slice(self, block: Tensor, name: str) -> Tensor:
        _, start, shape = self._places[name]
        part = block.detach()[:, start : start + math.prod(shape)]
        return part.view(len(block), *shape)
