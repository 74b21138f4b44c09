"""Caches: of files on this machine, shared by all processes, and of values in memory."""

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

# Files: machine code, drawn strings and other things that take long to make.

CACHE_VARIABLE = "SEQCLS_CACHE"

HASH_BYTES = hashlib.sha256().digest_size

STRINGS = "strings"
"""The folder of drawn strings, which alone would grow without limit, as every seed draws some."""

MAX_STRING_BYTES = 1_000_000_000
TRIM_BYTES = MAX_STRING_BYTES // 20
"""Number of new bytes after which a process trims the strings again."""

_unlooked = TRIM_BYTES
"""Bytes that this process has written since it trimmed; it begins with a trim."""


@dataclass(frozen=True)
class CacheEntry:
    """The contents of one folder of the cache."""

    name: str
    files: int
    size: int
    """Number of bytes."""


def cache_folder() -> Path:
    """Returns the folder named by `SEQCLS_CACHE`, else the user's cache folder.

    It may be deleted.
    """
    return Path(os.environ.get(CACHE_VARIABLE) or user_cache_path("seqcls"))


def cache_entries() -> list[CacheEntry]:
    """Lists the folders of the cache; empty if there is no cache."""
    entries = []
    with contextlib.suppress(OSError):
        for folder in sorted(path for path in cache_folder().iterdir() if path.is_dir()):
            sizes = [size for _, size, _ in _files(folder)]
            entries.append(CacheEntry(folder.name, len(sizes), sum(sizes)))
    return entries


def clear() -> int:
    """Removes all cached files; returns their number of bytes."""
    before = cache_entries()
    for folder in before:
        shutil.rmtree(cache_folder() / folder.name, ignore_errors=True)
    return sum(entry.size for entry in before) - sum(entry.size for entry in cache_entries())


def keep_checked(path: Path, content: bytes) -> None:
    """Writes a file of the cache, or nothing on errors, since the cache only saves time.

    A hash at its beginning later detects damage.
    """
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, unfinished = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(hashlib.sha256(content).digest() + content)
            # Replacing is atomic: others see the old file or all of the new one.
            os.replace(unfinished, path)
        except OSError:
            os.unlink(unfinished)


def read_checked(path: Path) -> bytes | None:
    """Reads the content after a file's hash; None if it is damaged or cannot be read."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, content = data[:HASH_BYTES], data[HASH_BYTES:]
    return content if hashlib.sha256(content).digest() == digest else None


def use(path: Path) -> None:
    """Marks a file as used now; the least recently used file is removed first."""
    with contextlib.suppress(OSError):
        os.utime(path)


def make_room(written: int) -> None:
    """Trims the strings after enough new bytes, since a trim looks through all files."""
    global _unlooked
    _unlooked += written
    if _unlooked >= TRIM_BYTES:
        _unlooked = 0
        trim(MAX_STRING_BYTES)


def trim(max_bytes: int) -> None:
    """Removes the least recently used strings until at most so many bytes remain."""
    files = sorted(_files(cache_folder() / STRINGS))
    size = sum(file_size for _, file_size, _ in files)
    for _, file_size, path in files:
        if size <= max_bytes:
            return
        # A process that reads it has it open; a later one draws the strings again.
        with contextlib.suppress(OSError):
            path.unlink()
        with contextlib.suppress(OSError):
            path.parent.rmdir()
        size -= file_size


def _files(folder: Path) -> list[tuple[float, int, Path]]:
    """Lists each file's time of last use, bytes and path."""
    files = []
    for parent, _, names in os.walk(folder):
        for name in names:
            # Other processes may remove and replace files meanwhile.
            with contextlib.suppress(OSError):
                status = os.stat(os.path.join(parent, name))
                files.append((status.st_mtime, status.st_size, Path(parent, name)))
    return files


# Memory: large values of this process, up to so many bytes in all.

P = ParamSpec("P")
Value = TypeVar("Value")

MAX_BYTES = 500_000_000
"""The most bytes of all values of one process."""


class Memory:
    """Values by key; the least recently used ones make room for others."""

    def __init__(self, max_bytes: int, least: int = 1) -> None:
        """Makes room for up to `max_bytes`, and for the `least` newest values however large."""
        self._max_bytes, self._least = max_bytes, least
        self._bytes = 0
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> Any:
        """Returns the value of a key; None if there is none."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def keep(self, key: Hashable, value: Any) -> dict[Any, Any]:
        """Stores a value; returns those that made room for it, by key."""
        size, gone = bytes_of(value), {}
        with self._lock:
            self._bytes += size - self._entries.pop(key, (None, 0))[1]
            self._entries[key] = (value, size)
            # The newest values stay, however large, since they are about to be used.
            while self._bytes > self._max_bytes and len(self._entries) > self._least:
                oldest, (gone[oldest], freed) = self._entries.popitem(last=False)
                self._bytes -= freed
        return gone


MEMORY = Memory(MAX_BYTES)


def remembered(make: Callable[P, Value]) -> Callable[P, Value]:
    """Decorates a function to cache its values in `MEMORY`."""

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


def bytes_of(value: object, counted: dict[int, object] | None = None) -> int:
    """Estimates the bytes of a value with all its parts that are not `counted` yet."""
    counted = {} if counted is None else counted
    if id(value) in counted:
        return 0
    # A reference is held, since the id of a deleted object may be reused.
    counted[id(value)] = value
    if hasattr(type(value), "memory_usage"):
        # A frame, whose columns are in no `__dict__`.
        return sys.getsizeof(value)
    if isinstance(size := getattr(value, "nbytes", None), int):
        # An array, or a tensor.
        return size
    content = getattr(value, "__dict__", value)
    if isinstance(content, dict):
        content = [*content, *content.values()]
    if isinstance(content, list | tuple | set | frozenset):
        return sys.getsizeof(content) + sum(bytes_of(part, counted) for part in content)
    return sys.getsizeof(value)
