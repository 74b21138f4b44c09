"""The parameters of a group's members in one block of memory, a member a row."""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from seqcls.engines.adamw import AdamW
from seqcls.results import Weights

ALIGNED = 64
"""Each parameter begins at a multiple of so many bytes: where memory has parts of such a size and
is read by them, a member is computed to the last bit as it is alone."""


class FlatGroup:
    """Members' parameters and gradients, and one AdamW over all of them.

    As `seqcls.engines.stacked_group.StackedGroup`; but every member's values are tensors by
    themselves, which share memory with the block, so one step over the block moves all members.
    """

    def __init__(
        self,
        initial: Sequence[Weights],
        device: torch.device,
        *,
        learning_rate: float = 0.0,
        weight_decay: float = 0.0,
        gradient_clip: float = 0.0,
    ) -> None:
        some = next(iter(initial[0].values()))
        self._places: dict[str, tuple[int, tuple[int, ...]]] = {}
        step, end = ALIGNED // some.itemsize, 0
        for name, value in initial[0].items():
            self._places[name] = (end, value.shape)
            end += math.ceil(value.size / step) * step
        dtype = torch.from_numpy(some).dtype
        self._values = torch.zeros(len(initial), end, dtype=dtype, device=device)
        for row, weights in enumerate(initial):
            for name, values in self.member(row):
                values.copy_(torch.from_numpy(weights[name]))
        self._gradient_clip = gradient_clip
        self._forget()
        self._optimizer = AdamW(
            [self._values], learning_rate=learning_rate, weight_decay=weight_decay
        )

    def __len__(self) -> int:
        return len(self._values)

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Every parameter, with a leading member axis."""
        return {name: self._cut(self._values, name) for name in self._places}

    def member(self, row: int) -> Iterator[tuple[str, Tensor]]:
        """One member's parameters by name, as parts of the block."""
        for name in self._places:
            yield name, self._cut(self._values, name)[row]

    def bind(self, row: int, model: nn.Module) -> None:
        """Makes a model's parameters and gradients one member's parts of the block."""
        for name, values in self.member(row):
            parameter = model.get_parameter(name)
            parameter.data = values
            # What has no values has no gradient either.
            parameter.grad = self._cut(self._gradients, name)[row] if values.numel() else None

    def forget_gradients(self) -> None:
        """Makes all gradients zero, from where they add up."""
        self._gradients.zero_()

    def set_learning_rate(self, learning_rate: float) -> None:
        """The rate of the next steps."""
        self._optimizer.learning_rate = learning_rate

    def step(self) -> None:
        """One step of AdamW down the gradients, each member's no longer than it may be."""
        if self._gradient_clip:
            # As `torch.nn.utils.clip_grad_norm_` does it, for every member by itself.
            norms = self._gradients.square().sum(dim=1, keepdim=True).sqrt()
            self._gradients.mul_((self._gradient_clip / (norms + 1e-6)).clamp_max(1))
        self._optimizer.step()

    def keep(self, rows: Sequence[int]) -> None:
        """Drops all members but these, with their optimizer state; models are to be bound again."""
        self._values = self._values.detach()[list(rows)]
        self._forget()
        self._optimizer.keep([self._values], rows)

    def _cut(self, block: Tensor, name: str) -> Tensor:
        start, shape = self._places[name]
        part = block.detach()[:, start : start + math.prod(shape)]
        return part.view(len(block), *shape)

    def _forget(self) -> None:
        self._values.requires_grad_()
        self._gradients = self._values.grad = torch.zeros_like(self._values)
