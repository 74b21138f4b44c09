"""Files that commands write where the user says: whole or not at all, and never over other files.

A file is this program's own while it is, byte for byte, what it wrote: the user's state folder
keeps the hash of each. One that was edited since, any database, and whatever is no plain file, a
link among them, is not.
"""

import errno
import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_state_path

from seqcls.errors import ConfigError, MachineError, Parameter

DATABASE = b"SQLite format 3\0"
"""How every SQLite file begins; a copy of one is never replaced, whoever wrote it."""

COMPANIONS = ("-wal", "-shm", "-journal")
"""Ends of SQLite's names beside a database, which another file in their place makes unreadable."""

_UNFINISHED = ".seqcls-"
"""How the folder's name begins that holds files until all of them are whole."""

_OVER = ".seqcls-over-"
"""How its name begins once nothing in it is needed: at once, and whatever of it is still there."""

_LOCK = "lock"
"""Held by the program that writes them: whose lock is free was killed."""

_MAKING_SECONDS = 86_400.0
"""A folder without a lock is no longer being made after so long; older versions made none."""

_MOVES = "moves"
"""Names all of the files with their hashes, once they are whole and before the first is moved."""

_NO_MISTAKE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)


def refuse_taken(paths: Iterable[Path], *, force: bool = False) -> None:
    """Refuses what may not be written before any work is done for it.

    Args:
        force: whether files of this program's own may be replaced.

    Raises:
        ConfigError: there is something else under such a name, or the name can be no file's.
    """
    paths = list(paths)
    for folder in {path.parent for path in paths}:
        undo_unfinished(folder)
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
        there, advice, by_force = (
            f"{str(path)!r} is there; ",
            "move it or name another",
            Parameter("force", True),
        )
        if force:
            raise ConfigError(
                there, by_force, f" replaces only what seqcls wrote and nobody changed: {advice}"
            )
        raise ConfigError(there, advice, *((", or replace it with ", by_force) if is_ours else ()))


@contextmanager
def whole_files(folder: Path, *, force: bool = False) -> Iterator[Path]:
    """A temporary folder, whose files are moved into the one named when all of them are whole.

    A program that is killed meanwhile leaves all of the files or, once the next one writes into
    the folder, none: `undo_unfinished` restores what was there before.

    Args:
        folder: where the files go; it is made where it is missing.
        force: whether files of this program's own are replaced.

    Raises:
        ConfigError: one of the files may not be written; none is.
        MachineError: the disk is full or broken; likewise.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        undo_unfinished(folder)
        # In the same folder, and so on the same disk: what is moved is never half there.
        unfinished = Path(tempfile.mkdtemp(dir=folder, prefix=_UNFINISHED))
        # Removed with its lock held; and where the disk has no room for the lock.
        with (
            _removed_at_last(unfinished),
            FileLock(unfinished / _LOCK),
            _removed_at_last(unfinished),
        ):
            new, before = unfinished / "new", unfinished / "before"
            new.mkdir()
            before.mkdir()
            yield new
            moves = {file: folder / file.name for file in sorted(new.iterdir())}
            refuse_taken(moves.values(), force=force)
            hashes = [_synced_hash(file) for file in moves]
            _remember(hashes)
            for file, path in moves.items():
                with suppress(FileNotFoundError):
                    shutil.copymode(path, file)
                    shutil.copy2(path, before / path.name)
            names = [file.name for file in moves]
            _write_synced(unfinished / _MOVES, json.dumps(dict(zip(names, hashes, strict=True))))
            try:
                for file, path in moves.items():
                    file.replace(path)
            except OSError:
                _take_back_some(folder, unfinished)
                raise
    except OSError as error:
        raise _refusal(folder, error) from None


def undo_unfinished(folder: Path) -> None:
    """Removes what killed programs left of files that they were writing into a folder.

    Where some of a set of files were moved and others not yet, those that were are taken back:
    they are removed, or what they replaced is there again.
    """
    for unfinished in folder.glob(f"{_UNFINISHED}*"):
        lock = unfinished / _LOCK
        if unfinished.is_symlink():
            continue
        if unfinished.name.startswith(_OVER):
            shutil.rmtree(unfinished, ignore_errors=True)
            continue
        with suppress(OSError, Timeout):
            # One that is only being made has no lock yet.
            if not lock.is_file() and time.time() - unfinished.stat().st_mtime < _MAKING_SECONDS:
                continue
            with FileLock(lock, timeout=0):
                _take_back_some(folder, unfinished)
                _remove(unfinished)


@contextmanager
def _removed_at_last(unfinished: Path) -> Iterator[None]:
    try:
        yield
    finally:
        _remove(unfinished)


def _remove(unfinished: Path) -> None:
    """Removes a folder while its lock is held: without it, it would look like one in the making."""
    over = unfinished.with_name(unfinished.name.replace(_UNFINISHED, _OVER, 1))
    with suppress(OSError):
        unfinished.rename(over)
        shutil.rmtree(over, ignore_errors=True)


def _take_back_some(folder: Path, unfinished: Path) -> None:
    """Takes back what was moved of a set of which others were not."""
    hashes: dict[str, str] = {}
    # Where it is not there, or not whole, the first was not moved yet.
    with suppress(FileNotFoundError, ValueError):
        hashes = json.loads((unfinished / _MOVES).read_text())
    if any((unfinished / "new" / name).exists() for name in hashes):
        for name, written in hashes.items():
            _take_back(folder / name, unfinished, written)


def _take_back(path: Path, unfinished: Path, written: str) -> None:
    was_moved = not (unfinished / "new" / path.name).exists()
    if not was_moved or path.is_symlink() or not path.is_file() or _synced_hash(path) != written:
        return
    before = unfinished / "before" / path.name
    if before.exists():
        before.replace(path)
    else:
        path.unlink()


def _write_synced(path: Path, text: str) -> None:
    with path.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _refusal(path: Path, error: OSError | UnicodeEncodeError) -> ConfigError | MachineError:
    reason = getattr(error, "strerror", None) or str(error)
    if getattr(error, "errno", None) in _NO_MISTAKE:
        return MachineError(f"cannot write {str(path)!r}: {reason}; fix that and run this again")
    return ConfigError(f"cannot write {str(path)!r}: {reason}; name another place")


def _is_of_this_program(path: Path) -> bool:
    if not stat.S_ISREG(path.lstat().st_mode):
        return False
    with suppress(OSError), path.open("rb") as file:
        if file.read(len(DATABASE)) != DATABASE:
            file.seek(0)
            return (
                hashlib.file_digest(file, "sha256").hexdigest()
                in _written_folder().read_text().split()
            )
    return False


def _synced_hash(path: Path) -> str:
    with path.open("rb") as file:
        # A disk that is full may say so only now.
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remember(hashes: list[str]) -> None:
    # Without it everything works; `force` then replaces nothing.
    with suppress(OSError):
        _written_folder().parent.mkdir(parents=True, exist_ok=True)
        with _written_folder().open("a") as file:
            file.write("".join(f"{file_hash}\n" for file_hash in hashes))


def _written_folder() -> Path:
    return user_state_path("seqcls") / "written"
