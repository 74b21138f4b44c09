"""Hybrids of several mixers: their blocks, states and remedies."""

from typing import Any

import numpy as np

from dashboard.model.string_figures import figures_of_strings
from dashboard.model.string_states import heads
from seqcls.fields import fields_unread
from seqcls.interpretability.states_by_strings import (
    attention_patterns,
    layer_word,
    recurrent_units,
)
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models import MODELS
from seqcls.pairing import differing_starts
from seqcls.problem import check, configuration, obstacle_of, resolve
from seqcls.questions import RunModel
from seqcls.theory.predictions import theory_of
from tests.zoo import HEADS, untrained

SIZES: dict[str, Any] = {**HEADS, "hidden_size": 6, "readout": "last"}


def test_letters_give_the_number_of_blocks() -> None:
    fields = {"task": "parity", "readout": "last", "architecture": "hybrid", "layers": "gag"}
    config = configuration(fields)
    assert resolve(config).network.num_blocks == 3
    assert configuration({**fields, "num_blocks": 3}).key == config.key
    assert "num_blocks" in fields_unread(config)
    assert differing_starts(config, configuration({**fields, "layers": "gaa"}))
    hybrid, network = MODELS["hybrid"], resolve(config).network
    assert hybrid.count_parameters(network) > 0
    assert hybrid.count_products(network, 10.0) > 0
    check(config)
    assert theory_of(dict(config)).first.verdict == "not known"
    assert obstacle_of({**fields, "layers": "mr", "num_attention_heads": 0}) is None


def hybrid(layers: str) -> TrainedModel:
    return untrained(**SIZES, task="parity", architecture="hybrid", layers=layers)


def test_hybrid_blocks_show_attention_or_memory() -> None:
    # Memories that are not alike have no units in common.
    assert recurrent_units(hybrid("gad"), [0, 1]) is None
    assert recurrent_units(hybrid("aa"), [0, 1]) is None
    assert attention_patterns(hybrid("gd"), [0, 1], "attention") is None
    model = hybrid("gaga")
    letters = [0, 1, 1]
    patterns = attention_patterns(model, letters, "attention")
    units = recurrent_units(model, letters)
    assert patterns is not None
    assert units is not None
    assert np.allclose(patterns.weights.sum(axis=3), 1)
    blocks = [name.split(",")[0].lower() for name, _ in heads(patterns)]
    assert blocks == ["block 1"] * 2 + ["block 3"] * 2
    assert units.layers == {"0": 0, "2": 1}
    assert layer_word(model) == "block"
    run_model = RunModel(model.problem, model.weights)
    drawn = [figure.part for figure in figures_of_strings(run_model, ["011"])]
    assert "block 3, head 1, 011" in drawn
    assert "block 2: eigenvalue, 011" in drawn
