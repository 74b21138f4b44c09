"""Options and summary of a worker, and the memory, device and machine code that it needs."""

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
    """Options of training."""

    workers: int = 1
    """Number of processes of this machine; with 0, the calling process trains."""
    engine: str = "auto"
    device: str = "auto"
    dask: str | None = None
    """The address of a Dask scheduler, whose workers train instead of this machine's processes."""
    watch: bool = False
    """True to wait for more runs when none is queued."""


@dataclass
class WorkSummary:
    """The work of a worker until it ended."""

    worker_id: int
    """Its id in the database."""
    recorded: int = 0
    """Number of runs whose results, or whose divergence, it stored."""
    lost: int = 0
    """Number of runs in groups that ended without a result."""
    abandoned: int = 0
    """Number of runs that it had begun and left to the next worker, because it was stopped."""
    signal: int | None = None
    """The signal that ended it, if any."""


# Memory that training takes, and that this machine has.


def parameter_bytes(problem: Problem) -> int:
    """Bytes of one model's parameters; approximate if it recurs or has positions of a plug-in."""
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
    # Without a container, or without a limit, there is no number.
    with suppress(OSError, ValueError):
        return min(machine, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return machine


def shortage(problem: Problem, members: int = 1, workers: int = 1) -> str | None:
    """The reason why this machine cannot train so many members together in each of so many
    processes, by their least memory; None if it may be able to.
    """
    # The values, gradient and two moments of the member in training; for each member its initial
    # values and those of its best epoch.
    needed, there = parameter_bytes(problem) * (4 + 2 * members) * workers, machine_bytes()
    if needed <= there:
        return None
    return (
        f"training takes at least {needed / 1e9:,.1f} GB of memory, and this machine has "
        f"{there / 1e9:,.1f} GB; lower the sizes{' or the workers' if workers > 1 else ''}"
    )


# Preparation of this machine before its processes train.


def check_device(device: str) -> None:
    """Raises DeviceError for a device that is unknown or that this machine does not have."""
    if device not in ("auto", "cpu", "cuda"):
        raise DeviceError(f"device {device!r}: expected auto, cpu or cuda")
    if device == "cuda":
        # Imported where it is used: only PyTorch knows whether there is a GPU.
        from seqcls.engines.pytorch.training import choose_device

        choose_device(device)


def prepare(problems: Iterable[Problem], how: WorkOptions) -> None:
    """Compiles the machine code of engines once, so that no worker process has to.

    Raises:
        MachineError: machine code cannot be cached.
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
        # Numba raises a plain RuntimeError with these words if no folder can be written.
        if isinstance(error, RuntimeError) and "cannot cache" not in str(error):
            raise
        raise MachineError(
            f"machine code cannot be kept in {str(cache_folder())!r}: {describe_error(error)}; fix "
            f"that, or name another folder with {CACHE_VARIABLE}"
        ) from error
