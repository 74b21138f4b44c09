"""What this machine needs before its processes train."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Thread

from seqcls.caching.cache import CACHE_VARIABLE, cache_folder
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.errors import DeviceError, MachineError
from seqcls.problem import Problem
from sweeps.work.options import WorkOptions

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
        from seqcls.engines.stacked import choose_device

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
            f"machine code cannot be kept in {str(cache_folder())!r}: {reason}; see to it, or name "
            f"another folder with {CACHE_VARIABLE}"
        ) from error
