"""Pages and files on models that write outputs: each shown number and text is that of SQL."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboard.model import errors_sections
from sweeps.api import errors, export, lengths, report
from sweeps.store.opening import open_reader
from tests.blocks import DOCS, blocks_of
from tests.inside import ALL_POSITIONS, SOME_POSITIONS, WRITING
from tests.oracles.facts import Facts
from tests.shown import page_data

COPYING = "copying"


@pytest.fixture(scope="module")
def facts(inside: Path) -> Facts:
    """The SQL facts of these models."""
    return Facts(inside)


def stored(facts: Facts, query: str, *given: Any) -> Iterator[Any]:
    return (tuple(row.values()) for row in facts.ask(query, *given))


def doubled(string: str) -> str:
    """A stored string as it is shown: two letters in a row are written out, more are counted."""
    return re.sub(r"(\w)\{2\}", r"\1\1", string)


def test_wrong_outputs_are_listed_beside_their_targets(inside: Path, facts: Facts) -> None:
    store = open_reader(str(inside))
    found = errors_sections.strings(store, int(WRITING))
    assert found is not None
    assert found.table is not None
    query = "SELECT string, output, error_kind, first_wrong FROM wrong_output WHERE run_id = ?"
    known = {
        (doubled(string), doubled(output), *others)
        for string, output, *others in stored(facts, query, int(WRITING))
    }
    rows = found.table[["string", "model_output", "kind", "first_wrong"]]
    assert set(rows.itertuples(index=False, name=None)) == known
    counted = errors_sections.counts(store, int(WRITING))
    assert all(kind in counted.says[0] for *_, kind, _ in known)
    # The kinds of errors, of trained lengths, of longer ones and of all.
    assert counted.table is not None
    by_kind = (
        "SELECT sum(occurrences) FROM wrong_output WHERE run_id = ? AND error_kind = ? "
        "AND length BETWEEN ? AND ?"
    )
    for row, (low, high) in zip(
        counted.table.to_dict("records"), ((1, 4), (5, 99), (0, 99)), strict=True
    ):
        for kind in {kind for *_, kind, _ in known}:
            ((times,),) = stored(facts, by_kind, int(WRITING), kind, low, high)
            assert row[kind] == (times or 0)
    drawn = Counter[int]()
    for cells in counted.panels[1].spec["datasets"].values():
        for cell in cells:
            drawn[cell["place"]] += cell["occurrences"]
    sql = "SELECT first_wrong, sum(occurrences) FROM wrong_output WHERE run_id = ? GROUP BY 1"
    assert drawn == dict(stored(facts, sql, int(WRITING)))


def test_documented_sql_gives_the_shares_and_kinds_of_wrong_outputs(facts: Facts) -> None:
    page = (DOCS / "database.md").read_text()
    documented = [x.text for x in blocks_of(page) if x.title == "Transductions"]
    by_length, by_kind = (list(stored(facts, sql.rstrip("; \n"))) for sql in documented)
    counts = [x for own in facts.lengths.values() for x in own.values() if x["target_tokens"]]
    for length, *shares in by_length:
        own = [x for x in counts if x["length"] == length]
        pairs = (("wrong", "tested"), ("right_length_given", "tested"), ("edits", "target_tokens"))
        wrong, right, edits = (
            sum(x[part] for x in own) / sum(x[whole] for x in own) for part, whole in pairs
        )
        assert shares == pytest.approx([1 - wrong, right, edits])
    wrong_of = [x for own in facts.errors.values() for x in own.values() if "error_kind" in x]
    assert {kind: number for kind, number, _ in by_kind} == Counter(
        x["error_kind"] for x in wrong_of
    )


def test_an_untested_string_is_neither_right_nor_wrong(
    inside: Path, facts: Facts, tmp_path: Path
) -> None:
    store = open_reader(str(inside))
    tested = int(lengths(store, [SOME_POSITIONS])["tested"].sum())
    of_set = facts.test_set_of(facts.runs[int(SOME_POSITIONS)]["config_id"])
    sql = "SELECT string, occurrences FROM test_string WHERE test_set_id = ?"
    times = dict(stored(facts, sql, of_set))
    assert 0 < tested < sum(times.values()), "of some lengths not all strings were tested"
    (path,) = export(store, tmp_path / "out", "jsonl")
    answers = [json.loads(line) for line in path.read_text().splitlines()]
    for run, num_tested in ((SOME_POSITIONS, tested), (ALL_POSITIONS, sum(times.values()))):
        own = [row for row in answers if row["run"] == int(run)]
        assert sum(times[row["input"]] for row in own) == num_tested
        wrong = {row["input"] for row in own if not row["correct"]}
        assert wrong == set(errors(store, [run])["string"])
    sentences = " ".join(errors_sections.counts(store, int(SOME_POSITIONS)).says)
    assert f"of {tested} test inputs" in sentences
    assert f"{sum(times.values()) - tested} more were not tested" in sentences


def test_a_report_has_every_wrong_output_beside_its_target(
    inside: Path, facts: Facts, undrawn: None
) -> None:
    del undrawn
    page = report(open_reader(str(inside)), COPYING, "any")
    listed = {name: table for name, table in page_data(page).items() if "-strings" in name}
    assert {f"run-{run}-strings" for run in (WRITING, "1")} <= set(listed)
    for name, table in listed.items():
        if "Target" not in table["columns"]:
            continue
        query = "SELECT target, output FROM wrong_output WHERE run_id = ?"
        known = stored(facts, query, int(name.split("-")[1]))
        numbers = [table["columns"].index(column) for column in ("Target", "Output")]
        given = [tuple(row[number] for number in numbers) for row in table["rows"]]
        assert sorted(given) == sorted((doubled(a), doubled(b)) for a, b in known)
    assert all(f"<summary>{name} <small>" in page for name in (COPYING, "any"))
