"""Every pair of configurations compared at once; p-values are corrected for how many there are."""

import json

import pytest

from sweeps import api
from tests.commands import printed, run_main
from tests.conftest import ROOT

DB = ("--db", str(ROOT / "runs.db"))
SWEEPS = ("--sweep", "all_initializations", "--sweep", "increased_dimensionality")


def bonferroni_holm(p_values: list[float]) -> list[float]:
    """Each p-value is the greatest of those before it, times how many are left (Holm 1979)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, p_values[index] * (len(p_values) - rank))
        corrected[index] = min(largest, 1.0)
    return corrected


def test_every_pair_equals_the_single_comparison_with_corrected_p_values() -> None:
    found = json.loads(printed("compare", "--all", *SWEEPS, "--json", *DB))
    named = printed("compare", *SWEEPS[1::2], "--all", "--json", *DB)
    assert json.loads(named) == found
    store = api.open_reader(str(ROOT / "runs.db"))
    names = {row[x] for row in found for x in "ab"}
    assert len({(row["a"], row["b"]) for row in found}) == len(names) * (len(names) - 1) // 2
    for row in found:
        alone = api.compare(store, row["a"], row["b"]).record()["questions"][row["question"]]
        assert row["p_value"] == pytest.approx(alone["p_value"])
        assert row["value"] == pytest.approx(alone["interval"]["value"])
        assert [row["a_seeds"], row["b_seeds"]] == list(alone["seeds"])
    for question in {row["question"] for row in found}:
        own = [row for row in found if row["question"] == question]
        raw = [row["p_value"] for row in own]
        assert [row["holm"] for row in own] == pytest.approx(bonferroni_holm(raw))
    assert [row["p_value"] for row in found] == sorted(row["p_value"] for row in found)
    # Three that are named are three pairs.
    three = (*SWEEPS[1::2], "attend_cls")
    text = printed("compare", *three, *DB)
    assert "Holm 1979" in text
    table = api.compare_all(store, three)
    assert table.groupby(["a", "b"]).ngroups == 3
    assert f"{len(table)} comparisons" in text


def test_the_help_of_compare_shows_both_forms() -> None:
    shown = run_main("compare", "--help").stdout
    assert "--all" in shown
    # That a flag is boolean and the range of a number are of no use to a reader.
    assert "<bool>" not in shown
    assert "<float>" in shown
    assert "x<=" not in run_main("runs", "--help").stdout
