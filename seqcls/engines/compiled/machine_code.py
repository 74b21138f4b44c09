"""Where machine code is kept, and whether there is any yet.

Numba is not loaded to know it.
"""

import contextlib
import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from seqcls.cache import cache_folder

FUSED = "fused"
"""The engine of letter counts."""
TAPE = "tape"
"""The engine of lanes."""

BEGINNINGS: Mapping[str, tuple[str, ...]] = {
    FUSED: ("fused.kernel", "fused.engine", "compiled.engine"),
    TAPE: ("lanes.run", "compiled.engine"),
}
"""By part, the module whose functions Python calls, and those that define the tuples which these
take. All else that is compiled with them is what these modules import."""

_IMPORT = re.compile(
    r"^from seqcls\.engines\.(compiled|fused|lanes)(?:\.(\w+) import| import (\w+))", re.MULTILINE
)


def machine_code_folder(part: str) -> Path:
    """The folder of a part's machine code.

    Numba would notice a change of the file that a compiled function stands in, not of those that it
    calls, so the folder is named by the source of all.

    Args:
        part: one of `BEGINNINGS`.
    """
    content = b"".join(path.read_bytes() for path in sources_of(part))
    return cache_folder() / "compiled" / hashlib.sha256(content).hexdigest()[:16]


@lru_cache
def sources_of(part: str) -> tuple[Path, ...]:
    """The files of engines that a part is made of."""
    engines = Path(__file__).parent.parent
    names, left = set[str](), set(BEGINNINGS[part])
    while left:
        names |= left
        files = [engines / f"{name.replace('.', '/')}.py" for name in left]
        imported = [x for file in files for x in _IMPORT.findall(file.read_text())]
        left = {f"{folder}.{module or other}" for folder, module, other in imported} - names
    return tuple(engines / f"{name.replace('.', '/')}.py" for name in sorted(names))


def is_compiled(precision: str, part: str) -> bool:
    """Whether this machine has kept a part's machine code for a precision; damaged files go."""
    if not _mark(precision, part).exists():
        return False
    damaged = [path for path in machine_code_folder(part).rglob("*.nb[ci]") if not is_whole(path)]
    for path in damaged:
        # Where it cannot be removed, whoever loads it finds out again.
        with contextlib.suppress(OSError):
            path.unlink()
    return not damaged


_READY: set[tuple[Path, str, str]] = set()


def is_ready(precision: str, part: str) -> bool:
    """Whether `is_compiled`, but not looked at again once it was."""
    key = (cache_folder(), precision, part)
    if key not in _READY and is_compiled(precision, part):
        _READY.add(key)
    return key in _READY


def is_whole(path: Path) -> bool:
    """Whether a file of machine code is as it was written: its hash stands at its end."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    size = hashlib.sha256().digest_size
    return hashlib.sha256(content[:-size]).digest() == content[-size:]


def mark_compiled(precision: str, part: str) -> None:
    """Keeps that a part's machine code for a precision is there."""
    try:
        _mark(precision, part).touch()
    except OSError:
        # Where nothing can be kept, every process compiles for itself.
        return


def _mark(precision: str, part: str) -> Path:
    return machine_code_folder(part) / f"{precision}.compiled"
