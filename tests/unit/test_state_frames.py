"""Frames say what was found, with one row for every mark of a figure."""

import pytest

from dashboard.charts.readout import steps_frame
from seqcls.interpretability.attribution import logit_steps
from seqcls.interpretability.patching import patch
from seqcls.interpretability.states_by_strings import (
    attention_patterns,
    prefix_logits,
    principal_path,
    recurrent_units,
)
from sweeps.api.presentation import (
    head_frame,
    layer_frame,
    patched_frame,
    path_frame,
    prefixes_frame,
)
from tests.unit.asked import LSTM, TWO_BLOCKS, untrained

STRING = (0, 1, 1)


def test_a_transformers_figures() -> None:
    model = untrained(**TWO_BLOCKS)
    patterns = attention_patterns(model, STRING)
    assert patterns.weights.shape[:2] == (2, 2)
    attention = head_frame(patterns, 1, 0, whole=True)
    assert len(attention) == 4 * 4
    row = attention.query("query == 3 and key == 2").iloc[0]
    assert (patterns.tokens[3], patterns.tokens[2]) == ("END", "1")
    assert row["weight"] == patterns.weights[1, 0, 3, 2]
    steps = logit_steps(model, STRING)
    parts = ["head", "head", "feed-forward"]
    assert [step.part for step in steps] == ["embedding", *parts * 2]
    frame = steps_frame(steps, "011")
    blocks = [f"block {block}: {x}" for block in (0, 1) for x in ("head 0", "head 1", parts[2])]
    assert frame["step"].tolist() == ["embedding", *blocks, "logit"]
    assert frame["change"].iloc[-1] == frame["end"].iloc[-2] == steps[-1].logit
    found = patch(model, STRING, (0, 0, 1))
    frame = patched_frame(found)
    assert len(frame) == len(found.sites) * 4
    assert set(frame["site"]) >= {"embedding", "block 0, head 1", "block 1, feed-forward"}
    assert frame["flips"].sum() == found.flips.sum()


def test_a_recurrent_networks_figures() -> None:
    model = untrained(**LSTM)
    units = recurrent_units(model, STRING)
    frames = {name: layer_frame(units, name, 0) for name in ("state", *units.gates)}
    assert sum(map(len, frames.values())) == 6 * 4 * 4
    assert frames["state"].iloc[-1]["value"] == units.states[0][-1, -1]
    assert units.tokens[-1] == "END"
    path = path_frame(principal_path(units.states[-1]), units.tokens)
    assert path["token"].tolist() == ["0", "1", "1", "END"]
    prefixes = prefixes_frame(prefix_logits(model, STRING))
    assert prefixes["token"].tolist() == ["", "0", "1", "1"]
    # Longer and shorter strings are asked together there, alone here: they are rounded differently.
    assert prefixes["logit"].iloc[-1] == pytest.approx(model.answer(STRING).logit, rel=1e-12)
