"""What a worker is asked to do, and what this machine has and needs for it."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from seqcls.cache import CACHE_VARIABLE, cache_folder
from seqcls.config import COUPLED
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.errors import DeviceError, MachineError, describe_error
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


def parameter_bytes(problem: Problem) -> int:
    """The bytes of one model's parameters; roughly, where it recurs or has places of a plug-in."""
    network = problem.network
    positions = table_size(network) if network.positions in ("learned", *COUPLED) else 0
    # Tied outputs have no rows of their own.
    outputs = 0 if network.tied_embeddings else network.num_outputs
    rows = network.vocabulary_size + outputs + (positions or 0)
    blocks = MODELS[network.architecture].count_parameters(network)
    return (blocks + rows * network.hidden_size) * {"float32": 4, "float64": 8}[network.precision]


def machine_bytes() -> int:
    """All the memory of this machine, or of the container, in bytes."""
    machine = int(psutil.virtual_memory().total)
    # Where there is no container, or one without a limit, there is no number.
    with suppress(OSError, ValueError):
        return min(machine, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return machine


def shortage(problem: Problem, members: int = 1, workers: int = 1) -> str | None:
    """Why this machine cannot train so many members together in each of so many processes; None
    where it may be able to.
    """
    # Of the member in training its values, their gradient, and two moments of each; of each its
    # initial values, and those of its best epoch.
    needed, there = parameter_bytes(problem) * (4 + 2 * members) * workers, machine_bytes()
    if needed <= there:
        return None
    return (
        f"training takes at least {needed / 1e9:,.1f} GB of memory, and this machine has "
        f"{there / 1e9:,.1f} GB; lower the sizes{' or the workers' if workers > 1 else ''}"
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
        # Numba raises a mere RuntimeError with these words where no folder can be written.
        if isinstance(error, RuntimeError) and "cannot cache" not in str(error):
            raise
        raise MachineError(
            f"machine code cannot be kept in {str(cache_folder())!r}: {describe_error(error)}; fix "
            f"that, or name another folder with {CACHE_VARIABLE}"
        ) from error
