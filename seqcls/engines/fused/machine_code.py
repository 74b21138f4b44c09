"""Where the fused engine's machine code is kept, and whether there is any yet.

Numba is not loaded to know it.
"""

import contextlib
import hashlib
from pathlib import Path

from seqcls.cache import cache_folder
from seqcls.config import NetworkConfig

TABLES = "tables"
"""The part for networks with positions."""
MEAN = "mean"
"""The part for networks that read the mean of all states. All others use what stands here itself.
"""


def machine_code_folder(part: str = "") -> Path:
    """The folder of the machine code of what stands here, or in a folder of this one.

    Numba would notice a change of the file that a compiled function stands in, not of those that it
    calls, so the folder is named by the source of all.
    """
    here = Path(__file__).parent
    sources = sorted(here.glob("*.py"))
    if part:
        sources += sorted((here / part).glob("*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    return cache_folder() / "compiled" / digest[:16]


def part_of(config: NetworkConfig) -> str:
    """The part that trains a network which the engine can train."""
    if config.readout == "mean":
        return MEAN
    return "" if config.positions == "none" else TABLES


def is_compiled(precision: str, part: str = "") -> bool:
    """Whether this machine has kept a part's machine code for a precision; damaged files go."""
    if not _mark(precision, part).exists():
        return False
    damaged = [path for path in machine_code_folder(part).rglob("*.nb[ci]") if not is_whole(path)]
    for path in damaged:
        # Where it cannot be removed, whoever loads it finds out again.
        with contextlib.suppress(OSError):
            path.unlink()
    return not damaged


def is_whole(path: Path) -> bool:
    """Whether a file of machine code is as it was written: its hash stands at its end."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    size = hashlib.sha256().digest_size
    return hashlib.sha256(content[:-size]).digest() == content[-size:]


def mark_compiled(precision: str, part: str = "") -> None:
    """Keeps that a part's machine code for a precision is there."""
    try:
        _mark(precision, part).touch()
    except OSError:
        # Where nothing can be kept, every process compiles for itself.
        return


def _mark(precision: str, part: str) -> Path:
    return machine_code_folder(part) / f"{precision}.compiled"
