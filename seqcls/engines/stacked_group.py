"""The parameters of a group's members, stacked, and the optimizer that moves them."""

from collections.abc import Sequence

import numpy as np
import torch

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
        self._weight_decay = weight_decay
        self._gradient_clip = gradient_clip
        self.optimizer = self._new_optimizer(learning_rate)

    def __len__(self) -> int:
        return len(next(iter(self.parameters.values())))

    def set_learning_rate(self, learning_rate: float) -> None:
        for settings in self.optimizer.param_groups:
            settings["lr"] = learning_rate

    def step(self) -> None:
        """One step of AdamW down the gradients, each member's no longer than it may be."""
        if self._gradient_clip:
            self._clip()
        self.optimizer.step()

    def _clip(self) -> None:
        gradients = [x.grad for x in self.parameters.values() if x.grad is not None]
        squares = torch.stack([x.square().flatten(1).sum(dim=1) for x in gradients])
        # As `torch.nn.utils.clip_grad_norm_` does it, for every member by itself.
        share = (self._gradient_clip / (squares.sum(dim=0).sqrt() + 1e-6)).clamp_max(1)
        for gradient in gradients:
            gradient.mul_(share.view(-1, *[1] * (gradient.ndim - 1)))

    def keep(self, rows: Sequence[int]) -> None:
        """Drops all members but these, with their optimizer state."""
        old = self.optimizer
        kept = {}
        for name, values in self.parameters.items():
            kept[name] = values.detach()[list(rows)].requires_grad_()
        states = [old.state[values] for values in self.parameters.values()]
        self.parameters = kept
        self.optimizer = self._new_optimizer(old.param_groups[0]["lr"])
        for values, state in zip(kept.values(), states, strict=True):
            self.optimizer.state[values] = {
                name: value[list(rows)] if value.ndim else value for name, value in state.items()
            }

    def _new_optimizer(self, learning_rate: float) -> torch.optim.AdamW:
        return torch.optim.AdamW(
            self.parameters.values(),
            lr=learning_rate,
            weight_decay=self._weight_decay,
            fused=True,
        )
