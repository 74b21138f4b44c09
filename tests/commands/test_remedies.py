"""From a failing run to the sweep that tries a remedy, and to its result."""

import shutil
from pathlib import Path

import pytest
from safetensors.numpy import load

from sweeps.grid.spec import load_specs
from sweeps.store.opening import open_reader
from sweeps.store.reads import queries
from tests.app import open_app
from tests.commands import printed, printed_json
from tests.conftest import ROOT
from tests.databases import rows


def configurations(db: str) -> list[str]:
    """Their names, in the order in which they came; those that `runs` shows are the same."""
    names = [name for (name,) in rows(Path(db), "SELECT name FROM config ORDER BY id")]
    shown = printed("runs", "--columns", "configuration", "--db", db)
    assert all(name[:40] in shown for name in names)
    return names


RUN = "lower_magnitude_initializations/2"


def test_a_remedy_is_trained_with_the_same_seeds_and_compared(tmp_path: Path) -> None:
    db = ("--db", str(shutil.copy(ROOT / "runs.db", tmp_path)))
    before = configurations(db[1])
    saved = tmp_path / "specs"
    assert "misclassifies no test string" in printed("remedies", "walkthrough/5", *db)
    text = printed("remedies", RUN, *db, "--save", str(saved))
    assert "two heads on one letter" in text
    assert "try num_attention_heads=4 (now 2)" in text
    assert "not tried yet" in text
    # And what may help it to learn: it is wrong on 75 of 508 strings of trained lengths.
    assert {"max_num_epochs-120.toml", "learning_rate-0.003.toml"} < {
        x.name for x in saved.iterdir()
    }
    file = saved / "num_attention_heads-4.toml"
    (spec,) = load_specs(str(file))
    (config,) = spec.configs()
    store = open_reader(db[1])
    own = queries.run_config(store, queries.find_run(store, RUN))
    assert config == own.model_copy(update={"num_attention_heads": 4})
    assert list(spec.model_seeds) == list(range(8))
    printed("sweep", str(file), *db, "--workers", "0")
    every = printed_json("remedies", RUN, *db)["suggestions"]
    (found,) = (x for x in every if x["trained"] is not None)
    # One seed of either has not learned, and so is no evidence about longer strings.
    assert [judged for _, judged in found["trained"]["failing"]] == [7, 7]
    assert found["left_out"] == [1, 1]
    text = printed("remedies", RUN, *db)
    assert "7 seeds fail, against 5 of 7" in text
    assert "1 with it and 1 without it left out: not learned" in text
    # It is called by what it was made from, and changes the name of none.
    name = "width 16, 2 heads, embeddings init linear like"
    after = configurations(db[1])
    assert after == [*before, f"{name}, with num_attention_heads=4"]
    assert name in before
    last = "WHERE config.id = (SELECT max(id) FROM config)"
    ((number, weights), *_) = rows(
        Path(db[1]),
        "SELECT num_parameters, weights FROM config JOIN run ON config_id = config.id "
        f"JOIN checkpoint ON run_id = run.id {last}",
    )
    assert number == sum(value.size for value in load(weights).values())
    assert f"{name}, with num_attention_heads=4" in printed("compare", *after[-2:], *db)


def test_neither_another_sweep_nor_a_merge_renames_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = str(shutil.copy(ROOT / "runs.db", tmp_path))
    other = tmp_path / "other.db"
    before = configurations(db)
    spec = tmp_path / "heads.toml"
    spec.write_text('name = "heads"\nmodel_seeds = [0]\n[axes]\nhidden_size = [2, 16]\n')
    for where in (db, str(other)):
        printed("sweep", str(spec), "--queue", "--db", where)
    assert configurations(db) == [*before, "width 2", "width 16"]
    spec.write_text(spec.read_text().replace("[axes]", "[fixed]\nbiases = true\n[axes]"))
    spec.write_text(spec.read_text().replace('"heads"', '"biased"'))
    printed("sweep", str(spec), "--queue", "--db", str(other))
    assert configurations(str(other))[2:] == ["biased: width 2", "biased: width 16"]
    printed("db", "merge", str(other), "--db", db)
    after = [*before, "width 2", "width 16", "biased: width 2", "biased: width 16"]
    assert configurations(db) == after
    # Pages call them so, however few are shown.
    for shown in ({}, {"sweep": "walkthrough"}):
        table = next(x.value for x in open_app(monkeypatch, db, **shown).dataframe)
        assert set(table["configuration"]) <= {*after}
