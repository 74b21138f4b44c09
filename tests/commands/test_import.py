"""Results of models trained elsewhere: stored, shown beside trained ones, refused."""

import enum
import itertools
import json
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from dashboard.model import errors_sections
from seqcls.config import RunConfig
from seqcls.errors import ConfigError, DatasetError
from seqcls.imported import imported_config, unfold
from seqcls.problem import resolve
from sweeps import api
from sweeps.api.importing import ResultLog
from sweeps.api.protocols import protocol
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from tests.app import open_app, page_text
from tests.commands import printed, printed_json, refused
from tests.commands.files import Content, table, written
from tests.databases import rows
from tests.stock import copy_of, stock

STRINGS = ["".join(x) for n in range(1, 6) for x in itertools.product("ab", repeat=n)]
SPLITS = ["test" if number % 3 == 0 else "train" for number in range(len(STRINGS))]
IDS = [f"s{number}" for number in range(len(STRINGS))]
TESTED = [number for number, split in enumerate(SPLITS) if split == "test"]
SPEC: dict[str, Any] = {
    "name": "ours",
    "model_seeds": [0, 1],
    "fixed": {
        "task": "file", "hidden_size": 2, "max_num_epochs": 2, "architecture": "rnn",
        "readout": "last",
    },
}  # fmt: skip


def _data(folder: Path) -> Path:
    rows_of = zip(STRINGS, (x.count("a") % 2 for x in STRINGS), SPLITS, IDS, strict=True)
    return written(folder, "data.csv", table("tokens,label,split,id", rows_of))


def _predictions(wrong: int = 3) -> pd.DataFrame:
    labels = [STRINGS[number].count("a") % 2 for number in TESTED]
    predicted = [label ^ (index < wrong) for index, label in enumerate(labels)]
    return pd.DataFrame({"id": [f"s{number}" for number in TESTED], "prediction": predicted})


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A database with trained and imported runs of one file; runs 1 and 2 are trained."""
    folder = tmp_path_factory.mktemp("imported")
    path = _data(folder)
    store = api.open_store(folder / "runs.db")
    spec = {**SPEC, "fixed": {**SPEC["fixed"], "path": str(path)}}
    api.submit(store, spec)
    api.work(store)
    with api.log_results(store, sweep="theirs", dataset=path) as log:
        for seed, width in itertools.product(range(2), (32, 64)):
            log.run(
                model="mamba-2l",
                seed=seed,
                config={"d_model": width, "hidden_size": 7, "optimizer": {"name": "adam"}},
                predictions=_predictions(wrong=seed + width // 32),
                losses=[(3.0, 2.0), (2.5, 1.0)] if width == 32 else None,
            )
    return store


def test_fields_of_trained_runs_keep_their_types_beside_imported_ones(both: Store) -> None:
    alone, beside = (api.runs(both, sweep) for sweep in ("ours", None))
    for name in ("train_alpha", "dropout_rate", "learning_rate"):
        assert str(beside[name].dtype) == "Float64", name
    assert str(beside["hidden_size"].dtype) == "Int64"
    of_ours = beside[beside["id"].isin(alone["id"])]
    for name in RunConfig.model_fields:
        assert list(map(str, of_ours[name])) == list(map(str, alone[name])), name

    assert beside["config.d_model"].dropna().tolist() == [32, 64, 32, 64]
    assert set(beside["config.optimizer.name"].dropna()) == {"adam"}
    theirs = beside[beside["architecture"] == "imported"]
    assert theirs[["hidden_size", "learning_rate", "max_num_epochs"]].isna().all(axis=None)
    assert set(beside["hidden_size"].dropna()) == {2}
    wide_only: dict[str, Any] = {"config.d_model": 64}
    wide = api.runs(both, **wide_only)
    assert wide["id"].tolist() == [4, 6]


def test_trained_and_imported_runs_compare_string_by_string(both: Store) -> None:
    found = api.compare(both, "ours", "theirs:config.d_model=64")
    assert found.strings is not None
    assert found.fields["config.d_model"] == (None, 64)
    other = api.log_results(both, sweep="shorter", task={"task": "parity", "test_max_length": 4})
    test = other.strings
    run = other.run(
        model="zero",
        seed=0,
        predictions={"tokens": test["tokens"].tolist(), "prediction": [0] * len(test)},
    )
    assert api.compare(both, "ours", str(run)).strings is None
    api.delete(both, "shorter")


NEED_WEIGHTS = (
    "family 3 <ab>{n}", "figures 3 ab -o figures", "causes theirs", "automaton 3",
    "sensitive theirs",
)  # fmt: skip
"""Commands beside those of `test_questions`."""
NEED_NONE = ("status", "causes ours", "errors 3", "report theirs --out report.html")


@pytest.mark.usefixtures("undrawn")
def test_questions_about_weights_are_refused_for_imported_runs(
    both: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for line in NEED_WEIGHTS:
        message = refused(*line.split(), "--db", str(both.path))
        assert "weights are not in this database" in message
    for line in NEED_NONE:
        assert "nan" not in printed(*line.split(), "--db", str(both.path)).split()
    theirs = Path("report.html").read_text()
    assert "No cause can be found for 4 models: it was trained elsewhere" in theirs
    assert "seqcls causes" not in theirs
    assert "<th>Generalize</th>" not in theirs, "no column without content"
    assert ">None<" not in re.sub(r"\s", "", theirs)


def test_pages_of_imported_results_offer_no_training(
    both: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = {
        x: open_app(monkeypatch, str(both.path), "sweeps", shown=x) for x in ("theirs", "ours")
    }
    assert "Results of models trained elsewhere" in page_text(pages["theirs"])
    offered = {x: [*page.button, *page.expander] for x, page in pages.items()}
    labels = {x: {element.label for element in own} for x, own in offered.items()}
    training = {"Train 8 more of each", "Train until then", "Specification"}
    assert labels["theirs"] & training == set()
    assert labels["ours"] >= training
    shown = page_text(open_app(monkeypatch, str(both.path), "failures", sweep="theirs")).replace(
        "\\", ""
    )
    assert "1 string is wrong in all 4 models: are their labels right?" in shown


def test_answers_are_exported_as_evaluation_tools_read_them(both: Store, tmp_path: Path) -> None:
    written = api.export(both, tmp_path / "out", "jsonl")
    (path,) = written
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == written[path] == 6 * len(TESTED)
    assert list(lines[0]) == [
        *("doc_id", "input", "target", "prediction", "correct", "run", "seed"),
    ]
    wrong = [line for line in lines if not line["correct"] and line["run"] == 3]
    assert [line["input"] for line in wrong] == [STRINGS[TESTED[0]]]
    assert all(line["prediction"] == 1 - line["target"] for line in wrong)


def test_imported_runs_are_refused_replaced_and_merged(both: Store, tmp_path: Path) -> None:
    path = _data(tmp_path)
    store = open_writer(str(tmp_path / "runs.db"))
    log = api.log_results(store, sweep="theirs", dataset=path)
    settings = {"d_model": 32, "hidden_size": 7, "optimizer": {"name": "adam"}}
    log.run(model="mamba-2l", seed=0, config=settings, predictions=_predictions())
    with pytest.raises(ConfigError, match="already in the database, as run 1"):
        log.run(model="mamba-2l", seed=0, config=settings, predictions=_predictions())
    again = api.log_results(store, sweep="theirs", dataset=path, replace=True)
    again.run(model="mamba-2l", seed=0, config=settings, predictions=_predictions(wrong=5))
    assert api.runs(store)["errors"].tolist() == [5]
    assert api.verify(store).damages == []
    with pytest.raises(ConfigError, match="trains models here"):
        api.log_results(both, sweep="ours", dataset=path)
    with pytest.raises(ConfigError, match="'theirs' holds imported results; give the sweep"):
        api.submit(both, {**SPEC, "name": "theirs", "fixed": {"hidden_size": 2}})
    assert len(api.runs(both, "theirs")) == 4
    merged = api.merge(store, both)
    assert (merged.results, len(merged.conflicts), merged.renamed) == (5, 1, {})
    assert api.verify(store).damages == []
    api.delete(store, "theirs")
    api.delete(store, "ours")
    assert rows(Path(str(store.path)), "SELECT count(*) FROM dataset") == [(0,)]


def test_imported_outputs_are_compared_with_their_targets(tmp_path: Path) -> None:
    pairs = {"h i": "HH AY", "h o": "HH OW", "o": "OW"}
    rows_of = [{"tokens": x, "target": y} for x, y in pairs.items()]
    data = written(tmp_path, "pairs.jsonl", rows_of)
    store = api.open_store(tmp_path / "runs.db")
    log = api.log_results(store, sweep="theirs", dataset=data)
    log.run(
        model="rules", seed=0, predictions=dict(zip(pairs, ["HH AY", "HH", "HH OW"], strict=True))
    )
    wrong = api.errors(store, [1]).set_index("string")
    assert wrong["output"].to_dict() == {"h o": "HH", "o": "HH OW"}
    assert wrong.loc["h o", "error_kind"] == "stopped early"
    assert api.verify(store).damages == []
    (path,) = api.export(store, tmp_path / "out", "jsonl")
    assert {json.loads(x)["prediction"] for x in path.read_text().splitlines()} == {
        *("HH AY", "HH", "HH OW"),
    }


GOOD = [{"model": "m", "seed": 0, "id": f"s{n}", "prediction": 1} for n in TESTED]
ODD: dict[str, tuple[list[Any], str]] = {
    "seed": ([-1, 1.5, "x", "", None, "1e3", True, "\u0663", "0x1"], "seed"),
    "seed ": ([2**63, str(2**63), "9" * 20, "9" * 300], "seed is "),
    "prediction": (
        [2, -1, "maybe", "", None, 0.5, "nan", "=1+1", "<b>1</b>", "1 1", [1], {}], "prediction",
    ),
    "model": (["", None, 3, " ", "a\0b", "x" * 300, "a\nb", [], {}], "model"),
    "id": (["nope", None, "", "s1", "S0", "s00", "<script>", 7], ""),
    "score": (["x", "1e400", "-1e999", 10**309, [1], "=A1"], "score"),
    "split": (["holdout", 3, "tests", []], "expected train, validation or test"),
    "config": (["{", "[1]", "3", '{"": 1}', '{"a\\u0000": 1}'], "config"),
}  # fmt: skip
"""By column, invalid cells and a part of the message."""
HEADER = "model,seed,id,prediction\n"
CELLS = "".join(f"m,0,s{n},1\n" for n in TESTED)
BAD: list[tuple[str, str]] = [
    (HEADER, "no "),
    (HEADER + CELLS + "m,0,s0,1\n", "s0"),
    (HEADER + CELLS[: len("m,0,s0,1\n") * 3], "no prediction for 18 of 21"),
    (HEADER + CELLS.replace("m,0,s0,1\n", ""), "no prediction for 1 of 21"),
    (HEADER + CELLS + "m,0\n", "2 cells, not 4"),
    (HEADER.replace("id", "tokens") + CELLS, "s0"),
    (HEADER.replace("model", "name") + CELLS, "expected one named 'model'"),
    (HEADER.replace("id", "id,tokens") + CELLS.replace("s", "s,"), "either 'id' or 'tokens'"),
    ("model,seed,id,prediction,color\n" + CELLS.replace(",1\n", ",1,red\n"), "'color' means noth"),
    (HEADER.replace("prediction", "predicton") + CELLS, "'prediction'"),
    ("Seed," + HEADER + CELLS.replace("m,", "0,m,"), "'Seed' and 'seed'"),
]
LATER: list[tuple[dict[str, Any], str]] = [
    ({"configs": 1}, "line 21: column 'configs' means nothing"),
    ({"tokens": "a"}, "expected either 'id' or 'tokens'"),
    ({"Model": "m"}, "line 21: two columns are 'model': 'model' and 'Model'"),
    ({"config.v": "1.10"}, "seed 0, config {}: no prediction for 1 of 21"),
]
"""Additional fields of the last line, and a part of the message."""


def test_malformed_files_are_refused_in_one_line_and_nothing_is_written(tmp_path: Path) -> None:
    """Files that are no tables are refused by the reader that `test_datasets` tests."""
    data, store = _data(tmp_path), api.open_store(tmp_path / "runs.db")
    files: list[tuple[str, Content, str]] = [(".csv", *bad) for bad in BAD]
    for name, (values, reason) in ODD.items():
        odd = [[*GOOD[:2], {**GOOD[2], name.strip(): x}, *GOOD[3:]] for x in values]
        files += [(f"{name}.jsonl", lines, reason) for lines in odd]
    files += [(".jsonl", [*GOOD[:-1], GOOD[-1] | more], reason) for more, reason in LATER]
    for number, (ending, content, reason) in enumerate(files):
        path = written(tmp_path, name := f"{number}{ending}", content)
        with pytest.raises((DatasetError, ConfigError)) as none:
            api.import_predictions(store, path, sweep="theirs", dataset=data)
        assert reason in str(none.value), name
        assert "\n" not in str(none.value), name
        assert len(str(none.value)) < 500, name
    for path in (tmp_path, tmp_path / "missing.csv"):
        with pytest.raises(DatasetError):
            api.import_predictions(store, path, sweep="theirs", dataset=data)
    for name in ("run", "sweep", "config", "dataset", "test_string"):
        assert rows(store, f"SELECT count(*) FROM {name}") == [(0,)]


def test_a_file_is_imported_by_the_command(tmp_path: Path) -> None:
    data = _data(tmp_path)
    both_seeds = pd.concat([_predictions().assign(model="m", seed=x) for x in range(2)])
    both_seeds = both_seeds.assign(**{"config.d_model": 64, "score": 0.25})
    csv = written(tmp_path, "p.csv", both_seeds)
    parquet = written(tmp_path, "p.parquet", both_seeds.assign(model="n"))
    settings = ["--sweep", "theirs", "--dataset", str(data), "--db", str(tmp_path / "runs.db")]
    for path in (csv, parquet):
        assert "2 runs imported" in printed("import", str(path), *settings)
    assert "already in the database" in refused("import", str(csv), *settings)
    printed("import", str(csv), *settings, "--replace")
    store = api.open_store(tmp_path / "runs.db")
    frame = api.runs(store)
    assert len(frame) == 4
    shown = " ".join(protocol(store, int(frame["id"].iloc[-1])))
    assert "File: data.csv" in shown
    assert "Trained elsewhere as m (d_model=64)" in shown
    assert "Imported (predictions of p.csv)" in shown
    assert frame["config.d_model"].tolist() == [64] * 4


TOKENS = [STRINGS[number] for number in TESTED]
RIGHT = [string.count("a") % 2 for string in TOKENS]
FRAME = pd.DataFrame({"tokens": TOKENS, "prediction": RIGHT})


@pytest.fixture
def log(tmp_path: Path) -> ResultLog:
    """A log of a language in an empty database."""
    db = copy_of("made", "made.db", tmp_path)
    return api.log_results(db, sweep="theirs", dataset=_data(tmp_path))


def pairs_of(folder: Path, inputs: Iterable[str], name: str = "pairs") -> ResultLog:
    """A log of a transduction: the strings, backwards."""
    data = written(folder, f"{name}.csv", table("input,target", ((x, x[::-1]) for x in inputs)))
    db = shutil.copy(stock("made") / "made.db", folder / f"{name}.db")
    return api.log_results(db, sweep="theirs", dataset=data)


@pytest.fixture
def pairs(tmp_path: Path) -> ResultLog:
    return pairs_of(tmp_path, TOKENS)


REFUSED_ROWS: list[tuple[Any, str]] = [
    ({"tokens": TOKENS, "prediction": RIGHT[1:]}, "different lengths: tokens 21, prediction 20"),
    ({"tokens": TOKENS, "prediction": 1}, "'prediction' is 1, of type int, expected"),
    ({"tokens": TOKENS, "prediction": {0, 1}}, "expected a list"),
    ({"tokens": TOKENS, "answer": RIGHT}, "the columns 'tokens, answer', not prediction"),
    (RIGHT, "of type list: expected columns"),
    (pd.concat([FRAME, FRAME], axis=1), "two columns 'tokens'"),
    ({**FRAME, "prediction": [None, *RIGHT[1:]]}, "row 1: prediction is missing"),
    *(
        ({**FRAME, "score": [score, *[None] * (len(TOKENS) - 1)]}, "-1.798e+308 to 1.798e+308")
        for score in ("1e400", "-1e309", 10**400)
    ),
    ({**FRAME, "score": [0.9 if x else 0.2 for x in RIGHT]}, "as probabilities are"),
    ({**FRAME, "prediction": 0, "score": [0.3] * len(RIGHT)}, "'prediction' is 0"),
    (FRAME.assign(prediction=0, score=0.3), "as probabilities are"),
    ({**FRAME, "score": [-0.1 if x else -2.3 for x in RIGHT]}, "as logarithms of probabilities"),
    ({**FRAME, "score": [-2.0 if x else 2.0 for x in RIGHT]}, "above all of those predicted 1"),
]
"""Invalid predictions for a language, and a part of the message."""

NO_TOKENS: tuple[Any, ...] = (-1, 1.7, True, None, 0.5, ["a"], float("nan"), np.float64(-1))
NO_SEEDS: tuple[Any, ...] = (42.5, "42.5", True, None, -1, float("nan"), 2**63)
NO_LOSSES: tuple[Any, ...] = (
    [1.0], [(1.0,)], [(1, 1.0, 1.0)], pd.DataFrame([(1.0, 1.0)]), 3, "12",
)  # fmt: skip
NO_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"d": float("inf")}, "'d' is inf, which is not a JSON number"),
    ({"d": float("nan")}, "not a JSON number"),
    ({"a": {"d": {1, 2}}}, "'a.d' is {1, 2}, of type set"),
    ({"d": torch.float32}, "'d' is torch.float32, of type dtype"),
    ({"d": object}, "give it as text"),
    ({"a.b": 1, "a": {"b": 1}}, "two settings are called 'a.b'"),
    ({"d": {1: 1, "1": 2}}, "two settings are called 'd.1'"),
    ({"a": {"b\n": 1}}, "a setting is called"),
    ({"d": "\ud800"}, "not text in Unicode"),
    ({"d": "x" * 100_000}, "expected at most 100,000"),
]
MISSPELLED: dict[str, Callable[[str], Any]] = {
    "an end": lambda text: f"{text}</s>",
    "padding": lambda text: [*text, "<pad>"],
    "a word for the end": lambda text: f"{text} EOS",
    "an end of one sign": lambda text: f"{text}$",
    "commas": ",".join,
    "brackets": lambda text: f"[{' '.join(text)} ]",
    "JSON": lambda text: f'"{text}"',
    "JSON of several lines": lambda text: json.dumps(list(text), indent=1),
    "pieces of words": lambda text: [f"\u2581{x}" for x in text],
    "ids": lambda text: [" ab01".index(x) + 4 for x in text],
    "ids as NumPy writes them": lambda text: str(np.array([" ab01".index(x) + 4 for x in text])),
}
MISSPELLED_LETTERS: dict[str, Callable[[str], Any]] = {**MISSPELLED, "capitals": str.upper}
MISSPELLED_DIGITS: dict[str, Callable[[str], Any]] = {
    **MISSPELLED, "a number": int, "a number as text": lambda text: str(int(text)),
}  # fmt: skip
"""Right outputs in spellings that are refused."""


def test_invalid_predictions_are_refused_in_one_line(log: ResultLog, pairs: ResultLog) -> None:
    folder, place = Path(str(log.opened.path)).parent, len(TOKENS[0]) + 1
    first, *others = [list(x) for x in TOKENS]
    cases = [(log, {"predictions": given}, reason) for given, reason in REFUSED_ROWS]
    for token in NO_TOKENS:
        lists = [[*first, token], *others]
        for own, names in ((pairs, (TOKENS, lists)), (log, (lists, RIGHT))):
            given = dict(zip(("tokens", "prediction"), names, strict=True))
            cases.append((own, {"predictions": given}, f"at place {place}"))
    for missing in (None, float("nan"), pd.NA):
        given = {"tokens": TOKENS, "prediction": [missing, *(x[::-1] for x in TOKENS[1:])]}
        reason = "row 1: prediction is missing; the empty output is ''"
        cases.append((pairs, {"predictions": given}, reason))
    spelled = []
    for letters, ways in (("ab", MISSPELLED_LETTERS), ("01", MISSPELLED_DIGITS)):
        inputs = ["".join(x) for x in itertools.product(letters, repeat=4)]
        spelled.append(pairs_of(folder, inputs, letters))
        for misspell in ways.values():
            given = {"tokens": inputs, "prediction": [misspell(x[::-1]) for x in inputs]}
            cases.append((spelled[-1], {"predictions": given}, ": prediction"))
    cases += [(log, {"seed": none}, "seed is") for none in NO_SEEDS]
    cases += [(log, {"losses": none}, "losses") for none in NO_LOSSES]
    cases += [(log, {"config": none}, reason) for none, reason in NO_SETTINGS]
    for own, given, reason in cases:
        how: dict[str, Any] = {"model": "m", "seed": 0, "predictions": FRAME, **given}
        with pytest.raises((DatasetError, ConfigError), match=re.escape(reason)) as none:
            own.run(**how)
        assert "\n" not in str(none.value)
    for own in (log, pairs, *spelled):
        assert api.runs(own.opened).empty
    # Probabilities of a model that always predicts 1 could be logits; the empty output is valid.
    log.run(model="m", seed=0, predictions=FRAME.assign(prediction=1, score=0.7))
    assert api.errors(log.opened, [1])["logit"].eq(0.7).all()
    outputs = ["", *(x[::-1] for x in TOKENS[1:])]
    pairs.run(model="m", seed=0, predictions={"tokens": TOKENS, "prediction": outputs})
    assert api.errors(pairs.opened, [1])["output"].tolist() == [""]


GIVEN: dict[str, Callable[[], Any]] = {
    "series of other indexes": lambda: {
        "tokens": FRAME["tokens"].sort_values(ascending=False),
        "prediction": pd.Series([x.count("a") % 2 for x in sorted(TOKENS, reverse=True)]),
    },
    "a frame in another order": lambda: FRAME.sample(frac=1, random_state=1),
    "categories": lambda: FRAME.astype("category"),
    "columns of Arrow": lambda: FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "a table of Arrow": lambda: pa.Table.from_pandas(FRAME),
    "rows": lambda: FRAME.to_dict("records"),
    "columns by index": FRAME.to_dict,
    "strings as lists": lambda: {"tokens": [str(list(x)) for x in TOKENS], "prediction": RIGHT},
    "predictions by string": lambda: dict(zip(TOKENS, RIGHT, strict=True)),
    "tensors": lambda: {"tokens": TOKENS, "prediction": torch.tensor(RIGHT)},
    "truths of NumPy": lambda: {"tokens": TOKENS, "prediction": list(np.array(RIGHT) == 1)},
    "a generator": lambda: {"tokens": TOKENS, "prediction": (x for x in RIGHT)},
}


SEEDS: tuple[Any, ...] = (42, 42.0, "42", "42.0", np.int64(42), torch.tensor(42))


class Size(enum.Enum):
    """A setting of somebody's program."""

    SMALL = 64


SETTINGS: list[tuple[Any, Any]] = [
    (np.int64(64), 64), (np.float32(0.5), 0.5), (np.bool_(True), True), (torch.tensor(3), 3),
    (np.array([1, 2]), "[1,2]"), ((1, 2), "[1,2]"),
    (pd.Timestamp("2024-01-02"), "2024-01-02T00:00:00"),
    (Path("a/b"), "a/b"), (Size.SMALL, 64), ({"a": {}}, None), (pd.NA, None),
]  # fmt: skip


def test_predictions_of_other_libraries_are_accepted(log: ResultLog) -> None:
    for name, given in GIVEN.items():
        log.run(model=name, seed=0, predictions=given())
    found = api.runs(log.opened).set_index("config.model")["accuracy"].to_dict()
    assert found == dict.fromkeys(GIVEN, 1.0)
    for number, seed in enumerate(SEEDS):
        log.run(model=f"m{number}", seed=seed, predictions=FRAME)
    assert len(api.runs(log.opened, model_seed=42)) == len(SEEDS)
    for value, stored in SETTINGS:
        own = unfold(dict(imported_config({"task": "parity"}, "m", {"d": value})))
        assert own.get("config.d") == stored
        assert type(own.get("config.d")) is type(stored), value
    with pytest.raises(ConfigError, match="learning_rate"):
        imported_config({"task": "parity", "learning_rate": 0.1}, "m")


def test_scores_stay_with_their_strings(log: ResultLog) -> None:
    wrong = FRAME.assign(prediction=1 - FRAME["prediction"]).iloc[::-1]
    scores = pd.Series([2.0 + number for number in range(len(wrong))])
    log.run(model="m", seed=0, predictions={**wrong, "score": scores})
    stored = api.errors(log.opened, [1]).set_index("string")["logit"]
    tokenizer = log._strings.tokenizer
    for string, score in zip(wrong["tokens"], scores, strict=True):
        assert stored[tokenizer.decode(tokenizer.encode(string))] == score


SCORES = [float("-inf"), float("inf"), -1e308, 1e308, sys.float_info.max, float("nan"), 0.5]


@pytest.mark.usefixtures("undrawn")
def test_scores_may_be_infinite_and_cells_without_one_are_empty(
    any_db: str, tmp_path: Path
) -> None:
    # A kind of file for each kind of database; of the third only the reading differs.
    kind = "jsonl" if "://" in any_db else "parquet"
    data, file, folder = _data(tmp_path), tmp_path / f"p.{kind}", tmp_path / "exported"
    scores = {x: SCORES[n % len(SCORES)] for n, x in enumerate(TOKENS)}
    given = FRAME.assign(model="m", seed=0)
    given["prediction"] = [int(scores[x] > 0) if scores[x] == scores[x] else 0 for x in TOKENS]
    given["score"] = given["tokens"].map(scores)
    written(tmp_path, file.name, given.to_dict("records") if kind == "jsonl" else given)
    database = ["--db", any_db]
    printed("import", str(file), "--sweep", "theirs", "--dataset", str(data), *database)
    store = api.open_store(any_db)
    (run_id,) = api.runs(store)["id"]
    encoded = resolve(api.config(store, run_id)).tokenizer
    own_scores = {encoded.decode(encoded.encode(x)): score for x, score in scores.items()}
    stored = api.errors(store, [run_id]).set_index("string")["logit"]
    expected = pd.Series(own_scores)[stored.index]
    assert len(set(expected.dropna())) > 3
    assert expected.isna().any()
    pd.testing.assert_series_equal(stored, expected, check_names=False)

    # JSON has no infinity, and none of Python's words for it is printed.
    command = ["errors", str(run_id), "--sort", "logit", *database]
    spelled = [x["logit"] for x in printed_json(*command)]
    assert [float(x) for x in spelled if x is not None] == sorted(expected.dropna())
    assert spelled.count(None) == expected.isna().sum()
    assert {"-∞", "∞"} & set(printed(*command).split())
    for ending, read_file in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        printed("export", str(folder), "--format", ending, *database)
        again = read_file(folder / f"errors.{ending}").set_index("string")["logit"]
        pd.testing.assert_series_equal(again, stored, check_names=False)
    for name in ("runs", "lengths", "errors", "shortcuts"):
        assert "nan" not in (folder / f"{name}.csv").read_text().lower().split(",")
    assert api.report(store, "theirs")
    assert api.verify(store).damages == []


def test_outputs_that_a_frame_turned_into_floats_are_whole_numbers(tmp_path: Path) -> None:
    sums = {f"{a}+{b}": a + b for a in range(5) for b in range(9)}
    data = written(tmp_path, "sums.csv", table("input,target", sums.items()))
    frame = pd.DataFrame({"model": "m", "seed": 0, "tokens": list(sums)})
    frame["prediction"] = [float(x) for x in sums.values()]
    odd = ["x", *(f"{y}.0" for y in list(sums.values())[1:])]
    # Of texts that are not all so, none is changed.
    texts = frame.assign(prediction=odd)
    for name, own, right in (
        ("p.csv", frame, 1.0),
        ("p.parquet", frame, 1.0),
        ("o.csv", texts, 0.0),
    ):
        file, store = written(tmp_path, name, own), tmp_path / f"{name}.db"
        api.import_predictions(store, file, sweep="theirs", dataset=data)
        assert api.runs(api.open_store(store))["accuracy"].tolist() == [right], name
    # Numbers with more digits than a float has are required as text.
    data.write_text("input,target\na,12345678901234567\nb,12\n")
    log = api.log_results(tmp_path / "digits.db", sweep="theirs", dataset=data)
    for outputs in ([12345678901234567.0, 12.0], ["1.2345678901234568e+16", "12.0"]):
        with pytest.raises(DatasetError, match="a float has no more than 15 digits; give text"):
            log.run(model="m", seed=0, predictions={"tokens": ["a", "b"], "prediction": outputs})


def test_a_letter_is_the_same_in_every_unicode_form(tmp_path: Path) -> None:
    texts = [unicodedata.normalize("NFC", x) for x in ("caf\u00e9", "fac", "\u00e9\u00e9")]
    lines = table("input,target", ((x, x[::-1]) for x in texts))
    form: Any
    for form in ("NFC", "NFD"):
        path = written(tmp_path, "data.csv", unicodedata.normalize(form, lines))
        log = api.log_results(tmp_path / "runs.db", sweep=f"of {form}", dataset=path)
        given: Any
        for given in ("NFC", "NFD"):
            tokens = [unicodedata.normalize(given, x) for x in texts]
            listed = [[unicodedata.normalize(given, y) for y in x[::-1]] for x in texts]
            outputs = ["".join(x) for x in listed]
            named = f"{form} as {given}"
            log.run(model=named, seed=0, predictions={"tokens": tokens, "prediction": outputs})
            log.run(model=named, seed=1, predictions=dict(zip(tokens, listed, strict=True)))
    assert api.runs(log.opened)["accuracy"].tolist() == [1.0] * 8
    assert api.predict(log.opened, 1, tokens)["string"].tolist() == texts


SPELLINGS: dict[str, Callable[[str], Any]] = {
    "as it is": str,
    "a space behind": lambda text: f"{text} ",
    "a line end behind": lambda text: f"{text}\r\n",
    "a space before": lambda text: f"\t{text}",
    "a list of its characters": list,
    "a tuple of them": tuple,
    "an array of them": lambda text: np.array(list(text)),
    "a list with a space": lambda text: list(f"{text} "),
    "a list as text": lambda text: repr(list(text)),
    "its words": str.split,
    "its words and nothing": lambda text: f"{text} ".split(" "),
    "a text of NumPy": np.str_,
    "a byte order mark before": lambda text: f"\ufeff{text}",
    "zero bytes behind": lambda text: f"{text}\0\0",
}


@pytest.mark.parametrize("words", ["push pop", "a b", "( ]"])
def test_every_spelling_of_a_right_output_is_right(words: str, tmp_path: Path) -> None:
    first, second = words.split()
    targets = [[first] * 3 + [second], [first, second] * 5, [second] * 9, [second, first]]
    pairs = zip(itertools.product("xy", repeat=2), targets, strict=True)
    path = written(tmp_path, "data.jsonl", [{"input": [*x], "target": y} for x, y in pairs])
    log = api.log_results(tmp_path / "runs.db", sweep="theirs", dataset=path)
    columns = []
    for way, spell in SPELLINGS.items():
        outputs = [spell(text) for text in log.strings["target"]]
        given = {"tokens": log.strings["tokens"], "prediction": outputs}
        log.run(model=way, seed=0, predictions=given)
        columns.append(pd.DataFrame({"Model": way, "SEED ": 1, **given}))
    file = written(tmp_path, "p.jsonl", pd.concat(columns))
    api.import_predictions(log.opened, file, sweep="theirs", dataset=path)
    found = api.runs(log.opened).groupby("config.model")["accuracy"].agg(list).to_dict()
    assert found == {way: [1.0, 1.0] for way in SPELLINGS}


def test_outputs_of_unknown_tokens_are_wrong_and_shown_unchanged(pairs: ResultLog) -> None:
    odd: list[Any] = ["abc", "c{300}", "x y", ["a", "x y", "b"]]
    outputs = [*odd, *(x[::-1] for x in TOKENS[4:])]
    pairs.run(model="m", seed=0, predictions={"tokens": TOKENS, "prediction": outputs})
    wrong = api.errors(pairs.opened, [1])
    assert sorted(wrong["output"]) == ["abc", "a\ufffdb", "c{300}", "xy"]
    assert api.verify(pairs.opened).damages == []
    shown = errors_sections.strings(pairs.opened, 1)
    assert shown is not None
    assert shown.table is not None
    assert "abc" in set(shown.table["model_output"])


def test_diverged_training_is_logged_up_to_the_divergence(
    log: ResultLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    nan = float("nan")
    log.run(model="m", seed=0, predictions=FRAME, losses=((x, x) for x in (2.0, 1.0, nan, nan)))
    log.run(model="m", seed=1, predictions=FRAME, losses=[(nan, nan)])
    frame = pd.DataFrame({"train": [2.0, 1.0], "validation": [2.0, 1.5]})
    log.run(model="m", seed=2, predictions=FRAME, losses=frame)
    found = api.runs(log.opened).set_index("model_seed")
    assert found["epochs"].fillna(0).tolist() == [2, 0, 2]
    reason = "diverged in epoch 3: the train loss became nan"
    assert found["engine_reason"].tolist() == [reason, reason.replace("3", "1"), ""]
    shown = open_app(monkeypatch, str(log.opened.path), "model", run="1", view="Training")
    assert any("Its training diverged in epoch 3" in text.value for text in shown.markdown)
    log.run(model="m", seed=4, predictions=FRAME, losses=frame.to_dict())
    assert api.runs(log.opened).set_index("model_seed").loc[4, "best_epoch"] == 2


def test_settings_of_equal_value_are_one_configuration(log: ResultLog, tmp_path: Path) -> None:
    for seed, d in enumerate((64, 64.0, np.float64(64))):
        log.run(model="m", seed=seed, config={"d": d, "o": {"lr": 1}}, predictions=FRAME)
    log.run(model="m", seed=3, config={"d": 64, "o.lr": 1.0}, predictions=FRAME)
    given = FRAME.assign(model="m", **{"config.d": "64.0", "config.o.lr": "1"})
    data = tmp_path / "data.csv"
    path = written(tmp_path, "p.csv", given.assign(seed=4))
    api.import_predictions(log.opened, path, sweep="theirs", dataset=data)
    assert api.runs(log.opened)["config_id"].tolist() == [1] * 5
    written(tmp_path, "p.csv", given.assign(seed=0))
    with pytest.raises(ConfigError, match="already in the database, as run 1"):
        api.import_predictions(log.opened, path, sweep="theirs", dataset=data)


WRITTEN: dict[str, list[Any]] = {
    "1.1 1.10": ["1.1", "1.10"], "5500e03": ["5500e03"], "7e12345 1": ["7e12345", "1"],
    "007": ["007"], "1_000": ["1_000"], "inf": ["inf"], "nan": ["nan"], "1e-4": ["1e-4"],
    "2024-01-01": ["2024-01-01"], "null": ["null"], "true": ["true"], "True False": [True, False],
    "8 16.0 128": [8, 16, 128], "0.5 1e-05": [0.5, 1e-05], "-3": [-3],
}  # fmt: skip
"""Words of a column, one a model, and the imported values."""


def test_imported_settings_keep_their_names_and_numeric_columns_become_numbers(
    log: ResultLog, tmp_path: Path
) -> None:
    def imported(name: str, *frames: pd.DataFrame) -> pd.DataFrame:
        file, data = written(tmp_path, name, pd.concat(frames)), tmp_path / "data.csv"
        api.import_predictions(log.opened, file, sweep=name, dataset=data)
        return api.runs(log.opened, name)

    models = []
    for number in range(3):
        words = {f"config.{x}": x.split()[number % len(x.split())] for x in WRITTEN}
        models.append(FRAME.assign(model=f"m{number}", seed="7.0", **words))
    found = imported("p.csv", *models)
    for line, expected in WRITTEN.items():
        stored = found[f"config.{line}"].tolist()
        assert stored == [expected[number % len(expected)] for number in range(3)], line
    named = {"config.D_model": 64, "config.d_model": 8}
    for seed, name in enumerate(("named.csv", "named.jsonl", "named.json")):
        found = imported(name, FRAME.assign(model="m", seed=seed, **named))
        assert found[list(named)].to_numpy().tolist() == [[64, 8]]


def test_predictions_of_validation_strings_are_not_tested(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    labeled = ["0,0,train", "1,1,test", "01,1,test", "11,0,validation", "010,1,test"]
    data = written(tmp_path, "data.csv", "\n".join(["tokens,label,split", *labeled]))
    # All are right, but for the one of the validation string.
    body = [f"m,0,{x}" for x in labeled]
    body[3] = "m,0,11,1,validation"
    lines = "\n".join(["model,seed,tokens,prediction,split", *body])
    own = written(tmp_path, "predictions.csv", lines)
    api.import_predictions(store, own, sweep="theirs", dataset=data)
    assert rows(store, "SELECT tested, wrong FROM run") == [(3, 0)]
