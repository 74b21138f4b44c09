"""Counting level and number of parameters, as columns of runs and configurations."""

import json

from seqcls.weights import num_parameters
from sweeps import api
from sweeps.api.by_settings import axes_of
from sweeps.api.outcomes import configurations_of, settings_read
from sweeps.store.reads.selection import Selection
from tests.commands import run_main
from tests.conftest import ROOT
from tests.databases import rows

DB = ROOT / "runs.db"


def test_runs_list_the_counting_level_and_the_number_of_parameters() -> None:
    store = api.open_store(str(DB))
    frame = api.runs(store)
    assert set(frame["counting"]) == {"level 0"}
    stored = rows(DB, "SELECT run_id, weights FROM checkpoint LIMIT 40")
    sizes = frame.set_index("id")["num_parameters"].to_dict()
    assert all(sizes[run_id] == num_parameters(weights) for run_id, weights in stored)
    completed = run_main("runs", "--where", "counting=outside", "--db", str(DB), "--json")
    assert json.loads(completed.stdout) == []
    completed = run_main("runs", "--where", "num_parameters=288", "--db", str(DB), "--json")
    assert {row["num_parameters"] for row in json.loads(completed.stdout)} == {288}


def test_derived_settings_are_columns_and_the_last_axis() -> None:
    store = api.open_store(str(DB))
    table = configurations_of(store, Selection())
    sizes = dict(rows(DB, "SELECT name, num_parameters FROM config"))
    assert table["num_parameters"].tolist() == [sizes[name] for name in table["name"]]
    assert set(table["counting"]) == {"level 0"}
    ids = table["config_id"].tolist()
    # All are of one level, so that it distinguishes none.
    assert list(settings_read(store, ids))[-1] == "num_parameters"
    assert axes_of(store, ids)[-1] == "num_parameters"
    best = table.set_index("name")["selection"]
    assert best.str.contains("%").any()
