"""The stacked engine: all members of a group in one step of PyTorch.

Members' losses are summed, never averaged over members, so that no member's gradient depends on
who trains beside it. A member that has stopped is dropped from the group.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional

from seqcls.config import NetworkConfig, RunConfig
from seqcls.counts.forward import group_logits, log_counts
from seqcls.data import network_of, sampler_of
from seqcls.engines.group import Group
from seqcls.engines.member import MemberTraining, learning_rate
from seqcls.engines.steps import training_logits
from seqcls.errors import DeviceError
from seqcls.models.initialization import draw_initial
from seqcls.results import TrainedMember, Weights
from seqcls.sampling import LabelledStrings
from seqcls.sampling.streams import stream


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


def train_stacked(
    members: Sequence[tuple[RunConfig, int]],
    initial: Sequence[Weights] | None,
    *,
    device: str,
    every_epoch: bool,
    progress: Callable[[float], None],
) -> list[TrainedMember]:
    """Trains (configuration, model seed) pairs of one shape together, in their order."""
    start = draw_initial(members) if initial is None else initial
    return _GroupTraining(members, start, choose_device(device), every_epoch).run(progress)


class _GroupTraining:
    """The state of one group between epochs. Rows are the members still training."""

    def __init__(
        self,
        members: Sequence[tuple[RunConfig, int]],
        initial: Sequence[Weights],
        device: torch.device,
        every_epoch: bool,
    ) -> None:
        self.config = members[0][0]
        self.network = network_of(self.config)
        self.device = device
        self.members = [MemberTraining(config, seed, every_epoch) for config, seed in members]
        self.rows = list(self.members)
        self.group = Group(initial, self.config.learning_rate, device)
        self.logits = training_logits(self.config, len(members), device)
        self.training = stream(sampler_of(self.config, "train"))
        validation = stream(sampler_of(self.config, "validation")).epoch(0)
        self.validation = log_counts(self.network, validation.strings.counts).to(device)
        self.validation_targets = self._targets(validation)

    def run(self, progress: Callable[[float], None]) -> list[TrainedMember]:
        epoch = 0
        while self.rows:
            started = time.perf_counter()
            epoch += 1
            self.group.set_learning_rate(learning_rate(self.config, epoch))
            train_losses = self._train_epoch(self.training.epoch(epoch - 1))
            self._end_epoch(train_losses, self._validation_losses(), started)
            stopped = len(self.members) - len(self.rows)
            progress(stopped + len(self.rows) * epoch / self.config.max_num_epochs)
        return [member.result for member in self.members]

    def _targets(self, strings: LabelledStrings) -> Float[Tensor, " string"]:
        dtype = getattr(torch, self.config.precision)
        return torch.from_numpy(strings.labels).to(self.device, dtype)

    def _losses(
        self, logits: Float[Tensor, "member string"], targets: Float[Tensor, " string"]
    ) -> Float[Tensor, "member string"]:
        if self.config.train_loss == "sigmoid_scaled":
            logits = sigmoid_scaled(logits)
        return functional.binary_cross_entropy_with_logits(
            logits, targets.expand_as(logits), reduction="none"
        )

    def _train_epoch(self, strings: LabelledStrings) -> list[float]:
        batch_size = self.config.train_batch_size
        batches = zip(
            self.logits.encode(strings.strings).split(batch_size),
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
            logits = group_logits(self.network, self.group.parameters, self.validation)
            return self._losses(logits, self.validation_targets).sum(dim=1).tolist()

    def _end_epoch(
        self, train_losses: list[float], validation_losses: list[float], started: float
    ) -> None:
        values = {
            name: value.detach().cpu().numpy() for name, value in self.group.parameters.items()
        }
        seconds = (time.perf_counter() - started) / len(self.rows)
        going_on = []
        for row, member in enumerate(self.rows):
            member.result.train_seconds += seconds
            own = {name: value[row] for name, value in values.items()}
            weights = partial(_copied, own)
            if member.goes_on_after(train_losses[row], validation_losses[row], weights):
                going_on.append(row)
        self._keep_rows(going_on)

    def _keep_rows(self, rows: list[int]) -> None:
        if len(rows) == len(self.rows):
            return
        self.rows = [self.rows[row] for row in rows]
        if rows:
            self.group.keep(rows)
            self.logits.keep(rows)


def _copied(weights: Weights) -> Weights:
    return {name: value.copy() for name, value in weights.items()}


def sigmoid_scaled(logits: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Applies z <- -z / (1 + sigmoid(z)) twice, which shrinks confident logits of either sign."""
    for _ in range(2):
        logits = -logits / (1 + logits.sigmoid())
    return logits


STRINGS_AT_ONCE = 4096
"""Keeps the widest activation of a group within tens of megabytes."""


def stacked_logits(
    config: NetworkConfig,
    weights: Sequence[Weights],
    counts: Int64[np.ndarray, "string letter"],
    *,
    device: str,
) -> Float[np.ndarray, "member string"]:
    """Logits of models of one shape for strings given as letter counts; dropout is off."""
    where = choose_device(device)
    parameters = {
        name: torch.from_numpy(np.stack([own[name] for own in weights])).to(where)
        for name in weights[0]
    }
    encoded = log_counts(config, counts).to(where)
    with torch.no_grad():
        parts = [group_logits(config, parameters, x) for x in encoded.split(STRINGS_AT_ONCE)]
    return torch.cat(parts, dim=1).cpu().numpy()
