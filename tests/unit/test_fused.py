"""The fused engine: its functions, its gradients, and that nothing else touches its results."""

import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from torch.nn.functional import binary_cross_entropy_with_logits

from seqcls.config import NetworkConfig, RunConfig
from seqcls.counts.forward import group_logits, log_counts
from seqcls.engines.choice import choose_engine
from seqcls.engines.compiled.arithmetic import BETA_1
from seqcls.engines.compiled.engine import Update
from seqcls.engines.fused import buffers, kernel
from seqcls.engines.fused.forward import cross_entropy_row, exp_row, normal_rows
from seqcls.engines.fused.packing import pack, unpack
from seqcls.engines.fused.tiles import make_tiles, shape_of
from seqcls.engines.fused.training import fused_logits
from seqcls.errors import EngineError
from seqcls.kinds.membership import sigmoid_scaled
from seqcls.problem import resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.training import train_group
from tests.conftest import LONG, short_config
from tests.unit.networks import Case, cases
from tests.unit.places_reference import random_weights, reference_logit

SHARE = 1 - BETA_1
"""After one step AdamW's first moments are this share of the gradient."""

FORMATS = [(np.float32, np.int32, 1e-6), (np.float64, np.int64, 1e-13)]


@njit(error_model="numpy")
def exp_of(x: Any, powers: Any, exponents: Any) -> None:
    exp_row(x, powers, exponents)


@njit(error_model="numpy")
def normal_of(x: Any, below: Any, density: Any, powers: Any, exponents: Any) -> None:
    normal_rows(x, below, density, powers, exponents)


@njit(error_model="numpy")
def cross_entropy_of(x: Any, small: Any, target: Any, out: Any) -> None:
    cross_entropy_row(x, small, target, out)


@pytest.mark.parametrize(("number", "integer", "tolerance"), FORMATS)
def test_exp_is_that_of_the_library(number: Any, integer: Any, tolerance: float) -> None:
    x = np.linspace(-80, 0, 4097).astype(number)
    found, powers = x.copy(), np.empty_like(x)
    exp_of(found, powers, powers.view(integer))
    np.testing.assert_allclose(found, np.exp(x.astype(np.float64)), rtol=tolerance)
    extremes = np.array([-1e30, -np.inf, 0, np.nan], dtype=number)
    exp_of(extremes, powers, powers.view(integer))
    assert extremes[:3].tolist() == [0, 0, 1]
    assert np.isnan(extremes[3]), "a diverged training must show"


@pytest.mark.parametrize(("number", "integer", "tolerance"), FORMATS)
def test_the_normal_distribution_is_that_of_the_library(
    number: Any, integer: Any, tolerance: float
) -> None:
    x = np.linspace(-6, 6, 4097).astype(number)
    below, density, powers = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    normal_of(x, below, density, powers, powers.view(integer))
    exact = [math.erfc(-value / math.sqrt(2)) / 2 for value in x.astype(float)]
    np.testing.assert_allclose(below, exact, rtol=3 * tolerance, atol=tolerance / 5)
    exact = [math.exp(-(value**2) / 2) / math.sqrt(2 * math.pi) for value in x.astype(float)]
    np.testing.assert_allclose(density, exact, rtol=3 * tolerance)


def test_the_loss_is_that_of_pytorch_rounding_included() -> None:
    for number, tolerance in ((np.float32, 2e-6), (np.float64, 1e-14)):
        x = np.linspace(-18, 18, 4096).astype(number)
        small, out = np.exp(-np.abs(x)), np.empty_like(x)
        for target in (0, 1):
            cross_entropy_of(x, small, np.full_like(x, target), out)
            logits = torch.from_numpy(x)
            targets = torch.full_like(logits, target)
            exact = binary_cross_entropy_with_logits(
                logits.double(), targets.double(), reduction="none"
            )
            expected = binary_cross_entropy_with_logits(logits, targets, reduction="none").numpy()
            np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)
            sure = logits.numpy() * (2 * target - 1) > 14
            assert out[sure].sum() == pytest.approx(expected[sure].sum(), rel=2e-3)
            if number == np.float32 and target == 0:
                # Negative strings that are told with confidence lose digits, there as here.
                assert out[sure].sum() != pytest.approx(exact.numpy()[sure].sum(), rel=1e-2)


@pytest.mark.slow
@given(cases(), st.booleans())
@settings(max_examples=60)
def test_gradients_are_those_of_autograd(case: Case, scaled: bool) -> None:
    config, own = case.config, case.members[0]
    positive = np.arange(len(case.strings)) % 2 == 0
    tiles = make_tiles(case.counts, positive, len(case.strings), "float64")
    flat = pack(config, {name: value.numpy() for name, value in own.items()})
    shape = shape_of(config)._replace(scaled_loss=scaled)
    moments, scratch = np.zeros((2, len(flat))), np.empty(buffers.TILE, np.int64)
    loss = kernel.train_epoch(
        flat, moments, 0, Update(np.zeros(1), 0.0, 0.0), shape, scratch, *tiles
    )
    gradient = moments[0] / SHARE

    parameters = {name: value[None].clone().requires_grad_() for name, value in own.items()}
    logits = group_logits(config, parameters, log_counts(config, case.counts))
    targets = torch.from_numpy(positive).double()[None]
    scores = sigmoid_scaled(logits) if scaled else logits
    expected = binary_cross_entropy_with_logits(scores, targets)
    expected.backward()
    assert loss == pytest.approx(expected.item() * len(case.strings), rel=1e-10)
    for name, value in unpack(config, gradient).items():
        exact = parameters[name].grad
        assert exact is not None
        scale = max(float(exact.abs().max()), 1e-3) if exact.numel() else 1
        np.testing.assert_allclose(value, exact[0], rtol=1e-10, atol=1e-12 * scale)


@given(cases())
@settings(max_examples=60)
def test_logits_are_those_of_the_stacked_engine(case: Case) -> None:
    weights = [{name: value.numpy() for name, value in own.items()} for own in case.members]
    found = fused_logits(
        case.config, weights, TokenStrings.of_counts(case.counts.shape[1], case.counts)
    )
    encoded = log_counts(case.config, case.counts)
    expected = group_logits(case.config, case.stacked(), encoded).detach()
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)


@given(cases())
@settings(max_examples=30)
def test_parameters_come_back_from_the_flat_array(case: Case) -> None:
    weights = {name: value.numpy() for name, value in case.members[0].items()}
    restored = unpack(case.config, pack(case.config, weights))
    assert list(restored) == list(weights)
    for name, value in weights.items():
        assert np.array_equal(restored[name], value)


def bits(config: RunConfig, seeds: list[int]) -> dict[int, bytes]:
    """The trained parameters of every seed, to the last bit."""
    members = train_group([(resolve(config), seed) for seed in seeds], engine="fused")
    return {m.model_seed: pack(resolve(config).network, m.kept_weights).tobytes() for m in members}


@pytest.mark.parametrize("fields", [{}, {"hidden_size": 16, "layer_norm": "nn"}], ids=str)
def test_a_members_result_is_its_own_to_the_last_bit(fields: dict[str, Any]) -> None:
    config = short_config(**fields)
    together = bits(config, list(range(20)))
    assert bits(config, list(reversed(range(20)))) == together
    for seed in (0, 7, 19):
        assert bits(config, [seed]) == {seed: together[seed]}
    assert len(set(together.values())) == 20


TRAIN_ONE = """
import hashlib
from seqcls.engines.fused.packing import pack
from seqcls.problem import resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.training import train_group
from tests.conftest import short_config
config = short_config()
member = train_group([(resolve(config), 3)], engine="fused")[0]
print(hashlib.sha256(pack(resolve(config).network, member.kept_weights).tobytes()).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.skipif(not LONG, reason="compiles all anew")
def test_code_compiled_now_and_code_from_the_cache_give_the_same_bits(tmp_path: Any) -> None:
    environment = {**os.environ, "SEQCLS_CACHE": str(tmp_path)}
    found = [
        subprocess.run(
            [sys.executable, "-c", TRAIN_ONE], env=environment, check=True, capture_output=True
        ).stdout
        for _ in range(2)
    ]
    assert found[0] == found[1] != b""


def test_the_engine_is_chosen_and_says_why() -> None:
    assert str(choose_engine(resolve(RunConfig()))) == "fused: letter counts suffice, on the CPU"
    assert choose_engine(resolve(RunConfig()), "torch").reason == "asked for"
    assert choose_engine(resolve(RunConfig()), device="cuda").name == "counts"
    dropout = RunConfig(dropout_rate=0.5)
    assert str(choose_engine(resolve(dropout))) == "strings: dropout_rate=0.5 is not compiled"
    with pytest.raises(EngineError, match="engine 'fused' cannot train this: dropout_rate"):
        choose_engine(resolve(dropout), "fused")
    with pytest.raises(EngineError, match="engine 'jax': expected auto, torch, fused, "):
        choose_engine(resolve(dropout), "jax")


OPTIONS = [
    {"attention_scale": "log_length"},
    {"activation": "relu", "biases": True},
    {"attention_scale": "log_length", "layer_norm": "nn", "biases": True, "no_attend_cls": True},
    {"readout": "last", "attention_mask": "causal"},
]


@pytest.mark.parametrize("clip", [0.0, 0.01])
@pytest.mark.parametrize("fields", OPTIONS, ids=str)
def test_every_option_is_computed_as_one_string_at_a_time(
    fields: dict[str, Any], clip: float
) -> None:
    config = NetworkConfig(precision="float64", hidden_size=5, feed_forward_size=3, **fields)
    weights, rows = random_weights(config, 0), [[0, 1, 2, 1], [], [2] * 9, [0, 0, 1]]
    own = {name: torch.from_numpy(x.copy()).requires_grad_() for name, x in weights.items()}
    logits = [reference_logit(config, own, row, list(range(len(row) + 1))) for row in rows]
    labels = np.array([True, False, False, True])
    targets = torch.from_numpy(labels).double()
    binary_cross_entropy_with_logits(torch.stack(logits), targets).backward()
    torch.nn.utils.clip_grad_norm_(own.values(), clip or math.inf)

    strings = TokenStrings.of_lists(3, rows)
    found = fused_logits(config, [weights], strings)[0]
    np.testing.assert_allclose(found, [x.item() for x in logits], rtol=1e-12)
    tiles, flat = make_tiles(strings.counts, labels, len(rows), "float64"), pack(config, weights)
    moments = np.zeros((2, len(flat)))
    update = Update(np.full(1, 1e-2), 0.5, clip)
    scratch = np.empty(buffers.TILE, np.int64)
    kernel.train_epoch(flat, moments, 0, update, shape_of(config), scratch, *tiles)
    optimizer = torch.optim.AdamW(own.values(), lr=1e-2, weight_decay=0.5)
    optimizer.step()
    after = unpack(config, flat)
    for name, gradient in unpack(config, moments[0] / SHARE).items():
        exact = own[name].grad
        assert exact is not None
        np.testing.assert_allclose(gradient, exact.numpy(), rtol=1e-9, atol=1e-12)
        # Where a gradient is rounding alone, its sign is, and with it the step.
        sure = np.abs(exact.numpy()) > 1e-9
        np.testing.assert_allclose(after[name][sure], own[name].detach().numpy()[sure], rtol=1e-6)
