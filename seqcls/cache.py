"""What is made once and kept: in files on this machine, for all processes, and in memory."""

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from platformdirs import user_cache_path

# Files: machine code, drawn strings and other things that take long to make again.

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
class CacheEntry:
    """What one folder of the cache holds."""

    name: str
    files: int
    size: int
    """Bytes."""


def cache_folder() -> Path:
    """The folder named by `SEQCLS_CACHE`, else the user's cache folder. It may be deleted."""
    return Path(os.environ.get(CACHE_VARIABLE) or user_cache_path("seqcls"))


def cache_entries() -> list[CacheEntry]:
    """What is kept, by the folders of the cache; none where there is no cache."""
    with contextlib.suppress(OSError):
        folders = sorted(path for path in cache_folder().iterdir() if path.is_dir())
        contents = [(folder.name, _files(folder)) for folder in folders]
        return [
            CacheEntry(name, len(files), sum(size for _, size, _ in files))
            for name, files in contents
        ]
    return []


def clear() -> int:
    """Removes all that is kept; how many bytes that was."""
    before = cache_entries()
    for folder in before:
        shutil.rmtree(cache_folder() / folder.name, ignore_errors=True)
    return sum(entry.size for entry in before) - sum(entry.size for entry in cache_entries())


def keep(path: Path, content: bytes) -> None:
    """Writes a file of the cache, all of it or nothing: without a cache all works, only slower."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, unfinished = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            # Replacing is atomic: others see the old file or all of the new one.
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


# Memory: large values of this process, up to so many bytes in all.

P = ParamSpec("P")
Value = TypeVar("Value")

MAX_BYTES = 500_000_000
"""What all of them may take together, in one process."""


class Memory:
    """Values by their keys; those used longest ago make room for others."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> Any:
        """What is kept under a key; None where nothing is."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def keep(self, key: Hashable, value: Any) -> None:
        """Keeps a value, alone where it is larger than all may be."""
        size = bytes_of(value)
        with self._lock:
            self._bytes += size - self._entries.pop(key, (None, 0))[1]
            self._entries[key] = (value, size)
            # The newest stays, however large it is: somebody is about to use it.
            while self._bytes > self._max_bytes and len(self._entries) > 1:
                self._bytes -= self._entries.popitem(last=False)[1][1]


MEMORY = Memory(MAX_BYTES)


def remembered(make: Callable[P, Value]) -> Callable[P, Value]:
    """The same function, whose values are kept in `MEMORY`."""

    @wraps(make)
    def recall(*args: P.args, **kwargs: P.kwargs) -> Value:
        key = (make, args, tuple(kwargs.items()))
        # A function that returned None would be called again each time.
        value: Value | None = MEMORY.get(key)
        if value is None:
            value = make(*args, **kwargs)
            MEMORY.keep(key, value)
        return value

    return recall


def bytes_of(value: object) -> int:
    """About what a value takes with all that it holds, each part once."""
    return _bytes_of(value, {})


def _bytes_of(value: object, counted: dict[int, object]) -> int:
    if id(value) in counted:
        return 0
    # Held while it is counted: of what is gone, the id would be another's.
    counted[id(value)] = value
    if hasattr(type(value), "memory_usage"):
        # A frame, whose columns stand in no `__dict__`.
        return sys.getsizeof(value)
    if isinstance(size := getattr(value, "nbytes", None), int):
        # An array, or a tensor.
        return size
    content = getattr(value, "__dict__", value)
    if isinstance(content, dict):
        content = [*content, *content.values()]
    if isinstance(content, list | tuple | set | frozenset):
        return sys.getsizeof(content) + sum(_bytes_of(part, counted) for part in content)
    return sys.getsizeof(value)
