"""What a worker is asked to do, and what this machine has and needs for it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from seqcls.cache import CACHE_VARIABLE, cache_folder
from seqcls.config import COUPLED
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.errors import DeviceError, MachineError
from seqcls.models import MODELS
from seqcls.models.positions import table_size
from seqcls.problem import Problem


@dataclass(frozen=True)
class WorkOptions:
    """How runs are to be trained."""

    workers: int = 1
    """Processes of this machine; with 0, the calling process trains itself."""
    engine: str = "auto"
    device: str = "auto"
    dask: str | None = None
    """The address of a Dask scheduler, whose workers train instead of this machine's processes."""
    watch: bool = False
    """Whether to wait for more when nothing is queued any longer."""


@dataclass
class WorkSummary:
    """What a worker did until it ended."""

    worker_id: int
    """By which the database knows it."""
    recorded: int = 0
    """Runs whose results, or whose divergence, it stored."""
    lost: int = 0
    """Runs of groups that ended without a result."""
    abandoned: int = 0
    """Runs that it had begun and left to the next worker, because it was stopped."""
    signal: int | None = None
    """The signal that ended it, if one did."""


# How much memory training takes, and how much this machine has.

_BYTES = {"float32": 4, "float64": 8}
_LIMIT_OF_GROUP = Path("/sys/fs/cgroup/memory.max")
"""Where Linux says how much a container may have."""

COPIES = 4
"""The member in training: its values, their gradient, and two moments of each."""

COPIES_A_MEMBER = 2
"""Copies of every member of a group: its initial values, and those of its best epoch."""


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
    return f"training takes at least {needed / 1e9:,.1f} GB of memory, and this machine has " + (
        f"{there / 1e9:,.1f} GB; lower the sizes"
    )


def warning(problems: Iterable[Problem], workers: int = 1) -> str | None:
    """What to say of problems that this many processes cannot train at once here."""
    needed, there = max(map(training_bytes, problems), default=0), machine_bytes()
    if needed * workers <= there:
        return None
    # Fewer processes help, where one of them has room.
    advice = "use fewer workers" if needed <= there else "such runs fail; lower the model's sizes"
    return (
        f"the largest model takes about {needed / 1e9:,.1f} GB of memory to train, and this "
        f"machine has {there / 1e9:,.1f} GB: {advice}"
    )


# What this machine needs before its processes train.


def check_device(device: str) -> None:
    """Refuses a device that is unknown or that this machine does not have.

    Raises:
        DeviceError: as said.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise DeviceError(f"device {device!r}: expected auto, cpu or cuda")
    if device == "cuda":
        # Imported where it is used: only PyTorch knows whether there is a GPU.
        from seqcls.engines.pytorch.training import choose_device

        choose_device(device)


def prepare(problems: Iterable[Problem], how: WorkOptions) -> None:
    """Makes what engines need here, such as machine code, once, so that no worker process has to.

    Raises:
        MachineError: machine code cannot be kept.
    """
    missing: dict[str, list[Problem]] = {}
    for problem in problems:
        name = choose_engine(problem, how.engine, how.device).name
        if not engine_named(name).is_ready(problem):
            missing.setdefault(name, []).append(problem)
    try:
        for name, unready in missing.items():
            engine_named(name).prepare(unready)
    except (OSError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "cannot cache" not in str(error):
            raise
        reason = getattr(error, "strerror", None) or "no folder for it can be written"
        raise MachineError(
            f"machine code cannot be kept in {str(cache_folder())!r}: {reason}; fix that, or name "
            f"another folder with {CACHE_VARIABLE}"
        ) from error
