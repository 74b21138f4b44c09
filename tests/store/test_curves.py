"""Medians by length, read from sums and errors, against those of every run's every length."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.large import make_database
from dashboard.views.scores import points
from sweeps.api.old_pages import overview as pages
from sweeps.api.old_pages.curves import Measure, median_curves
from sweeps.statistics.intervals import median_intervals
from sweeps.store.database import Store
from sweeps.store.reads.selection import Selection

AXES: dict[str, list[Any]] = {"hidden_size": [2, 4], "num_attention_heads": [1, 2]}
MEASURES: dict[str, Measure] = {
    "accuracy": "accuracy",
    "false_positive_rate": "false positives",
    "false_negative_rate": "false negatives",
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return make_database(str(tmp_path_factory.mktemp("s") / "s.db"), AXES, seeds=8, errors=200)


def of_every_length(
    store: Store, view: Selection, ids: tuple[int, ...], width: int, name: str
) -> pd.DataFrame:
    models = pages.models(store, view)
    models = models[models["config_id"].isin(ids)]
    scores = points(pages.scores_by_length(store, models["run_id"].tolist(), width), name)
    scores = scores.merge(models[["run_id", "config_id"]], on="run_id")
    return median_intervals(scores, "value", ["config_id", "middle"])


VIEWS = (
    Selection(),
    Selection(model_seeds=(0, 1, 2, 4, 5, 7)),
    Selection(sweeps=("large",), failing=True),
)


@pytest.mark.parametrize("name", list(MEASURES))
def test_few_rows_tell_the_same_medians(small: Store, name: str) -> None:
    for view, width in product(VIEWS, (1, 7, 10)):
        found = median_curves(small, view, (1, 3, 4), width, MEASURES[name])
        expected = of_every_length(small, view, (1, 3, 4), width, name)
        assert len(found) == len(expected) > 3
        middle = (found["first_length"] + found["last_length"]) / 2
        assert middle.tolist() == expected["middle"].tolist()
        for column in ("config_id", "n", "median", "low", "high"):
            np.testing.assert_array_equal(found[column], expected[column])


def test_one_seed_has_no_interval_and_no_run_no_curve(small: Store) -> None:
    found = median_curves(small, Selection(model_seeds=(1,)), (2,), 10, "accuracy")
    assert set(found["n"]) == {1}
    assert found["low"].isna().all()
    nothing = median_curves(small, Selection(sweeps=("another",)), (2,), 10, "accuracy")
    assert nothing.empty


def test_a_server_tells_the_same(small: Store, postgres_url: str) -> None:
    other = make_database(postgres_url, AXES, seeds=8, errors=200)
    for measure in MEASURES.values():
        asked = (Selection(), (1, 2), 10, measure)
        pd.testing.assert_frame_equal(median_curves(small, *asked), median_curves(other, *asked))
        assert len(median_curves(other, *asked))
