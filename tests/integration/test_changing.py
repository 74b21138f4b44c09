"""Pages while runs are deleted, and texts that would be links."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from dashboard import data
from dashboard.text import UNSEEN, verbatim
from sweeps.cli.app import app as command
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.work.options import WorkOptions
from sweeps.work.worker import work
from tests.app import PAGES, open_app
from tests.conftest import ROOT, SHORT
from tests.databases import spec


@pytest.mark.parametrize("page", PAGES)
def test_a_page_that_is_drawn_while_a_sweep_is_deleted_is_drawn_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    db = tmp_path / "x.db"
    store = open_writer(str(db))
    fixed = {**SHORT, "max_num_epochs": 1}
    wanted = {"stays": [2, 3], "goes": [4, 5]}
    ids = [
        writer.submit(store, spec(name=name, model_seeds=[0], fixed=fixed, axes={"hidden_size": x}))
        for name, x in wanted.items()
    ]
    work(store, ids, WorkOptions(0))
    deleted: list[int] = []
    settings, memberships = data.settings, data.memberships

    def deleting(then: Any) -> Any:
        def answer() -> pd.DataFrame:
            if not deleted:
                deleted.append(writer.delete(store, ids[1]))
            found: pd.DataFrame = then()
            return found

        return answer

    monkeypatch.setattr(data, "settings", deleting(settings))
    monkeypatch.setattr(data, "memberships", deleting(memberships))
    app = open_app(monkeypatch, db, page)
    assert not app.error
    if deleted:
        assert deleted == [2]


def test_a_page_that_is_broken_is_shown_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> pd.DataFrame:
        raise KeyError("broken")

    monkeypatch.setattr(data, "memberships", broken)
    with pytest.raises(AssertionError, match="broken"):
        open_app(monkeypatch, ROOT / "runs.db")


@pytest.mark.parametrize(
    "text",
    ["http://evil.example", "see https://evil.example/x", "www.evil.example", "me@evil.example"],
)
def test_what_looks_like_an_address_is_no_link(text: str) -> None:
    shown = verbatim(text).replace("\\", "")
    assert shown.replace(UNSEEN, "") == text
    assert text not in shown
    assert "://" not in shown
    assert "www." not in shown


def test_more_workers_than_cores_are_not_started(
    monkeypatch: pytest.MonkeyPatch, short_spec: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    said = CliRunner().invoke(
        command, ["sweep", str(short_spec), "--db", str(tmp_path / "x.db"), "--workers", "64"]
    )
    assert said.exit_code == 0, said.output
    assert "--workers 64: this machine has 1 core; using 1" in said.stderr


@pytest.mark.parametrize("string", ["ab{%d}", "b{2}c{%d}", "a{%d}b{%d}c{%d}"])
@pytest.mark.parametrize("count", [2**62 - 1, 2**62, 2**63 - 1])
def test_letters_may_be_repeated_as_often_as_can_be_written(string: str, count: int) -> None:
    asked = string.replace("%d", str(count))
    for what in ("predict", "explain"):
        said = CliRunner().invoke(
            command, [what, "all_initializations/2", asked, "--db", str(ROOT / "runs.db")]
        )
        assert said.exit_code == 0, said.output
        assert "nan" not in said.stdout
        assert "-" + f"{count:,}" not in said.stdout
