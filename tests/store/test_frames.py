"""Frames that pages and commands are made of: the same sums made row by row, on every database."""

import math
from collections import Counter
from typing import Any

import pandas as pd
import pytest
from sqlalchemy import Connection, text

from benchmarks.large import make_database
from dashboard import filters
from seqcls.strings.tokenizer import Tokenizer
from sweeps import api
from sweeps.api import failing
from sweeps.api import reading as pages
from sweeps.results import Outcome
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import frames, sweep_queries
from sweeps.store.reads.selection import Selection
from tests.databases import put_failure, rows, spec

AXES: dict[str, list[Any]] = {
    "hidden_size": [2, 4],
    "train_sampler": ["variable_length", "fixed_length"],
}
ABC = Tokenizer("abcd")


@pytest.fixture(scope="module")
def small(shared_db: str) -> Store:
    """Four configurations of five seeds, of which some fail, and another sweep of two seeds."""
    store = make_database(shared_db, AXES, seeds=5, errors=8)
    writer.submit(store, spec(name="part", model_seeds="0..1", axes=AXES))
    with store.write() as connection:
        # Of one configuration the shortest string is the empty one.
        connection.exec_driver_sql(
            "UPDATE run SET lengths = replace(lengths, '[[1,', '[[0,') WHERE config_id = 1"
        )
    return store


def cells(store: Store) -> dict[int, tuple[int, int, int, int, int, int]]:
    """config_id, model_seed, tn, fp, fn, tp by run."""
    found = rows(store, "SELECT id, config_id, model_seed, tn, fp, fn, tp FROM run")
    return {row[0]: row[1:] for row in found}


def test_a_scope_restricts_runs_and_an_outcome_picks_among_them(small: Store) -> None:
    scoped = Selection(model_seeds=(1, 3), config_ids=(2, 3))
    assert len(pages.models(small, scoped)) == 4
    picked = Selection(model_seeds=(1, 3), config_ids=(2, 3), failing=True)
    failing = [
        run_id
        for run_id, (config_id, seed, _, fp, fn, _) in cells(small).items()
        if config_id in (2, 3) and seed in (1, 3) and fp + fn > 0
    ]
    models = pages.models(small, picked)
    assert len(models) == 4, "shares and medians stay those of all"
    assert models.loc[models["picked"] == 1, "run_id"].tolist() == sorted(failing)
    assert pages.models(small, Selection(sweeps=("another",))).empty


def broken(store: Store, run_ids: list[int]) -> Counter[str]:
    """The number of these runs that get each string wrong."""
    query = "SELECT run_id, string FROM misclassified"
    return Counter(string for run_id, string in rows(store, query) if run_id in run_ids)


def test_the_strings_that_break_most_models_come_first(
    small: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for view in (Selection(), Selection(model_seeds=(0, 1))):
        models = failing.failing_models(small, view)
        own = models["run_id"].tolist()
        assert sorted(own) == sorted(
            x for x, (_, seed, _, fp, fn, _) in cells(small).items()
            if fp + fn and seed in (view.model_seeds or range(5))
        )  # fmt: skip
        found, counted = failing.breaking_strings(small, models, limit=10)
        true = broken(small, own)
        assert counted == len(own)
        assert found["models"].tolist() == [n for _, n in true.most_common(10)]
        for row in found.to_dict("records"):
            assert true[row["string"]] == row["models"]
    # Of too many errors every second run is counted.
    models = failing.failing_models(small, Selection())
    monkeypatch.setattr(failing, "MOST_ERRORS", int(models["errors"].sum()) - 1)
    found, counted = failing.breaking_strings(small, models, limit=10)
    own = models["run_id"].tolist()[::2]
    assert counted == len(own)
    assert found["models"].tolist() == [n for _, n in broken(small, own).most_common(10)]


def test_unfinished_and_failed_runs_are_counted_and_in_no_average(any_db: str) -> None:
    store = open_writer(any_db)
    writer.submit(store, spec(name="first", model_seeds="0..3", description="what it is for"))
    before: Any = pages.members_revision(store)
    with store.write() as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'failed', error = 'x' WHERE id = 1")
    put_failure(store, [2], "it diverged")
    (row,) = pages.configurations(open_reader(any_db), Selection()).to_dict("records")
    counted = {name: row[name] for name in ("seeds", "unfinished", "failed", "failing")}
    assert counted == {"seeds": 0, "unfinished": 3, "failed": 1, "failing": 0}
    assert pages.models(store, Selection()).empty
    assert sweep_queries.sweep_outcomes(store) == {}
    record = sweep_queries.sweep_record(store, 1)
    assert (record.name, record.description, record.state) == ("first", "what it is for", "queued")
    assert record.train_seconds is None
    found = sweep_queries.failures(store, 1, limit=5)[["run_id", "reason", "state"]]
    assert found.to_numpy().tolist() == [[2, "it diverged", "queued"]]
    # Every sweep of a configuration is named once.
    writer.submit(store, spec(name="second", model_seeds="2..5"))
    sweeps = pages.sweeps_of(store, list(range(1, 9)))
    assert {*sweeps.values()} == {("first",), ("first", "second"), ("second",)}
    assert pages.members_revision(store) != before
    assert pages.model_seeds(store) == [0, 1, 2, 3, 4, 5]


# Outcomes: not learned, fails beyond, generalizes, or not known.

LEARNED, FAILS, RIGHT, UNKNOWN = "not learned", "fails beyond", "generalizes", "not known"
COUNTS = (
    *((100, 0, 1000, 0), (100, 1, 1000, 0), (100, 2, 1000, 0), (100, 100, 1000, 0)),
    *((100, 0, 1000, 1), (100, 1, 1000, 10), (100, 1, 1000, 11), (100, 1, 1000, 1000)),
    *((0, 0, 1000, 0), (100, 0, 0, 0), (100, 5, 0, 0)),
)
"""A run each: strings of trained lengths, how many are wrong; longer ones, how many are wrong."""

LAST = [UNKNOWN, UNKNOWN, LEARNED]
JUDGED = {
    (0.99, 1.0): [RIGHT, RIGHT, LEARNED, LEARNED, *[FAILS] * 4, *LAST],
    (0.99, 0.99): [RIGHT, RIGHT, LEARNED, LEARNED, RIGHT, RIGHT, FAILS, FAILS, *LAST],
    (1.0, 1.0): [RIGHT, *[LEARNED] * 3, FAILS, *[LEARNED] * 3, *LAST],
    (0.0, 0.0): [*[RIGHT] * 8, *[UNKNOWN] * 3],
    (0.98, 0.999): [RIGHT, RIGHT, RIGHT, LEARNED, RIGHT, FAILS, FAILS, FAILS, *LAST],
}
"""Their outcomes at (learned_at, below); a run exactly at a threshold passes."""


@pytest.fixture
def ranged(any_db: str) -> Store:
    """Eleven finished runs with these counts."""
    store = open_writer(any_db)
    writer.submit(store, spec(model_seeds="0..10"))
    names = ("tested_within", "wrong_within", "tested_beyond", "wrong_beyond")
    changed = ", ".join(f"{name} = :{name}" for name in names)
    done = "state = 'done', within_from = 'test', tn = 5, fp = 1, fn = 0, tp = 4, tested = 10"
    with store.write() as connection:
        for run_id, counts in enumerate(COUNTS, 1):
            connection.execute(
                text(f"UPDATE run SET {done}, wrong = 1, {changed} WHERE id = {run_id}"),
                dict(zip(names, counts, strict=True)),
            )
    return store


def test_a_run_exactly_at_a_threshold_passes_it(ranged: Store) -> None:
    for (learned_at, below), expected in JUDGED.items():
        view = Selection(learned_at=learned_at, below=below)
        judged: dict[str, Any] = {"learned_at": learned_at, "below": below}
        models = pages.models(ranged, view).sort_values("run_id")
        assert models["outcome"].tolist() == expected
        assert api.runs(ranged, **judged)["outcome"].tolist() == expected
        (row,) = pages.configurations(ranged, view).to_dict("records")
        assert row["judged"] == 10
        assert row["learned"] == 10 - expected.count(LEARNED)
        assert row["judged_beyond"] == expected.count(RIGHT) + expected.count(FAILS)
        assert row["generalize"] == expected.count(RIGHT)
        for came_to in Outcome if below == 0.99 else ():
            only = api.runs(ranged, outcome=came_to.value, **judged)
            assert only["id"].tolist() == [n for n, own in enumerate(expected, 1) if own == came_to]
        both = api.runs(ranged, outcome=[LEARNED, UNKNOWN], **judged)
        assert len(both) == expected.count(LEARNED) + expected.count(UNKNOWN)


BORDERS = ((990, 1000, 99.0), (199, 200, 99.5), (999, 1000, 99.9), (7, 100, 7), (553, 1000, 55.3))
"""Strings that are right, of how many, and the percentage that these are."""


def test_a_run_at_a_threshold_is_judged_alike_in_every_frame(ranged: Store) -> None:
    """A run that is right on exactly the share of a threshold does not fail."""
    for right, tested, percentage in BORDERS:
        # As the sidebar has it, and a link; as a command has it.
        threshold = filters.as_share(percentage)
        assert threshold == right / tested == float(f"{percentage}e-2")
        wrong = f"{tested - right} + CASE id WHEN 1 THEN 1 ELSE 0 END"
        with ranged.write() as connection:
            connection.execute(
                text(
                    f"UPDATE run SET tested = {tested}, wrong = {wrong}, tested_within = {tested}, "
                    f"wrong_within = {wrong}, tested_beyond = {tested}, wrong_beyond = {wrong} "
                    "WHERE id <= 2"
                )
            )
        view = Selection(below=threshold, learned_at=threshold, run_ids=(1, 2))
        models = pages.models(ranged, view)
        assert models["outcome"].tolist() == [LEARNED, RIGHT], right
        assert models["failing"].tolist() == [1, 0], right
        assert pages.configurations(ranged, view)["failing"].tolist() == [1], right
        found = api.runs(ranged, model_seeds=[0, 1], failing=True, below=threshold)
        assert found["id"].tolist() == [1], right


RESULTS = "tn, fp, fn, tp, tested, wrong, tested_within, wrong_within, within_from, lengths, digest"
CHANGES = {
    "runs that are claimed": "UPDATE run SET state = 'running', attempt = 1 WHERE id > 20",
    "a run that ends": f"UPDATE run SET state = 'done', ({RESULTS}) = "
    f"(SELECT {RESULTS} FROM run AS other WHERE other.id = 2) WHERE id = 21",
    "a run that fails": "UPDATE run SET state = 'failed', error = 'no' WHERE id = 22",
    "a run that is queued again": "UPDATE run SET state = 'queued' WHERE id = 23",
    "one that ends, one that is claimed": "UPDATE run SET state = "
    "CASE state WHEN 'queued' THEN 'running' ELSE 'done' END WHERE id IN (23, 24)",
}
"""Changes of runs by training, each within one transaction."""


@pytest.fixture
def training(any_db: str) -> Store:
    """Twenty runs that are done, and eight that are not, read already."""
    store = make_database(any_db, AXES, seeds=5, errors=8)
    writer.submit(store, spec(name="more", model_seeds="5..6", axes=AXES))
    for selection in (Selection(), Selection(("more",)), Selection(model_seeds=(0, 5))):
        frames.finished_runs(store, selection)
    return store


def is_as_read_whole(store: Store) -> bool:
    """Return True if runs equal those of a process that reads them for the first time."""
    for selection in (Selection(), Selection(("more",)), Selection(model_seeds=(0, 5))):
        found = frames.runs(store, selection)
        cached = frames._cache.pop(store._engine(writes=False))
        pd.testing.assert_frame_equal(found, frames.runs(store, selection))
        frames._cache[store._engine(writes=False)] = cached
    return True


def test_only_runs_that_have_ended_are_read_again(
    training: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long this test takes.
    monkeypatch.setattr(frames, "CHECKED_SECONDS", math.inf)
    read_runs: list[tuple[int, ...] | None] = []
    whole = frames._read

    def watched(db: Connection, scope: Selection, also: tuple[str, ...]) -> pd.DataFrame:
        read_runs.append(scope.run_ids)
        return whole(db, scope, also)

    for statement in CHANGES.values():
        with training.write() as connection:
            connection.exec_driver_sql(statement)
        with monkeypatch.context() as patched:
            patched.setattr(frames, "_read", watched)
            frames.runs(training)
        assert read_runs
        assert all(run_ids and min(run_ids) > 20 for run_ids in read_runs), statement
        read_runs.clear()
        assert is_as_read_whole(training), statement


OTHER_CHANGES = (
    "UPDATE run SET wrong = 7, fp = 7, fn = 0 WHERE id = 3",
    "UPDATE run SET state = 'queued' WHERE id = 4",
    "DELETE FROM sweep_run WHERE run_id = 5",
    "UPDATE run SET state = 'done' WHERE id IN (SELECT max(id) FROM run WHERE state = 'queued')",
)


def test_runs_changed_by_others_are_read_again(training: Store) -> None:
    for statement in OTHER_CHANGES:
        with training.write("members") as connection:
            connection.exec_driver_sql(statement)
        assert is_as_read_whole(training), statement
    writer.submit(training, spec(name="new", model_seeds="9..9", axes=AXES))
    assert is_as_read_whole(training)
    with training.write() as connection:
        connection.exec_driver_sql("UPDATE run SET wrong = 1, fp = 1, fn = 0 WHERE id = 6")
    assert is_as_read_whole(training)


def test_results_that_are_edited_while_others_train_are_read_within_a_minute(
    training: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = ("UPDATE run SET wrong = 7, fp = 7 WHERE id = 3", CHANGES["runs that are claimed"])
    with training.write() as connection:
        for statement in both:
            connection.exec_driver_sql(statement)
    # The minute is over.
    monkeypatch.setattr(frames, "CHECKED_SECONDS", 0.0)
    assert is_as_read_whole(training)
