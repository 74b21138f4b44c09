"""What stands beside a database is not believed: records and logs of workers."""

import json
import os
from pathlib import Path
from typing import Any

import psutil
import pytest

from seqcls.errors import StoreError
from sweeps.store.databases.engine import Store
from sweeps.work import background_worker

LOG = "20260101T000000.000000.log"


def record(store: Store, **changes: Any) -> Path:
    """A launch record as a stranger may write it."""
    folder = background_worker.log_folder(store)
    folder.mkdir(exist_ok=True)
    path = folder / "sweep-1.json"
    path.write_text(json.dumps({"pid": 1, "created": 1.0, "log": LOG, **changes}))
    return folder


def test_a_log_of_the_folder_is_read(store: Store) -> None:
    (record(store) / LOG).write_text("trained")
    assert background_worker.read_log(store, 1) == "trained"


@pytest.mark.parametrize("log", ["../../secret", "/etc/passwd", "", ".", "x.log", None, 3, [LOG]])
def test_a_file_elsewhere_is_not_read(store: Store, tmp_path: Path, log: Any) -> None:
    (tmp_path.parent / "secret").write_text("secret")
    record(store, log=log)
    assert background_worker.read_log(store, 1) is None


@pytest.mark.parametrize("how", ["link", "hard link", "pipe", "folder"])
def test_a_log_that_is_no_file_of_its_own_is_not_read(
    store: Store, tmp_path: Path, how: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    log = record(store) / LOG
    if how == "link":
        log.symlink_to(secret)
    elif how == "hard link":
        os.link(secret, log)
    elif how == "pipe":
        os.mkfifo(log)
    else:
        log.mkdir()
    assert background_worker.read_log(store, 1) is None


def test_a_folder_of_logs_that_is_a_link_is_not_followed(store: Store, tmp_path: Path) -> None:
    folder = record(store, pid=os.getpid(), created=psutil.Process().create_time())
    (folder / LOG).write_text("secret")
    assert background_worker.has_worker(store, 1)
    elsewhere = folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(elsewhere)
    before = {path.name: path.read_text() for path in elsewhere.iterdir()}
    assert background_worker.read_log(store, 1) is None
    assert not background_worker.has_worker(store, 1)
    background_worker.forget(store, 1)
    with pytest.raises(StoreError, match=r"logs' is a link: .*; remove the link"):
        background_worker.start_worker(store, {1: "s"}, anyway=True)
    assert {path.name: path.read_text() for path in elsewhere.iterdir()} == before


@pytest.mark.parametrize(
    "changes",
    [
        {"pid": -1},
        {"pid": 0},
        {"pid": "1"},
        {"pid": 2**70},
        {"pid": True},
        {"created": "now"},
        {"created": 1e300},
        {"created": None},
        {"another": 1},
    ],
)
def test_a_record_that_means_nothing_is_no_record(store: Store, changes: dict[str, Any]) -> None:
    (record(store, **changes) / LOG).write_text("trained")
    assert background_worker.read_log(store, 1) is None
    assert not background_worker.has_worker(store, 1)


def test_a_record_of_any_bytes_is_no_record(store: Store) -> None:
    folder = record(store)
    for content in (b"", b"\xff\xfe", b"[]", b"null", b"[" * 100_000, b"{}"):
        (folder / "sweep-1.json").write_bytes(content)
        assert not background_worker.has_worker(store, 1)


def test_launching_writes_through_no_link(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    folder = record(store)
    (folder / "sweep-1.json").unlink()
    (folder / "sweep-1.json").symlink_to(mine)
    started = background_worker._Record(1, 1.0, LOG)
    monkeypatch.setattr(background_worker, "_start", lambda *_: started)
    background_worker.start_worker(store, {1: "s"})
    assert mine.read_text() == "mine"
    (folder / "lock").unlink()
    (folder / "lock").symlink_to(mine)
    with pytest.raises(OSError, match="symbolic link"):
        background_worker.start_worker(store, {1: "s"}, anyway=True)
    assert mine.read_text() == "mine"
