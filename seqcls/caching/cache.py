"""Where this machine keeps what it would otherwise make again: machine code and drawn strings."""

import contextlib
import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

CACHE_VARIABLE = "SEQCLS_CACHE"

HASH_BYTES = hashlib.sha256().digest_size

STRINGS = "strings"
"""The folder of drawn strings, which alone would grow without end: every seed draws its own."""

MAX_STRING_BYTES = 1_000_000_000
TRIM_BYTES = MAX_STRING_BYTES // 20
"""After so many new bytes a process looks again whether strings have to make room."""

_unlooked = TRIM_BYTES
"""Bytes that this process has written since it looked; at its first it looks at once."""


@dataclass(frozen=True)
class Kept:
    """What one folder of the cache holds."""

    name: str
    files: int
    size: int
    """Bytes."""


def cache_folder() -> Path:
    """The folder named by `SEQCLS_CACHE`, else the user's cache folder. It may be deleted."""
    return Path(os.environ.get(CACHE_VARIABLE) or user_cache_path("seqcls"))


def kept() -> list[Kept]:
    """What is kept, by the folders of the cache; none where there is no cache."""
    with contextlib.suppress(OSError):
        folders = sorted(path for path in cache_folder().iterdir() if path.is_dir())
        contents = [(folder.name, _files(folder)) for folder in folders]
        return [
            Kept(name, len(files), sum(size for _, size, _ in files)) for name, files in contents
        ]
    return []


def clear() -> int:
    """Removes all that is kept; how many bytes that was."""
    before = kept()
    for folder in before:
        shutil.rmtree(cache_folder() / folder.name, ignore_errors=True)
    return sum(entry.size for entry in before) - sum(entry.size for entry in kept())


def keep(path: Path, content: bytes) -> None:
    """Writes a file of the cache, all of it or nothing: without a cache all works, only slower."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, unfinished = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(unfinished, path)
        except OSError:
            os.unlink(unfinished)


def keep_checked(path: Path, content: bytes) -> None:
    """Keeps a file like `keep`; the hash that it begins with tells later whether it is as it was
    written.
    """
    keep(path, hashlib.sha256(content).digest() + content)


def read_checked(path: Path) -> bytes | None:
    """What stands behind a file's hash; None where it is damaged or cannot be read."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, content = data[:HASH_BYTES], data[HASH_BYTES:]
    return content if hashlib.sha256(content).digest() == digest else None


def use(path: Path) -> None:
    """Says that a file was of use just now: the one that was so longest ago goes first."""
    with contextlib.suppress(OSError):
        os.utime(path)


def make_room(written: int) -> None:
    """Removes the strings used longest ago where there are too many; now and then, since it looks
    through all.

    Args:
        written: bytes that were just written.
    """
    global _unlooked
    _unlooked += written
    if _unlooked >= TRIM_BYTES:
        _unlooked = 0
        trim(MAX_STRING_BYTES)


def trim(max_bytes: int) -> None:
    """Removes the strings used longest ago until there are at most so many bytes of them."""
    files = sorted(_files(cache_folder() / STRINGS))
    size = sum(file_size for _, file_size, _ in files)
    for _, file_size, path in files:
        if size <= max_bytes:
            return
        # A process that reads it now has it open; a later one draws the strings again.
        with contextlib.suppress(OSError):
            path.unlink()
        with contextlib.suppress(OSError):
            path.parent.rmdir()
        size -= file_size


def _files(folder: Path) -> list[tuple[float, int, Path]]:
    """When each file was used last, its bytes and its path."""
    files = []
    for parent, _, names in os.walk(folder):
        for name in names:
            # Other processes remove and replace files meanwhile.
            with contextlib.suppress(OSError):
                status = os.stat(os.path.join(parent, name))
                files.append((status.st_mtime, status.st_size, Path(parent, name)))
    return files
