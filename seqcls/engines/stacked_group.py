"""The parameters of a group's members, stacked, and the optimizer that moves them."""

from collections.abc import Sequence

import numpy as np
import torch

from seqcls.engines.adamw import AdamW
from seqcls.results import Weights


class StackedGroup:
    """Members' parameters, each with a leading member axis, and their AdamW.

    The optimizer works on each value alone, so stacking members changes none of them.
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
        self.parameters = {
            name: torch.from_numpy(np.stack([weights[name] for weights in initial]))
            .to(device)
            .requires_grad_()
            for name in initial[0]
        }
        self._gradient_clip = gradient_clip
        self._optimizer = AdamW(
            list(self.parameters.values()), learning_rate=learning_rate, weight_decay=weight_decay
        )

    def __len__(self) -> int:
        return len(next(iter(self.parameters.values())))

    def set_learning_rate(self, learning_rate: float) -> None:
        self._optimizer.learning_rate = learning_rate

    def step(self) -> None:
        """One step of AdamW down the gradients, each member's no longer than it may be."""
        if self._gradient_clip:
            self._clip()
        self._optimizer.step()

    def _clip(self) -> None:
        gradients = [x.grad for x in self.parameters.values() if x.grad is not None]
        squares = torch.stack([x.square().flatten(1).sum(dim=1) for x in gradients])
        # As `torch.nn.utils.clip_grad_norm_` does it, for every member by itself.
        share = (self._gradient_clip / (squares.sum(dim=0).sqrt() + 1e-6)).clamp_max(1)
        for gradient in gradients:
            gradient.mul_(share.view(-1, *[1] * (gradient.ndim - 1)))

    def keep(self, rows: Sequence[int]) -> None:
        """Drops all members but these, with their optimizer state."""
        self.parameters = {
            name: values.detach()[list(rows)].requires_grad_()
            for name, values in self.parameters.items()
        }
        self._optimizer.keep(list(self.parameters.values()), rows)
