"""Atomic writing of files to places that a user names, never over a database.

They are written into a hidden folder beside their places, and moved when all are complete.
"""

import errno
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from seqcls.errors import ConfigError, MachineError, Parameter

DATABASE = b"SQLite format 3\0"
"""The first bytes of every SQLite file."""

COMPANIONS = ("-wal", "-shm", "-journal")
"""Endings of SQLite's files beside a database, which foreign files of these names would damage."""

# Errors of the machine and not of the user: a disk that is full, broken or limited.
_NO_MISTAKE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)


def refuse_taken(paths: Collection[Path], *, force: bool = False) -> None:
    """Refuses files that may not be written, before any work is done for them.

    Args:
        paths: files of one folder.
        force: True if plain files are replaced; several, only in a folder that holds no others.

    Raises:
        ConfigError: a name is taken or invalid.
    """
    taken = [path for path in paths if _is_taken(path)]
    for path in taken[:1] if not force else ():
        message = f"{str(path)!r} already exists; move it or name another, or replace it with "
        raise ConfigError(message, Parameter("force", True))
    if taken and len(paths) > 1:
        names, folder = {path.name for path in paths}, taken[0].parent
        others = sorted(x.name for x in folder.iterdir() if x.name not in names)
        if other := next((name for name in others if not name.startswith(".")), None):
            raise ConfigError(
                f"{str(folder)!r} holds {other!r} too; name another folder, for ",
                Parameter("force", True),
                " replaces several files only in one of their own",
            )


def _is_taken(path: Path) -> bool:
    """True if there is a plain file, which may be replaced."""
    try:
        # Names that are not UTF-8, which have surrogates in Python, are refused.
        str(path).encode()
        is_plain = stat.S_ISREG(path.lstat().st_mode)
        if is_plain:
            with path.open("rb") as file:
                is_plain = file.read(len(DATABASE)) != DATABASE
    except FileNotFoundError:
        is_plain = None
    except (OSError, UnicodeEncodeError) as error:
        raise _refusal(path, error) from None
    if is_plain is False or path.name.endswith(COMPANIONS):
        raise ConfigError(
            f"{str(path)!r} already exists; move it or name another: databases, SQLite's files "
            "beside a database, folders, links and devices are not replaced"
        )
    return bool(is_plain)


@contextmanager
def whole_files(folder: Path, *, force: bool = False) -> Iterator[Path]:
    """Yields a temporary folder, whose files are moved into `folder` at the end of the block.

    A killed program leaves it behind; the next one that writes there after a day removes it.

    Args:
        folder: the destination, created if missing.
        force: True if plain files are replaced, as in `refuse_taken`.

    Raises:
        ConfigError: one of the files may not be written; none is.
        MachineError: the disk is full or broken.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for abandoned in folder.glob(".seqcls-*"):
            with suppress(OSError):
                if time.time() - abandoned.lstat().st_mtime > 24 * 3600:
                    shutil.rmtree(abandoned)
        # In the same folder, and so on the same disk, where moving is atomic.
        with tempfile.TemporaryDirectory(dir=folder, prefix=".seqcls-") as new:
            yield Path(new)
            moves = {file: folder / file.name for file in sorted(Path(new).iterdir())}
            refuse_taken(moves.values(), force=force)
            for file, path in moves.items():
                # A full disk may report so only now.
                with file.open("rb") as written:
                    os.fsync(written.fileno())
                with suppress(FileNotFoundError):
                    # The permissions of a replaced file are preserved.
                    shutil.copymode(path, file)
            for file, path in moves.items():
                # Atomic on one disk: readers see the old file or the new one.
                file.replace(path)
    except OSError as error:
        raise _refusal(folder, error) from None


def _refusal(path: Path, error: OSError | UnicodeEncodeError) -> ConfigError | MachineError:
    reason = getattr(error, "strerror", None) or str(error)
    if getattr(error, "errno", None) in _NO_MISTAKE:
        return MachineError(f"cannot write {str(path)!r}: {reason}; fix that and run this again")
    return ConfigError(f"cannot write {str(path)!r}: {reason}; name another place")
