"""Frames of families, errors and ablations have what was computed, and no more."""

import numpy as np
import pytest

from dashboard.views import ablation, families, verdict
from dashboard.views.ablation import NAME, pruning_curve
from dashboard.views.families import family_curve
from seqcls.interpretability.ablation import Ablated, ablate, prune, rank
from seqcls.interpretability.backends import Counts
from seqcls.interpretability.certification import errors_up_to
from seqcls.interpretability.families import counted_curve, counted_map
from seqcls.interpretability.family import parse_family
from seqcls.interpretability.network import Network
from tests.histories import shipped


@pytest.fixture(scope="module")
def network() -> Network:
    """Seed 2 of the default model, which makes errors of both kinds."""
    history = shipped("all_initializations/2")
    return history.networks[history.kept_epoch]


def test_a_family_has_its_flip_and_its_errors(network: Network) -> None:
    found = counted_curve(network, parse_family(network.tokenizer, "ab{n}"))
    frame, flips = families.curve_frame(found), families.flips_frame(found)
    assert flips["label"].tolist() == ["n = 66"]
    wrong = frame[frame["outcome"] == "false negative"]
    assert wrong["n"].min() == 66
    assert (frame.loc[frame["n"] < 66, "outcome"] == "true positive").all()
    spec = family_curve(frame, flips, found.limit, "n", "ab{n}").to_dict()
    values = [row for data in spec["datasets"].values() for row in data]
    assert {"logit": found.limit, "label": f"limit {found.limit:.3f}"} in values


def test_a_map_has_a_cell_for_each_pair_of_counts_and_the_boundary(network: Network) -> None:
    found = counted_map(network, parse_family(network.tokenizer, "a{m}b{n}"), points=9)
    cells, flips = families.cells_frame(found), families.boundary_frame(found)
    assert len(cells) == len(found.first) * len(found.second)
    cell = cells[(cells["first"] == 1) & (cells["second"] == found.second[-1])].iloc[0]
    assert cell["logit"] == pytest.approx(found.logits[0, -1])
    assert cell["outcome"] == "false negative"
    assert (cells["x"] < cells["first"]).all()
    assert (cells["first"] < cells["x2"]).all()
    assert flips[flips["first"] == 1]["second"].tolist() == [66]


def test_every_error_up_to_a_length_is_in_one_cell_of_the_picture(network: Network) -> None:
    errors = errors_up_to(network, 80)
    letters = verdict.likeliest_letters(errors)
    cells = verdict.cells_frame(network, errors, letters)
    assert letters == (1, 2), "b and c"
    assert cells["errors"].sum() == len(errors.texts)
    assert cells["share"].between(0, 1).all()
    lengths = verdict.lengths_frame(errors)
    assert lengths["errors"].sum() == len(errors.texts)


def test_ablation_is_drawn_before_and_after(network: Network) -> None:
    backend = Counts(network)
    found = ablate(backend, {backend.parts(["head"])[1]: "zero"})
    frame = ablation.lengths_frame({"as trained": ablate(backend, {}), "ablated": found})
    wrong = frame.groupby("model", sort=False)["wrong"].sum()
    assert wrong["as trained"] == 697
    after = found.confusion
    assert after is not None
    assert wrong["ablated"] == after.fp + after.fn > 697
    assert frame.groupby("model")["strings"].sum().tolist() == [9984, 9984]


def test_the_empty_string_is_in_the_first_point_of_lengths() -> None:
    numbers = (np.array(x) for x in ([0, 1, 11], [1, 2, 4], [0, 2, 4]))
    frame = ablation.lengths_frame({"m": Ablated((), 1, 0.5, None, 0.0, 0.0, *numbers)})
    assert frame["lengths"].tolist() == ["0 to 10", "11 to 20"]
    assert frame["length"].tolist() == [5.0, 15.5]
    assert frame["wrong"].tolist() == [1, 0]


def test_heads_are_ranked_and_pruning_ends_with_nothing_left(network: Network) -> None:
    backend = Counts(network)
    heads = backend.parts(["head"])
    costs = {"zero": rank(backend, heads, "zero"), "mean": rank(backend, heads, "mean")}
    ranking = ablation.ranking_frame(costs, NAME)
    off = ranking[ranking["way"] == "zero"]
    assert off["errors"].is_monotonic_decreasing
    assert set(off["part"]) == {"head 0", "head 1"}
    parts = heads + backend.parts(["dimension"])
    steps = ablation.pruning_frame(list(prune(backend, parts)), NAME)
    assert steps["removed"].tolist() == [0, 1, 2, 3, 4]
    assert steps.loc[0, "errors"] == 697
    assert (steps[["heads left", "dimensions left"]].iloc[-1] == 0).all()
    assert np.isfinite(steps["loss"]).all()
    rows = pruning_curve(steps).to_dict()["encoding"]["y"]
    assert rows["sort"] == list(dict.fromkeys(steps["part"])), "a name a row, none turned"
