"""PostgreSQL whose connections are cut while runs are claimed and results are committed."""

import logging
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import make_url

import sweeps.work.worker
from seqcls.errors import StoreBusyError
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.verification import verify
from sweeps.work.options import WorkOptions
from sweeps.work.worker import work
from tests.chaos.contents import contents
from tests.chaos.cutting import Cutting
from tests.conftest import SHORT
from tests.databases import rows, spec

SPEC = spec(fixed=SHORT, axes={"hidden_size": [2, 3, 4], "train_seed": [1, 2]})


@pytest.mark.timeout(3600)
def test_cut_connections_lose_and_double_nothing(
    tmp_path: Path, postgres_url: str, long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = open_writer(str(tmp_path / "undisturbed.db"))
    work(undisturbed, [writer.submit(undisturbed, SPEC)], WorkOptions(0))
    store = open_writer(postgres_url)
    monkeypatch.setattr(sweeps.work.worker, "LOOK_SECONDS", 0.05)
    cuts = 0
    # Different steps cut different statements of a claim and of a commit.
    for number, every in enumerate((7, 8, 9, 11, 13, 17) if long else (11, 17)):
        folder = tmp_path / str(number)
        folder.mkdir()
        sweep_id = writer.submit(store, SPEC)
        cutting = Cutting(folder, postgres_url, every, 20 if long else 8)
        _trained(cutting.url, sweep_id)
        cutting.close()
        cuts += cutting.cuts
        assert rows(store, "SELECT count(*) FROM failure") == [(0,)]
        assert rows(store, "SELECT state, count(*) FROM run GROUP BY 1") == [("done", 18)]
        assert contents(open_reader(postgres_url)) == contents(undisturbed)
        assert verify(store).damages == []
        writer.delete(store, sweep_id)
    print(f"{cuts} connections cut")
    assert cuts >= (80 if long else 10)


def _trained(url: str, sweep_id: int) -> None:
    """Trains a sweep; a worker that could not even begin, or say that it ended, is started anew."""
    while True:
        with suppress(StoreBusyError):
            work(open_writer(url), [sweep_id], WorkOptions(0))
            return


def test_the_password_is_in_no_log_and_no_error(
    tmp_path: Path, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = make_url(postgres_url).set(password="hunter2").render_as_string(hide_password=False)
    cutting = Cutting(tmp_path, url, 3, 1000)
    said = []
    for _ in range(20):
        try:
            writer.submit(open_writer(cutting.url), SPEC)
        except Exception as error:
            said.append(f"{error!r} {error.__cause__!r}")
    cutting.close()
    assert said
    assert "hunter2" not in "\n".join(said) + caplog.text
