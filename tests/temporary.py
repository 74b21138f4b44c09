"""Temporary files of tests: in memory where there is room, since databases wait for a disk."""

import os
import shutil
from pathlib import Path

MEMORY = Path("/dev/shm")
"""A file system in memory, on Linux."""

ROOM = 2 << 30
"""Bytes that have to be free: several times what all tests together leave at a time."""


def keep_in_memory() -> None:
    """Makes pytest's temporary folders in memory, unless a folder is set."""
    if not os.access(MEMORY, os.W_OK):
        return
    if shutil.disk_usage(MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def open_to_all(path: Path) -> None:
    """Makes a file readable to all users, and the folders above it where they are closed."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        if mode & 0o055 != 0o055:
            folder.chmod(mode | 0o055)
    path.chmod(0o644)
