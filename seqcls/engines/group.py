"""The parameters of a group's members, stacked, and the optimizer that moves them."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from seqcls.results import Weights


class Group:
    """Members' parameters, each with a leading member axis, and their AdamW.

    The optimizer works on each value alone, so stacking members changes none of them.
    """

    def __init__(
        self, initial: Sequence[Weights], learning_rate: float, device: torch.device
    ) -> None:
        self.parameters = {
            name: torch.from_numpy(np.stack([own[name] for own in initial]))
            .to(device)
            .requires_grad_()
            for name in initial[0]
        }
        self.optimizer = self._new_optimizer(learning_rate)

    def __len__(self) -> int:
        return len(next(iter(self.parameters.values())))

    def set_learning_rate(self, learning_rate: float) -> None:
        for settings in self.optimizer.param_groups:
            settings["lr"] = learning_rate

    def step(self, loss: Tensor) -> None:
        """One step of AdamW down the gradient of the members' summed losses."""
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

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
        return torch.optim.AdamW(self.parameters.values(), lr=learning_rate, fused=True)
