"""A configuration has one name, given when it is submitted, and never changed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from seqcls.errors import SpecError
from seqcls.problem import configuration
from sweeps import api
from sweeps.api.budgets import more_training
from sweeps.api.selecting import config_named
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import queries, sweep_queries
from tests.databases import change, rows, spec
from tests.results import filled

CELLS: dict[str, Any] = {"name": "cells", "axes": {"positions": ["none", "alibi"]}}


@pytest.fixture
def store(any_db: str) -> Store:
    store = open_writer(any_db)
    writer.submit(store, spec(**CELLS))
    return store


def named(store: Store) -> list[str]:
    return [name for (name,) in rows(store, "SELECT name FROM config ORDER BY id")]


def test_configuration_names_are_unique_and_never_change(store: Store) -> None:
    assert named(store) == ["no positions", "ALiBi"]
    wide = {**CELLS, "name": "wide", "fixed": {"hidden_size": 16}}
    writer.submit(store, spec(**wide))
    assert named(store)[2:] == ["wide: no positions", "wide: ALiBi"]
    # It grows, and keeps what it has; it is submitted again, and nothing is new.
    writer.submit(store, spec(name="cells", axes={"positions": ["none", "alibi", "fire"]}))
    writer.submit(store, spec(**wide))
    assert named(store)[2:] == ["wide: no positions", "wide: ALiBi", "FIRE"]
    # A name that somebody has chosen for a sweep may look like one of these.
    writer.submit(store, spec(name="wide:", fixed={"hidden_size": 32}, axes=CELLS["axes"]))
    assert len({*named(store)}) == len(named(store)) == 7


def test_concurrent_submissions_get_distinct_configuration_names(store: Store) -> None:
    def submit(size: int) -> int:
        return writer.submit(
            store, spec(**{**CELLS, "name": "x" * size}, fixed={"num_blocks": size})
        )

    with ThreadPoolExecutor(4) as threads:
        ids = list(threads.map(submit, range(2, 10)))
    assert len({*ids}) == 8
    prefixes = ["", *("x" * size + ": " for size in range(2, 10))]
    assert {*named(store)} == {f"{x}{y}" for x in prefixes for y in ("no positions", "ALiBi")}


def test_sweeps_submitted_together_get_distinct_configuration_names(any_db: str) -> None:
    store = open_writer(any_db)
    several = [spec(name=f"of {x}", fixed={"hidden_size": x}) for x in (4, 8)]
    api.submit(store, several)
    assert named(store) == ["width 4", "width 8"]


def test_a_derived_configuration_is_named_by_its_changes(store: Store) -> None:
    alibi = configuration({"positions": "alibi"})
    fixed = {"positions": "alibi", "learning_rate": 0.009}
    parents = {configuration(fixed).key: alibi.key}
    writer.submit(store, spec(name="trial", fixed=fixed, parents=parents))
    assert named(store)[2:] == ["ALiBi, with learning_rate=0.009"]
    # Where the other is not there, it has a name of its own.
    alone = {configuration({"hidden_size": 64}).key: "no such key"}
    writer.submit(store, spec(name="alone", fixed={"hidden_size": 64}, parents=alone))
    assert "width 64" in named(store)[3]
    with pytest.raises(SpecError, match="parents=3: expected a table"):
        spec(parents=3)


def test_a_larger_budget_is_in_the_name(any_db: str) -> None:
    store = filled(open_writer(any_db), **CELLS)
    change(store, "UPDATE run SET tested_within = 100, wrong_within = 90")
    found = more_training(store, "cells", 480).spec
    assert found is not None
    writer.submit(store, found)
    assert named(store)[2:] == [f"{x}, with max_num_epochs=480" for x in ("no positions", "ALiBi")]


def test_a_merge_fills_in_missing_numbers_of_parameters(any_db: str, tmp_path: Path) -> None:
    store, other = open_writer(any_db), open_writer(str(tmp_path / "other.db"))
    for opened in (store, other):
        writer.submit(opened, spec(**CELLS))
    change(other, "UPDATE config SET num_parameters = 36 WHERE name = 'ALiBi'")
    for _ in range(2):
        writer.merge(store, other)
        found = rows(store, "SELECT name, num_parameters FROM config ORDER BY id")
        assert found == [("no positions", None), ("ALiBi", 36)]


def test_commands_take_the_name_of_a_configuration(store: Store) -> None:
    ids = queries.config_ids_of_sweep(store, sweep_queries.find_sweep(store, "cells"))
    assert [config_named(store, name) for name in ("no positions", "ALiBi")] == ids
