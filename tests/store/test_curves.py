"""Lines by length and their medians, against those of every run's every length."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.large import make_database
from sweeps.api.by_length import MOST_LINES, curves
from sweeps.store.database import Store
from sweeps.store.opening import open_reader
from sweeps.store.reads.selection import Selection
from tests.oracles.facts import Facts, outcome

AXES: dict[str, list[Any]] = {"hidden_size": [2, 4], "num_attention_heads": [1, 2]}


def check(store: Store, facts: Facts, selection: Selection, ids: tuple[int, ...]) -> None:
    """Compares all points and medians with SQL."""
    found = curves(store, selection, ids)
    own = [
        run for run in facts.scope(seeds=selection.model_seeds) if run["config_id"] in ids
    ]  # fmt: skip
    learned_at = selection.learned_at
    shares: dict[tuple[int, int, int], list[float]] = {}
    for point in found.points.to_dict("records"):
        counts = facts.between(point["run_id"], point["first_length"], point["last_length"])
        assert point["tested"] == counts["tested"]
        assert point["accuracy"] == pytest.approx(1 - counts["wrong"] / counts["tested"])
    spans = {(x["first_length"], x["last_length"]) for x in found.medians.to_dict("records")}
    for run in own:
        if outcome(run, learned_at) != "not learned":
            for first, last in spans:
                counts = facts.between(run["run_id"], first, last)
                share = 1 - counts["wrong"] / counts["tested"]
                shares.setdefault((run["config_id"], first, last), []).append(share)
    assert len(found.medians) == len(shares)
    for row in found.medians.to_dict("records"):
        known = shares[row["config_id"], row["first_length"], row["last_length"]]
        assert row["median"] == pytest.approx(np.median(known))
        assert row["n"] == len(known)


@pytest.mark.parametrize("errors", [200, 30])
def test_points_and_medians_equal_those_from_every_length(any_db: str, errors: int) -> None:
    store, facts = make_database(any_db, AXES, seeds=8, errors=errors), Facts(any_db)
    check(store, facts, Selection(), (1, 3, 4))
    check(store, facts, Selection(model_seeds=(0, 1, 2, 5), learned_at=0.9), (1, 2))
    nothing = curves(store, Selection(sweeps=("another",)), (2,))
    assert nothing.points.empty
    assert nothing.medians.empty


def test_the_worst_and_the_best_of_many_seeds_have_lines(tmp_path: Path) -> None:
    store = make_database(str(tmp_path / "many.db"), {"hidden_size": [2]}, seeds=130, errors=30)
    found = curves(open_reader(store.location), Selection(), (1,))
    assert len(found.runs) == MOST_LINES
    assert found.runs["accuracy_beyond"].is_monotonic_increasing
    assert found.runs["outcome"].iloc[-1] == "generalizes"
    assert found.medians["n"].min() > MOST_LINES, "the median is of all that learned"
