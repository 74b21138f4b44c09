"""What this machine needs before its processes train."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from seqcls.cache import CACHE_VARIABLE, cache_folder
from seqcls.config import RunConfig
from seqcls.engines.choice import choose_engine
from seqcls.engines.fused.machine_code import is_compiled, part_of
from seqcls.errors import DeviceError, MachineError

_log = logging.getLogger(__name__)


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


def prepare(configs: Iterable[RunConfig], engine: str, device: str, dask: str | None) -> None:
    """Compiles the fused engine where it is needed here, so that no worker process has to.

    Raises:
        EngineError: the engine that was asked for cannot train one of these.
        MachineError: machine code cannot be kept.
    """
    fused = [config for config in configs if choose_engine(config, engine, device).name == "fused"]
    if dask is not None:
        return
    needed = {(own.precision, part_of(own)) for own in fused}
    for precision, part in sorted(needed):
        if not is_compiled(precision, part):
            _log.warning("compiling for this machine (%s), once: about a minute", precision)
            # Imported where it is used: compiling is what loads PyTorch and Numba.
            from seqcls.compiling import compile_ahead

            with _room_for_machine_code():
                compile_ahead(precision, part)


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
