"""What a notebook shows."""

from pathlib import Path

import pandas as pd
import pytest

from sweeps import api
from tests.conftest import ROOT, SHORT

SHIPPED = ROOT / "runs.db"


def test_what_one_asks_for_most_stands_first_and_times_are_timestamps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = api.open_store(tmp_path / "own.db")
    fixed = {**SHORT, "max_num_epochs": 1}
    spec = {"name": "s", "model_seeds": [0], "fixed": fixed, "axes": {"hidden_size": [2, 4]}}
    api.submit(store, spec)
    api.work(store, progress_bar=True)
    assert "2/2 runs" in capsys.readouterr().err
    frame = api.runs(store)
    assert list(frame)[:9] == [*api.FIRST, "hidden_size"]
    assert isinstance(frame["finished_at"].dtype, pd.DatetimeTZDtype)
    assert frame["finished_at"].notna().all()
    assert repr(store) == f"<Store {tmp_path / 'own.db'}>"
    compared = repr(api.compare(store, "s:hidden_size=2", "s:hidden_size=4"))
    assert "Too few seeds to tell: 1 and 1. At least 4 of each can show a difference." in compared
    model = repr(api.model(store, 1))
    assert "max_num_epochs=1" in model
    assert len(model) < 500, "no arrays"
