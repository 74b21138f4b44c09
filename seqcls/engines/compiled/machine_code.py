"""The cache of machine code: its folders, and which parts are compiled. Numba is not loaded."""

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
    FUSED: ("fused.kernel", "fused.engine"),
    TAPE: ("lanes.run",),
}
"""By part, the modules with the functions that Python calls and with the tuples that these take.
The modules that they import are compiled with them."""

_IMPORT = re.compile(
    r"^from seqcls\.engines\.(compiled|fused|lanes)(?:\.(\w+) import| import (\([^)]*|.*))",
    re.MULTILINE,
)


def machine_code_folder(part: str) -> Path:
    """Returns the folder of a part's machine code.

    Numba notices changes of the file with a compiled function, but not of the functions that it
    calls, so the folder is named by a hash of all sources.

    Args:
        part: one of `BEGINNINGS`.
    """
    content = b"".join(path.read_bytes() for path in sources_of(part))
    return cache_folder() / "compiled" / hashlib.sha256(content).hexdigest()[:16]


@lru_cache
def sources_of(part: str) -> tuple[Path, ...]:
    """Returns the source files that a part is compiled from."""
    engines = Path(__file__).parent.parent
    names, left = set[str](), set(BEGINNINGS[part])
    while left:
        names |= left
        files = [engines / f"{name.replace('.', '/')}.py" for name in left]
        imported = [x for file in files for x in _IMPORT.findall(file.read_text())]
        left = {
            f"{folder}.{name}"
            for folder, module, others in imported
            for name in ([module] if module else re.findall(r"(\w+)(?: as \w+)?", others))
        } - names
    return tuple(engines / f"{name.replace('.', '/')}.py" for name in sorted(names))


def is_compiled(precision: str, part: str) -> bool:
    """Returns True if a part's machine code for a precision is cached; removes damaged files."""
    if not _mark(precision, part).exists():
        return False
    damaged = [path for path in machine_code_folder(part).rglob("*.nb[ci]") if not is_whole(path)]
    for path in damaged:
        # If it cannot be removed, the process that loads it checks it again.
        with contextlib.suppress(OSError):
            path.unlink()
    return not damaged


_READY: set[tuple[Path, str, str]] = set()


def is_ready(precision: str, part: str) -> bool:
    """Returns `is_compiled`, without checking again once it was true."""
    key = (cache_folder(), precision, part)
    if key not in _READY and is_compiled(precision, part):
        _READY.add(key)
    return key in _READY


def is_whole(path: Path) -> bool:
    """Returns True if a file of machine code is undamaged: it ends with its hash."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    size = hashlib.sha256().digest_size
    return hashlib.sha256(content[:-size]).digest() == content[-size:]


def mark_compiled(precision: str, part: str) -> None:
    """Records that a part's machine code for a precision is cached."""
    try:
        _mark(precision, part).touch()
    except OSError:
        # Without a writable cache, every process compiles for itself.
        return


def _mark(precision: str, part: str) -> Path:
    return machine_code_folder(part) / f"{precision}.compiled"
