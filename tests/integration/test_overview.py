"""Sums made in SQL, against the same sums made row by row, on every kind of database."""

from collections import Counter, defaultdict
from statistics import median
from typing import Any

import pytest

from benchmarks.large import make_database
from seqcls.strings.tokenizer import Tokenizer
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import overview, queries, string_queries, sweep_queries
from sweeps.store.reads.selection import View
from sweeps.store.reads.string_queries import ErrorSearch
from tests.databases import rows, spec

AXES: dict[str, list[Any]] = {
    "hidden_size": [2, 4],
    "train_sampler": ["variable_length", "fixed_length"],
}


@pytest.fixture
def small(any_db: str) -> Store:
    """Four configurations of five seeds, of which some fail."""
    return make_database(any_db, AXES, seeds=5, errors=8)


ABC = Tokenizer("abcd")


def cells(store: Store) -> dict[int, tuple[int, int, int, int, int, int]]:
    """config_id, model_seed, tn, fp, fn, tp by run."""
    found = rows(store, "SELECT id, config_id, model_seed, tn, fp, fn, tp FROM run")
    return {row[0]: row[1:] for row in found}


def test_configurations_are_counted_and_summed(small: Store) -> None:
    found = overview.configurations(small, View()).set_index("config_id")
    expected: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for config_id, _, _, fp, fn, _ in cells(small).values():
        expected[config_id].append((fp, fn))
    assert list(found.index) == sorted(expected)
    for config_id, errors in expected.items():
        row = found.loc[config_id]
        assert (row["seeds"], row["unfinished"], row["failed"]) == (5, 0, 0)
        assert row["failing"] == sum(fp + fn > 0 for fp, fn in errors)
        assert row["false_positives"] == sum(fp for fp, _ in errors)
        assert row["false_negatives"] == sum(fn for _, fn in errors)


def test_a_threshold_decides_what_fails(small: Store) -> None:
    accuracies = [(tn + tp) / (tn + fp + fn + tp) for _, _, tn, fp, fn, tp in cells(small).values()]
    below = median(accuracies)
    found = overview.configurations(small, View(below=below))
    assert found["failing"].sum() == sum(accuracy < below for accuracy in accuracies)
    assert overview.configurations(small, View(below=0.0))["failing"].sum() == 0


def test_scope_restricts_runs_and_outcome_picks_among_them(small: Store) -> None:
    scoped = View(model_seeds=(1, 3), config_ids=(2, 3))
    assert overview.count_runs(small, scoped) == 4
    picked = View(model_seeds=(1, 3), config_ids=(2, 3), failing=True)
    failing = [
        run_id
        for run_id, (config_id, seed, _, fp, fn, _) in cells(small).items()
        if config_id in (2, 3) and seed in (1, 3) and fp + fn > 0
    ]
    assert overview.count_runs(small, picked) == len(failing) > 0
    models = overview.models(small, picked)
    assert len(models) == 4, "shares and medians stay those of all"
    assert models.loc[models["picked"] == 1, "run_id"].tolist() == sorted(failing)
    assert overview.count_runs(small, View(sweeps=("another",))) == 0


def test_kinds_of_errors_pick_runs_and_order_them(small: Store) -> None:
    false_negatives = sorted((row[4] for row in cells(small).values() if row[4]), reverse=True)
    view = View(kind="false negatives")
    first = overview.failing_models(small, view, limit=3)
    assert first["false_negatives"].tolist() == false_negatives[:3]
    others = overview.failing_models(small, view, limit=100, offset=3)
    assert others["false_negatives"].tolist() == false_negatives[3:]
    assert overview.count_failing_models(small, view) == len(false_negatives)


@pytest.mark.parametrize("width", [1, 7, 10])
def test_scores_are_summed_over_similar_lengths(small: Store, width: int) -> None:
    with small.begin() as connection:
        # Of one of them the shortest string is the empty one.
        connection.exec_driver_sql(
            "UPDATE length_score SET length = 0 WHERE run_id = 2 AND length = 1"
        )
    found = overview.scores_by_length(small, [2, 9], width)
    expected: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    names = ("tn", "fp", "fn", "tp", "tested", "wrong")
    query = f"SELECT run_id, length, {', '.join(names)} FROM length_score WHERE run_id IN (2, 9)"
    for run_id, length, *own in rows(small, query):
        first = length if width == 1 else max(0, (length - 1) // width) * width + (length > width)
        expected[run_id, first].update(dict(zip(names, own, strict=True)))
    assert len(found) == len(expected)
    assert 0 in found["first_length"].tolist()
    for row in found.to_dict("records"):
        first, is_first = row["first_length"], row["first_length"] == 0
        assert row["last_length"] == first + width - 1 + (is_first and width > 1)
        own = expected[row["run_id"], first]
        assert {name: row[name] for name in own} == own


def test_strings_are_searched_as_text_and_paged_from_the_shortest(small: Store) -> None:
    everything = string_queries.string_errors(small, 1, ErrorSearch())
    assert everything["length"].is_monotonic_increasing
    assert len(everything) == string_queries.count_string_errors(small, 1, ErrorSearch()) == 8
    parts = [string_queries.string_errors(small, 1, ErrorSearch(), 3, start) for start in (0, 3, 6)]
    assert [text for part in parts for text in part["string"]] == everything["string"].tolist()
    wanted = everything["string"].iloc[0][:4]
    found = string_queries.string_errors(small, 1, ErrorSearch(wanted))
    assert found["string"].tolist() == [x for x in everything["string"] if wanted in x]
    # Repetitions are found written out, and as they are written otherwise.
    letters = {x: "".join(map(chr, ABC.encode(x)[1:])) for x in everything["string"]}
    for text in ("aaaa", "ab", "a{3}", "<ab>{2}", "ba{2}b"):
        found = string_queries.string_errors(small, 1, ErrorSearch(text))
        part = "".join(map(chr, ABC.encode(text)[1:]))
        assert found["string"].tolist() == [x for x in letters if part in letters[x]]
    # Signs that mean something in SQL mean nothing here.
    assert string_queries.count_string_errors(small, 1, ErrorSearch("%")) == 0
    negatives = string_queries.string_errors(small, 1, ErrorSearch(kind="false negatives"))
    assert set(negatives["label"]) == {1}
    assert set(negatives["kind"]) == {"false negative"}


@pytest.mark.parametrize("view", [View(), View(model_seeds=(0, 1)), View(failing=True)])
def test_the_strings_that_break_most_models_come_first(small: Store, view: View) -> None:
    counted = string_queries.breaking_strings(small, view, limit=10)
    found, every = counted.strings, counted.every
    assert every == 1
    assert counted.models == overview.count_failing_models(small, view)
    seeds = {run_id: seed for run_id, (_, seed, *_) in cells(small).items()}
    broken = Counter(
        string
        for run_id, string in rows(small, "SELECT run_id, string FROM misclassified")
        if not view.model_seeds or seeds[run_id] in view.model_seeds
    )
    assert found["models"].tolist() == [count for _, count in broken.most_common(10)]
    for row in found.to_dict("records"):
        assert broken[row["string"]] == row["models"]


def test_of_too_many_errors_every_second_run_is_counted(
    small: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = sum(fp + fn for _, _, _, fp, fn, _ in cells(small).values())
    monkeypatch.setattr(string_queries, "MOST_ERRORS", errors - 1)
    found = string_queries.breaking_strings(small, View(), limit=10)
    failing = sorted(own for own, (_, _, _, fp, fn, _) in cells(small).items() if fp + fn)
    broken = Counter(
        string
        for run_id, string in rows(small, "SELECT run_id, string FROM misclassified")
        if run_id in failing[::2]
    )
    assert (found.every, found.models) == (2, len(failing[::2]))
    most = broken.most_common(10)
    assert found.strings["models"].tolist() == [count for _, count in most]


def test_settings_are_those_that_differ_with_the_defaults_of_what_is_not_stored(
    small: Store,
) -> None:
    settings = overview.settings(small)
    assert list(settings.columns) == ["hidden_size", "train_sampler"]
    configs = queries.configs(small)
    for config_id, row in settings.iterrows():
        config = configs[int(str(config_id))]
        assert (config.hidden_size, config.train_sampler) == tuple(row)
    assert queries.configs(small, [2]) == {2: configs[2]}


def test_unfinished_and_failed_runs_are_counted_and_in_no_average(any_db: str) -> None:
    store = open_writer(any_db)
    writer.submit(store, spec(model_seeds="0..3"))
    with store.begin() as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'failed', error = 'x' WHERE id = 1")
    (row,) = overview.configurations(open_reader(any_db), View()).to_dict("records")
    counted = {name: row[name] for name in ("seeds", "unfinished", "failed", "failing")}
    assert counted == {"seeds": 0, "unfinished": 3, "failed": 1, "failing": 0}
    assert overview.models(store, View()).empty
    assert overview.count_runs(store, View(failing=True)) == 0


def test_memberships_name_every_sweep_of_a_configuration_once(any_db: str) -> None:
    store = open_writer(any_db)
    writer.submit(store, spec(name="first", model_seeds="0..3"))
    before: Any = sweep_queries.members_revision(store)
    writer.submit(store, spec(name="second", model_seeds="2..5"))
    assert sweep_queries.memberships(store)["sweep"].tolist() == ["first", "second"]
    assert sweep_queries.members_revision(store) != before
    assert overview.model_seeds(store) == [0, 1, 2, 3, 4, 5]
    assert set(sweep_queries.specifications(store)) == {"first", "second"}


def test_a_sweep_is_recorded_with_its_times_and_failures(any_db: str) -> None:
    store = open_writer(any_db)
    sweep_id = writer.submit(store, spec(description="what it is for"))
    record = sweep_queries.sweep_record(store, sweep_id)
    assert (record.name, record.description, record.state) == ("s", "what it is for", "queued")
    assert record.last_finished_at is None
    with store.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO failure (run_id, attempt, at, reason) "
            "VALUES (2, 1, '2026-01-01T00:00:00+00:00', 'it diverged')"
        )
    found = sweep_queries.failures(store, sweep_id, limit=5)
    assert found[["run_id", "reason", "state"]].to_numpy().tolist() == [
        [2, "it diverged", "queued"]
    ]


def test_what_came_of_each_sweep_is_that_of_its_finished_runs(any_db: str) -> None:
    store = make_database(any_db, AXES, seeds=5, errors=8)
    writer.submit(store, spec(name="part", model_seeds="0..1", axes=AXES))
    writer.submit(store, spec(name="waiting", model_seeds=[90]))
    names = dict(rows(store, "SELECT id, name FROM sweep"))
    found = {names[own]: outcome for own, outcome in sweep_queries.sweep_outcomes(store).items()}
    assert sorted(found) == ["large", "part"]
    for name, seeds in (("large", range(5)), ("part", range(2))):
        own = [row for row in cells(store).values() if row[1] in seeds]
        done = [row for row in own if row[2] is not None]
        assert found[name].judged >= found[name].learned >= found[name].judged_beyond
        assert found[name].failing == sum(fp + fn > 0 for _, _, _, fp, fn, _ in done)
        accuracies = [(tn + tp) / (tn + fp + fn + tp) for _, _, tn, fp, fn, tp in done]
        assert found[name].median == pytest.approx(median(accuracies))
