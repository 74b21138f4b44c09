"""The engine of lanes: its functions and gradients, and that nothing else touches its results."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch.nn.functional import binary_cross_entropy_with_logits

from seqcls.cache import cache_folder
from seqcls.config import NetworkConfig
from seqcls.engines.choice import choose_engine
from seqcls.engines.compiled import machine_code
from seqcls.engines.compiled.arithmetic import BETA_1
from seqcls.engines.compiled.engine import Steps, Update
from seqcls.engines.lanes.batches import Groups, make_groups
from seqcls.engines.lanes.engine import cell_of, lane_logits
from seqcls.engines.lanes.packing import pack, shapes, unpack
from seqcls.engines.lanes.transformer_cell import make_positions
from seqcls.engines.lanes.vector import lanes
from seqcls.kinds.membership import sigmoid_scaled
from seqcls.models.initialization import initial_parameters
from seqcls.models.positions.places import TrainingPlaces
from seqcls.problem import configuration, resolve
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings
from seqcls.training import train_group
from tests.conftest import examples
from tests.unit.networks import Case, ordered_cases, plain_model

SHARE = 1 - BETA_1
"""After one step AdamW's first moments are this share of the gradient."""

NO_UPDATE = Update(np.zeros(1), 0.0, 0.0)


def single(config: NetworkConfig) -> NetworkConfig:
    """The same network in single precision, which is what is compiled."""
    return config.model_copy(update={"precision": "float32"})


@pytest.mark.slow
@given(case=ordered_cases(compiled=True))
@settings(max_examples=examples(150))
def test_logits_are_those_of_the_plain_model(case: Case) -> None:
    model = plain_model(case.config, case.members[0])
    weights = {name: value.numpy() for name, value in case.members[0].items()}
    strings = TokenStrings.of_lists(case.config.num_letters, case.strings)
    (found,) = lane_logits(single(case.config), [weights], strings)
    expected = model(case.ids).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * max(1, np.abs(expected).max()))


def gradients(
    config: NetworkConfig, weights: Weights, groups: Groups, scaled: bool, places: tuple[Any, ...]
) -> tuple[float, Weights]:
    """The sum of a batch's losses, and the gradient of their mean."""
    cell = cell_of(config)
    slots, size = cell.slots, cell.parameters.size
    moments = np.zeros((2, size), np.float32)
    steps = Steps(moments, 0, NO_UPDATE)
    loss, _ = cell.answer(cell.pack(weights), groups.strings, places, steps, scaled=scaled)
    beyond = np.ones(size, bool)
    for filled in slots.values():
        beyond[filled] = False
    assert not moments[0][beyond].any(), "what widths are filled up with has no gradient"
    return loss, unpack(config, slots, moments[0] / np.float32(SHARE))


@pytest.mark.slow
@given(case=ordered_cases(compiled=True))
@settings(max_examples=examples(150))
def test_gradients_are_those_of_autograd_in_double_precision(case: Case) -> None:
    config = single(case.config)
    scaled = len(case.strings) % 2 == 0
    weights = {name: value.numpy() for name, value in case.members[0].items()}
    strings = TokenStrings.of_lists(config.num_letters, case.strings)
    targets = np.arange(len(strings)) % 3 == 0
    groups = make_groups(config.readout, strings, targets, [np.arange(len(strings))])
    places = TrainingPlaces(case.config, 5).draw(case.ids)
    count, tokens, _ = groups.strings.ids.shape
    rows = np.zeros(count, np.int64)
    tables: tuple[Any, ...] = ()
    if config.architecture not in ("rnn", "gru", "lstm"):
        tables = (make_positions(config, rows, [places[0].numpy()], tokens),)
    loss, found = gradients(config, weights, groups, scaled, tables)

    model = plain_model(case.config, case.members[0])
    logits = model(case.ids, places)
    wanted = torch.from_numpy(targets).double()
    expected = binary_cross_entropy_with_logits(
        sigmoid_scaled(logits) if scaled else logits, wanted
    )
    expected.backward()
    assert loss == pytest.approx(expected.item() * len(strings), rel=1e-5, abs=1e-5)
    plain = {
        name: np.zeros(value.shape) if value.grad is None else value.grad.numpy()
        for name, value in model.named_parameters()
    }
    largest = max(1.0, *(float(np.abs(value).max(initial=0)) for value in plain.values()))
    assert found.keys() == plain.keys()
    for name, value in plain.items():
        mine = found[name].copy()
        if name == "embedding.weight":
            # PAD's has no part in anything.
            value[1] = 0
        np.testing.assert_allclose(mine, value, rtol=0, atol=3e-5 * largest, err_msg=name)


TRANSFORMERS: dict[str, dict[str, Any]] = {
    "two blocks": {"num_blocks": 2, "positions": "sinusoidal"},
    "mean, relative": {"num_blocks": 2, "positions": "relative", "readout": "mean"},
    "causal, alibi, after": {
        "positions": "alibi",
        "attention_mask": "causal",
        "readout": "last",
        "norm_placement": "post",
        "num_blocks": 3,
    },
    "rotary, at random": {"positions": "rotary", "position_range": 200, "num_blocks": 2},
    "learned": {"positions": "learned", "readout": "last", "num_blocks": 2, "activation": "relu"},
    "ln N, no norm": {
        "positions": "alibi",
        "attention_scale": "log_length",
        "layer_norm_eps": 0.0,
        "num_blocks": 2,
    },
}
OTHERS: dict[str, dict[str, Any]] = {
    "gated deltanet and attention": {
        "architecture": "hybrid",
        "layers": "ga",
        "attention_head_size": 6,
        "positions": "rotary",
        "readout": "last",
    },
    "mamba, signed": {
        "architecture": "mamba",
        "eigenvalue_range": "signed",
        "state_size": 4,
        "readout": "mean",
    },
    "lstm": {"architecture": "lstm", "readout": "last"},
    "gru of 2, mean": {"architecture": "gru", "num_blocks": 2, "readout": "mean"},
    "rnn": {"architecture": "rnn", "readout": "last"},
}
ALL = TRANSFORMERS | OTHERS


def network_of(fields: dict[str, Any]) -> NetworkConfig:
    own: dict[str, Any] = {
        "num_letters": 3,
        "hidden_size": 10,
        "biases": True,
        "trained_length": 60,
        **fields,
    }
    if own.get("architecture", "transformer") == "transformer":
        own |= {
            "num_attention_heads": 2,
            "attention_head_size": 6,
            "feed_forward_size": 9,
            "layer_norm": "nn",
        }
    return NetworkConfig(**own)


@pytest.mark.parametrize("name", ALL)
def test_a_strings_logit_depends_on_nothing_beside_it(name: str) -> None:
    config = network_of(ALL[name])
    weights = {k: v.numpy() for k, v in initial_parameters(config, 3).items()}
    rng = np.random.default_rng(5)
    placed = 0
    for length in (0, 1, 2, 5, 17, 33):
        string = rng.integers(0, 3, length).tolist()
        (alone,) = lane_logits(config, [weights], TokenStrings.of_lists(3, [string]))[0]
        for mates in (1, lanes() - 1, lanes(), 3 * lanes() + 2):
            for longest in (length, length + 1, 59):
                sizes = rng.integers(0, longest + 1, mates)
                others = [rng.integers(0, 3, size).tolist() for size in sizes]
                row = int(rng.integers(0, mates + 1))
                strings = [*others[:row], string, *others[row:]]
                found = lane_logits(config, [weights], TokenStrings.of_lists(3, strings))[0]
                assert found[row] == alone, (length, mates, longest)
                placed += 1
    assert placed == 72


def training(fields: dict[str, Any]) -> Any:
    own = {
        "task": "even_pairs",
        "hidden_size": 10,
        "biases": True,
        "train_size": 192,
        "train_max_length": 20,
        "validation_size": 64,
        "validation_max_length": 30,
        "test_size": 200,
        "test_max_length": 40,
        "max_num_epochs": 2,
        **fields,
    }
    if own.get("architecture", "transformer") == "transformer":
        own |= {
            "num_attention_heads": 2,
            "attention_head_size": 6,
            "feed_forward_size": 9,
            "layer_norm": "nn",
            "gradient_clip": 1.0,
        }
    if own.get("positions") == "learned":
        own["validation_max_length"] = 20
    return resolve(configuration(own))


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("name", ALL)
def test_training_is_that_of_pytorch(name: str, steps: int) -> None:
    problem = training({**ALL[name], "train_size": 64 * steps})
    assert choose_engine(problem).name == "lanes"
    (found,) = train_group([(problem, 4)], engine="lanes", every_epoch=True)
    (expected,) = train_group([(problem, 4)], engine="strings", every_epoch=True)
    np.testing.assert_allclose(found.train_losses, expected.train_losses, rtol=1e-4)
    np.testing.assert_allclose(found.validation_losses, expected.validation_losses, rtol=1e-3)
    for parameter, value in expected.weights[1].items():
        if "key.bias" in parameter:
            # Scores of one query move all alike with it, so its gradient is 0 but for rounding.
            continue
        own = found.weights[1][parameter]
        assert own.shape == value.shape
        assert own.dtype == value.dtype
        tolerance = (1e-5 if steps == 1 else 1e-4) * float(np.abs(value).max())
        np.testing.assert_allclose(own, value, rtol=0, atol=tolerance, err_msg=parameter)


@pytest.mark.parametrize("name", ["learned", "gru of 2, mean"])
def test_rates_by_steps_and_what_decays_are_those_of_pytorch(name: str) -> None:
    fields = {**ALL[name], "warm_up_steps": 2, "learning_rate_schedule": "cosine"}
    fields |= {"learning_rate_interval": "step", "decay": "matrices", "weight_decay": 5.0}
    problem = training(fields)
    assert choose_engine(problem).name == "lanes"
    (found,) = train_group([(problem, 4)], engine="lanes", every_epoch=True)
    (expected,) = train_group([(problem, 4)], engine="strings", every_epoch=True)
    for parameter, value in expected.weights[2].items():
        if "key.bias" not in parameter:
            tolerance = 1e-4 * float(np.abs(value).max())
            own = found.weights[2][parameter]
            np.testing.assert_allclose(own, value, rtol=0, atol=tolerance, err_msg=parameter)


@pytest.mark.parametrize("name", ["two blocks", "lstm"])
def test_a_members_results_do_not_depend_on_its_company(name: str) -> None:
    problem = training(ALL[name])
    together = train_group([(problem, seed) for seed in (3, 4, 5)], engine="lanes")
    (alone,) = train_group([(problem, 4)], engine="lanes")
    assert together[1].train_losses == alone.train_losses
    for parameter, value in alone.kept_weights.items():
        assert np.array_equal(together[1].kept_weights[parameter], value), parameter


@pytest.mark.parametrize("name", ALL)
def test_parameters_are_packed_and_unpacked(name: str) -> None:
    config = network_of(ALL[name])
    cell = cell_of(config)
    slots, size = cell.slots, cell.parameters.size
    weights = {k: v.numpy() for k, v in initial_parameters(config, 1).items()}
    places = np.concatenate([own.reshape(-1) for own in slots.values()])
    assert len(np.unique(places)) == len(places), "no two values in one place"
    assert places.max() < size
    assert {k: v.shape for k, v in weights.items()} == shapes(config, slots)
    again = unpack(config, slots, pack(slots, size, weights))
    for parameter, value in weights.items():
        assert np.array_equal(again[parameter], value), parameter


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"precision": "float64"}, "precision='float64'"),
        ({"dropout_rate": 0.1}, "dropout_rate=0.1"),
        ({"hidden_size": 600}, "hidden_size=600"),
    ],
)
def test_what_is_not_compiled_is_said(fields: dict[str, Any], reason: str) -> None:
    choice = choose_engine(training({**OTHERS["lstm"], **fields}))
    assert choice.name == "strings"
    assert choice.reason.startswith(reason)


def test_answering_waits_for_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = training(OTHERS["lstm"])
    known = (cache_folder(), "float32", machine_code.RECURRENT)
    monkeypatch.setattr(machine_code, "_READY", {known})
    assert choose_engine(problem, ready=True).name == "lanes"
    monkeypatch.setenv("SEQCLS_CACHE", str(tmp_path))
    choice = choose_engine(problem, ready=True)
    assert str(choice) == "strings: engine 'lanes' is not compiled yet"
    assert choose_engine(problem).name == "lanes"
    assert choose_engine(problem, "lanes", ready=True).name == "lanes"


def test_no_strings_have_no_logits() -> None:
    config = network_of(OTHERS["lstm"])
    weights = {k: v.numpy() for k, v in initial_parameters(config, 1).items()}
    assert lane_logits(config, [weights], TokenStrings.of_lists(3, [])).shape == (1, 0)


OTHER_LANES = """
import numpy as np
from numba import njit
from seqcls.engines.lanes.vector import block_rows, lanes
from seqcls.engines.lanes.tiles import Matrix, Rows, linear, product, weight_gradient
assert (lanes(), block_rows()) == ({lanes}, {rows}), (lanes(), block_rows())

@njit
def all_products(x, w, g):
    linear(4, 8, 5, x, Rows(0, 6), w, Matrix(0, 5, 1), Rows(24, 9), w, 40, False)
    product(4, 8, 5, x, Matrix(0, 6, 1), Matrix(24, 1, 9), Rows(100, 9), False)
    weight_gradient(4, 8, 4, x, Rows(100, 9), Rows(0, 6), g, 0, 4)

rng = np.random.default_rng(0)
x = rng.normal(size=200 * lanes()).astype(np.float32)
w = rng.normal(size=48).astype(np.float32)
g = np.zeros(32, np.float32)
x[24 * lanes():100 * lanes()] = 0
rows = x.reshape(200, lanes())[:24].reshape(4, 6, lanes()).copy()
all_products(x, w, g)
y = x.reshape(200, lanes())[24:60].reshape(4, 9, lanes())
expected = np.einsum("rsl,cs->rcl", rows[:, :5], w[:40].reshape(8, 5)) + w[40:, None]
np.testing.assert_allclose(y[:, :8], expected, rtol=0, atol=1e-5)
c = x.reshape(200, lanes())[100:136].reshape(4, 9, lanes())[:, :8]
b = x.reshape(200, lanes())[24:69].reshape(5, 9, lanes())[:, :8]
np.testing.assert_allclose(c, np.einsum("rsl,scl->rcl", rows[:, :5], b), rtol=0, atol=1e-4)
expected = np.einsum("trl,tcl->rc", c, rows[:, :4])
np.testing.assert_allclose(g.reshape(8, 4), expected, rtol=0, atol=1e-3)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("features", "count", "rows"),
    [("+avx512f,+avx2,+avx,+fma", 16, 4), ("+avx2,+avx,+fma", 8, 2), ("+sse4.2", 4, 2)],
)
def test_vectors_of_other_machines(features: str, count: int, rows: int) -> None:
    if "avx512f" in features and lanes() < count:
        pytest.skip("this machine has no AVX-512")
    said = subprocess.run(
        [sys.executable, "-c", OTHER_LANES.format(lanes=count, rows=rows)],
        env={**os.environ, "NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": features},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr[-2000:]
