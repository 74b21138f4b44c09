"""What this machine needs before its processes train."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from seqcls.cache import CACHE_VARIABLE, cache_folder
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.errors import DeviceError, MachineError
from seqcls.problem import Problem


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


def prepare(problems: Iterable[Problem], engine: str, device: str, dask: str | None) -> None:
    """Has engines make what they need here, such as machine code, so that no worker process has to.

    Raises:
        EngineError: the engine that was asked for cannot train one of these.
        MachineError: machine code cannot be kept.
    """
    by_engine: dict[str, list[Problem]] = {}
    for problem in problems:
        by_engine.setdefault(choose_engine(problem, engine, device).name, []).append(problem)
    if dask is None:
        with _room_for_machine_code():
            for name, engine_problems in by_engine.items():
                engine_named(name).prepare(engine_problems)


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
