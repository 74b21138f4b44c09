"""Files that commands write: whole or not at all, and over nothing but this program's own."""

import errno
import os
import shutil
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seqcls.errors import ConfigError, MachineError
from sweeps import files
from sweeps.files import refuse_taken, undo_unfinished, whole_files
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
    """Writes files, and ends as a full disk or an interruption would end it."""
    with whole_files(folder, force=force) as new:
        for name, content in contents.items():
            (new / name).write_text(content)
        if ends is not None:
            raise ends


def edited(path: Path) -> None:
    write(path, "ours")
    path.write_text("ours, and a line of the user's")


def link_to_own(path: Path) -> None:
    write(path.with_name("real"), "ours")
    path.symlink_to("real")


TAKEN: dict[str, Callable[[Path], object]] = {
    "foreign": lambda path: path.write_text("mine"),
    "empty": lambda path: path.touch(),
    "edited": edited,
    "database": lambda path: shutil.copy(ROOT / "runs.db", path),
    "folder": lambda path: path.mkdir(),
    "link to a file of its own": link_to_own,
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "loop": lambda path: path.symlink_to(path.name),
    "pipe": os.mkfifo,
}


@pytest.fixture(autouse=True)
def _nothing_was_written_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What other tests wrote, an empty export too, is not remembered as this program's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


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


def test_what_is_not_this_programs_own_stays(tmp_path: Path) -> None:
    for kind, take in TAKEN.items():
        path = tmp_path / kind / "out"
        path.parent.mkdir()
        take(path)
        before = state(path.parent)
        for force in (False, True):
            with pytest.raises(ConfigError, match=r"out' is there; .*move it or name another"):
                refuse_taken([path], force=force)
            with pytest.raises(ConfigError, match="is there"):
                write(path, "new", force=force)
            assert state(path.parent) == before, (kind, force)


def test_its_own_files_are_replaced_by_force_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "out"
    write(path, "first")
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="or replace it with force=True"):
        write(path, "second")
    assert path.read_text() == "first"
    write(path, "second", force=True)
    assert path.read_text() == "second"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "as private as it was"
    # It may have been moved: what it holds is what it is known by.
    moved = path.rename(tmp_path / "moved")
    write(moved, "third", force=True)
    assert moved.read_text() == "third"
    with whole_files(tmp_path) as new:
        shutil.copy(ROOT / "runs.db", new / "copy.db")
    with pytest.raises(ConfigError, match="force=True replaces only"):
        write(tmp_path / "copy.db", "new", force=True)
    assert (tmp_path / "copy.db").read_bytes() == (ROOT / "runs.db").read_bytes()


ENDS = (
    (OSError(errno.ENOSPC, "No space left on device"), MachineError),
    (OSError(errno.EFBIG, "File too large"), MachineError),
    (KeyboardInterrupt(), KeyboardInterrupt),
    (SystemExit(143), SystemExit),
)


def test_of_files_that_cannot_be_finished_or_named_nothing_is_left(tmp_path: Path) -> None:
    write(tmp_path / "out", "whole")
    (tmp_path / "b").write_text("mine")
    before = state(tmp_path)
    for error, expected in ENDS:
        with pytest.raises(expected):
            write_all(tmp_path, {"out": "hal", "new": ""}, error, force=True)
        assert state(tmp_path) == before, error
    with pytest.raises(ConfigError, match="b' is there"):
        write_all(tmp_path, dict.fromkeys("abc", "ours"))
    assert state(tmp_path) == before


def kill_itself(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed(folder: Path, names: str, where: Any, function: str, kills: Callable[..., Any]) -> None:
    """Writes files in a process that a function kills in place of another, and leaves a trace."""
    if (child := os.fork()) == 0:
        try:
            setattr(where, function, kills)
            write_all(folder, dict.fromkeys(names, "ours"), force=True)
        finally:
            os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert len(list(folder.glob(".seqcls-*"))) == 1


def killing_at(number: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that, when it is called so many times, kills its process instead."""
    calls = iter(range(number + 1))

    def call(*what: Any, **how: Any) -> Any:
        if next(calls) == number:
            kill_itself()
        return function(*what, **how)

    return call


def test_files_that_a_killed_program_moved_in_part_are_taken_back(tmp_path: Path) -> None:
    write(tmp_path / "b", "before")
    was = state(tmp_path)
    for moved in range(3):
        killed(tmp_path, "abc", Path, "replace", killing_at(moved, Path.replace))
        refuse_taken([tmp_path / "a"])
        assert state(tmp_path) == was, moved


def test_of_a_program_killed_before_it_named_all_files_nothing_is_left(tmp_path: Path) -> None:
    write(tmp_path / "b", "before")
    was = state(tmp_path)
    for written in (0, 5):

        def write_in_part(path: Path, text: str, written: int = written) -> None:
            path.write_text(text[:written])
            kill_itself()

        killed(tmp_path, "abc", files, "_write_synced", write_in_part)
        refuse_taken([tmp_path / "a"])
        assert state(tmp_path) == was, written


def test_what_a_program_that_was_killed_at_last_did_not_remove_is_removed(tmp_path: Path) -> None:
    for removed in range(3):
        write(tmp_path / "a", "before", force=True)
        killed(tmp_path, "a", os, "unlink", killing_at(removed, os.unlink))
        refuse_taken([tmp_path / "b"])
        assert state(tmp_path) == {"a": (stat.S_IFREG, b"ours")}, removed


def test_files_that_a_living_program_is_writing_stay(tmp_path: Path) -> None:
    with whole_files(tmp_path) as new:
        (new / "a").write_text("a")
        if (child := os.fork()) == 0:
            try:
                undo_unfinished(tmp_path)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    assert (tmp_path / "a").read_text() == "a"


def test_what_can_be_no_files_name_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    for name in ("x" * 300, "file/out", "loop/out", os.fsdecode(b"\xff")):
        with pytest.raises(ConfigError, match=r"cannot write .*; name another place") as refused:
            refuse_taken([tmp_path / name])
        assert str(refused.value).isprintable()
    for name in ("runs.db-wal", "runs.db-shm", "runs.db-journal"):
        with pytest.raises(ConfigError, match="names files beside a database"):
            refuse_taken([tmp_path / name])


def test_without_a_state_folder_files_are_written_and_none_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_text("a file, where the folder should be")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    write(tmp_path / "out", "first without a state folder")
    with pytest.raises(ConfigError, match="force=True replaces only"):
        write(tmp_path / "out", "second", force=True)
    assert (tmp_path / "out").read_text() == "first without a state folder"
