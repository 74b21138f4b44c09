"""What a worker is asked to do, and what it did."""

from dataclasses import dataclass


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

    recorded: int = 0
    """Runs whose results, or whose divergence, it stored."""
    lost: int = 0
    """Runs of groups that ended without a result."""
    abandoned: int = 0
    """Runs that it had begun and left to the next worker, because it was stopped."""
    signal: int | None = None
    """The signal that ended it, if one did."""
