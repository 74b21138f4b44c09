"""Transductions in every kind of database: counts by length, and what was given for each error.

Their results are made by hand, on the strings and targets of a task of a package from outside.
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboard.model import errors_sections
from sweeps.api import failing
from sweeps.records import read_rows
from sweeps.results import OUTPUT_COUNTS, RunResult
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer, pack
from sweeps.store.reads import misclassified, sweep_queries
from sweeps.store.reads.selection import Selection
from sweeps.store.verification import verify
from tests import results, transductions
from tests.blocks import DOCS, blocks_of
from tests.chaos.contents import contents
from tests.commands import run_main
from tests.conftest import SHORT
from tests.databases import file_of, rows
from tests.transductions import ERRORS, GIVEN, filled
from tests.world import parts_from_outside

TASK: dict[str, Any] = {**SHORT, "task": "ones_modulo", "test_size": 300, "test_max_length": 20}
COUNTS = ("tested", "wrong", *OUTPUT_COUNTS)


@pytest.fixture(scope="module", autouse=True)
def _installed() -> Iterator[None]:
    """A task whose strings have targets."""
    with parts_from_outside():
        yield


@pytest.fixture(scope="module")
def store(shared_db: str) -> Store:
    """Three transductions, one without errors and two with those of `GIVEN`, and three languages.

    Nobody changes it.
    """
    return results.filled(filled(open_writer(shared_db), fixed=TASK))


@pytest.fixture(scope="module")
def eleven(made_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the transductions of eleven seeds, of which the first has no errors."""
    path = shutil.copy(made_file, tmp_path_factory.mktemp("outputs") / "eleven.db")
    return file_of(filled(open_writer(str(path)), fixed=TASK, model_seeds=[*range(11)]))


@pytest.fixture
def other(made_file: Path, tmp_path: Path) -> Store:
    return open_writer(str(shutil.copy(made_file, tmp_path / "other.db")))


def outputs_in(text: str) -> list[tuple[object, ...]]:
    return [tuple(error[2:]) for error in read_rows(text)]


def test_what_is_recorded_is_read_back_and_of_languages_there_is_none_of_it(store: Store) -> None:
    assert verify(store).damages == []
    stored = dict(rows(store, "SELECT id, errors FROM run WHERE id < 4"))
    of_runs = {run_id: outputs_in(text) for run_id, text in stored.items()}
    assert of_runs == {1: [()] * len(read_rows(stored[1])), 2: GIVEN, 3: GIVEN}
    assert json.loads(stored[2])[1][2:] == ["0{12}1", 11, "went on"]
    known = " + ".join(f"count({name})" for name in OUTPUT_COUNTS)
    assert rows(store, f"SELECT {known} FROM length_score WHERE tn IS NOT NULL") == [(0,)]
    assert "output" not in misclassified.errors_of(store, [4, 5, 6])
    both = misclassified.errors_of(store, range(1, 7)).set_index("run_id")
    assert both.loc[[2, 3], "output"].notna().all()
    assert both.loc[[5], ["output", "first_wrong", "log_probability"]].isna().all(axis=None)


def test_the_view_has_a_row_for_each_wrong_string(store: Store) -> None:
    columns = "run_id, string, length, target, output, first_wrong, log_probability, error_kind"
    found = rows(store, f"SELECT {columns}, occurrences FROM wrong_output ORDER BY run_id, string")
    wrong = "SELECT run_id, string, length, target, logit, occurrences FROM misclassified"
    expected = []
    for run_id in (2, 3):
        plain = rows(store, f"{wrong} WHERE run_id = {run_id}")
        # Numbers sort strings as text, and outputs stand in their order.
        for row, given in zip(sorted(plain, key=lambda own: str(own[1])), GIVEN, strict=True):
            output, place, kind = given
            expected.append((*row[:4], output, place, row[4], kind, row[5]))
    assert sorted(found) == sorted(expected)
    assert {row[3] for row in found} <= {f"remainder {n}" for n in range(3)}
    listed = misclassified.string_errors(store, 2)
    shown = columns.removeprefix("run_id, ").replace("length, ", "").split(", ")
    query = f"SELECT {', '.join(shown)} FROM wrong_output WHERE run_id = 2"
    assert sorted(listed[shown].itertuples(index=False, name=None)) == sorted(rows(store, query))
    assert listed["kind"].tolist() == listed["error_kind"].tolist()
    assert misclassified.string_errors(store, 1).empty
    models = failing.failing_models(store, Selection(sweeps=("outputs",)))
    broken, _ = failing.breaking_strings(store, models, limit=5)
    assert set(broken["kind"]) == {"wrong"}
    assert {"target", "output", "first_wrong"} <= {*broken}


def test_plain_sql_of_the_docs_asks_for_them(store: Store) -> None:
    page = (DOCS / "database.md").read_text()
    queries_shown = [x.text for x in blocks_of(page) if x.title == "Transductions"]
    by_length, longest = (rows(store, text.rstrip().rstrip(";")) for text in queries_shown)
    counted: dict[int, list[float]] = {}
    sums = ", ".join(f"sum({name})" for name in COUNTS)
    query = f"SELECT length, {sums} FROM length_score WHERE edits IS NOT NULL GROUP BY length"
    for row in rows(store, query):
        length, tested, wrong, given, edits, tokens = map(int, row)
        counted[length] = [1 - wrong / tested, given / tested, edits / tokens]
    assert {length: [*map(float, own)] for length, *own in by_length} == {
        length: pytest.approx(own) for length, own in counted.items()
    }
    of_kinds = Counter(kind for _, _, kind in GIVEN)
    assert {kind: strings for kind, strings, _ in longest} == {
        kind: 2 * number for kind, number in of_kinds.items()
    }


def test_results_that_contradict_themselves_are_not_stored(
    other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = transductions.outcome

    def with_an_output_less(run: Any, errors: int) -> RunResult:
        result = made(run, errors)
        assert result.evaluation is not None
        object.__setattr__(result.evaluation.outputs, "texts", ["0"] * (ERRORS - 1))
        return result.seal(run.config.key, run.model_seed)

    monkeypatch.setattr(transductions, "outcome", with_an_output_less)
    with pytest.raises(ValueError, match="zip"):
        filled(other, fixed=TASK)
    assert rows(other, "SELECT count(*) FROM run WHERE state = 'done'") == [(0,)]


def test_merging_takes_them_over_and_deleting_removes_them(store: Store, other: Store) -> None:
    merged = writer.merge(other, store)
    assert (merged.results, merged.conflicts, merged.damaged) == (6, [], [])
    assert contents(other) == contents(store)
    assert writer.merge(other, store).same == 6
    pack(str(other.path))
    other = open_writer(str(other.path))
    assert contents(other) == contents(store), "a packed file holds them, too"
    filled(other, name="more", model_seeds=[7, 8], fixed=TASK)
    writer.delete(other, sweep_queries.find_sweep(other, "more"))
    assert contents(other) == contents(store)
    writer.delete(other, sweep_queries.find_sweep(other, "outputs"))
    assert rows(other, "SELECT count(*) FROM wrong_output") == [(0,)]
    assert verify(other).damages == []


def test_other_outputs_of_the_same_run_are_said_and_ours_are_kept(
    eleven: Path, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(transductions, "GIVEN", GIVEN[::-1])
        before = contents(filled(other, fixed=TASK, model_seeds=[0, 1]))
    (conflict,) = writer.merge(other, open_reader(str(eleven))).conflicts
    assert conflict == "run 2 (model seed 1): other errors"
    (own,) = rows(other, "SELECT errors FROM run WHERE id = 2")
    assert outputs_in(own[0]) == GIVEN[::-1]
    assert before["run"] != contents(other)["run"], "the others are taken over"


def test_commands_say_them(eleven: Path, tmp_path: Path) -> None:
    db = str(shutil.copy(eleven, tmp_path / "asked.db"))
    printed = run_main("errors", "2", "--db", db, "--wide").stdout
    # A kind of package says how sure an answer is by its margin, a transduction by what it writes.
    names = "string kind length target output first_wrong margin occurrences"
    assert names in " ".join(printed.split())
    for output, place, kind in GIVEN:
        shown = re.escape(output or '""')
        assert re.search(rf"{kind} +\d+ +remainder \d +{shown} +{place} +-\d", printed)
    (first, *_) = json.loads(run_main("errors", "2", "--db", db, "--json").stdout)
    assert (first["output"], first["first_wrong"], first["error_kind"]) in GIVEN


def test_kinds_of_errors_and_first_wrong_places_are_told_as_they_are_stored(store: Store) -> None:
    kinds, places = Counter[str](), Counter[int]()
    query = "SELECT error_kind, first_wrong, occurrences FROM wrong_output WHERE run_id = 3"
    for kind, place, occurrences in rows(store, query):
        kinds[kind] += occurrences
        places[place] += occurrences
    found = errors_sections.counts(store, 3)
    assert all(f"{number:,} {kind}" in found.says[0] for kind, number in kinds.items())
    drawn = Counter[int]()
    for cells in found.panels[1].spec["datasets"].values():
        for cell in cells:
            drawn[cell["place"]] += cell["occurrences"]
    assert drawn == places
