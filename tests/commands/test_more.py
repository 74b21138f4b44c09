"""Seeds that have not learned are trained further, and models are compared by their budgets."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from sweeps import api
from sweeps.api import sweeping
from sweeps.api.budgets import more_training
from sweeps.api.outcomes import count_outcomes, groups
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import queries, sweep_queries
from sweeps.store.reads.selection import Selection
from sweeps.store.tables import Run
from tests.app import open_app, page_text
from tests.commands import printed
from tests.conftest import SHORT

TINY: Mapping[str, Any] = {
    "name": "tiny",
    "model_seeds": "0..2",
    "checkpoints": "every_epoch",
    "fixed": {
        "task": "first", "readout": "last", "hidden_size": 8, "max_num_epochs": 1,
        "train_size": 320, "test_size": 300, "validation_size": 100, "learning_rate": 0.01,
        "train_max_length": 6, "validation_max_length": 6, "test_max_length": 12,
    },
    "axes": {"architecture": ["rnn", "lstm"]},
}  # fmt: skip
"""Six models that an epoch teaches nothing, and twenty all."""


@pytest.fixture(scope="module")
def trained(made_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sweep with one epoch; tests that train further take copies."""
    path = Path(shutil.copy(made_file, tmp_path_factory.mktemp("more") / "trained.db"))
    store = open_writer(str(path))
    api.submit(store, TINY)
    api.work(store, progress_bar=False)
    return path


@pytest.fixture(scope="module")
def further(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, after the command."""
    path = Path(shutil.copy(trained, tmp_path_factory.mktemp("more") / "further.db"))
    more = ("more", "tiny", "--budget", "20x", "--db", str(path), "--workers", "0")
    text = printed(*more)
    assert "tiny: 0 of 6 have learned; tiny-20x trains 6 with a larger budget." in text
    assert "tiny-20x: trained 6 runs" in text
    assert "further.db: 6 of 6 learned; of these 6 generalize.\n" in text
    return path


def test_runs_that_did_not_learn_are_trained_with_a_larger_budget(further: Path) -> None:
    store = open_reader(str(further))
    after = api.runs(store, sweep="tiny-20x")
    assert after["outcome"].tolist() == ["generalizes"] * 6
    assert set(after["max_num_epochs"]) == {20}
    assert set(after["epochs"]) == {20}, "patience was as large as the budget, and grew with it"
    assert set(api.runs(store, sweep="tiny")["outcome"]) == {"not learned"}
    assert by_budget(store) == [(1, 0, 6), (20, 6, 6)], "all seeds of both configurations"
    assert not list(api.verify(store).damages), "a sweep's runs are those that it asks for"
    spec = json.loads(sweep_queries.specifications(store)["tiny-20x"])
    assert spec["checkpoints"] == "every_epoch", "as in the sweep before"


def test_repeating_more_trains_nothing(further: Path) -> None:
    before = further.read_bytes()
    db = ("--db", str(further), "--workers", "0")
    assert "tiny-20x: all runs are in" in printed("more", "tiny", "--budget", "20x", *db)
    larger = printed("more", "tiny", "--budget", "50", *db)
    assert "0 of 6 have learned (6 learned with a larger budget); none is left" in larger
    learned = printed("more", "tiny-20x", "--budget", "2x", *db)
    assert "tiny-20x: 6 of 6 have learned; none is left to train" in learned
    assert api.more(open_writer(str(further)), "tiny-20x", 40) is None
    assert further.read_bytes() == before


def test_more_seeds_are_trained_of_each_configuration(trained: Path, tmp_path: Path) -> None:
    path = shutil.copy(trained, tmp_path / "seeds.db")
    db = ("--db", str(path), "--workers", "0")
    printed("more", "tiny", "--seeds", "2", *db, "--queue")
    store = open_reader(str(path))
    (progress,) = api.status(store)
    assert (progress.state, progress.queued, progress.done) == ("queued", 4, 6)
    assert "trained 4 runs" in printed("work", *db)
    printed("more", "tiny", "--until", "learned ± 30 %", *db, "--queue")
    assert api.status(store)[0].queued > 0, "what is queued is seen before a worker comes"


# What seeds have come to is set by hand, to have every case.


def submit(store: Store, name: str, epochs: int, *entries: dict[str, Any]) -> None:
    fixed = {**SHORT, "max_num_epochs": epochs, "min_num_epochs": 0, "patience": epochs}
    listed = {"configurations": list(entries)} if entries else {}
    spec = {"name": name, "model_seeds": "0..4", "fixed": fixed, **listed}
    writer.submit(store, parse_spec(spec))


def finish(store: Store, sweep: str, learned: set[int], among: set[int] | None = None) -> None:
    """These seeds of a sweep have learned; all others, or those, have not."""
    runs = queries.runs(store, Selection((sweep,)))
    for run in runs.to_dict("records"):
        seed = run["model_seed"]
        if among is None or seed in among:
            wrong = 0 if seed in learned else 90
            done = {"state": "done", "epochs": run["max_num_epochs"], "attempt": 1}
            counts = {"tested": 200, "tested_within": 100, "tested_beyond": 100}
            false = {"wrong": wrong, "wrong_within": wrong, "wrong_beyond": 0}
            with store.write() as connection:
                this = update(Run).where(Run.id == run["id"])
                connection.execute(this.values(**done, **counts, **false))


@pytest.fixture
def store(any_db: str) -> Store:
    """Five seeds, of which 0, 1 and 2 have learned with 12 epochs."""
    store = open_writer(any_db)
    submit(store, "s", 12)
    finish(store, "s", {0, 1, 2})
    return store


def by_budget(store: Store, **view: Any) -> list[tuple[int, ...]]:
    """By the epochs of training how many seeds have learned, of which that is known."""
    found = groups(store, Selection(**view), "max_num_epochs")
    rows = [(int(x["value"]), x["learned"], x["judged"]) for x in found.to_dict("records")]
    return sorted(rows)


def test_a_seed_that_learned_counts_as_learned_with_a_larger_budget(store: Store) -> None:
    assert by_budget(store) == [], "with one budget there is nothing to compare"
    assert api.more(store, "s", "4x") == "s-4x"
    assert queries.runs(store, Selection(("s-4x",)))["model_seed"].tolist() == [3, 4]
    assert count_outcomes(store, Selection()).models == 5
    finish(store, "s-4x", {3}, among={3})
    assert by_budget(store) == [(12, 3, 5), (48, 4, 4)], "seed 4 is not trained yet"
    assert count_outcomes(store, Selection()).models == 5, "no seed counts twice"
    assert count_outcomes(store, Selection(("s",))).learned == 3
    finish(store, "s-4x", {3, 4})
    assert by_budget(store) == [(12, 3, 5), (48, 5, 5)]
    assert by_budget(store, sweeps=("s",)) == []
    assert by_budget(store, model_seeds=(0, 4)) == [(12, 1, 2), (48, 2, 2)]
    assert by_budget(store, learned_at=0.05) == [(12, 5, 5), (48, 5, 5)]
    submit(store, "again", 24)
    finish(store, "again", {0, 3})
    assert count_outcomes(store, Selection()).models == 5


def test_a_seed_trained_again_counts_with_its_latest_outcome(store: Store) -> None:
    submit(store, "again", 24)
    finish(store, "again", {0, 3})
    assert by_budget(store) == [(12, 3, 5), (24, 2, 5)]
    found = more_training(store, "s", "4x")
    assert found.spec is not None
    assert found.spec.num_runs() == 1
    assert found.sentences[0].startswith("s: 3 of ")
    assert "1 learned with a larger budget" in found.sentences[0]
    assert list(found.spec.model_seeds) == [4], "seed 3 learned with 24"
    submit(store, "with 48", 48)
    finish(store, "with 48", {3, 4})
    there = more_training(store, "s", "4x").spec
    assert there is not None
    assert there.num_runs() == 2, "what is there stays"


def test_each_configuration_is_trained_with_its_own_seeds(store: Store) -> None:
    submit(store, "two", 12, {"hidden_size": 4}, {"hidden_size": 8}, {"hidden_size": 16})
    finish(store, "two", {0, 1, 2, 3, 4})
    runs = queries.runs(store, Selection(("two",))).set_index(["hidden_size", "model_seed"])["id"]
    left = [runs[4, 2], runs[8, 1], runs[8, 2]]
    with store.write() as connection:
        connection.execute(update(Run).where(Run.id.in_(map(int, left))).values(wrong_within=9))
    assert api.more(store, "two", 30) == "two-30"
    trained = queries.runs(store, Selection(("two-30",)))
    pairs = sorted(trained[["hidden_size", "model_seed"]].itertuples(index=False, name=None))
    assert pairs == [(4, 2), (8, 1), (8, 2)]
    assert set(trained["max_num_epochs"]) == {30}
    assert not [x for x in api.verify(store).damages if "two-30" in x.what]
    spec = json.loads(sweep_queries.specifications(store)["two-30"])
    sweeping.submit(store, {**spec, "configurations": spec["configurations"][::-1]})
    assert len(queries.runs(store, Selection(("two-30",)))) == 3


def test_configurations_that_become_equal_with_a_larger_budget_are_merged(store: Store) -> None:
    entries = [{"max_num_epochs": 10, "patience": 3}, {"max_num_epochs": 20, "patience": 3}]
    fixed = {**SHORT, "min_num_epochs": 0, "hidden_size": 4}
    del fixed["max_num_epochs"]
    axis = {"name": "axis", "model_seeds": "0..4", "fixed": fixed, "configurations": entries}
    writer.submit(store, parse_spec(axis))
    finish(store, "axis", {0, 1})
    assert api.more(store, "axis", 40) == "axis-40"
    trained = queries.runs(store, Selection(("axis-40",)))
    assert trained["model_seed"].tolist() == [2, 3, 4]
    assert api.more(store, "axis", "1.1x") == "axis-1.1x"
    assert sorted(set(queries.runs(store, Selection(("axis-1.1x",)))["max_num_epochs"])) == [11, 22]


def test_pages_count_a_seed_once_and_group_by_budget(
    further: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app(monkeypatch, further, by="max_num_epochs")
    assert "6 of 6 models learned; of these 6 generalize." in page_text(app).replace("\\", "")
    table = app.dataframe[0].value.set_index("value")
    assert table["learned_of"].to_dict() == {"20": "6 of 6", "1": "0 of 6"}
    # With one of both in scope, that one is reported.
    text = page_text(open_app(monkeypatch, further, sweep="tiny"))
    assert "0 of 6 models learned" in text


def test_models_that_have_not_learned_are_not_compared_on_longer_strings(further: Path) -> None:
    names = ("tiny:architecture=rnn", "tiny-20x:architecture=rnn")
    store = open_reader(str(further))
    found = api.compare(store, *names)
    assert list(found.questions) == ["learned", "generalizes", "within"]
    assert found.questions["learned"].counts == ((0, 3), (3, 3))
    why = "not compared, since 0 of 3 and 3 of 3 seeds learned, and it takes 2 of each"
    assert found.absent == found.record()["absent"] == {"beyond": why}
    # For one that has not learned no length beyond those of training is reported.
    assert found.lengths["length"].max() == 6
    text = printed("compare", *names, "--db", str(further))
    assert f"accuracy on longer strings, of seeds that learned: {why}\n" in text
    # By a threshold that all reach, all are.
    lenient = api.compare(store, *names, learned_at=0.0)
    assert lenient.questions["beyond"].seeds == (3, 3)
    assert lenient.lengths["length"].max() == 12


def test_a_worker_adds_seeds_until_the_interval_is_narrow(further: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(further, tmp_path / "grown.db"))
    db = ("--db", str(path))
    command = ("seeds", "tiny-20x", "--until", "share +- 25 %", "--most", "30", *db)
    words = "will add seeds until 'share +- 25 %', up to 30 per configuration"
    assert words in printed(*command, "--submit")
    store = open_writer(str(path))

    def seeds() -> list[int]:
        found: list[int] = api.runs(store, "tiny-20x", architecture="rnn")["model_seed"].tolist()
        return found

    submitted = sweep_queries.specifications(store)["tiny-20x"]
    # All that it has are done, and a worker gives it no more while it is stopped.
    api.stop(store, "tiny-20x")
    assert api.work(store, "tiny-20x", progress_bar=False).recorded == 0
    api.resume(store, "tiny-20x")
    text = printed("work", "tiny-20x", "--workers", "0", *db)
    begin = "tiny-20x, RNN, with max_num_epochs=20: "
    (sentence,) = [x for x in text.splitlines() if x.startswith(begin)]
    grown = seeds()
    assert grown == list(range(len(grown)))
    # 25 points to the one side that there is, and not 50.
    assert int(re.findall(r"looks: (\d+)", sentence)[0]) >= 75
    assert 15 <= len(grown) <= 24
    assert f"{len(grown)} seeds, {len(grown)} of {len(grown)} of those that learned" in sentence
    assert not list(api.verify(store).damages)
    # A file that is submitted again takes no seeds back, nor does the slower of two workers.
    api.submit(store, json.loads(submitted))
    assert seeds() == grown
    spec = api.seeds(store, "tiny-20x", "share ± 10 %")
    for late in (spec.with_seeds([26, 26]), spec.with_seeds([25, 25])):
        writer.submit(store, late, instead_of=spec.submitted)
    assert len(seeds()) == 26


@pytest.mark.parametrize("axis", [{"max_num_epochs": [1, 20]}, {"hidden_size": [1, 8]}])
def test_configurations_are_compared_in_pairs_where_seeds_start_alike(
    made_file: Path, tmp_path: Path, axis: dict[str, list[int]]
) -> None:
    path = str(shutil.copy(made_file, tmp_path / "apart.db"))
    store = open_writer(path)
    fixed = {**TINY["fixed"], "architecture": "rnn", "max_num_epochs": 20}
    fixed = {name: value for name, value in fixed.items() if name not in axis}
    api.submit(store, {**TINY, "name": "apart", "fixed": fixed, "axes": axis})
    command = ("seeds", "apart", "--until", "learned apart", "--most", "12", "--workers", "0")
    text = printed(*command, "--db", path)
    (pairing,) = re.findall(r"difference of both shares \((.*); 95%", text)
    if "hidden_size" in axis:
        assert pairing == "seeds are not paired"
    else:
        runs = api.runs(store, sweep="apart")
        pairs = runs["model_seed"].nunique()
        assert pairing == f"seeds are paired: {pairs} pairs"
        learned = runs.groupby("max_num_epochs")["outcome"].agg(
            lambda x: (x == "generalizes").sum()
        )
        assert learned.tolist() == [0, pairs]
        assert 9 <= pairs <= 12, "nine pairs that are all unlike are the fewest"
        assert "not enough" not in text
