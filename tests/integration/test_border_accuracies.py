"""Accuracies on border pairs and on random strings: read, and shown beside all accuracies."""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dashboard.report.command import written
from seqcls import fields
from seqcls.interpretability.wording import percent
from sweeps import api
from sweeps.api import reading
from sweeps.api.presentation import words_of
from sweeps.api.reading import View
from sweeps.cli.any_model import comparison_sentences
from sweeps.results import BORDER_MEDIANS, BORDER_SHARES
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.verification import verify
from tests.app import open_app, said
from tests.commands import run_main
from tests.databases import file_of, rows

SPEC: dict[str, Any] = {
    "name": "pairs",
    "model_seeds": [0],
    "fixed": {
        "task": "regular",
        "pattern": "(ab|ba)*",
        "alphabet": "ab",
        "architecture": "lstm",
        "readout": "last",
        "hidden_size": 4,
        "train_max_length": 8,
        "train_size": 256,
        "validation_max_length": 8,
        "validation_size": 32,
        "test_max_length": 16,
        "test_size": 200,
        "test_strings": "random_and_border",
        "max_num_epochs": 2,
        "min_num_epochs": 2,
    },
    "axes": {"negatives": ["mixed", "border"]},
}


LONGER = "border, longer, of those that learned"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, one trained on border pairs, tested on the same strings."""
    store = open_writer(str(tmp_path_factory.mktemp("pairs") / "pairs.db"))
    api.submit(store, SPEC)
    api.work(store)
    return file_of(store)


@pytest.fixture(scope="module")
def shares(path: Path) -> pd.DataFrame:
    return reading.border_accuracies(open_reader(str(path)), View()).set_index("run_id")


def test_accuracies_are_those_of_the_strings_of_each_kind_and_range(
    path: Path, shares: pd.DataFrame
) -> None:
    counted = rows(
        path,
        "SELECT run.id, own.drawn = 'border', own.length > 8, "
        "1.0 * sum(CASE WHEN wrong.number IS NULL THEN own.occurrences ELSE 0 END) / "
        "sum(own.occurrences) FROM run JOIN config ON config.id = run.config_id "
        "JOIN test_string AS own ON own.test_set_id = config.test_set_id "
        "LEFT JOIN string_error AS wrong ON wrong.run_id = run.id AND wrong.number = own.number "
        "GROUP BY 1, 2, 3",
    )
    names = {(0, 0): "random_within", (1, 0): "border_within"}
    names |= {(0, 1): "random_beyond", (1, 1): "border_beyond"}
    assert len(counted) == 8
    for run_id, border, longer, share in counted:
        assert shares.loc[run_id, names[border, longer]] == pytest.approx(share)


def test_how_border_pairs_are_drawn_is_stored_and_fits_their_labels(path: Path) -> None:
    found = rows(path, "SELECT DISTINCT label FROM test_string WHERE drawn = 'border'")
    assert sorted(found) == [(0,), (1,)]
    assert not verify(open_reader(str(path))).damages
    store = open_reader(str(path))
    first, second = (reading.run_config(store, run_id) for run_id in (1, 2))
    # However negatives are drawn to train on.
    assert fields.test_set_key(first) == fields.test_set_key(second)


def test_commands_exports_and_notebooks_have_these_accuracies(
    path: Path, shares: pd.DataFrame, tmp_path: Path
) -> None:
    store = open_reader(str(path))
    runs = api.runs(store).set_index("id")
    exported = tmp_path / "files"
    api.export(store, exported)
    written_runs = pd.read_csv(exported / "runs.csv").set_index("id")
    for name in BORDER_SHARES:
        assert runs[name].tolist() == pytest.approx(shares[name].tolist())
        assert written_runs[name].tolist() == pytest.approx(shares[name].tolist())
    names = ("pairs:negatives=mixed", "pairs:negatives=border")
    # Neither has learned, so that nothing is said of longer strings but where all pass as learned.
    assert set(api.compare(store, *names).border) == {"random_within", "border_within"}
    compared = api.compare(store, *names, learned_at=0.0)
    for name in BORDER_SHARES:
        assert compared.record()["border"][name] == pytest.approx(shares[name].tolist())
    (config, _) = reading.configs(store, (1, 2)).values()
    told = comparison_sentences(compared, words_of(config), config)
    (said_of_pairs,) = [x for x in told if x.startswith(f"median accuracy, {LONGER}: ")]
    assert percent(float(shares["border_beyond"].loc[1])) in said_of_pairs
    longer = f"border, longer {percent(float(shares['border_beyond'].loc[1]), 1)}."
    assert longer in run_main("errors", "1", "--db", str(path)).stdout


def test_pages_and_reports_show_these_accuracies(
    monkeypatch: pytest.MonkeyPatch, path: Path, shares: pd.DataFrame
) -> None:
    of_pairs = {
        f"{row['border_within']:.1%} / {row['border_beyond']:.1%}".replace(".0%", "%")
        for row in shares.to_dict("records")
    }
    for page in ("compare", "failing"):
        table = open_app(monkeypatch, path, page, learned="0").dataframe[0].value
        assert set(table["border"].str.strip()) == of_pairs
    model = said(open_app(monkeypatch, path, "model", run="1"))
    assert "Accuracy: random, trained lengths " in model
    longer = float(shares["border_beyond"].loc[1])
    assert f"border, longer {longer:.1%}".replace(".0%", "%") in model
    for which in ({"config": ["1", "2"]}, {"run": ["1", "2"]}):
        app = open_app(monkeypatch, path, "compare_two", learned="0", **which)
        tables = [x.value for x in app.dataframe if "Test strings" in x.value]
        words = BORDER_SHARES if "run" in which else BORDER_MEDIANS
        assert tables[0]["Test strings"].tolist() == list(words.values())
    (table,) = (x.value for x in open_app(monkeypatch, path, "compare").dataframe[:1])
    assert all(text.endswith(" / none") for text in table["border"]), "none has learned"
    report = written(open_reader(str(path)), "pairs", learned_at=0.0)
    assert "<th>border</th>" in report
    assert all(text in report for text in of_pairs)
    assert f"border, longer {longer:.1%}.".replace(".0%", "%") in report
    assert "No positive string of a border pair has 1, 3, 5, 7, 9, 11, 13, 15 tokens." in report


def test_maps_and_downloads_have_these_accuracies(
    monkeypatch: pytest.MonkeyPatch, path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "two.db"
    shutil.copy(path, copy)
    store = open_writer(str(copy))
    api.submit(store, {**SPEC, "name": "wide", "fixed": {**SPEC["fixed"], "hidden_size": 5}})
    api.work(store)
    shares = reading.border_accuracies(store, View()).set_index("run_id")
    offered: dict[str, pd.DataFrame] = {}

    def offer(place: Any, name: str, rows: Any, *args: Any, **more: Any) -> None:
        del place, args, more
        offered[name] = rows()

    monkeypatch.setattr("dashboard.share.offer", offer)
    app = open_app(monkeypatch, copy, "map", x="hidden_size", y="negatives", learned="0")
    open_app(monkeypatch, copy, "failing")
    failing = offered["failing_models"].set_index("run_id")
    cells = offered["map"].sort_values(["hidden_size", "negatives"])
    for name, words in BORDER_SHARES.items():
        # One model a cell; the runs 1 and 3 are trained on mixed negatives.
        assert cells[name].tolist() == pytest.approx(shares.loc[[2, 1, 4, 3], name].tolist())
        assert failing[name].to_dict() == pytest.approx(shares[name].loc[failing.index].to_dict())
        assert f"Accuracy, {words}" in app.segmented_control(key="mapped").options
    mapped_by = {"x": "hidden_size", "y": "negatives", "mapped": "Accuracy, border, longer"}
    app = open_app(monkeypatch, copy, "map", learned="0", **mapped_by)
    mapped = offered["map"].set_index(["hidden_size", "negatives"])
    assert mapped["median"].to_dict() == pytest.approx(mapped["border_beyond"].to_dict())
    unpaired = "No positive string of a border pair has 1, 3, 5, 7, 9, 11, 13, 15 tokens."
    for page in ("map", "failing", "sweeps"):
        assert unpaired in said(open_app(monkeypatch, copy, page)), page
    median = percent(float(shares["border_beyond"].loc[:2].median()), 1)
    app = open_app(monkeypatch, copy, "sweeps", sweep_id="1", learned="0")
    assert f"{LONGER} {median}." in said(app)
    assert LONGER not in said(open_app(monkeypatch, copy, "sweeps", sweep_id="1"))


def test_the_border_strings_of_a_file_are_told_apart_from_its_random_ones(tmp_path: Path) -> None:
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
    fixed = {"task": "file", "path": str(tmp_path / "small_Train.txt"), **network}
    store = open_writer(str(tmp_path / "file.db"))
    api.submit(store, {"name": "file", "fixed": fixed, "model_seeds": [0]})
    api.work(store)
    (shares,) = reading.border_accuracies(store, View()).to_dict("records")
    wrong = set(api.errors(store, 1)["string"])
    # A string that is in both tests counts as one of a pair.
    of_kinds = {
        "random_within": ["b{4}", "a{2}b"],
        "border_within": ["abab", "aba{2}"],
        "random_beyond": ["ababab", "b{6}"],
        "border_beyond": ["<ab>{4}", "abababab{2}"],
    }
    known = {string for (string,) in rows(file_of(store), "SELECT string FROM test_string")}
    assert known == {string for strings in of_kinds.values() for string in strings}
    times = {"abab": 2}
    for name, strings in of_kinds.items():
        tested = [x for string in strings for x in [string] * times.get(string, 1)]
        right = [x for x in tested if x not in wrong]
        assert shares[name] == pytest.approx(len(right) / len(tested)), name


def test_where_trained_lengths_are_not_known_no_length_is_called_longer(tmp_path: Path) -> None:
    task = {"task": "parity", "test_strings": "random_and_border", "test_max_length": 12}
    path = tmp_path / "theirs.db"
    with api.log_results(path, sweep="theirs", task={**task, "test_size": 100}) as log:
        tokens, labels = log.strings["tokens"], log.strings["label"]
        said_ = [y if len(x) <= 8 else 1 - y for x, y in zip(tokens, labels, strict=True)]
        log.run(model="m", seed=0, predictions={"tokens": tokens, "prediction": said_})
    store = open_reader(str(path))
    (found,) = reading.border_accuracies(store, View()).to_dict("records")
    assert pd.isna([found[name] for name in BORDER_SHARES]).all()
    (row,) = api.runs(store).to_dict("records")
    assert row["outcome"] == "not known"
    assert pd.isna([row[name] for name in BORDER_SHARES]).all()
    assert "border" in reading.accuracy_by_drawn(store, [1])["drawn"].tolist()
    listed = run_main("errors", "1", "--db", str(path))
    assert listed.returncode == 0, listed.stderr
    assert "longer" not in listed.stdout
