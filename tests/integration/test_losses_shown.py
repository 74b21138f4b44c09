"""Loss curves on the page Sweeps, of finished models and of those in training."""

from collections import Counter
from pathlib import Path

import pytest
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df

from seqcls.results import EpochLosses
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads.curves import losses_in_training, newest_losses
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.app import open_app, rerun, said
from tests.conftest import SHORT
from tests.databases import file_of
from tests.results import claimed


def test_loss_curves_of_a_sweep_in_training_are_those_that_are_committed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "going.db"))
    fixed = {**SHORT, "max_num_epochs": 3}
    spec = {"name": "going", "model_seeds": "0..2", "fixed": fixed}
    sweep_id = writer.submit(store, parse_spec(spec))
    app = open_app(monkeypatch, file_of(store), "sweeps")
    assert not app.get("vega_lite_chart"), "nothing is committed"

    work(store, [sweep_id], WorkOptions(workers=0))
    # As if a second configuration were still to be trained.
    with store.begin() as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'queued' WHERE model_seed = 2")
        connection.exec_driver_sql("UPDATE sweep SET state = 'running'")
    losses = newest_losses(open_reader(str(file_of(store))), sweep_id, 8, 96)
    assert losses["model_seed"].tolist() == [0, 0, 0, 1, 1, 1]
    assert losses["epoch"].tolist() == [1, 2, 3] * 2
    assert (losses["validation_loss"] > 0).all()
    app = open_app(monkeypatch, file_of(store), "sweeps")
    assert len(app.get("vega_lite_chart")) == 2, "curves, and whose they are"


def test_loss_curves_of_models_in_training_grow_though_no_revision_tells_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def drawn() -> dict[str, int]:
        """How many points of each state the chart has."""
        chart, _ = rerun(app).get("vega_lite_chart")
        sent = [convert_arrow_bytes_to_pandas_df(x.data.data) for x in chart.proto.datasets]
        return dict(Counter(max(sent, key=len)["state"]))

    store = open_writer(str(tmp_path / "going.db"))
    for last in (1, 4):
        spec = {"name": "going", "model_seeds": f"0..{last}", "fixed": SHORT}
        sweep_id = writer.submit(store, parse_spec(spec))
        if last == 1:
            work(store, [sweep_id], WorkOptions(workers=0))
    worker_id, claim = claimed(store, sweep_id)
    app = open_app(monkeypatch, file_of(store), "sweeps")
    assert drawn() == {"finished": 6}

    # Two of the three train already.
    new = [EpochLosses(member, epoch, 4.0, 2.0) for member in (0, 1) for epoch in (1, 2)]
    writer.record_losses(store, [(claim, new[:3])])
    assert drawn() == {"finished": 6, "in training": 3}
    assert "2 of 3 models in training are shown, dashed." in said(app)
    writer.record_losses(store, [(claim, new[3:])])
    assert drawn() == {"finished": 6, "in training": 4}

    with store.begin() as connection:
        connection.exec_driver_sql("UPDATE worker SET heartbeat_at = '2001-01-01T00:00:00+00:00'")
    assert drawn() == {"finished": 6, "worker died": 4}
    assert "The worker of 2 models shown died (dotted)." in said(app)
    writer.release(store, worker_id)
    assert drawn() == {"finished": 6}


def test_a_long_training_is_drawn_by_few_of_its_epochs(store: Store) -> None:
    _, claim = claimed(store, writer.submit(store, parse_spec({"name": "s", "model_seeds": [0]})))
    told = [EpochLosses(0, epoch, 4.0, 2.0) for epoch in range(1, 1002)]
    writer.record_losses(store, [(claim, told)])
    epochs = losses_in_training(store, 1, 8, 32)["epoch"].tolist()
    assert epochs == [*range(1, 1001, 6), 1001]
