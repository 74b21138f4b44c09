"""Figures show the states of a model, with the same axes at every epoch."""

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dashboard.figures.epochs import Epochs, through_epochs
from dashboard.figures.figure import Figure
from dashboard.figures.gallery import GROUPS, figures
from dashboard.figures.whole_model import losses_by_part
from seqcls.engines.member import draw_initial
from seqcls.interpretability.readable_model import read, states
from sweeps.store.opening import open_reader
from sweeps.store.reads import queries
from tests.app import open_app
from tests.conftest import ROOT
from tests.pages.shown import shown

STRINGS = ("aac", "baac", "ab{100}c{55}", "b{2}c{152}")
GOOD, BAD, WIDE = (
    "all_initializations/5",
    "all_initializations/2",
    "lower_magnitude_initializations/2",
)


@lru_cache
def epochs(reference: str, shown: int | None = None) -> Epochs:
    """Some strings through a model of the shipped database, from before its training on."""
    store = open_reader(str(ROOT / "runs.db"))
    return through_epochs(store, queries.find_run(store, reference), STRINGS, shown)


def drawn(run_epochs: Epochs, number: int, part: str = "") -> Figure:
    (found,) = (figure for figure in figures(run_epochs, [number]) if figure.part == part)
    return found


def rows(run_epochs: Epochs, number: int, part: str = "", column: str = "x") -> pd.DataFrame:
    """The data of a figure that has this column."""
    every = [pd.DataFrame(x) for x in drawn(run_epochs, number, part).spec["datasets"].values()]
    return next(frame for frame in reversed(every) if column in frame)


def test_figures_show_the_states_of_the_model() -> None:
    run_epochs = epochs(GOOD)
    model = run_epochs.model
    embedded = rows(run_epochs, 2).set_index("token")
    assert list(embedded.index) == ["CLS", "a", "b", "c"]
    np.testing.assert_allclose(
        embedded[["x", "y"]], model.weights["embedding.weight"][[0, 2, 3, 4]]
    )
    found = rows(run_epochs, 13, column="logit").set_index("name").loc[list(STRINGS)]
    np.testing.assert_allclose(found["logit"], model.logits(STRINGS), rtol=1e-5)
    for string in STRINGS:
        # Token by token, each as often as it occurs.
        own = states(model, read(model, [model.letters(string)]))
        last = own["blocks.0.after_feed_forward"][0, 0].numpy()
        np.testing.assert_allclose(found.loc[string, ["x", "y"]].astype(float), last)
        for head in (0, 1):
            weights = rows(run_epochs, 8, f"head {head}", "each")
            token_weights = weights[weights["string"] == string].set_index("token")["each"]
            assert "CLS" not in token_weights.index, "it may not be attended to"
            attended = own["blocks.0.attention.weights"][0, head, 0, 1:].numpy()
            expected = dict(
                zip(map("abc".__getitem__, model.letters(string)), attended, strict=True)
            )
            assert token_weights.to_dict() == pytest.approx(expected, abs=1e-12)
    outcomes = rows(epochs(BAD), 13, column="outcome").set_index("name")["outcome"].to_dict()
    wrong = {"ab{100}c{55}": "false negative", "b{2}c{152}": "false positive"}
    assert outcomes.items() >= {**wrong, "aac": "true negative"}.items()


def test_axes_are_the_same_at_every_epoch() -> None:
    def limits(figure: Figure) -> list[Any]:
        shared = [layer["encoding"].get("x", {}) for layer in figure.spec["layer"]]
        return [x["scale"]["domain"] for x in shared if "scale" in x]

    first, best = epochs(GOOD, 0), epochs(GOOD)
    for number in (2, 9, 13):
        assert limits(drawn(first, number)) == limits(drawn(best, number))
    assert not rows(first, 2)["x"].equals(rows(best, 2)["x"])


def test_the_steps_of_the_stream_sum_to_the_logit() -> None:
    run_epochs = epochs(WIDE)
    steps = rows(run_epochs, 16, column="adds")
    for (_, own), logit in zip(
        steps.groupby("string", sort=False), run_epochs.model.logits(STRINGS), strict=True
    ):
        assert own["adds"].iloc[:-1].sum() == pytest.approx(logit)
        assert own["end"].iloc[-1] == pytest.approx(logit)
    attributed = [step.adds for step in run_epochs.model.states(STRINGS[-1]).steps or ()]
    assert own["adds"].iloc[:-1].tolist() == pytest.approx(attributed)


def test_epoch_0_has_the_initial_weights() -> None:
    run_epochs = epochs(GOOD)
    (initial,) = draw_initial([(run_epochs.model.problem, 5)])
    weights = run_epochs.models[0].weights
    assert weights["embedding.weight"] == pytest.approx(initial["embedding.weight"])


def test_losses_are_means_over_the_strings_of_an_epoch() -> None:
    good = epochs(GOOD)
    frame = losses_by_part(good.config, good.losses)
    means = frame.assign(strings=frame["sum"] / frame["loss"]).groupby("part")["strings"]
    assert means.max().to_dict() == pytest.approx({"training": 9984, "validation": 960})


@pytest.mark.parametrize("group", GROUPS)
def test_each_group_of_figures_is_drawn(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    link = {"run": "5", "view": "Inside", "part": "Figures", "figures_of": group, "epoch": "1"}
    app = open_app(monkeypatch, ROOT / "runs.db", "model", string="ab{100}c{55}", **link)
    page = shown(app)
    numbers = {int(x.value.partition("\\")[0]) for x in app.header if x.value[:1].isdigit()}
    assert numbers == set(GROUPS[group]) - {4, 11}, "it has no norms"
    assert not page.errors
