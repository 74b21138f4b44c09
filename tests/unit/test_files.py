"""Files that commands write: each whole or not at all, and over others by force alone."""

import errno
import os
import pickle
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from seqcls.errors import ConfigError, MachineError
from sweeps.cli.parameters import option
from sweeps.files import refuse_taken, whole_files
from tests.conftest import ROOT


def write(path: Path, content: str, *, force: bool = False) -> None:
    write_all(path.parent, {path.name: content}, force=force)


def write_all(
    folder: Path,
    contents: dict[str, str],
    ends: BaseException | None = None,
    *,
    force: bool = False,
) -> None:
    """Writes files, and ends with an error like a full disk or an interruption."""
    with whole_files(folder, force=force) as new:
        for name, content in contents.items():
            (new / name).write_text(content)
        if ends is not None:
            raise ends


def link_to_file(path: Path) -> None:
    path.with_name("real").write_text("mine")
    path.symlink_to("real")


TAKEN: dict[str, Callable[[Path], object]] = {
    "database": lambda path: shutil.copy(ROOT / "runs.db", path),
    "folder": lambda path: path.mkdir(),
    "link": link_to_file,
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "loop": lambda path: path.symlink_to(path.name),
    "pipe": os.mkfifo,
}


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All that is in a folder, by name: what kind it is and what it holds."""
    found = {}
    for path in folder.iterdir():
        kind, content = stat.S_IFMT(path.lstat().st_mode), b""
        if kind == stat.S_IFREG:
            content = path.read_bytes()
        elif kind == stat.S_IFLNK:
            content = os.fsencode(path.readlink())
        found[path.name] = kind, content
    return found


def test_force_never_replaces_databases_folders_or_links(tmp_path: Path) -> None:
    for kind, take in TAKEN.items():
        path = tmp_path / kind / "out"
        path.parent.mkdir()
        take(path)
        before = state(path.parent)
        for force in (False, True):
            with pytest.raises(ConfigError, match="name another: data"):
                refuse_taken([path], force=force)
            with pytest.raises(ConfigError, match="already exists"):
                write(path, "new", force=force)
            assert state(path.parent) == before, (kind, force)


def test_file_is_replaced_only_with_force(tmp_path: Path) -> None:
    path = tmp_path / "new" / "out"
    write(path, "first")
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="or replace it with force=True") as refused:
        write(path, "second")
    error = pickle.loads(pickle.dumps(refused.value))
    assert "or replace it with --force" in error.render(option), "as the command spells it"
    assert path.read_text() == "first"
    write(path, "second", force=True)
    assert path.read_text() == "second"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "as private as it was"


def test_several_files_are_replaced_only_in_a_folder_of_their_own(tmp_path: Path) -> None:
    write_all(tmp_path, {"a": "first", "b": "first"})
    (tmp_path / ".hidden").touch()
    write_all(tmp_path, {"a": "second", "b": "second", "c": "second"}, force=True)
    (tmp_path / "notes").write_text("mine")
    before = state(tmp_path)
    with pytest.raises(ConfigError, match=r"holds 'notes' too; .*force=True replaces several"):
        write_all(tmp_path, dict.fromkeys("abcd", "third"), force=True)
    assert state(tmp_path) == before
    write_all(tmp_path, {"d": "third", "e": "third"}, force=True)
    assert (tmp_path / "e").read_text() == "third", "what replaces nothing may go anywhere"


ENDS = (
    (OSError(errno.ENOSPC, "No space left on device"), MachineError),
    (OSError(errno.EFBIG, "File too large"), MachineError),
    (KeyboardInterrupt(), KeyboardInterrupt),
    (SystemExit(143), SystemExit),
)


def test_failed_write_leaves_the_folder_unchanged(tmp_path: Path) -> None:
    write(tmp_path / "out", "whole")
    (tmp_path / "b").write_text("mine")
    before = state(tmp_path)
    for error, expected in ENDS:
        with pytest.raises(expected):
            write_all(tmp_path, {"out": "hal", "new": ""}, error, force=True)
        assert state(tmp_path) == before, error
    with pytest.raises(ConfigError, match="b' already exists"):
        write_all(tmp_path, dict.fromkeys("abc", "new"))
    assert state(tmp_path) == before


def test_leftovers_of_a_killed_program_expire_after_a_day(tmp_path: Path) -> None:
    old, new = tmp_path / ".seqcls-old", tmp_path / ".seqcls-new"
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (0, time.time() - 86_500))
    (tmp_path / ".seqcls-link").symlink_to(tmp_path)
    write(tmp_path / "a", "")
    assert {x.name for x in tmp_path.iterdir()} == {"a", ".seqcls-new", ".seqcls-link"}


def test_impossible_file_name_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    for name in ("x" * 300, "file/out", "loop/out", os.fsdecode(b"\xff")):
        with pytest.raises(ConfigError, match=r"cannot write .*; name another place") as refused:
            refuse_taken([tmp_path / name])
        assert str(refused.value).isprintable()
    for name in ("runs.db-wal", "runs.db-shm", "runs.db-journal"):
        with pytest.raises(ConfigError, match="files beside a database"):
            refuse_taken([tmp_path / name])
