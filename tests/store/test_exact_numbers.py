"""Numbers are those of the tables wherever they are read, on every kind of database."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from seqcls import fields
from sweeps import api
from sweeps.api import reading
from sweeps.api import reading as pages
from sweeps.results import BORDER_SHARES
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import overview
from sweeps.store.reads.selection import Selection
from sweeps.store.verification import verify
from tests.app import open_app
from tests.commands import printed, printed_json
from tests.databases import file_of, rows
from tests.stock import copy_of

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


@pytest.fixture(scope="module")
def edge(shared_db: str, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Imported runs of these settings, with the greatest seeds, and one that waits."""
    path = tmp_path_factory.mktemp("edge") / "data.csv"
    strings = ["".join(x) for n in range(1, 4) for x in itertools.product("ab", repeat=n)]
    path.write_text("\n".join(["tokens,label", *(f"{x},{x.count('a') % 2}" for x in strings)]))
    opened = open_writer(shared_db)
    with api.log_results(opened, sweep="theirs", dataset=path) as log:
        for number, config in enumerate(SETTINGS):
            labels = [x.count("a") % 2 ^ (index < number) for index, x in enumerate(strings)]
            predictions = {"tokens": strings, "prediction": labels}
            log.run(model="m", seed=LAST_SEED - number, config=config, predictions=predictions)
    api.submit(opened, {"name": "ours", "model_seeds": [0], "fixed": {"max_num_epochs": 1}})
    return opened


RESULTS = ("run_id", "model_seed", "errors", "false_positives", "false_negatives")


def _stored(store: Store) -> list[dict[str, Any]]:
    """The settings and results of each imported run in the tables."""
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


READERS: dict[str, Callable[[Store], Any]] = {
    "api.runs": lambda store: api.runs(store, "theirs"),
    "runs --json": lambda store: printed_json("runs", "--sweep", "theirs", "--db", store.location),
    "a page": lambda store: pages.models(store, Selection(sweeps=("theirs",))).join(
        overview.settings(store), on="config_id"
    ),
}


def _differences(read: Any, store: Store) -> list[Any]:
    found: Any = read.to_dict("records") if isinstance(read, pd.DataFrame) else read
    assert sum(name.startswith("config.") for name in found[0]) >= len(SETTINGS[0])
    return [
        (name, row[name], true.get(name))
        for row, true in zip(found, _stored(store), strict=True)
        for name in row
        if name in RESULTS or (name.startswith("config.") and name != "config.model")
        if _as(row[name], true.get(name)) != repr(true.get(name))
    ]


def _as(value: Any, true: Any) -> str:
    """The repr of a read value in the type of the stored one: text of a file is converted."""
    if true is None:
        return repr(None if pd.isna(value) or value == "" else value)
    if isinstance(value, str) and isinstance(true, bool):
        return value.capitalize()
    return repr(type(true)(value)) if isinstance(value, str) else repr(value)


def test_every_reader_returns_the_stored_values_exactly(edge: Store, tmp_path: Path) -> None:
    store = open_reader(edge.location)
    for reader, read in READERS.items():
        assert not _differences(read(store), edge), reader
    for kind in ("csv", "parquet"):
        api.export(store, tmp_path / kind, kind, sweeps=["theirs"])
        path = tmp_path / kind / f"runs.{kind}"
        text: dict[str, Any] = {"dtype": str, "keep_default_na": False}
        is_text = kind == "csv"
        found = pd.read_csv(path, **text) if is_text else pq.read_table(path).to_pandas()
        assert not _differences(found, edge), kind
    last = printed_json("runs", f"--where=model_seed={LAST_SEED}", "--db", edge.location)
    assert [run["model_seed"] for run in last] == [LAST_SEED]


def test_pages_show_the_greatest_seed_exactly(edge: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, edge.location, "failures", sweep="theirs")
    seeds = next(x.value["seed"] for x in app.dataframe if "first_wrong_length" in x.value)
    assert {LAST_SEED - 1} <= {*seeds.tolist()}
    app = open_app(monkeypatch, edge.location, "model", run="2")
    assert any(x.endswith(f"seed {LAST_SEED - 1}") for x in app.selectbox(key="model_run").options)


# Accuracies on border pairs and on random strings.

BORDER_SQL = (
    "SELECT run.id, own.drawn = 'border', own.length > 8, "
    "1.0 * sum(CASE WHEN wrong.number IS NULL THEN own.occurrences ELSE 0 END) / "
    "sum(own.occurrences) FROM run JOIN config ON config.id = run.config_id "
    "JOIN test_string AS own ON own.test_set_id = config.test_set_id "
    "LEFT JOIN string_error AS wrong ON wrong.run_id = run.id AND wrong.number = own.number "
    "GROUP BY 1, 2, 3"
)
CELL_COLUMNS = {
    (0, 0): "random_within", (1, 0): "border_within",
    (0, 1): "random_beyond", (1, 1): "border_beyond",
}  # fmt: skip


def test_border_accuracies_equal_those_of_the_strings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four runs, some trained on border pairs, are all tested on the same strings."""
    store = open_reader(str(copy_of("trained", "pairs.db", tmp_path)))
    path = file_of(store)
    shares = reading.border_accuracies(store, Selection()).set_index("run_id")
    counted = rows(path, BORDER_SQL)
    assert len(counted) == 16
    for run_id, border, longer, true in counted:
        assert shares.loc[run_id, CELL_COLUMNS[border, longer]] == pytest.approx(true)
    found = rows(path, "SELECT DISTINCT label FROM test_string WHERE drawn = 'border'")
    assert sorted(found) == [(0,), (1,)]
    assert not verify(store).damages
    # However negatives are drawn to train on.
    first, second = (reading.run_config(store, run_id) for run_id in (1, 2))
    assert fields.test_set_key(first) == fields.test_set_key(second)
    runs = api.runs(store).set_index("id")
    api.export(store, tmp_path / "files")
    exported = pd.read_csv(tmp_path / "files" / "runs.csv").set_index("id")
    names = ("pairs:negatives=mixed", "pairs:negatives=border")
    # Neither has learned, so that longer strings are compared only where all pass as learned.
    assert set(api.compare(store, *names).border) == {"random_within", "border_within"}
    compared = api.compare(store, *names, learned_at=0.0).record()["border"]
    for name in BORDER_SHARES:
        for table in (runs, exported):
            assert table[name].tolist() == pytest.approx(shares[name].tolist())
        assert compared[name] == pytest.approx(shares[name].loc[[1, 2]].tolist())
    own = shares.loc[1]
    longer = f"border, longer {own['border_beyond']:.1%}".replace(".0%", "%")
    assert longer in printed("errors", "1", "--db", str(path))
    table = open_app(monkeypatch, path, learned="0").dataframe[0].value.set_index("config_id")
    of_runs = dict(rows(path, "SELECT id, config_id FROM run"))
    for name in BORDER_SHARES:
        # One model a configuration.
        true = {of_runs[run_id]: share for run_id, share in shares[name].items()}
        assert table[name].to_dict() == pytest.approx(true), name


def test_border_strings_of_a_file_are_distinguished_from_random_ones(tmp_path: Path) -> None:
    parts = {
        "Train": ["abab TRUE", "abba FALSE", "aab FALSE", "baba FALSE"] * 8,
        "Dev": ["abbb FALSE", "abab TRUE"],
        "TestSR": ["abab TRUE", "bbbb FALSE", "aab FALSE"],
        "TestSA": ["abab TRUE", "abaa FALSE"],
        "TestLR": ["ababab TRUE", "bbbbbb FALSE"],
        "TestLA": ["abababab TRUE", "ababababb FALSE"],
    }
    for part, lines in parts.items():
        text = "".join(line.replace(" ", "\t") + "\n" for line in lines)
        (tmp_path / f"small_{part}.txt").write_text(text)
    network = {"architecture": "lstm", "readout": "last", "hidden_size": 4, "max_num_epochs": 1}
    given = {"task": "file", "path": str(tmp_path / "small_Train.txt"), **network}
    store = open_writer(str(tmp_path / "file.db"))
    api.submit(store, {"name": "file", "fixed": given, "model_seeds": [0]})
    api.work(store)
    (shares,) = reading.border_accuracies(store, Selection()).to_dict("records")
    wrong = set(api.errors(store, 1)["string"])
    of_kinds = {
        # A string that is in both tests counts as one of a pair.
        "random_within": ["b{4}", "a{2}b"],
        "border_within": ["abab", "abab", "aba{2}"],
        "random_beyond": ["ababab", "b{6}"],
        "border_beyond": ["<ab>{4}", "abababab{2}"],
    }
    known = {string for (string,) in rows(file_of(store), "SELECT string FROM test_string")}
    assert known == {string for strings in of_kinds.values() for string in strings}
    for name, strings in of_kinds.items():
        right = [x for x in strings if x not in wrong]
        assert shares[name] == pytest.approx(len(right) / len(strings)), name


def test_no_length_is_longer_where_trained_lengths_are_unknown(tmp_path: Path) -> None:
    task = {"task": "parity", "test_strings": "random_and_border", "test_max_length": 12}
    path = tmp_path / "theirs.db"
    with api.log_results(path, sweep="theirs", task={**task, "test_size": 100}) as log:
        tokens, labels = log.strings["tokens"], log.strings["label"]
        predicted = [y if len(x) <= 8 else 1 - y for x, y in zip(tokens, labels, strict=True)]
        log.run(model="m", seed=0, predictions={"tokens": tokens, "prediction": predicted})
    store = open_reader(str(path))
    (found,) = reading.border_accuracies(store, Selection()).to_dict("records")
    (row,) = api.runs(store).to_dict("records")
    assert row["outcome"] == "not known"
    assert pd.isna([x[name] for name in BORDER_SHARES for x in (found, row)]).all()
    assert "border" in reading.accuracy_by_drawn(store, [1])["drawn"].tolist()
    assert "longer" not in printed("errors", "1", "--db", str(path))
