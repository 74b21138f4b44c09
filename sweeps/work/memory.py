"""How much memory training takes, and how much this machine has."""

from collections.abc import Iterable
from pathlib import Path

import psutil

from seqcls.config import COUPLED, PARTS, REPORT_SAMPLER
from seqcls.models import MODELS
from seqcls.models.positions import table_size
from seqcls.problem import Problem
from seqcls.sampling.drawn import Training
from sweeps.grid.cost import engine_of, mean_length

_BYTES = {"float32": 4, "float64": 8}
_LIMIT_OF_GROUP = Path("/sys/fs/cgroup/memory.max")
"""Where Linux says how much a container may have."""

COPIES = 4
"""The member in training: its values, their gradient, and two moments of each."""

COPIES_A_MEMBER = 2
"""Copies of every member of a group: its initial values, and those of its best epoch."""

_HASHES = 16
"""Bytes of each string that tests are kept disjoint from, with a copy."""


def parameter_bytes(problem: Problem) -> int:
    """The bytes of one model's parameters; roughly, where it recurs or has places of a plug-in."""
    network = problem.network
    places = table_size(network) if network.positions in ("learned", *COUPLED) else 0
    outputs = 0 if network.tied_embeddings else network.num_outputs
    rows = network.vocabulary_size + outputs + (places or 0)
    blocks = MODELS[network.architecture].sizes.parameters(network)
    return (blocks + rows * network.hidden_size) * _BYTES[network.precision]


def training_bytes(problem: Problem, members: int = 1) -> int:
    """What the values alone take in training so many members together, in bytes."""
    return parameter_bytes(problem) * (COPIES + COPIES_A_MEMBER * members)


def strings_bytes(problem: Problem) -> int:
    """About what a model's strings take: those of each part, a batch's states, what is kept out."""
    config = problem.config
    strings = sum(_part_bytes(problem, part) for part in PARTS) + _batch_bytes(problem)
    if not config.disjoint:
        return strings
    return strings + _HASHES * Training(problem.train, config.max_num_epochs).size


def _part_bytes(problem: Problem, part: str) -> int:
    config, sampler = problem.config, problem.sampler(part)
    if getattr(config, f"{part}_sampler") != REPORT_SAMPLER:
        # Where outputs are written, each token with what is to be predicted there.
        bytes_a_token = 4 if problem.writes else 1
        return sampler.epoch_size * bytes_a_token * problem.longest_reading(part)
    # Drawn by counts, and spelled out by whole numbers, all at once, for the table of places.
    spelled = engine_of(problem).by_counts and config.positions != "none"
    return 8 * sampler.epoch_size * (sampler.lengths[-1] if spelled else config.num_letters)


def _batch_bytes(problem: Problem) -> int:
    """The states of a batch's tokens, one for each block, and the scores that are kept of them."""
    if engine_of(problem).by_counts:
        return 0
    network, tokens = problem.network, mean_length(problem) + 1
    states = network.num_blocks * network.hidden_size
    states += MODELS[network.architecture].sizes.scores(network, tokens)
    states += 2 * network.num_outputs * problem.writes
    strings = min(problem.config.train_batch_size, problem.train.epoch_size)
    return int(strings * tokens) * states * _BYTES[network.precision]


def needed_bytes(problem: Problem) -> int:
    """About what training one model takes: its parameters or its strings, whichever are more."""
    return max(training_bytes(problem), strings_bytes(problem))


def machine_bytes() -> int:
    """All the memory of this machine, or of the container, in bytes."""
    machine = int(psutil.virtual_memory().total)
    try:
        return min(machine, int(_LIMIT_OF_GROUP.read_text()))
    except (OSError, ValueError):
        # No container, or one without a limit, which reads `max`.
        return machine


def shortage(problem: Problem, members: int = 1) -> str | None:
    """Why this machine cannot train so many members together; None where it may be able to."""
    needed, there = training_bytes(problem, members), machine_bytes()
    if needed <= there:
        return None
    return f"training takes at least {_readable(needed)} of memory, and this machine has " + (
        f"{_readable(there)}; lower the sizes"
    )


def warning(problems: Iterable[Problem], workers: int = 1) -> str | None:
    """What to say of problems that this many processes cannot train at once here."""
    needed, there = max(map(needed_bytes, problems), default=0), machine_bytes()
    if needed * workers <= there:
        return None
    # Fewer processes help, where one of them has room.
    few = "such runs fail; lower the sizes of the model, the batches or the strings"
    advice = "use fewer --workers" if needed <= there else few
    return (
        f"the largest model takes about {_readable(needed)} of memory to train, and this "
        f"machine has {_readable(there)}: {advice}"
    )


def _readable(number: int) -> str:
    return f"{number / 1e9:,.1f} GB"
