"""Files that commands write where the user says: whole or not at all, and never over other files.

A file is this program's own while it is, byte for byte, what it wrote: the user's state folder
keeps the hash of each. One that was edited since, any database, and whatever is no plain file, a
link among them, is not.
"""

import errno
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from platformdirs import user_state_path

from seqcls.errors import ConfigError, MachineError

DATABASE = b"SQLite format 3\0"
"""How every SQLite file begins; a copy of one is never replaced, whoever wrote it."""

COMPANIONS = ("-wal", "-shm", "-journal")
"""Ends of SQLite's names beside a database, which another file in their place makes unreadable."""

_NO_MISTAKE = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def refuse_taken(paths: Iterable[Path], *, force: bool = False) -> None:
    """Refuses what may not be written before any work is done for it.

    Args:
        paths: of the files that are to be written.
        force: whether files of this program's own may be replaced.

    Raises:
        ConfigError: there is something else under such a name, or the name can be no file's.
    """
    for path in paths:
        if path.name.endswith(COMPANIONS):
            raise ConfigError(
                f"{str(path)!r} is what SQLite names files beside a database; name another"
            )
        try:
            str(path).encode()
            path.lstat()
        except FileNotFoundError:
            continue
        except (OSError, UnicodeEncodeError) as error:
            raise _refusal(path, error) from None
        is_ours = _is_of_this_program(path)
        if is_ours and force:
            continue
        advice = "move it or name another"
        if force:
            advice = f"--force replaces only what seqcls wrote and nobody changed: {advice}"
        elif is_ours:
            advice += ", or replace it with --force"
        raise ConfigError(f"{str(path)!r} is there; {advice}")


@contextmanager
def whole_files(folder: Path, *, force: bool = False) -> Iterator[Path]:
    """A temporary folder, whose files are moved into the one named when all of them are whole.

    Args:
        folder: where the files go; it is made where it is missing.
        force: whether files of this program's own are replaced.

    Raises:
        ConfigError: one of the files may not be written; none is.
        MachineError: the disk is full or broken; likewise.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # In the same folder, and so on the same disk: what is moved is never half there.
        with tempfile.TemporaryDirectory(dir=folder, prefix=".seqcls-") as unfinished:
            yield Path(unfinished)
            moves = {file: folder / file.name for file in sorted(Path(unfinished).iterdir())}
            refuse_taken(moves.values(), force=force)
            _remember([_synced_hash(file) for file in moves])
            for file, path in moves.items():
                with suppress(FileNotFoundError):
                    shutil.copymode(path, file)
                file.replace(path)
    except OSError as error:
        raise _refusal(folder, error) from None


def _refusal(path: Path, error: OSError | UnicodeEncodeError) -> ConfigError | MachineError:
    reason = getattr(error, "strerror", None) or str(error)
    if getattr(error, "errno", None) in _NO_MISTAKE:
        return MachineError(f"cannot write {str(path)!r}: {reason}; see to it and run this again")
    return ConfigError(f"cannot write {str(path)!r}: {reason}; name another place")


def _is_of_this_program(path: Path) -> bool:
    if not stat.S_ISREG(path.lstat().st_mode):
        return False
    with suppress(OSError), path.open("rb") as file:
        if file.read(len(DATABASE)) != DATABASE:
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest() in _written().read_text().split()
    return False


def _synced_hash(path: Path) -> str:
    with path.open("rb") as file:
        # A disk that is full may say so only now.
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remember(hashes: list[str]) -> None:
    # Without it everything works; --force then replaces nothing.
    with suppress(OSError):
        _written().parent.mkdir(parents=True, exist_ok=True)
        with _written().open("a") as file:
            file.write("".join(f"{file_hash}\n" for file_hash in hashes))


def _written() -> Path:
    return user_state_path("seqcls") / "written"
