"""Blocks of several mixers in one body, and what is said of them."""

from typing import Any

import numpy as np
import pytest
import torch

from dashboard.figures.string_states import figures_of_strings, heads_of
from seqcls.config import NetworkConfig
from seqcls.decode import KeepingStepper, start
from seqcls.engines.choice import choose_engine
from seqcls.errors import ConfigError
from seqcls.fields import fields_unread
from seqcls.interpretability.states_by_strings import (
    attention_patterns,
    has_units,
    layer_word,
    recurrent_units,
)
from seqcls.models import MODELS, architectures_by_letter
from seqcls.models.base import Classifier
from seqcls.models.entries import entry_of
from seqcls.models.initialization import initial_parameters
from seqcls.models.mixing import LinearAttentionMixer, Mixing
from seqcls.problem import check, configuration, differing_starts, obstacle_of, resolve
from seqcls.standalone import network_json, source_of
from seqcls.strings.tokenizer import PAD
from seqcls.theory.predictions import theory_of
from seqcls.training import train_group
from sweeps.api.presentation import pattern_runs
from tests.unit.asked import untrained
from tests.unit.networks import plain_model

SIZES: dict[str, Any] = {
    "hidden_size": 6, "feed_forward_size": 8, "num_attention_heads": 2, "attention_head_size": 4,
    "readout": "last", "precision": "float64",
}  # fmt: skip
HYBRID = {**SIZES, "architecture": "hybrid", "num_letters": 3}
IDS = torch.tensor([[2, 3, 4, 4, 2, 3], [3, 3, 2, PAD, PAD, PAD], [4, PAD, PAD, PAD, PAD, PAD]])


def drawn(layers: str, **fields: Any) -> Classifier:
    settings = {**HYBRID, "layers": layers, "num_blocks": len(layers), **fields}
    config = NetworkConfig(**settings)
    torch.manual_seed(0)
    values = {
        name: value + 0.3 * torch.randn_like(value)
        for name, value in initial_parameters(config, 0).items()
    }
    return plain_model(config, values)


@pytest.mark.parametrize("letter", [x for x in architectures_by_letter() if x not in "ar"])
@torch.no_grad()
def test_blocks_of_one_letter_are_that_architecture(letter: str) -> None:
    name = architectures_by_letter()[letter]
    model, config = drawn(2 * letter), NetworkConfig(**SIZES, architecture=name, num_blocks=2)
    alike = plain_model(config, dict(model.named_parameters()))
    assert torch.equal(model(IDS), alike(IDS))


@pytest.mark.parametrize("scale", ["sqrt", "log_length", "learned_log_length"])
@pytest.mark.parametrize("positions", ["none", "rotary", "alibi"])
@torch.no_grad()
def test_blocks_of_attention_alone_are_a_transformer(positions: str, scale: str) -> None:
    fields: dict[str, Any] = {"positions": positions, "attention_scale": scale, "biases": True}
    model = drawn("aa", **fields)
    names = {".mixer_norm.": ".attention_norm.", ".mixer.attention.": ".attention."}
    values: dict[str, torch.Tensor] = {}
    for name, value in model.named_parameters():
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)
        values[name] = value
    config = NetworkConfig(**SIZES, **fields, num_blocks=2, attention_mask="causal")
    torch.testing.assert_close(model(IDS), plain_model(config, values)(IDS), rtol=1e-12, atol=1e-12)


MIXED = ["ga", "ag", "mas", "pdlr"]


@pytest.mark.parametrize("layers", MIXED)
@torch.no_grad()
def test_a_step_is_what_the_whole_gives(layers: str) -> None:
    fields = {"positions": "rotary"} if "a" in layers else {}
    model = drawn(layers, head="output", num_outputs=5, readout="first", **fields)
    ids = torch.randint(2, 5, (4, 11), generator=torch.Generator().manual_seed(5))
    whole, started = model(ids), ids[:, :6].clone()
    started[1, 3:] = PAD
    stepper, outputs = start(model, started, 5)
    assert isinstance(stepper, KeepingStepper)
    torch.testing.assert_close(outputs[0], whole[0, 5], rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(outputs[1], whole[1, 2], rtol=1e-11, atol=1e-12)
    stepper.take(torch.tensor([2, 0]))
    for place in range(6, 11):
        outputs = stepper.step(ids[[2, 0], place])
        torch.testing.assert_close(outputs, whole[[2, 0], place], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("layers", MIXED)
@torch.no_grad()
def test_one_file_says_what_a_hybrid_computes(layers: str) -> None:
    model = drawn(layers)
    text, name = source_of(model.config)
    unused = set("adgmplrs") - set(layers) - ({"d"} if set(layers) & set("gp") else set())
    classes = [MODELS[architectures_by_letter()[x]].load_mixer().__name__ for x in unused]
    assert not [x for x in classes if f"class {x}" in text]
    made: dict[str, Any] = {}
    exec(text, made)
    settings = type("Settings", (), network_json(model.config))()
    alone = made[name](settings).double()
    alone.load_state_dict(model.state_dict())
    torch.testing.assert_close(alone(IDS), model(IDS), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("layers", "engine"),
    [
        ("gda", "lanes: architecture='hybrid' may tell strings of equal letter counts apart"),
        ("gla", "strings: layers='gla': blocks of 'l' are not compiled"),
    ],
)
def test_a_hybrid_says_what_trains_it(layers: str, engine: str) -> None:
    sizes = {"train_size": 64, "validation_size": 16, "test_size": 16, "max_num_epochs": 1}
    lengths = {"train_max_length": 6, "validation_max_length": 6, "test_max_length": 8}
    hybrid = {**SIZES, "architecture": "hybrid", "layers": layers, "task": "parity"}
    hybrid["precision"] = "float32"
    problem = resolve(configuration({**hybrid, **sizes, **lengths, "min_num_epochs": 0}))
    assert str(choose_engine(problem, device="cpu")) == engine
    (trained,) = train_group([(problem, 0)], device="cpu")
    assert trained.failure is None
    assert {"blocks.0.mixer.fading.weight", "blocks.2.mixer.attention.key.weight"} <= set(
        trained.kept_weights
    )
    assert theory_of(dict(problem.config)).first.verdict == "not known"


def asked(**fields: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        configuration({"task": "parity", "readout": "last", "architecture": "hybrid", **fields})
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "layers='' with architecture='hybrid': expected a letter for each block, such as"),
        (
            {"layers": "gxa"},
            "layers='gxa': 'x' is no mixer; expected letters of a (transformer), d (delta",
        ),
        ({"layers": "ga", "num_blocks": 3}, "num_blocks=3 with layers='ga': these are 2 blocks"),
        ({"layers": "ga", "architecture": "lstm"}, "layers='ga': not read by architecture 'lstm'"),
        ({"layers": "gd", "positions": "rotary"}, "positions='rotary': not read by architecture"),
        ({"layers": "ga", "positions": "learned"}, "use none, rotary or alibi"),
        ({"layers": "ga", "state_size": 4}, "state_size=4: not read by architecture 'hybrid'"),
        ({"layers": "ga", "attention_mask": "causal"}, "attention_mask='causal': not read by"),
        ({"layers": "g", "num_attention_heads": 0}, "'g' cannot be a block: num_attention_heads=0"),
        ({"layers": "ga", "readout": "first"}, "use readout='last' or 'mean'"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(fields: dict[str, Any], says: str) -> None:
    assert says in asked(**fields)


class BothWays(LinearAttentionMixer):
    is_causal = False


class Bidirectional(Mixing):
    mixer = BothWays
    letter = "b"


def test_a_mixer_from_outside_that_is_not_causal_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MODELS, "_own", {**MODELS._own, "both": entry_of(Bidirectional)})
    assert "architecture='both': its mixer gives tokens what comes after" in asked(
        architecture="both"
    )
    assert "layers='ab': 'b' cannot be a block: architecture='both': its" in asked(layers="ab")


def test_the_number_of_blocks_follows_from_the_letters() -> None:
    fields = {"task": "parity", "readout": "last", "architecture": "hybrid", "layers": "gag"}
    config = configuration(fields)
    assert resolve(config).network.num_blocks == 3
    assert configuration({**fields, "num_blocks": 3}).key == config.key
    assert "num_blocks" in fields_unread(config)
    assert differing_starts(config, configuration({**fields, "layers": "gaa"}))
    sizes = MODELS["hybrid"].sizes
    network = resolve(config).network
    assert sizes.parameters(network) > 0
    assert sizes.scores(network, 10.0) > 0
    assert sizes.products(network, 10.0) > 0
    check(config)
    assert obstacle_of({**fields, "layers": "mr", "num_attention_heads": 0}) is None


def test_what_cannot_stand_side_by_side_is_absent_with_the_reason() -> None:
    def of(layers: str) -> Any:
        return untrained(**SIZES, task="parity", architecture="hybrid", layers=layers)

    mixed = of("gad")
    assert not has_units(mixed)
    with pytest.raises(ConfigError, match="layers='gad': its blocks keep memories of several"):
        recurrent_units(mixed, [0, 1])
    with pytest.raises(ConfigError, match="architecture='hybrid' has no attention"):
        attention_patterns(of("gd"), [0, 1])
    with pytest.raises(ConfigError, match="architecture='hybrid' is not recurrent"):
        recurrent_units(of("aa"), [0, 1])
    assert recurrent_units(of("gg"), [0, 1]).states.shape[0] == 2
    assert len(attention_patterns(of("aa"), [0, 1]).weights) == 2


def test_a_hybrids_blocks_show_their_attention_or_their_memory() -> None:
    model = untrained(**SIZES, task="parity", architecture="hybrid", layers="gaga")
    letters = [0, 1, 1]
    patterns, units = attention_patterns(model, letters), recurrent_units(model, letters)
    assert np.allclose(patterns.weights.sum(axis=3), 1)
    assert [name.split(",")[0] for name in heads_of(patterns)] == ["block 1"] * 2 + ["block 3"] * 2
    assert sorted({*pattern_runs(patterns)["block"]}) == [1, 3]
    assert units.layers == {"0": 0, "2": 1}
    assert layer_word(model) == "block"
    # A memory is what is kept of all tokens so far, whatever comes after them.
    earlier = recurrent_units(model, letters[:2])
    assert earlier.tokens[:2] == units.tokens[:2]
    assert np.allclose(units.states[:, :2], earlier.states[:, :2])
    assert not np.allclose(units.states[:, 1], units.states[:, 2])
    drawn = [figure.panel for figure in figures_of_strings(model, ["011"])]
    assert "block 3, head 1, 011" in drawn
    assert "block 2: eigenvalue, 011" in drawn
