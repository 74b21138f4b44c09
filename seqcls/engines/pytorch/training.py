"""Training with PyTorch, all members of a group side by side.

Members' losses are summed, never averaged over members, so that no member's gradient depends on
the others. A member that has stopped is dropped from the group.
"""

import io
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Num
from torch import Tensor

from seqcls.engines.base import Member, Progress
from seqcls.engines.member import (
    MemberTraining,
    Unfinished,
    checks_within_epoch,
    learning_rates,
    whole_epochs_loss,
)
from seqcls.engines.pytorch.members import AdamW, Losses, Members
from seqcls.errors import DeviceError
from seqcls.kinds import Examples
from seqcls.models.positions.places import TrainingPlaces
from seqcls.problem import Problem
from seqcls.results import EpochLosses, TrainedMember, Weights
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import TokenStrings


def choose_device(name: str) -> torch.device:
    """Returns the device of that name: `auto` takes a GPU where there is one.

    Raises:
        DeviceError: the name is unknown or the machine has no such device.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise DeviceError(f"device {name!r}: expected auto, cpu or cuda")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise DeviceError("device 'cuda': this machine has no GPU that PyTorch can use; use cpu")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


class GroupTraining:
    """The training state of one group; its rows are the members still training."""

    def __init__(
        self,
        members: Sequence[Member],
        models: Members,
        initial: Weights,
        *,
        every_epoch: bool,
    ) -> None:
        problem = members[0][0]
        self.config = problem.config
        self.problem = problem
        self.kind = problem.kind
        self.members = [
            MemberTraining(number, *member, every_epoch) for number, member in enumerate(members)
        ]
        self.rows = list(self.members)
        self.models = models
        self.optimizer = AdamW(problem, models, initial)
        self.places = TrainingPlaces(problem.network, self.config.train_seed)
        self._started = 0.0

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # A checkpoint has no gradients, nor views of shared memory.
        self._keep(range(len(self.rows)))

    def pack(self) -> bytes:
        """Returns a checkpoint."""
        file = io.BytesIO()
        torch.save(self, file)
        return file.getvalue()

    @staticmethod
    def unpack(content: bytes) -> "GroupTraining":
        """Returns the training of a checkpoint."""
        training: GroupTraining = torch.load(io.BytesIO(content), weights_only=False)
        return training

    def run(self, progress: Progress, unfinished: Unfinished) -> list[TrainedMember]:
        """Trains all members to their ends, and writes checkpoints."""
        if before := [epoch for member in self.members for epoch in member.epochs()]:
            progress(self._members_trained(), before)
        while self.rows:
            self._started = time.perf_counter()
            epoch = self.rows[0].result.epochs + 1
            strings = stream(self.problem.train).epoch(epoch - 1)
            train_losses, ended = self._train_epoch(strings, epoch)
            if self.rows:
                ended += self._end_epoch(train_losses, *self._validate(self.problem))
            progress(self._members_trained(), ended)
            if self.rows:
                unfinished.keep(self.pack)
        unfinished.forget()
        return [member.result for member in self.members]

    def _members_trained(self) -> float:
        """Returns the number of members trained so far, fractions included."""
        trained = sum(member.result.epochs for member in self.rows)
        return len(self.members) - len(self.rows) + trained / self.config.max_num_epochs

    def _losses(self, targets: Num[Tensor, "string ..."]) -> Losses:
        return partial(self.kind.losses, targets=targets, train_loss=self.config.train_loss)

    def _targets(self, examples: Examples) -> Num[Tensor, "string ..."]:
        encoded = self.kind.encoded(self.problem.task, examples, self.problem.network)
        return torch.from_numpy(encoded).to(self.models.device)

    def _read(self, examples: Examples) -> TokenStrings:
        return self.kind.reading(self.problem.task, examples)

    def _train_epoch(self, strings: Examples, epoch: int) -> tuple[list[float], list[EpochLosses]]:
        """Trains all members for an epoch, or until a check within it ends their training.

        Returns:
            The losses of the members still training, summed over strings, and the epochs of the
            others, which have ended.
        """
        targets = self._targets(strings).split(self.config.train_batch_size)
        sums = torch.zeros(len(self.models), dtype=torch.float64, device=self.models.device)
        checks, ended = checks_within_epoch(self.problem, epoch), list[EpochLosses]()
        rates = learning_rates(self.problem, epoch).tolist()
        before = (epoch - 1) * len(rates)
        size = self.config.train_batch_size
        batches = self.models.batches(self._read(strings), size, self.places)
        steps = zip(batches, targets, rates, strict=True)
        for number, (batch, batch_targets, rate) in enumerate(steps, start=1):
            losses, units = self._losses(batch_targets), self.kind.units(batch_targets)
            # The last batch may be smaller, so means are turned back into sums.
            sums += self.models.backward(batch, losses, units) * units
            self.optimizer.step(self.models, rate, before + number - 1)
            if number in checks:
                going_on, newly_ended = self._end_right(sums, before, number)
                sums, ended = sums[going_on], ended + newly_ended
                if not self.rows:
                    break
        return sums.tolist(), ended

    def _end_right(
        self, sums: Float[Tensor, " member"], before: int, batches: int
    ) -> tuple[list[int], list[EpochLosses]]:
        """Ends the epoch, and training, of members whose validation strings of trained lengths are
        all right, immediately or after `train_more_steps`.

        Args:
            sums: the sums of the losses of the epoch so far.
            before: the number of training steps before the epoch.
            batches: the number of its steps so far.

        Returns:
            The former rows of the other members, and the epochs that have ended.
        """
        _, right = self._validate(self.problem.asking_trained_lengths)
        ends = [
            member.ends_right(is_right, before + batches)
            for member, is_right in zip(self.rows, right, strict=True)
        ]
        going_on = [row for row, is_ended in enumerate(ends) if not is_ended]
        if not any(ends):
            return going_on, []
        validation_losses, _ = self._validate(self.problem)
        trained = [whole_epochs_loss(self.problem, loss, batches) for loss in sums.tolist()]
        return going_on, self._end_epoch(trained, validation_losses, ends, ends=ends)

    def _validate(self, problem: Problem) -> tuple[list[float], list[bool]]:
        """Returns each member's loss of the validation strings, and whether those of trained
        lengths are all right.
        """
        # Dropout is off here.
        strings = stream(problem.validation).epoch(0)
        targets = self._targets(strings)
        dtype, device = getattr(torch, self.config.precision), self.models.device
        sums = torch.zeros(len(self.models), dtype=dtype, device=device)
        right = torch.ones(len(self.models), dtype=torch.bool, device=device)
        beyond = torch.from_numpy(~problem.are_of_trained_lengths(strings.strings)).to(device)
        for rows, piece in self.models.pieces(self._read(strings)):
            at = torch.from_numpy(rows).to(device)
            piece_targets = targets[at]
            outputs = self.models.logits(piece)
            sums += self._losses(piece_targets)(outputs).sum(dim=1)
            if self.config.stop_when_right:
                right &= (self.kind.are_right(outputs, piece_targets) | beyond[at]).all(dim=1)
        return sums.tolist(), right.tolist()

    def _end_epoch(
        self,
        train_losses: list[float],
        validation_losses: list[float],
        all_right: list[bool],
        ends: list[bool] | None = None,
    ) -> list[EpochLosses]:
        """Ends the epoch of all members, or of some, and drops members whose training ends."""
        values = {
            name: value.detach().cpu().numpy() for name, value in self.models.parameters.items()
        }
        now = time.perf_counter()
        # Members train side by side, so each gets an equal share of the time.
        seconds, self._started = (now - self._started) / len(self.rows), now
        going_on = []
        ended: list[EpochLosses] = []
        for row, member in enumerate(self.rows):
            member.result.train_seconds += seconds
            if ends is not None and not ends[row]:
                going_on.append(row)
                continue
            # An array of no dimension stays one.
            member_values = {name: value[row, ...] for name, value in values.items()}
            weights = partial(_copy, member_values)
            losses = (train_losses[row], validation_losses[row])
            if member.goes_on_after(*losses, weights, all_right=all_right[row]):
                going_on.append(row)
            ended += member.last_epoch()
        self._keep_rows(going_on)
        return ended

    def _keep_rows(self, rows: list[int]) -> None:
        if len(rows) == len(self.rows):
            return
        self.rows = [self.rows[row] for row in rows]
        if rows:
            self._keep(rows)

    def _keep(self, rows: Sequence[int]) -> None:
        self.models.keep(rows)
        self.optimizer.keep(rows)


def _copy(weights: Weights) -> Weights:
    return {name: value.copy() for name, value in weights.items()}
