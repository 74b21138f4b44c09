"""Names of sweeps and settings with any signs: every accepted name is found everywhere."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, event

from seqcls.errors import ConfigError, SpecError, UnknownRunError
from seqcls.text import as_argument, nearest
from sweeps.api import selecting
from sweeps.api.comparisons import compare
from sweeps.api.results import runs, sensitive, stored_runs
from sweeps.api.selecting import config_named
from sweeps.api.sweeping import status, sweep_ids
from sweeps.cli.asking import theory
from sweeps.cli.printing import named_columns
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import queries, sweep_queries
from sweeps.store.reads.selection import Selection, WrittenValue
from tests.databases import spec

SIGNS = "ab0/:,=#?&%'\"`-. {}[]*_$\\é😀"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = open_writer(str(tmp_path_factory.mktemp("names") / "names.db"))
    writer.submit(store, spec(name="other"))
    return store


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(SIGNS, min_size=1, max_size=12))
def test_a_sweep_of_any_name_is_found_by_every_reference(store: Store, name: str) -> None:
    try:
        made = spec(name=name, fixed={"hidden_size": 16})
    except SpecError:
        assert not name.strip()
        return
    sweep_id = writer.submit(store, made)
    try:
        (config_id,) = queries.config_ids_of_sweep(store, sweep_id)
        run_id = int(runs(store, name, 0)["id"].iloc[0])
        assert sweep_ids(store, name) == [sweep_queries.find_sweep(store, name)] == [sweep_id]
        assert queries.find_run(store, f"{name}/1") == run_id + 1
        for reference in (f"{name}:", f"{name}:hidden_size=16", f"{name}/0"):
            assert config_named(store, reference) == config_id
        found = stored_runs(store, conditions=[f"sweeps={name}", "model_seed=0"])
        assert found["id"].tolist() == [run_id]
    finally:
        writer.delete(store, sweep_id)


def test_a_name_of_both_a_sweep_and_a_run_is_refused_with_both_spellings(tmp_path: Path) -> None:
    store = open_writer(str(tmp_path / "both.db"))
    writer.submit(store, spec(name="a"))
    writer.submit(store, spec(name="a/0", fixed={"hidden_size": 16}))
    writer.submit(store, spec(name="2", axes={"hidden_size": [8, 32]}))
    for reference in ("a/0", "2"):
        with pytest.raises(UnknownRunError, match=rf"means the sweep '{reference}' or run"):
            config_named(store, reference)
        with pytest.raises(UnknownRunError, match="means the sweep of that name or run"):
            sensitive(store, [reference])
    assert queries.run_config(store, 4).hidden_size == 16
    assert config_named(store, "a/0:") == 2
    with pytest.raises(UnknownRunError, match="'2:' means 2 configurations"):
        config_named(store, "2:")
    # From Python a number is a run's id.
    with pytest.raises(UnknownRunError, match="'2': none of its runs is finished"):
        compare(store, 2, 3)
    assert config_named(store, "a/1") == config_named(store, "a") == 1
    assert config_named(store, "2:hidden_size=8") == 3
    assert config_named(store, "2:hidden_size=32") == 4


def test_two_values_of_one_field_are_refused(store: Store) -> None:
    for first, second in (("hidden_size=2", "hidden_size=16"), ("task=parity", 'task="regular"')):
        with pytest.raises(
            ConfigError, match=f"conditions='{second}': .* has another value before"
        ):
            stored_runs(store, conditions=[first, second])
    with pytest.raises(ConfigError, match="--set num_letters=3: num_letters has another value"):
        theory("contains_all", ["num_letters=2", "num_letters=3"])
    assert stored_runs(store, conditions=["model_seed=0", "model_seed=1"]).empty
    assert len(stored_runs(store, conditions=["model_seed=0", "model_seed=0"])) == 1


KNOWN: selecting.Configs = {
    1: {"config.a": "[1,2]", "config.b,c": "x"},
    2: {"config.a": "[1,3]", "config.b,c": "y,z=[1,2]"},
    3: {"config.a": 64, "config.b,c": None},
    4: {"config.a": "64", "config.b,c": None},
}
"""Settings of models trained elsewhere, which are stored as text."""


def test_a_value_may_contain_commas_and_equal_signs() -> None:
    for text, found in {
        "config.a=[1,2]": {1},
        "config.a=[1,3],config.b,c=y,z=[1,2]": {2},
        "config.b,c=y,z=[1,2],": {2},
        "config.a=64": {3},
        'config.a="64"': {4},
        "config.a=6.4e1": {3},
        "config.a=7": set(),
    }.items():
        assert set(selecting._with_values(KNOWN, text, ["config.b,c", "config.a"])) == found


def test_a_written_value_matches_equal_json_before_other_values() -> None:
    cases: list[tuple[str, list[Any], Any]] = [
        ("64", [64, "64", 64.5], 64), ("64", ["64"], "64"), ("1e-3", [0.001, 1], 0.001),
        ("true", [True, 1, "true"], True), ("1", [True, 1], 1), ("1.10", [1.1, "1.10"], "1.10"),
    ]  # fmt: skip
    for written, known, found in cases:
        assert WrittenValue(written).matching(known) == [found]


def test_every_printed_column_of_runs_selects_them(store: Store) -> None:
    frame = stored_runs(store, ("other",))
    first = frame.iloc[0]
    for name in ("id", "model_seed", "state", "predicted", "hidden_size", "task"):
        found = stored_runs(store, ("other",), conditions=[f"{name}={first[name]}"])
        assert first["id"] in found["id"].tolist(), name
    assert stored_runs(store, conditions=["sweeps=nowhere"]).empty


def test_names_in_messages_are_quoted_for_the_shell_and_long_lists_are_cut() -> None:
    arguments = {"heads": "heads", "a b": "'a b'", "-x": "-- -x", "it's": "'it'\"'\"'s'"}
    assert {name: as_argument(name) for name in arguments} == arguments
    assert nearest("x", []) == "none is known"
    assert nearest("zzz", [f"name{i}" for i in range(100)]).endswith("name39 and 60 more")
    frame = pd.DataFrame(columns=["id", "config.a,b", "config.a"])
    assert named_columns(frame, "config.a,b, id") == ["config.a,b", "id"]
    assert named_columns(frame, "config.a,id") == ["config.a", "id"]


@contextmanager
def counted_rows() -> Iterator[list[int]]:
    """The number of rows that each SELECT of the block finds."""
    counts: list[int] = []

    def count(connection: Connection, _: Any, sql: str, values: Any, *__: Any) -> None:
        if sql.lstrip().startswith("SELECT"):
            with closing(connection.connection.cursor()) as cursor:
                cursor.execute(f"SELECT count(*) FROM ({sql})", values)
                counts.extend(found for (found,) in cursor.fetchall())

    event.listen(Engine, "before_cursor_execute", count)
    yield counts
    event.remove(Engine, "before_cursor_execute", count)


def test_a_query_about_one_sweep_or_run_reads_no_other(tmp_path: Path) -> None:
    store = open_writer(str(tmp_path / "large.db"))
    widths = list(range(2, 42, 2))
    many = spec(name="many", axes={"hidden_size": widths}, model_seeds=list(range(10)))
    writer.submit(store, many)
    writer.submit(store, spec(name="few", fixed={"hidden_size": 64}))
    run_id = queries.find_run(store, "few/0")
    questions: dict[str, Callable[[], object]] = {
        "runs": lambda: stored_runs(store, ("few",)),
        "compared": lambda: config_named(store, "few:hidden_size=64"),
        "one of many": lambda: config_named(store, f"{run_id}"),
        "status": lambda: status(store, "few"),
        "rows": lambda: queries.runs(store, Selection(run_ids=(run_id,))),
        "sweep": lambda: sweep_queries.find_sweep(store, "few"),
    }
    for name, ask in questions.items():
        with counted_rows() as counts:
            ask()
        assert counts, name
        assert sum(counts) < 20, (name, counts)
