"""Results of models trained elsewhere: stored, shown beside trained ones, refused."""

import itertools
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from seqcls.config import RunConfig
from seqcls.errors import ConfigError, DatasetError, UnknownRunError
from seqcls.fields.imported import imported_config, unfolded
from seqcls.problem import configuration
from sweeps import api
from sweeps.cli.app import app
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_writer
from tests.app import INSIDE, PAGES, open_app, said
from tests.databases import rows

STRINGS = ["".join(x) for n in range(1, 6) for x in itertools.product("ab", repeat=n)]
SPLITS = ["test" if number % 3 == 0 else "train" for number in range(len(STRINGS))]
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
    path = folder / "data.csv"
    lines = [f"{x},{x.count('a') % 2},{SPLITS[n]},s{n}" for n, x in enumerate(STRINGS)]
    path.write_text("\n".join(["tokens,label,split,id", *lines]))
    return path


def _predictions(wrong: int = 3) -> pd.DataFrame:
    labels = [STRINGS[number].count("a") % 2 for number in TESTED]
    said_ = [label ^ (place < wrong) for place, label in enumerate(labels)]
    return pd.DataFrame({"id": [f"s{number}" for number in TESTED], "prediction": said_})


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


def test_verdicts_are_counted_as_those_of_trained_runs(both: Store) -> None:
    frame = api.runs(both, "theirs")
    assert sorted(frame["errors"]) == [1, 2, 2, 3]
    assert set(frame["tested"]) == {len(TESTED)}
    wrong = api.errors(both, [3])
    assert wrong["string"].tolist() == [STRINGS[TESTED[0]]]
    assert wrong["logit"].isna().all(), "no score was given"
    lengths = api.lengths(both, [3])
    assert lengths["tested"].sum() == len(TESTED)
    assert api.verify(both).damages == []


def test_fields_of_trained_runs_keep_their_types_beside_imported_ones(both: Store) -> None:
    alone, beside = (api.runs(both, sweep) for sweep in ("ours", None))
    for name in ("train_alpha", "dropout_rate", "learning_rate"):
        assert str(beside[name].dtype) == "Float64", name
    assert str(beside["hidden_size"].dtype) == "Int64"
    of_ours = beside[beside["id"].isin(alone["id"])]
    for name in RunConfig.model_fields:
        assert list(map(str, of_ours[name])) == list(map(str, alone[name])), name


def test_settings_of_others_are_never_fields_of_ours(both: Store) -> None:
    frame = api.runs(both)
    assert frame["config.d_model"].dropna().tolist() == [32, 64, 32, 64]
    assert set(frame["config.optimizer.name"].dropna()) == {"adam"}
    theirs = frame[frame["architecture"] == "imported"]
    assert theirs[["hidden_size", "learning_rate", "max_num_epochs"]].isna().all(axis=None)
    assert set(frame["hidden_size"].dropna()) == {2}
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


@pytest.mark.parametrize("page", [*PAGES, *INSIDE, "launch"])
def test_every_page_shows_both(both: Store, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = open_app(monkeypatch, str(both.path), page, **({"run": "3"} if page == "model" else {}))
    if page == "model":
        assert "weights are not in this database" in shown.info[0].value
        assert "trained elsewhere" in said(shown)


NEED_WEIGHTS = (
    "predict 3 ab", "states 3 ab", "ablate 3", "minimal 3", "rules 3", "family 3 <ab>{n}",
    "figures 3 ab -o figures", "causes theirs", "helps 3", "explain 3 ab", "verdict 3",
    "automaton 3", "sensitive theirs", "patch 3 ab --source bb",
)  # fmt: skip
NEED_NONE = (
    "runs", "runs --json", "errors 3", "compare ours theirs:config.d_model=64",
    "report theirs --out report.html", "report ours --out ours.html", "verify", "export out",
    "export parquet --format parquet", "export answers --format jsonl", "status", "causes ours",
    "predict 1 ab", "site pages",
)  # fmt: skip


@pytest.mark.parametrize("line", NEED_WEIGHTS)
def test_what_needs_weights_says_why_it_is_absent(
    both: Store, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, [*line.split(), "--db", str(both.path)])
    assert isinstance(found.exception, UnknownRunError | ConfigError), found.output
    assert "weights are not in this database" in str(found.exception)


@pytest.mark.parametrize("line", NEED_NONE)
def test_what_needs_no_weights_works(
    both: Store, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, [*line.split(), "--db", str(both.path)])
    assert found.exit_code == 0, (found.output, found.exception)


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


def test_runs_are_refused_or_replaced_and_merged(both: Store, tmp_path: Path) -> None:
    path = _data(tmp_path)
    store = open_writer(str(tmp_path / "runs.db"))
    log = api.log_results(store, sweep="theirs", dataset=path)
    settings = {"d_model": 32, "hidden_size": 7, "optimizer": {"name": "adam"}}
    log.run(model="mamba-2l", seed=0, config=settings, predictions=_predictions())
    with pytest.raises(ConfigError, match="there already, as run 1"):
        log.run(model="mamba-2l", seed=0, config=settings, predictions=_predictions())
    again = api.log_results(store, sweep="theirs", dataset=path, replace=True)
    again.run(model="mamba-2l", seed=0, config=settings, predictions=_predictions(wrong=5))
    assert api.runs(store)["errors"].tolist() == [5]
    assert api.verify(store).damages == []
    with pytest.raises(ConfigError, match="trains models here"):
        api.log_results(both, sweep="ours", dataset=path)
    merged = api.merge(store, both)
    assert (merged.results, len(merged.conflicts), merged.renamed) == (5, 1, {})
    assert api.verify(store).damages == []
    api.delete(store, "theirs")
    api.delete(store, "ours")
    assert rows(Path(str(store.path)), "SELECT count(*) FROM dataset") == [(0,)]


def test_outputs_of_transductions_are_held_against_their_targets(tmp_path: Path) -> None:
    data = tmp_path / "pairs.jsonl"
    pairs = [("h i", "HH AY"), ("h o", "HH OW"), ("o", "OW")]
    data.write_text("\n".join(json.dumps({"tokens": x, "target": y}) for x, y in pairs))
    store = api.open_store(tmp_path / "runs.db")
    log = api.log_results(store, sweep="theirs", dataset=data)
    tokens = [x for x, _ in pairs]
    log.run(
        model="rules",
        seed=0,
        predictions={"tokens": tokens, "prediction": ["HH AY", "HH", "HH OW"]},
    )
    wrong = api.errors(store, [1]).set_index("string")
    assert wrong["output"].to_dict() == {"h o": "HH", "o": "HH OW"}
    assert wrong.loc["h o", "error_kind"] == "stopped early"
    assert api.verify(store).damages == []
    (path,) = api.export(store, tmp_path / "out", "jsonl")
    assert {json.loads(x)["prediction"] for x in path.read_text().splitlines()} == {
        *("HH AY", "HH", "HH OW"),
    }


def test_configurations_of_others_are_not_trained() -> None:
    config = imported_config({"task": "parity"}, "m", {"d": 1, "l": [1]})
    assert unfolded(dict(config)) == {"config.model": "m", "config.d": 1, "config.l": "[1]"}
    with pytest.raises(ConfigError, match="cannot be trained here"):
        configuration({"task": "parity", "architecture": "imported", "imported": config.imported})
    with pytest.raises(ConfigError, match="not read by"):
        configuration({"imported": "{}"})
    with pytest.raises(ConfigError, match="learning_rate"):
        imported_config({"task": "parity", "learning_rate": 0.1}, "m")
    with pytest.raises(ConfigError, match="no JSON"):
        imported_config({"task": "parity"}, "m", {"x": float("nan")})
    assert "imported" not in RunConfig().changed


GOOD = [{"model": "m", "seed": 0, "id": f"s{n}", "prediction": 1} for n in TESTED]


def _bad_rows() -> dict[str, list[Any]]:
    """Predictions with one thing wrong each."""
    values: dict[str, list[Any]] = {
        "seed": [-1, 1.5, "x", "", None, 2**63, "1e3", True, "٣", "0x1", "9" * 30],
        "prediction": [2, -1, "maybe", "", None, 0.5, "nan", "=1+1", "<b>1</b>", "1 1", [1], {}],
        "model": ["", None, 3, " ", "a\0b", "x" * 300, "a\nb", [], {}],
        "id": ["nope", None, "", "s1", "S0", "s00", "<script>", 7],
        "score": ["x", "inf", 1e400, [1], "=A1"],
        "split": ["holdout", 3, "tests", []],
        "config": ["{", "[1]", "3", '{"": 1}', '{"a\\u0000": 1}'],
    }
    return {
        f"{name} {value!r:.30}": [*GOOD[:2], {**GOOD[2], name: value}, *GOOD[3:]]
        for name, some in values.items()
        for value in some
    }


def _bad_files(folder: Path) -> list[Path]:
    found: list[Path] = []

    def add(ending: str, content: bytes | str) -> None:
        path = folder / f"bad{len(found)}{ending}"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        found.append(path)

    head = "model,seed,id,prediction\n"
    good = "".join(f"m,0,s{n},1\n" for n in TESTED)
    for some in _bad_rows().values():
        add(".jsonl", "\n".join(json.dumps(row) for row in some))
    for content in (
        "", "\n", head, good, head + good + "m,0,s0,1\n", head + good[: len(good) // 2],
        head + good.replace("m,0,s0,1\n", ""), head + good + "m,0\n", head + good + 'm,0,"s0,1\n',
        head.replace("id", "tokens") + good, head.replace("model", "name") + good,
        head.replace("seed", "model") + good, head.replace("id", "id,tokens") + good,
        "model,seed,id,prediction,color\n" + good.replace(",1\n", ",1,red\n"), head + "\0" + good,
        head.replace("prediction", "predicton") + good, "x" * 2_000_000,
        head + "m,0,s0," + "1" * 1_500_000, head.upper() + good,
    ):  # fmt: skip
        add(".csv", content)
        add(".tsv", content)
    for binary in (b"\xff\xfe", b"\x89PNG", head.encode("utf-16"), head.encode() + b"m,0,\xe9,1\n"):
        add(".csv", binary)
        add(".jsonl", binary)
        add(".parquet", binary)
    for content in ("[]", "1", "{", "null", "{}", '{"model": "m"}', "[" * 100_000, '{"a":' * 9000):
        add(".jsonl", content)
    add(".xlsx", head + good)
    add("", head + good)
    for columns in ({"model": ["m"]}, {**{k: [v] for k, v in GOOD[0].items()}}):
        pq.write_table(pa.table(columns), folder / f"bad{len(found)}.parquet")
        found.append(folder / f"bad{len(found)}.parquet")
    found += [folder, folder / "missing.csv"]
    return found


def test_malformed_files_are_refused_in_one_line_and_nothing_is_written(tmp_path: Path) -> None:
    data = _data(tmp_path)
    store = api.open_store(tmp_path / "runs.db")
    files = _bad_files(tmp_path)
    assert len(files) >= 80
    for path in files:
        with pytest.raises((DatasetError, ConfigError)) as refused:
            api.import_predictions(store, path, sweep="theirs", dataset=data)
        assert "\n" not in str(refused.value), path
        assert len(str(refused.value)) < 700, path
    for table in ("run", "sweep", "config", "dataset", "test_string"):
        assert rows(tmp_path / "runs.db", f"SELECT count(*) FROM {table}") == [(0,)]


def test_a_file_is_imported_by_the_command(tmp_path: Path) -> None:
    data = _data(tmp_path)
    csv, parquet = tmp_path / "p.csv", tmp_path / "p.parquet"
    both_seeds = pd.concat([_predictions().assign(model="m", seed=x) for x in range(2)])
    both_seeds = both_seeds.assign(**{"config.d_model": 64, "score": 0.25})
    both_seeds.to_csv(csv, index=False)
    both_seeds.assign(model="n").to_parquet(parquet)
    settings = ["--sweep", "theirs", "--dataset", str(data), "--db", str(tmp_path / "runs.db")]
    for path in (csv, parquet):
        found = CliRunner().invoke(app, ["import", str(path), *settings])
        assert found.exit_code == 0, found.exception
        assert "2 runs imported" in found.output
    again = CliRunner().invoke(app, ["import", str(csv), *settings])
    assert "there already" in str(again.exception)
    assert CliRunner().invoke(app, ["import", str(csv), *settings, "--replace"]).exit_code == 0
    frame = api.runs(api.open_store(tmp_path / "runs.db"))
    assert len(frame) == 4
    assert frame["config.d_model"].tolist() == [64] * 4


def test_a_sweep_of_imported_results_is_not_trained_over(both: Store) -> None:
    before = api.runs(both, "theirs")["id"].tolist()
    with pytest.raises(ConfigError, match="'theirs' holds imported results; give the sweep"):
        api.submit(both, {**SPEC, "name": "theirs", "fixed": {"hidden_size": 2}})
    assert before
    assert api.runs(both, "theirs")["id"].tolist() == before
