"""What happens to a member when an epoch of it ends, whichever engine trained it."""

import math
from collections.abc import Callable

from seqcls.engines.stopping import EarlyStopping
from seqcls.problem import Problem
from seqcls.results import EpochLosses, TrainedMember, Weights


class MemberTraining:
    """One member's results so far.

    Args:
        number: its place in the group.
        problem: what it is trained for.
        model_seed: which of them.
        every_epoch: keep the weights of every epoch instead of the best one's.
    """

    def __init__(self, number: int, problem: Problem, model_seed: int, every_epoch: bool) -> None:
        self._number = number
        self.problem = problem
        self.result = TrainedMember(problem.config, model_seed)
        self._stopping = EarlyStopping(problem)
        self._every_epoch = every_epoch

    def goes_on_after(
        self,
        train_loss: float,
        validation_loss: float,
        weights: Callable[[], Weights],
        *,
        all_right: bool = False,
    ) -> bool:
        """Takes an epoch's losses; False where training ends with it.

        Args:
            train_loss: the sum over the epoch's strings, in nats.
            validation_loss: the sum over the validation strings.
            weights: gives the member's parameters now, where they are to be kept.
            all_right: every validation string; asked where training stops then.
        """
        result = self.result
        epoch = result.epochs + 1
        result.failure = _divergence(epoch, train_loss, validation_loss)
        if result.failure is not None:
            result.best_epoch = None
            result.weights.clear()
            return False
        result.train_losses.append(train_loss)
        result.validation_losses.append(validation_loss)
        right = all_right and self.problem.config.stop_when_right
        stops = self._stopping.stops_after(validation_loss, right=right)
        result.best_epoch = self._stopping.best_epoch
        if self._every_epoch:
            result.weights[epoch] = weights()
        elif result.best_epoch == epoch:
            result.weights = {epoch: weights()}
        return not stops

    def last_epoch(self) -> list[EpochLosses]:
        """The epoch that has just ended; none where training diverged in it."""
        return [] if self.result.failure is not None else self.epochs()[-1:]

    def epochs(self) -> list[EpochLosses]:
        """All that have ended, those before one in which training diverged."""
        losses = zip(self.result.train_losses, self.result.validation_losses, strict=True)
        return [EpochLosses(self._number, epoch, *pair) for epoch, pair in enumerate(losses, 1)]


def learning_rate(problem: Problem, epoch: int) -> float:
    """The rate of an epoch, counted from 1: it falls linearly, or as half a cosine."""
    config = problem.config
    done = (epoch - 1) / config.max_num_epochs
    if config.learning_rate_schedule == "cosine":
        done = (1 - math.cos(math.pi * done)) / 2
    return config.learning_rate * (1 - (1 - config.final_learning_rate_factor) * done)


def warm_up(problem: Problem, step: int) -> float:
    """The share of the rate that a step is taken with, counted from 1."""
    steps = problem.config.warm_up_steps
    return min(step / steps, 1.0) if steps else 1.0


def _divergence(epoch: int, train_loss: float, validation_loss: float) -> str | None:
    for name, loss in (("training", train_loss), ("validation", validation_loss)):
        if not math.isfinite(loss):
            return f"diverged in epoch {epoch}: the {name} loss became {loss}"
    return None
