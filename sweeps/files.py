"""Files that commands write where the user says: each whole or not at all, never over a database.

They are written into a hidden folder beside their places, and moved when all of them are whole.
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
"""How every SQLite file begins."""

COMPANIONS = ("-wal", "-shm", "-journal")
"""Ends of SQLite's names beside a database, which another file in their place makes unreadable."""

# Errors of the machine and not of the user: a disk that is full, broken or limited.
_NO_MISTAKE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)


def refuse_taken(paths: Collection[Path], *, force: bool = False) -> None:
    """Refuses what may not be written before any work is done for it.

    Args:
        paths: files of one folder.
        force: whether plain files are replaced; several, only in a folder that holds no others.

    Raises:
        ConfigError: there is something else under such a name, or the name can be no file's.
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
    """Whether a plain file is there, which may be replaced."""
    try:
        # Bytes that are no UTF-8 are lone surrogates in Python; such names are refused.
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
    """A temporary folder, whose files are moved into the one named when all of them are whole.

    A program that is killed leaves it; after a day, the next one that writes there removes it.

    Args:
        folder: where the files go; it is made where it is missing.
        force: whether plain files are replaced, as in `refuse_taken`.

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
        # In the same folder, and so on the same disk: what is moved is never half there.
        with tempfile.TemporaryDirectory(dir=folder, prefix=".seqcls-") as new:
            yield Path(new)
            moves = {file: folder / file.name for file in sorted(Path(new).iterdir())}
            refuse_taken(moves.values(), force=force)
            for file, path in moves.items():
                # A disk that is full may say so only now.
                with file.open("rb") as written:
                    os.fsync(written.fileno())
                with suppress(FileNotFoundError):
                    # A file that is replaced keeps its permissions.
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
