"""Blocks with a memory of fixed size equal the equations of their papers."""

from typing import Any

import pytest
import torch
from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.models import architectures_by_letter
from seqcls.models.base import Recorder
from seqcls.models.mixing import Mixer, Mixing
from seqcls.strings.tokenizer import PAD
from tests.oracles import memories
from tests.zoo import readable_model, scattered_weights

HIDDEN = 6
SIZES: dict[str, Any] = {
    "hidden_size": HIDDEN, "num_blocks": 2, "feed_forward_size": 8, "readout": "last",
    "precision": "float64", "num_letters": 3,
}  # fmt: skip
IN_HEADS = {"num_attention_heads": memories.HEADS, "attention_head_size": memories.HEAD}
NETWORKS: dict[str, dict[str, Any]] = {
    "deltanet": {"architecture": "deltanet", **IN_HEADS},
    "deltanet, signed": {
        "architecture": "deltanet", **IN_HEADS, "eigenvalue_range": "signed", "biases": True,
        "norm_placement": "post",
    },
    "deltanet, short": {"architecture": "deltanet", **IN_HEADS, "short_convolution": False},
    "gated_deltanet": {"architecture": "gated_deltanet", **IN_HEADS},
    "gated_deltanet, signed, short": {
        "architecture": "gated_deltanet", **IN_HEADS, "eigenvalue_range": "signed",
        "short_convolution": False,
    },
    "deltaproduct": {"architecture": "deltaproduct", **IN_HEADS},
    "deltaproduct, signed": {
        "architecture": "deltaproduct", **IN_HEADS, "eigenvalue_range": "signed",
        "householder_steps": 3,
    },
    "mamba": {"architecture": "mamba", "state_size": 5},
    "mamba, signed": {
        "architecture": "mamba", "state_size": 3, "expand": 1, "eigenvalue_range": "signed",
        "final_norm": True,
    },
    "slstm": {"architecture": "slstm", **IN_HEADS, "biases": True},
    "linear_attention": {"architecture": "linear_attention", **IN_HEADS, "readout": "mean"},
    "hybrid": {"architecture": "hybrid", "layers": "gm", **IN_HEADS},
}  # fmt: skip
IDS = torch.tensor([[2, 3, 4, 4, 2, 3], [3, 3, 2, PAD, PAD, PAD], [4, PAD, PAD, PAD, PAD, PAD]])


def network(name: str, **fields: Any) -> NetworkConfig:
    return NetworkConfig(**{**SIZES, **NETWORKS[name], **fields})


def drawn(name: str, **fields: Any) -> Mixing:
    """A model whose every parameter is random."""
    config = network(name, **fields)
    model = readable_model(config, scattered_weights(config, width=0.5))
    assert isinstance(model, Mixing)
    return model


def mixer_of(name: str, **fields: Any) -> Mixer:
    (first, *_) = drawn(name, **fields).blocks
    return first.mixer


def some_states(tokens: int = 19) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(3, tokens, HIDDEN, generator=generator, dtype=torch.float64)


def recurrence(name: str, mixer: Mixer, weights: dict[str, Tensor], states: Tensor) -> Tensor:
    """The outputs for one string by the published equations."""
    if name == "slstm":
        return memories.slstm_of(weights, states)
    if name == "linear_attention":
        return memories.linear_attention_of(weights, states)
    if name == "mamba, signed":
        return memories.signed_mamba_of(weights, states, mixer.config.state_size)
    steps = mixer.config.householder_steps if "product" in name else 1
    return memories.delta_rule_of(weights, states, "signed" in name, steps)


@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in ("mamba", "hybrid")])
def test_mixers_and_their_gradients_equal_their_recurrences(name: str) -> None:
    mixer, states = mixer_of(name), some_states().requires_grad_()
    weights: dict[str, Tensor] = dict(mixer.named_parameters())
    found = mixer(states, Recorder())
    right = torch.stack([recurrence(name, mixer, weights, own) for own in states])
    torch.testing.assert_close(found, right, rtol=1e-12, atol=1e-12)
    ours, theirs = (
        torch.autograd.grad(x.pow(3).sum(), [states, *weights.values()]) for x in (found, right)
    )
    for own, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-10, atol=1e-10)


@torch.no_grad()
def test_deltaproduct_of_one_step_is_deltanet() -> None:
    one = drawn("deltaproduct", householder_steps=1)
    other = readable_model(network("deltanet"), dict(one.named_parameters()))
    torch.testing.assert_close(one(IDS), other(IDS), rtol=0, atol=0)


@torch.no_grad()
def test_recorded_memory_equals_the_stepped_one() -> None:
    for name in ("deltanet", "gated_deltanet", "deltaproduct, signed"):
        mixer, states = mixer_of(name), some_states(6)
        cached = mixer.nothing(states[:, 0])
        recorded = dict[str, Tensor]()
        mixer(states, Recorder(recorded=recorded))
        for position in range(6):
            _, cached = mixer.step(states[:, position], cached)
            torch.testing.assert_close(recorded["state"][:, position], cached[0].flatten(1))


@pytest.mark.parametrize("fields", [{}, {"expand": 3, "state_size": 1}])
def test_mamba_equals_mambapy(fields: dict[str, Any]) -> None:
    mixer, states = mixer_of("mamba", **fields), some_states().requires_grad_()
    theirs = memories.mambapy_block(mixer)
    # The package computes rates and skips in single precision.
    with torch.no_grad():
        rate, skip = mixer.get_parameter("log_rate"), mixer.get_parameter("skip")
        rate.copy_(rate.float().exp().double().log())
        skip.copy_(skip.float())
    found, right = mixer(states, Recorder()), theirs(states)
    torch.testing.assert_close(found, right, rtol=1e-12, atol=1e-12)
    gradients = [torch.autograd.grad(x.square().sum(), states)[0] for x in (found, right)]
    torch.testing.assert_close(*gradients, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_are_finite_at_any_length(name: str) -> None:
    for readout, shortest in (("last", 1), ("mean", 0)):
        model = drawn(name, readout=readout)
        for ids in (IDS, torch.zeros(2, shortest, dtype=torch.long)):
            model.zero_grad()
            model(ids).square().sum().backward()
            gradients = [x.grad for x in model.parameters() if x.grad is not None]
            assert all(gradient.isfinite().all() for gradient in gradients)


def hybrid(layers: str, **fields: Any) -> Mixing:
    return drawn("hybrid", layers=layers, **fields)


@pytest.mark.parametrize("letter", [x for x in architectures_by_letter() if x not in "ar"])
@torch.no_grad()
def test_hybrid_of_one_letter_is_that_architecture(letter: str) -> None:
    name = architectures_by_letter()[letter]
    model, config = hybrid(2 * letter), NetworkConfig(**{**SIZES, **IN_HEADS}, architecture=name)
    alike = readable_model(config, dict(model.named_parameters()))
    assert torch.equal(model(IDS), alike(IDS))


@pytest.mark.parametrize("scale", ["sqrt", "log_length", "learned_log_length"])
@pytest.mark.parametrize("positions", ["none", "rotary", "alibi"])
@torch.no_grad()
def test_hybrid_of_attention_alone_is_a_transformer(positions: str, scale: str) -> None:
    fields: dict[str, Any] = {"positions": positions, "attention_scale": scale, "biases": True}
    model = hybrid("aa", **fields)
    names = {".mixer_norm.": ".attention_norm.", ".mixer.attention.": ".attention."}
    values: dict[str, torch.Tensor] = {}
    for name, value in model.named_parameters():
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)
        values[name] = value
    config = NetworkConfig(**{**SIZES, **IN_HEADS, **fields, "attention_mask": "causal"})
    torch.testing.assert_close(
        model(IDS), readable_model(config, values)(IDS), rtol=1e-12, atol=1e-12
    )
