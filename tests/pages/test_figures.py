"""Figures show what the report published, and stand still from epoch to epoch."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd
import pytest

from dashboard.figures.figure import Figure, project
from dashboard.figures.gallery import GROUPS, NUMBERS, figures
from dashboard.figures.history import History, losses_by_part
from seqcls.config import RunConfig
from seqcls.engines.member import draw_initial
from seqcls.interpretability.interventions import causes
from seqcls.interpretability.network import Network
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


def vectors(frame: pd.DataFrame, by: str) -> dict[str, list[float]]:
    return dict(zip(frame[by], frame[["x", "y"]].to_numpy().tolist(), strict=True))


def test_numbers_of_seeds_5_and_2_are_those_published() -> None:
    found = vectors(rows(shipped(GOOD), 2), "token")
    published = {
        "CLS": [-0.6023, -1.0448], "a": [0.1197, 2.3601], "b": [-1.5085, -2.1599],
        "c": [1.5460, -0.8536],
    }  # fmt: skip
    assert list(found) == list(published)
    for token, vector in published.items():
        assert found[token] == pytest.approx(vector, abs=1e-3)
    frame = pd.concat([rows(shipped(GOOD), 8, f"head {head}") for head in (0, 1)])
    own = frame[frame["string"] == "aac"].set_index(["head", "token"])["each"]
    assert "CLS" not in own.index.get_level_values("token"), "it may not be attended to"
    weights = {("head 0", "a"): 0.49982, ("head 0", "c"): 0.00036}
    weights |= {("head 1", "a"): 0.00387, ("head 1", "c"): 0.99227}
    assert own.to_dict() == pytest.approx(weights, abs=1e-4)
    frame = rows(shipped(GOOD), 13)
    found = vectors(frame, "name")
    assert found["aac"] == pytest.approx([-6.4319, -0.9393], abs=2e-3)
    assert found["baac"] == pytest.approx([0.2414, 9.1150], abs=2e-3)
    logits = dict(zip(frame["name"], frame["logit"], strict=True))
    assert logits["aac"] == pytest.approx(-8.2945, abs=2e-3)
    assert logits["baac"] == pytest.approx(10.9587, abs=2e-3)
    frame = rows(shipped(BAD), 6)
    own = frame[frame["row"] == "head 0"].set_index("token")["x"]
    assert (own["a"], own["c"]) == pytest.approx((2.0178, 1.3575), abs=1e-3)
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


def test_limits_hold_every_point_of_every_epoch_and_never_move() -> None:
    history = shipped(GOOD)
    first, last = (drawn(history, epoch, 2, 3, 5, 7, 13) for epoch in (1, history.kept_epoch))
    for before, now in zip(first, last, strict=True):
        fixed = limits(before)
        assert limits(now) == fixed, now.title
        for figure, (axis, (low, high)) in product((before, now), fixed.items()):
            assert figure.data[axis].between(low, high).all(), now.title
        if before.number in (2, 13):
            assert now.chart.to_dict()["width"] == now.chart.to_dict()["height"]
            width, height = (high - low for low, high in fixed.values())
            assert width == pytest.approx(height), "a plane has equal scales"


def limits(figure: Figure) -> dict[str, tuple[float, float]]:
    """The fixed domains of a drawing of points, by axis."""
    found = {}
    for encoding in encodings(figure.chart.to_dict()):
        for axis in ("x", "y"):
            scale = encoding.get(axis, {}).get("scale") or {}
            if axis in figure.data and "domain" in scale:
                found[axis] = tuple(scale["domain"])
    return found


def encodings(spec: dict) -> Iterator[dict]:  # type: ignore[type-arg]
    yield spec.get("encoding", {})
    for layer in [*spec.get("layer", []), *([spec["spec"]] if "spec" in spec else [])]:
        yield from encodings(layer)


def test_wide_states_are_drawn_by_principal_components_that_say_what_they_keep() -> None:
    history = shipped(WIDE)
    for figure in drawn(history, None, 2, 9):
        assert "Two of 16 dimensions" in figure.note
    # They stand along the classifier by their logit.
    frame = rows(history, 13)
    length = np.linalg.norm(history.networks[history.kept_epoch].classifier)
    assert (frame["x"].to_numpy() * length).tolist() == pytest.approx(frame["logit"].tolist())
    random = np.random.default_rng(0)
    epochs = [random.normal(size=(6, 5)) for _ in range(3)]
    projection = project(epochs, kept=1, name="dimension")
    states = epochs[1] - epochs[1].mean(axis=0)
    spectrum = np.linalg.svd(states)[1] ** 2
    share = projection.share_kept(epochs[1])
    # The origin is a point too; without it no plane would keep more than the two largest.
    assert 0 < share <= spectrum[:2].sum() / spectrum.sum() + 1e-12
    assert projection.directions @ projection.directions.T == pytest.approx(np.eye(2))


def test_the_initial_weights_are_epoch_0() -> None:
    history = shipped(GOOD)
    (initial,) = draw_initial([(resolve(history.config), 5)])
    weights = history.networks[0].weights
    assert weights["embedding.weight"] == pytest.approx(initial["embedding.weight"])


@pytest.mark.parametrize(
    ("fields", "missing"),
    [
        (
            {"layer_norm": "nn", "num_letters": 5, "attention_head_size": 3, "hidden_size": 7},
            set(),
        ),
        (
            {"layer_norm_eps": 0.0, "hidden_size": 1, "feed_forward_size": 0,
             "num_attention_heads": 0},
            {4, 5, 6, 7, 8, 11, 17},
        ),
    ],
)  # fmt: skip
def test_every_kind_of_model_has_its_figures(fields: dict[str, object], missing: set[int]) -> None:
    config = RunConfig.from_mapping(fields)
    (weights,) = draw_initial([(resolve(config), 0)])
    losses = pd.DataFrame({"epoch": [1], "train_loss": [2.0], "validation_loss": [1.0]})
    history = History(config, {1: Network.of(resolve(config), weights)}, 1, losses)
    traces = history.through(("", "ab", "a{1000000}c"))
    found = list(figures(traces, 1, range(config.num_attention_heads)))
    assert {figure.number for figure in found} == set(NUMBERS) - missing
    for figure in found:
        assert not figure.data.empty
        assert figure.chart.to_dict()["$schema"], figure.title
    names = [figure.file_name for figure in found]
    assert len(set(names)) == len(names)


def test_every_figure_belongs_to_a_group() -> None:
    assert sorted(number for group in GROUPS.values() for number in group) == list(NUMBERS)


def test_losses_are_means_over_the_strings_of_an_epoch() -> None:
    good, whole = shipped(GOOD), shipped("all_fixed_length_sequences/0")
    frame = losses_by_part(good.config, good.losses)
    means = frame.assign(strings=frame["sum"] / frame["loss"]).groupby("part")["strings"]
    assert means.max().to_dict() == pytest.approx({"training": 9984, "validation": 960})
    everything = losses_by_part(whole.config, whole.losses)
    training = everything[everything["part"] == "training"]
    assert (training["sum"] / training["loss"]).tolist() == pytest.approx([19_683] * 21)


def test_a_model_s_errors_are_summed_up_by_their_cause() -> None:
    history = shipped(BAD)
    network = history.networks[history.kept_epoch]
    found = causes(network, ["ab{68}", "ab{100}c{55}", "b{2}c{152}"])
    assert [(share.phrase, share.errors, share.shortest) for share in found.shares] == [
        ("dilution in head 0: a is drowned by b", 2, "ab{68}"),
        ("value interference in head 0: c is taken for a", 1, "b{2}c{152}"),
    ]
    many = [f"ab{{{n}}}" for n in range(100, 1100)]
    assert (causes(network, many).examined, causes(network, many).errors) == (300, 1000)
