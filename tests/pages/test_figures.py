"""Figures show the states of a network, and stand still from epoch to epoch."""

import numpy as np
import pandas as pd
import pytest

from dashboard.figures.figure import Figure
from dashboard.figures.gallery import NUMBERS, figures
from dashboard.figures.history import History, losses_by_part
from dashboard.views import ablation, families, verdict
from seqcls.engines.member import draw_initial
from seqcls.interpretability.ablation import Ablated, ablate, prune
from seqcls.interpretability.backends import Counts
from seqcls.interpretability.certification import errors_up_to
from seqcls.interpretability.families import counted_curve, counted_map
from seqcls.interpretability.family import parse_family
from seqcls.interpretability.network import Network
from seqcls.interpretability.states_by_counts import activations
from seqcls.problem import resolve
from tests.histories import shipped

STRINGS = ("aac", "baac", "ab{100}c{55}", "b{2}c{152}")
GOOD, BAD, WIDE = (
    "all_initializations/5",
    "all_initializations/2",
    "lower_magnitude_initializations/2",
)


def drawn(history: History, epoch: int | None = None, *numbers: int) -> list[Figure]:
    traces = history.through(STRINGS)
    shown = history.kept_epoch if epoch is None else epoch
    heads = range(history.config.num_attention_heads)
    return list(figures(traces, shown, heads, numbers or NUMBERS))


def rows(history: History, number: int, panel: str = "") -> pd.DataFrame:
    (found,) = (f for f in drawn(history, None, number) if f.panel == panel)
    return found.data


def test_figures_show_the_states_of_the_network() -> None:
    history = shipped(GOOD)
    network = history.networks[history.kept_epoch]
    states = activations(network, STRINGS)
    embedded = rows(history, 2).set_index("token")
    assert list(embedded.index) == ["CLS", "a", "b", "c"]
    np.testing.assert_allclose(embedded[["x", "y"]], network.embedding)
    read = rows(history, 13).set_index("name").loc[list(STRINGS)]
    np.testing.assert_allclose(read[["x", "y"]], states.after_feed_forward[:, 0])
    np.testing.assert_allclose(read["logit"], states.logit)
    for head in (0, 1):
        weights = rows(history, 8, f"head {head}")
        own = weights[weights["string"] == "aac"].set_index("token")["each"]
        assert [*own.index] == ["a", "c"], "CLS may not be attended to"
        np.testing.assert_allclose(own, states.weights_each[0, head, 0, [1, 3]])
    outcomes = rows(shipped(BAD), 13).set_index("name")["outcome"].to_dict()
    wrong = {"ab{100}c{55}": "false negative", "b{2}c{152}": "false positive"}
    assert outcomes.items() >= {**wrong, "aac": "true negative"}.items()


def test_the_steps_of_the_stream_sum_to_the_logit() -> None:
    history = shipped(WIDE)
    network = history.networks[history.kept_epoch]
    for (_, own), logit in zip(
        rows(history, 16).groupby("string", sort=False),
        network.logits(network.counts(STRINGS)),
        strict=True,
    ):
        assert own["change"].iloc[:-1].sum() == pytest.approx(logit)
        assert own["end"].iloc[-1] == pytest.approx(logit)


def test_the_initial_weights_are_epoch_0() -> None:
    history = shipped(GOOD)
    (initial,) = draw_initial([(resolve(history.config), 5)])
    weights = history.networks[0].weights
    assert weights["embedding.weight"] == pytest.approx(initial["embedding.weight"])


def test_losses_are_means_over_the_strings_of_an_epoch() -> None:
    good = shipped(GOOD)
    frame = losses_by_part(good.config, good.losses)
    means = frame.assign(strings=frame["sum"] / frame["loss"]).groupby("part")["strings"]
    assert means.max().to_dict() == pytest.approx({"training": 9984, "validation": 960})


# Frames of families, errors and ablations have what was computed, and no more.


@pytest.fixture(scope="module")
def network() -> Network:
    """Seed 2 of the default model, which makes errors of both kinds."""
    history = shipped(BAD)
    return history.networks[history.kept_epoch]


def test_a_family_has_its_flip_and_its_errors_and_a_map_a_cell_for_each_pair(
    network: Network,
) -> None:
    curve = counted_curve(network, parse_family(network.tokenizer, "ab{n}"))
    frame, flips = families.curve_frame(curve), families.flips_frame(curve)
    assert flips["label"].tolist() == ["n = 66"]
    assert frame.loc[frame["outcome"] == "false negative", "n"].min() == 66
    assert (frame.loc[frame["n"] < 66, "outcome"] == "true positive").all()
    found = counted_map(network, parse_family(network.tokenizer, "a{m}b{n}"), points=9)
    cells, flips = families.cells_frame(found), families.boundary_frame(found)
    assert len(cells) == len(found.first) * len(found.second)
    cell = cells[(cells["first"] == 1) & (cells["second"] == found.second[-1])].iloc[0]
    assert cell["logit"] == pytest.approx(found.logits[0, -1])
    assert cell["outcome"] == "false negative"
    assert flips[flips["first"] == 1]["second"].tolist() == [66]


def test_every_error_is_in_one_cell_and_every_ablation_counts_all_strings(
    network: Network,
) -> None:
    errors = errors_up_to(network, 80)
    cells = verdict.cells_frame(network, errors, verdict.likeliest_letters(errors))
    every = verdict.lengths_frame(errors)["errors"].sum()
    assert cells["errors"].sum() == every == len(errors.texts)
    backend = Counts(network)
    found = ablate(backend, {backend.parts(["head"])[1]: "zero"})
    frame = ablation.lengths_frame({"as trained": ablate(backend, {}), "ablated": found})
    sums = frame.groupby("model")[["wrong", "strings"]].sum().T.to_dict("list")
    assert sums == {"as trained": [697, 9984], "ablated": [found.errors, 9984]}
    steps = ablation.pruning_frame(list(prune(backend, backend.parts(["head"]))), ablation.NAME)
    assert steps["removed"].tolist() == [0, 1, 2]
    assert steps.loc[0, "errors"] == 697
    numbers = (np.array(x) for x in ([0, 1, 11], [1, 2, 4], [0, 2, 4]))
    frame = ablation.lengths_frame({"m": Ablated((), 1, 0.5, None, 0.0, 0.0, *numbers)})
    assert frame["lengths"].tolist() == ["0 to 10", "11 to 20"], "with the empty string"
    assert frame["wrong"].tolist() == [1, 0]
