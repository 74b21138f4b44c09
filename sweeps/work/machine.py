"""What a worker is asked to do, and what this machine has and needs for it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import psutil

from seqcls.cache import CACHE_VARIABLE, cache_folder
from seqcls.config import COUPLED, PARTS, REPORT_SAMPLER
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.errors import DeviceError, MachineError
from seqcls.models import MODELS
from seqcls.models.positions import table_size
from seqcls.problem import Problem
from seqcls.sampling.distinct import Training
from sweeps.grid.grouping import engine_of, mean_length


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
        bytes_a_token = 1 if problem.network.head == "string" else 4
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
    states += 0 if network.head == "string" else 2 * network.num_outputs
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
    advice = "use fewer workers" if needed <= there else few
    return (
        f"the largest model takes about {_readable(needed)} of memory to train, and this "
        f"machine has {_readable(there)}: {advice}"
    )


def _readable(number: int) -> str:
    return f"{number / 1e9:,.1f} GB"


# What this machine needs before its processes train.

WAIT_SECONDS = 0.2
"""How long a worker that has nothing else to do waits at a time."""


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


class Preparation:
    """What engines need here, such as machine code, made once so that no worker process has to.

    It is made beside the training of models whose engines are ready, except where this process
    trains itself. A Dask cluster's machines see to themselves.
    """

    def __init__(self, how: WorkOptions) -> None:
        self._how = how
        self._thread: Thread | None = None
        self._error: Exception | None = None

    def begin(self, problems: Iterable[Problem]) -> None:
        """Begins to make what training these needs and is missing.

        Raises:
            EngineError: the engine that was asked for cannot train one of these.
            MachineError: machine code cannot be kept.
        """
        missing: dict[str, list[Problem]] = {}
        for problem in problems:
            name = choose_engine(problem, self._how.engine, self._how.device).name
            if not engine_named(name).is_ready(problem):
                missing.setdefault(name, []).append(problem)
        if not missing or self._how.dask is not None:
            return
        self.end()
        if self._how.workers == 0:
            _prepare(missing)
            return
        self._thread = Thread(target=self._make, args=(missing,))
        self._thread.start()

    def is_ready(self, problem: Problem) -> bool:
        """Whether what training this needs is there, or nothing more is being made.

        Raises:
            MachineError: it could not be made.
        """
        if self._thread is None or not self._thread.is_alive():
            self.end()
            return True
        chosen = choose_engine(problem, self._how.engine, self._how.device)
        return engine_named(chosen.name).is_ready(problem)

    def wait(self) -> None:
        """Waits a moment for what is being made."""
        if self._thread is not None:
            self._thread.join(WAIT_SECONDS)

    def end(self) -> None:
        """Waits until everything is made.

        Raises:
            MachineError: it could not be made.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if (error := self._error) is not None:
            self._error = None
            raise error

    def _make(self, missing: Mapping[str, Sequence[Problem]]) -> None:
        try:
            _prepare(missing)
        except Exception as error:
            # Raised by the worker itself, which ends with it.
            self._error = error


def _prepare(missing: Mapping[str, Sequence[Problem]]) -> None:
    with _room_for_machine_code():
        for name, problems in missing.items():
            engine_named(name).prepare(problems)


@contextmanager
def _room_for_machine_code() -> Iterator[None]:
    """Says where machine code could not be kept, and what to do.

    Raises:
        MachineError: it could not.
    """
    try:
        yield
    except (OSError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "cannot cache" not in str(error):
            raise
        reason = getattr(error, "strerror", None) or "no folder for it can be written"
        raise MachineError(
            f"machine code cannot be kept in {str(cache_folder())!r}: {reason}; fix that, or name "
            f"another folder with {CACHE_VARIABLE}"
        ) from error
