"""One interface to every engine for the contracts: gradients, logits, outputs, training.

If engines are redesigned, these functions are rewritten and the contracts stay.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from seqcls.decode import best_written
from seqcls.decode import score as decoded_score
from seqcls.engines.base import Member, Progress, Writer
from seqcls.engines.choice import ENGINES, engine_named
from seqcls.engines.compiled.arithmetic import BETA_1
from seqcls.engines.compiled.engine import CompiledEngine, Steps
from seqcls.engines.compiled.parameters import Update
from seqcls.engines.member import Unfinished, draw_initial
from seqcls.engines.pytorch.members import Members
from seqcls.engines.pytorch.training import GroupTraining
from seqcls.kinds.base import Examples, Scored, Written
from seqcls.models.positions.places import TrainingPlaces
from seqcls.problem import Problem
from seqcls.results import TrainedMember, Weights
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import TokenStrings
from seqcls.training import train_group

STACKED = "stacked"
"""The engine of strings as it trains on a GPU: all members in one step."""


def engines_of(problem: Problem) -> list[str]:
    """The engines that can train a problem's models, by name."""
    names = [engine.name for engine in ENGINES if engine.obstacle(problem, "cpu") is None]
    is_stacked = problem.network.dropout_rate == 0 and not problem.network.picture
    return [*names, *[STACKED] * is_stacked]


def loss_and_gradient(engine: str, problem: Problem, weights: Weights) -> tuple[float, Weights]:
    """The sum of the losses of the first batch of training, and the gradient of what is trained on.

    The problem has one batch in an epoch.
    """
    if engine != STACKED and isinstance(own := engine_named(engine), CompiledEngine):
        program = own.program_of(problem)
        flat = program.parameters.pack(weights)
        # After one step AdamW's first moments are a share of the gradient.
        moments = np.zeros((2, len(flat)), flat.dtype)
        steps = Steps(moments, 0, Update(np.zeros(1), 0.0, 0.0))
        loss, _ = program.epoch(flat.copy(), steps, 0)
        return float(loss), program.parameters.unpack(moments[0] / flat.dtype.type(1 - BETA_1))
    members = _members(engine, problem, [weights])
    examples = stream(problem.train).epoch(0)
    kind, task = problem.kind, problem.task
    targets = torch.from_numpy(kind.encoded(task, examples, problem.network))
    losses = partial(kind.losses, targets=targets, train_loss=problem.config.train_loss)
    places = TrainingPlaces(problem.network, problem.config.train_seed)
    (batch,) = members.batches(kind.reading(task, examples), len(examples), places)
    (mean,) = members.backward(batch, losses, kind.units(targets)).tolist()
    rows = {name: rows[0].numpy() for name, rows in members.gradients.items()}
    found = {x: rows[x][: y.size].reshape(y.shape) for x, y in weights.items() if y.size}
    return mean * kind.units(targets), {name: found.get(name, y) for name, y in weights.items()}


def _members(engine: str, problem: Problem, weights: Sequence[Weights]) -> Members:
    """The models of a group, side by side in PyTorch."""
    own: Any = engine_named("strings" if engine == STACKED else engine)
    members: Members = own.members(problem, weights, "cpu")
    members.at_once = members.at_once or engine == STACKED
    return members


def logits(
    engine: str, problem: Problem, weights: Sequence[Weights], strings: TokenStrings
) -> np.ndarray:
    """Logits of strings, (model, string)."""
    if engine == STACKED:
        return _members(engine, problem, weights).answer(strings)
    return engine_named(engine).logits(problem, weights, strings, device="cpu")


def score(engine: str, problem: Problem, weights: Weights, examples: Examples) -> Scored:
    """Scores of inputs with their targets, by teacher forcing."""
    own = engine_named(engine)
    return decoded_score(problem, weights, examples, own if isinstance(own, Writer) else None)


def write(engine: str, problem: Problem, weights: Weights, inputs: TokenStrings) -> list[Written]:
    """Greedy outputs of inputs."""
    assert problem.config.decoding == "greedy"
    own = engine_named(engine)
    return best_written(problem, weights, inputs, own if isinstance(own, Writer) else None)


def train(
    engine: str,
    problem: Problem,
    seeds: Sequence[int],
    *,
    every_epoch: bool = False,
    progress: Progress = lambda *_: None,
) -> list[TrainedMember]:
    """Trains a group of members of one problem."""
    members: list[Member] = [(problem, seed) for seed in seeds]
    if engine != STACKED:
        return train_group(
            members, engine=engine, device="cpu", every_epoch=every_epoch, progress=progress
        )
    weights = draw_initial(members)
    models = _members(engine, problem, weights)
    unfinished = Unfinished("", members, weights, every_epoch=every_epoch)
    training = GroupTraining(members, models, weights[0], every_epoch=every_epoch)
    return training.run(progress, unfinished)
