"""The members of a group: initial parameters, stopping rules, results and checkpoints."""

import contextlib
import hashlib
import math
import sys
import time
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from seqcls.cache import cache_folder, keep_checked, read_checked, use
from seqcls.config import RunConfig
from seqcls.engines.base import Member
from seqcls.errors import ConfigError
from seqcls.models import MODELS, architecture_of_letter
from seqcls.models.positions import POSITIONS
from seqcls.plugins import Registry
from seqcls.problem import Problem
from seqcls.results import EpochLosses, TrainedMember, Weights
from seqcls.sampling.streams import stream

# Initial parameters.


def draw_initial(members: Sequence[Member]) -> list[Weights]:
    """Draws the initial parameters of members.

    Raises:
        ConfigError: a member's weights were trained elsewhere.
    """
    if any(problem.config.is_loaded for problem, _ in members):
        raise ConfigError("the weights were trained elsewhere: what they began with is not known")
    # PyTorch, which takes a second or two to load.
    from seqcls.models.initialization import initial_parameters

    return [
        {name: value.numpy() for name, value in initial_parameters(problem.network, seed).items()}
        for problem, seed in members
    ]


# Epochs and their checks.


def checks_within_epoch(problem: Problem, epoch: int) -> range:
    """Returns the steps of an epoch, counted from 1 and without the last, after which the
    validation strings are evaluated.
    """
    every, steps = problem.config.check_every, steps_of_epoch(problem)
    if not (problem.config.stop_when_right and every):
        return range(0)
    # Steps between checks are counted across the ends of epochs.
    return range(every - (epoch - 1) * steps % every, steps, every)


def steps_of_epoch(problem: Problem) -> int:
    """Returns the number of training steps in an epoch: one for each batch."""
    return -(-problem.train.epoch_size // problem.train.batch_size)


def whole_epochs_loss(problem: Problem, loss: float, batches: int) -> float:
    """Extrapolates the sum of the losses of an epoch's first batches to the whole epoch."""
    size = problem.train.epoch_size
    strings = min(batches * problem.train.batch_size, size)
    return loss if strings == size else loss * size / strings


class MemberTraining:
    """One member's results so far, and its stopping rules, whichever engine trains it.

    The best epoch is that of the lowest loss, the first on a tie. Patience considers only the
    losses from `min_num_epochs` on, and so may run out although an earlier loss was lower.

    Args:
        number: its index in the group.
        problem: the problem that it is trained for.
        model_seed: the seed of its initial parameters.
        every_epoch: store the weights of every epoch instead of the best one's.
    """

    def __init__(self, number: int, problem: Problem, model_seed: int, every_epoch: bool) -> None:
        self._number = number
        self.problem = problem
        self.result = TrainedMember(problem.config, model_seed)
        self._every_epoch = every_epoch
        self._lowest_since_minimum = float("inf")
        self._patience = problem.config.patience
        self._right_at: int | None = None
        """Number of steps after which all validation strings of trained lengths were first right.
        """

    def ends_right(self, all_right: bool, steps: int) -> bool:
        """Returns True if training ends after so many steps: all validation strings of trained
        lengths are right, and first were `train_more_steps` before, unless steps run out.
        """
        config = self.problem.config
        if not (all_right and config.stop_when_right):
            return False
        if self._right_at is None:
            self._right_at = steps
        most = config.max_num_epochs * steps_of_epoch(self.problem)
        return steps >= min(self._right_at + config.train_more_steps, most)

    def goes_on_after(
        self,
        train_loss: float,
        validation_loss: float,
        weights: Callable[[], Weights],
        *,
        all_right: bool = False,
    ) -> bool:
        """Adds an epoch's losses; returns False if training ends with that epoch.

        Args:
            train_loss: the sum over the epoch's strings, in nats; extrapolated from the strings
                trained on if the epoch ended early.
            validation_loss: the sum over the validation strings.
            weights: returns the member's current parameters; called if they are to be stored.
            all_right: whether every validation string of trained lengths is answered right; needed
                only if training may end then.
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
        right = self.ends_right(all_right, epoch * steps_of_epoch(self.problem))
        stops = self._stops_after(validation_loss, right)
        if self._every_epoch:
            result.weights[epoch] = weights()
        elif result.best_epoch == epoch:
            result.weights = {epoch: weights()}
        return not stops

    def _stops_after(self, loss: float, right: bool) -> bool:
        """Updates the best epoch; returns True if training ends with the last epoch."""
        config, result, epoch = self.problem.config, self.result, self.result.epochs
        best = result.best_epoch
        if right or best is None or loss < result.validation_losses[best - 1]:
            result.best_epoch = epoch
        if right or epoch >= config.max_num_epochs:
            return True
        if epoch < config.min_num_epochs:
            return False
        if loss < config.min_validation_loss:
            return True
        if loss < self._lowest_since_minimum:
            self._lowest_since_minimum = loss
            self._patience = config.patience
        else:
            self._patience -= 1
        return self._patience <= 0

    def last_epoch(self) -> list[EpochLosses]:
        """Returns the losses of the epoch that has just ended; none if training diverged in it."""
        return [] if self.result.failure is not None else self.epochs()[-1:]

    def epochs(self) -> list[EpochLosses]:
        """Returns the losses of all epochs before training ended or diverged."""
        losses = zip(self.result.train_losses, self.result.validation_losses, strict=True)
        return [EpochLosses(self._number, epoch, *pair) for epoch, pair in enumerate(losses, 1)]


def learning_rates(problem: Problem, epoch: int) -> Float[np.ndarray, " step"]:
    """Returns the learning rate of each step of an epoch, counted from 1.

    The rate falls linearly, or as half a cosine: after every epoch, or at every step after the
    warm-up, as in Hugging Face's trainer.
    """
    config = problem.config
    steps = steps_of_epoch(problem)
    before = (epoch - 1) * steps
    if config.learning_rate_interval == "epoch":
        rates = np.full(steps, _learning_rate(config, (epoch - 1) / config.max_num_epochs))
    else:
        warm, most = config.warm_up_steps, config.max_num_epochs * steps
        falling = range(before - warm, before - warm + steps)
        shares = [max(step, 0) / max(most - warm, 1) for step in falling]
        rates = np.array([_learning_rate(config, share) for share in shares])
    if before < config.warm_up_steps:
        rates *= np.minimum(np.arange(before + 1, before + steps + 1) / config.warm_up_steps, 1.0)
    return rates


def _learning_rate(config: RunConfig, done: float) -> float:
    """Returns the learning rate after a share of the schedule."""
    if config.learning_rate_schedule == "cosine":
        done = (1 - math.cos(math.pi * done)) / 2
    return config.learning_rate * (1 - (1 - config.final_learning_rate_factor) * done)


def is_matrix(parameter: np.ndarray) -> bool:
    """Returns True for parameters that decay with `decay="matrices"`: not for biases and norms."""
    return parameter.ndim > 1


def _divergence(epoch: int, train_loss: float, validation_loss: float) -> str | None:
    for name, loss in (("training", train_loss), ("validation", validation_loss)):
        if not math.isfinite(loss):
            return f"diverged in epoch {epoch}: the {name} loss became {loss}"
    return None


# Checkpoints of long training, in the cache folder.
#
# A process that is killed, a machine that goes down or a sweep that is stopped then loses only what
# was trained since the last checkpoint. Resumed training is the same to the last bit. The name of a
# checkpoint is a hash of all that its training depends on: members and their initial parameters,
# the strings, the engine, the source and the libraries. The file begins with its own hash, and a
# damaged file is ignored.

FOLDER = "unfinished"
"""The folder of the cache."""

SECONDS = 60.0
"""Seconds of training before the first checkpoint of a group, and between two of them."""

FORGOTTEN_SECONDS = 30 * 24 * 3600.0
"""Age in seconds at which a checkpoint that nobody resumed is removed."""


class Unfinished:
    """The checkpoint of one group.

    Args:
        engine: the engine's name and device.
        members: the members of the group, in their order.
        initial: their initial parameters.
        every_epoch: whether the weights of all epochs are stored.
    """

    def __init__(
        self,
        engine: str,
        members: Sequence[Member],
        initial: Sequence[Weights],
        *,
        every_epoch: bool,
    ) -> None:
        self._engine = engine
        self._members = members
        self._initial = initial
        self._every_epoch = every_epoch
        self._kept_at = time.monotonic()

    def read(self) -> bytes | None:
        """Returns the checkpoint's content; None if there is none."""
        folder = cache_folder() / FOLDER
        # Computing the file's name takes longer than training a small group for an epoch.
        with contextlib.suppress(OSError):
            if any(folder.iterdir()):
                use(self._path)
                return read_checked(self._path)
        return None

    def keep(self, packed: Callable[[], bytes]) -> None:
        """Writes a checkpoint if `SECONDS` have passed since the last one."""
        if time.monotonic() - self._kept_at < SECONDS:
            return
        keep_checked(self._path, packed())
        _remove_forgotten()
        self._kept_at = time.monotonic()

    def forget(self) -> None:
        """Removes the checkpoint after training has ended."""
        if "_path" in self.__dict__:
            with contextlib.suppress(OSError):
                self._path.unlink()

    @cached_property
    def _path(self) -> Path:
        key = hashlib.sha256(f"{self._engine} {self._every_epoch} {_computing()}".encode())
        for problem, model_seed in self._members:
            drawn = [stream(problem.sampler(part)).key for part in ("train", "validation")]
            key.update(f"{problem.config!r} {_code(problem)} {model_seed} {drawn}".encode())
        for weights in self._initial:
            for name, values in weights.items():
                key.update(name.encode())
                key.update(values.tobytes())
        return cache_folder() / FOLDER / key.hexdigest()[:32]


def _code(problem: Problem) -> list[str]:
    """Returns the code of the network's plug-ins, which may change without a new version."""
    config = problem.config
    named = (config.architecture, *map(architecture_of_letter, config.layers))
    parts: list[tuple[Registry[Any], str]] = [(MODELS, name) for name in named]
    parts.append((POSITIONS, config.positions))
    return [
        registry.code_of(registry[name].load())
        for registry, name in parts
        if not registry.is_own(name)
    ]


@lru_cache(maxsize=1)
def _computing() -> str:
    """Returns a hash of the source, with the versions of Python and of the libraries."""
    source = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        source.update(path.read_bytes())
    return f"{sys.version} {version('torch')} {version('numpy')} {source.hexdigest()}"


def _remove_forgotten() -> None:
    before = time.time() - FORGOTTEN_SECONDS
    with contextlib.suppress(OSError):
        for path in (cache_folder() / FOLDER).iterdir():
            if path.stat().st_mtime < before:
                path.unlink(missing_ok=True)
