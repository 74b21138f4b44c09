"""Numbers are those of the tables wherever they are read, on every kind of database."""

import io
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import sqlalchemy

from dashboard import share
from sweeps import api
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import overview
from sweeps.store.reads.selection import View
from tests.app import open_app, said
from tests.commands import run_main
from tests.databases import rows

LAST_SEED = 2**63 - 1

SETTINGS: list[dict[str, Any]] = [
    {"whole": 2**53 + 1, "large": 10**18, "vast": 2**64 + 1, "small": 1e-320, "sum": 0.1 + 0.2,
     "sign": -0.0, "flag": True, "both": 2**53 + 1, "kinds": 2**53 + 1, "text": "naïve"},
    {"whole": 2**53 + 3, "large": 10**18 + 1, "vast": 1, "small": 5e-324, "sum": 1e300,
     "sign": 2.0, "flag": False, "both": 0.5, "kinds": "語", "text": "語", "none": None},
    {"kinds": True},
    {"kinds": 0.1 + 0.2},
]  # fmt: skip
"""Settings of models trained elsewhere: values that a column of floats changes, beside none at
all."""


@pytest.fixture
def store(any_db: str, tmp_path: Path) -> Store:
    """Imported runs of these settings, with the greatest seeds, and one that is trained here."""
    path = tmp_path / "data.csv"
    strings = ["".join(x) for n in range(1, 4) for x in itertools.product("ab", repeat=n)]
    path.write_text("\n".join(["tokens,label", *(f"{x},{x.count('a') % 2}" for x in strings)]))
    opened = open_writer(any_db)
    with api.log_results(opened, sweep="theirs", dataset=path) as log:
        for number, config in enumerate(SETTINGS):
            labels = [x.count("a") % 2 ^ (place < number) for place, x in enumerate(strings)]
            predictions = {"tokens": strings, "prediction": labels}
            log.run(model="m", seed=LAST_SEED - number, config=config, predictions=predictions)
    api.submit(opened, {"name": "ours", "model_seeds": [0], "fixed": {"max_num_epochs": 1}})
    return opened


def _stored(store: Store) -> list[dict[str, Any]]:
    """What the tables have of each imported run."""
    query = (
        "SELECT c.json, r.id, r.model_seed, r.wrong, r.fp, r.fn FROM run r "
        "JOIN config c ON c.id = r.config_id WHERE r.state = 'done' ORDER BY r.id"
    )
    found = []
    for text, *results in rows(store, query):
        settings = json.loads(json.loads(text)["imported"])["config"]
        # A column of values of several types has their text.
        kinds = settings["kinds"]
        settings["kinds"] = kinds if isinstance(kinds, str) else json.dumps(kinds)
        known = {f"config.{name}": value for name, value in settings.items()}
        found.append({**known, **dict(zip(RESULTS, results, strict=True))})
    return found


RESULTS = ("run_id", "model_seed", "errors", "false_positives", "false_negatives")


def _of_api(store: Store, folder: Path) -> pd.DataFrame:
    del folder
    return api.runs(store, "theirs")


def _of_pages(store: Store, folder: Path) -> pd.DataFrame:
    del folder
    settings = overview.settings(store)
    return overview.models(store, View(sweeps=("theirs",))).join(settings, on="config_id")


def _of_the_command(store: Store, folder: Path) -> list[dict[str, Any]]:
    del folder
    done = run_main("runs", "--sweep", "theirs", "--json", "--db", store.location)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def _exported(kind: str) -> Callable[[Store, Path], Any]:
    def read(store: Store, folder: Path) -> Any:
        api.export(store, folder / "out", kind, sweeps=["theirs"])
        path = folder / "out" / f"runs.{kind}"
        if kind == "csv":
            return pd.read_csv(path, dtype=str, keep_default_na=False)
        return pq.read_table(path).to_pandas()

    return read


def _downloaded(label: str) -> Callable[[Store, Path], Any]:
    def read(store: Store, folder: Path) -> Any:
        ending, write = share.FORMATS[label]
        data = write(_of_pages(store, folder))
        if ending.endswith("csv"):
            return pd.read_csv(io.BytesIO(data), dtype=str, keep_default_na=False)
        if ending == "jsonl":
            return list(map(json.loads, data.decode().split("\n")[:-1]))
        return pq.read_table(io.BytesIO(data)).to_pandas()

    return read


READERS: dict[str, Callable[[Store, Path], Any]] = {
    "api.runs": _of_api,
    "runs --json": _of_the_command,
    "export csv": _exported("csv"),
    "export parquet": _exported("parquet"),
    "a page": _of_pages,
    **{f"{label} of a page": _downloaded(label) for label in share.FORMATS},
}


@pytest.mark.parametrize("reader", READERS)
def test_every_value_is_that_of_the_tables(store: Store, reader: str, tmp_path: Path) -> None:
    read: Any = READERS[reader](open_reader(store.location), tmp_path)
    found: Any
    found = read.to_dict("records") if isinstance(read, pd.DataFrame) else read
    different = [
        (name, row[name], true.get(name))
        for row, true in zip(found, _stored(store), strict=True)
        for name in row
        if name in RESULTS or (name.startswith("config.") and name != "config.model")
        if _as(row[name], true.get(name)) != repr(true.get(name))
    ]
    assert not different
    assert sum(name.startswith("config.") for name in found[0]) >= len(SETTINGS[0])


def _as(value: Any, true: Any) -> str:
    """A value that was read, as the type that the tables have: text of a file as what it says."""
    if true is None:
        return repr(None if pd.isna(value) or value == "" else value)
    if isinstance(value, str) and isinstance(true, bool):
        return value.capitalize()
    return repr(type(true)(value)) if isinstance(value, str) else repr(value)


def test_a_condition_on_a_great_number_means_that_number(store: Store) -> None:
    db = store.location
    done = run_main("runs", "--where", f"model_seed={LAST_SEED}", "--json", "--db", db)
    assert [run["model_seed"] for run in json.loads(done.stdout)] == [LAST_SEED]


def test_pages_are_about_the_greatest_seed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = open_app(monkeypatch, store.location, "failing", run="2", sweep="theirs")
    assert f"Seed {LAST_SEED - 1} of theirs" in said(shown)
    offered: list[View] = []
    monkeypatch.setattr(share, "offer", lambda *given, **_: offered.append(given[3]))
    open_app(monkeypatch, store.location, "model", run="2")
    assert offered[0].model_seeds == (LAST_SEED - 1,)


def test_shares_of_outputs_are_those_of_the_tables(any_db: str, tmp_path: Path) -> None:
    data = tmp_path / "pairs.jsonl"
    pairs = [("h i", "HH AY"), ("h o", "HH OW"), ("o", "OW")]
    data.write_text("\n".join(json.dumps({"tokens": x, "target": y}) for x, y in pairs))
    store = open_writer(any_db)
    with api.log_results(store, sweep="theirs", dataset=data) as log:
        outputs = ["HH AY", "HH", "HH OW"]
        log.run(
            model="m",
            seed=0,
            predictions={"tokens": [x for x, _ in pairs], "prediction": outputs},
        )
    sums = "SELECT sum(edits), sum(target_tokens) FROM length_score"
    ((edits, tokens),) = rows(store, sums)
    (row,) = overview.output_shares(open_reader(any_db), [1]).to_dict("records")
    assert row["token_error_rate"] == int(edits) / int(tokens) == 2 / 5


LOGITS = [float("nan"), float("inf"), -float("inf"), 1.5, 1e300, -5e-324]


@pytest.fixture
def scored(any_db: str, tmp_path: Path) -> Store:
    """A run whose packed logits are these, with eight bytes each; a second, with four."""
    store = open_writer(any_db)
    path = tmp_path / "data.csv"
    strings = [f"{n:b}".replace("0", "a").replace("1", "b") for n in range(1, 9)]
    path.write_text("\n".join(["tokens,label", *(f"{x},{n % 2}" for n, x in enumerate(strings))]))
    wrong = [int(n >= len(LOGITS)) ^ (n % 2 ^ 1) for n in range(8)]
    with api.log_results(store, sweep="theirs", dataset=path) as log:
        for seed in (0, 1):
            log.run(model="m", seed=seed, predictions={"tokens": strings, "prediction": wrong})
    assert rows(store, "SELECT wrong FROM run") == [(len(LOGITS),)] * 2
    with store.begin() as connection, np.errstate(over="ignore"):
        for run_id, width in ((1, 8), (2, 4)):
            update = sqlalchemy.text("UPDATE error_pack SET logits = :logits WHERE run_id = :run")
            packed = np.array(LOGITS).astype(f">f{width}").tobytes()
            connection.execute(update, {"logits": packed, "run": run_id})
    return store


def _given_by_the_view(store: Store, run_id: int) -> list[str]:
    query = f"SELECT logit FROM misclassified WHERE run_id = {run_id}"
    return sorted("nan" if x is None else repr(x) for (x,) in rows(store, query))


@pytest.mark.parametrize(("run_id", "width"), [(1, 8), (2, 4)])
def test_views_say_of_a_logit_that_is_no_number_that_it_is_none(
    scored: Store, run_id: int, width: int
) -> None:
    with np.errstate(over="ignore", under="ignore"):
        true = [repr(float(x)) for x in np.array(LOGITS).astype(f"f{width}")]
    assert _given_by_the_view(scored, run_id) == sorted(true)
