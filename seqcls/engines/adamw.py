"""AdamW of PyTorch on the values of a group, all in one step."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim.adamw import adamw


class AdamW:
    """Steps as `torch.optim.AdamW` makes them, by the function that it calls.

    Made and asked for a step, that class imports PyTorch's compiler, which takes a process as long
    as all else of PyTorch.

    Args:
        values: with their gradients, each with a leading member axis.
    """

    def __init__(
        self, values: Sequence[Tensor], *, learning_rate: float, weight_decay: float
    ) -> None:
        self.learning_rate = learning_rate
        self._weight_decay = weight_decay
        self._values = list(values)
        self._first = [torch.zeros_like(x) for x in values]
        self._second = [torch.zeros_like(x) for x in values]
        self._steps = [torch.zeros((), device=x.device) for x in values]

    def step(self) -> None:
        """Moves every value that has a gradient."""
        moved = [place for place, value in enumerate(self._values) if value.grad is not None]
        gradients = [value.grad for value in self._values if value.grad is not None]
        with torch.no_grad():
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
                lr=self.learning_rate,
                weight_decay=self._weight_decay,
                eps=1e-8,
                maximize=False,
            )

    def keep(self, values: Sequence[Tensor], rows: Sequence[int]) -> None:
        """Goes on with these rows of its values, which are other tensors now."""
        self._values = list(values)
        self._first = [x[list(rows)] for x in self._first]
        self._second = [x[list(rows)] for x in self._second]
