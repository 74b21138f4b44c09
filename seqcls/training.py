"""Trains a group of runs together; each member as if it were alone.

Members' losses are summed, never averaged over members, so that no member's gradient depends on
who trains beside it. A member that has stopped is dropped from the group.
"""

import math
import time
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from seqcls.config import RunConfig
from seqcls.errors import DeviceError, GroupError
from seqcls.group import Group
from seqcls.multiset import group_logits, log_counts
from seqcls.results import TrainedMember, Weights
from seqcls.sampling import Strings
from seqcls.sampling.streams import stream
from seqcls.steps import training_logits
from seqcls.stopping import EarlyStopping

Progress = Callable[[int, int], None]
"""Told the epoch that ended and how many members are left to train."""


def choose_device(name: str) -> torch.device:
    """The device of that name: `auto` takes a GPU where there is one.

    Raises:
        DeviceError: the name is unknown or the machine has no such device.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise DeviceError(f"device {name!r}: expected auto, cpu or cuda")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise DeviceError("device 'cuda': this machine has no GPU that PyTorch can use; use cpu")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def train_group(
    members: Sequence[tuple[RunConfig, int]],
    *,
    device: str = "auto",
    every_epoch: bool = False,
    progress: Progress | None = None,
) -> list[TrainedMember]:
    """Trains (configuration, model seed) pairs of one shape, in their order.

    Args:
        members: pairs whose configurations have the same `group_key`.
        device: `auto`, `cpu` or `cuda`.
        every_epoch: keep the weights of every epoch instead of the best one's.
        progress: called after every epoch.

    Raises:
        GroupError: no members, or configurations that cannot train together.
        DeviceError: as `choose_device`.
    """
    if len({config.group_key for config, _ in members}) != 1:
        raise GroupError(
            f"{len(members)} runs cannot train together: expected at least one, all alike in every "
            "field but the initialization strategies; group them by RunConfig.group_key"
        )
    return _GroupTraining(members, choose_device(device), every_epoch).run(progress)


class _GroupTraining:
    """The state of one group between epochs. Rows are the members still training."""

    def __init__(
        self,
        members: Sequence[tuple[RunConfig, int]],
        device: torch.device,
        every_epoch: bool,
    ) -> None:
        self.config = members[0][0]
        self.device = device
        self.every_epoch = every_epoch
        self.results = [TrainedMember(config, seed) for config, seed in members]
        self.rows = [(result, EarlyStopping(result.config)) for result in self.results]
        self.group = Group(members, device)
        self.logits = training_logits(self.config, len(members), device)
        validation = stream(self.config.validation_strings).epoch(0)
        self.validation = log_counts(self.config, validation.counts).to(device)
        self.validation_targets = self._targets(validation)

    def run(self, progress: Progress | None) -> list[TrainedMember]:
        epoch = 0
        while self.rows:
            started = time.perf_counter()
            epoch += 1
            self.group.set_learning_rate(self._learning_rate(epoch))
            train_losses = self._train_epoch(stream(self.config.train_strings).epoch(epoch - 1))
            self._end_epoch(epoch, train_losses, self._validation_losses(), started)
            if progress is not None:
                progress(epoch, len(self.rows))
        return self.results

    def _learning_rate(self, epoch: int) -> float:
        # Linear in the epochs done, from 1 to the final factor over max_num_epochs.
        done = (epoch - 1) / self.config.max_num_epochs
        fallen = (1 - self.config.final_learning_rate_factor) * done
        return self.config.learning_rate * (1 - fallen)

    def _targets(self, strings: Strings) -> Float[Tensor, " string"]:
        dtype = getattr(torch, self.config.precision)
        return torch.from_numpy(strings.positive).to(self.device, dtype)

    def _losses(
        self, logits: Float[Tensor, "member string"], targets: Float[Tensor, " string"]
    ) -> Float[Tensor, "member string"]:
        if self.config.train_loss == "sigmoid_scaled":
            logits = sigmoid_scaled(logits)
        return functional.binary_cross_entropy_with_logits(
            logits, targets.expand_as(logits), reduction="none"
        )

    def _train_epoch(self, strings: Strings) -> list[float]:
        batch_size = self.config.train_batch_size
        batches = zip(
            self.logits.encode(strings).split(batch_size),
            self._targets(strings).split(batch_size),
            strict=True,
        )
        sums = torch.zeros(len(self.group), dtype=torch.float64, device=self.device)
        for encoded, targets in batches:
            means = self._losses(self.logits(self.group.parameters, encoded), targets).mean(dim=1)
            self.group.step(means.sum())
            sums += means.detach() * len(targets)
        return sums.tolist()

    def _validation_losses(self) -> list[float]:
        # Dropout is off here, so letter counts are enough whatever the training needs.
        with torch.no_grad():
            logits = group_logits(self.config, self.group.parameters, self.validation)
            return self._losses(logits, self.validation_targets).sum(dim=1).tolist()

    def _end_epoch(
        self,
        epoch: int,
        train_losses: list[float],
        validation_losses: list[float],
        started: float,
    ) -> None:
        values = {
            name: value.detach().cpu().numpy() for name, value in self.group.parameters.items()
        }
        seconds = (time.perf_counter() - started) / len(self.rows)
        going_on = []
        for row, (result, stopping) in enumerate(self.rows):
            result.train_seconds += seconds
            losses = (train_losses[row], validation_losses[row])
            result.failure = _divergence(epoch, *losses)
            if result.failure is not None:
                result.best_epoch = None
                result.weights.clear()
                continue
            result.train_losses.append(losses[0])
            result.validation_losses.append(losses[1])
            if not stopping.stops_after(losses[1]):
                going_on.append(row)
            result.best_epoch = stopping.best_epoch
            if self.every_epoch or result.best_epoch == epoch:
                self._keep_weights(result, epoch, {k: v[row].copy() for k, v in values.items()})
        self._keep_rows(going_on)

    def _keep_weights(self, result: TrainedMember, epoch: int, weights: Weights) -> None:
        if not self.every_epoch:
            result.weights.clear()
        result.weights[epoch] = weights

    def _keep_rows(self, rows: list[int]) -> None:
        if len(rows) == len(self.rows):
            return
        self.rows = [self.rows[row] for row in rows]
        if rows:
            self.group.keep(rows)
            self.logits.keep(rows)


def sigmoid_scaled(logits: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Applies z <- -z / (1 + sigmoid(z)) twice, which shrinks confident logits of either sign."""
    for _ in range(2):
        logits = -logits / (1 + logits.sigmoid())
    return logits


def _divergence(epoch: int, train_loss: float, validation_loss: float) -> str | None:
    for name, loss in (("training", train_loss), ("validation", validation_loss)):
        if not math.isfinite(loss):
            return f"diverged in epoch {epoch}: the {name} loss became {loss}"
    return None
