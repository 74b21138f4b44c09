"""One block with positions from a table of (token, place) rows, against strings one by one."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import binary_cross_entropy_with_logits

from seqcls.config import NetworkConfig, RunConfig
from seqcls.engines.choice import choose_engine
from seqcls.engines.compiled.arithmetic import BETA_1
from seqcls.engines.compiled.engine import Update
from seqcls.engines.fused.buffers import TILE
from seqcls.engines.fused.packing import (
    ADDED,
    SCHEMES,
    fixed_positions,
    pack,
    position_terms,
    unpack,
)
from seqcls.engines.fused.packing import testing_positions as places_in_testing
from seqcls.engines.fused.table_kernel import train_table_epoch
from seqcls.engines.fused.tables import make_letter_tiles, rows_shape, table_logits
from seqcls.engines.fused.tiles import shape_of
from seqcls.models.initialization import initial_parameters, make_model
from seqcls.models.positions import Readout, read_ids
from seqcls.problem import resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.training import train_group
from tests.conftest import SHORT
from tests.unit.places_reference import random_weights, reference_logit

LONGEST = 12


@st.composite
def networks(draw: st.DrawFn, positions: str) -> NetworkConfig:
    """Any network of one block with these positions that is compiled, in float64."""
    readouts: list[Readout] = ["first"] if positions in ADDED else ["first", "last"]
    readout = draw(st.sampled_from(readouts))
    return NetworkConfig(
        positions=positions,
        readout=readout,
        attention_mask=draw(st.sampled_from(["full", "causal"])) if readout == "last" else "full",
        num_letters=draw(st.integers(1, 5)),
        trained_length=LONGEST,
        hidden_size=draw(st.integers(1, 9)),
        num_attention_heads=draw(st.integers(1, 4)),
        attention_head_size=draw(st.integers(1, 3)) * (2 if positions == "rotary" else 1),
        feed_forward_size=draw(st.integers(0, 5)),
        layer_norm=draw(st.sampled_from(["rms", "nn"])),
        layer_norm_eps=draw(st.sampled_from([0.0, 1e-2])),
        no_attend_cls=draw(st.booleans()),
        attention_scale=draw(st.sampled_from(["sqrt", "log_length"])),
        activation=draw(st.sampled_from(["gelu", "relu"])),
        biases=draw(st.booleans()),
        precision="float64",
    )


def some_strings(config: NetworkConfig, seed: int, number: int = 70) -> TokenStrings:
    """More than a tile of strings, the empty one among them."""
    rng = np.random.default_rng(seed)
    lengths = [0, *rng.integers(LONGEST + 1, size=number - 1)]
    strings = [rng.integers(config.num_letters, size=length).tolist() for length in lengths]
    return TokenStrings.of_lists(config.num_letters, strings)


def expected_logits(
    config: NetworkConfig, weights: dict[str, torch.Tensor], strings: TokenStrings
) -> torch.Tensor:
    """Those of the plain formulas."""
    rows = [
        row[:length].tolist() for row, length in zip(strings.letters, strings.lengths, strict=True)
    ]
    return torch.stack(
        [reference_logit(config, weights, row, list(range(len(row) + 1))) for row in rows]
    )


def close(found: Any, expected: Any, tolerance: float) -> None:
    """Within a share of the greatest value."""
    scale = max(float(np.abs(expected).max(initial=0)), 1e-3)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("positions", SCHEMES)
@given(data=st.data())
@settings(max_examples=8)
def test_logits_and_gradients_are_those_of_one_string_at_a_time(
    positions: str, data: st.DataObject
) -> None:
    config, seed = data.draw(networks(positions)), data.draw(st.integers(0, 2**32))
    weights, strings = random_weights(config, seed), some_strings(config, seed)
    own = {name: torch.from_numpy(x.copy()).requires_grad_() for name, x in weights.items()}
    expected = expected_logits(config, own, strings)
    flat = pack(config, weights)
    close(table_logits(config, [flat], strings)[0], expected.detach().numpy(), 1e-12)

    labels = np.arange(len(strings)) % 3 == 0
    targets = torch.from_numpy(labels).double()
    mean = binary_cross_entropy_with_logits(expected, targets)
    mean.backward()
    loss, gradient = first_step(config, flat, strings, labels)
    assert loss == pytest.approx(mean.item() * len(strings), rel=1e-10)
    for name, value in unpack(config, gradient).items():
        exact = own[name].grad
        if exact is not None:
            close(value, exact.numpy(), 1e-10)


def first_step(
    config: NetworkConfig, flat: np.ndarray, strings: TokenStrings, labels: np.ndarray
) -> tuple[float, np.ndarray]:
    """The loss of one batch and its gradient, which AdamW's first moments are a share of."""
    tiles, _ = make_letter_tiles(config, strings, labels, len(strings))
    moments, shape = np.zeros((2, len(flat))), shape_of(config)
    most = tiles.letters.shape[1]
    loss = train_table_epoch(
        flat.copy(),
        moments,
        0,
        Update(np.full(1, 1e-3), 0.01, 0.0),
        shape,
        rows_shape(config, shape, most),
        SCHEMES[config.positions],
        np.empty(TILE, np.int64),
        position_terms(config, fixed_positions(config, most)),
        tiles,
    )
    return loss, moments[0] / (1 - BETA_1)


@pytest.mark.parametrize("position_range", [0, 100])
@pytest.mark.parametrize("positions", SCHEMES)
def test_logits_are_those_of_the_plain_model(positions: str, position_range: int) -> None:
    if position_range and positions == "relative":
        pytest.skip("relative positions are never drawn at random")
    config = NetworkConfig(
        positions=positions,
        position_range=position_range,
        attention_head_size=2,
        hidden_size=6,
        trained_length=LONGEST,
        precision="float64",
        place_seed=3,
    )
    strings = some_strings(config, 0)
    parameters = initial_parameters(config, 1)
    model = make_model(config).double()
    model.load_state_dict(parameters)
    expected = model(torch.from_numpy(read_ids(strings, "first")).int()).detach().numpy()
    flat = pack(config, {name: value.numpy() for name, value in parameters.items()})
    close(table_logits(config, [flat], strings)[0], expected, 1e-12)


@pytest.mark.parametrize("positions", SCHEMES)
def test_company_and_order_change_no_logit(positions: str) -> None:
    config = NetworkConfig(
        positions=positions, attention_head_size=2, trained_length=LONGEST, precision="float64"
    )
    strings = some_strings(config, 5, 200)
    flat = pack(config, random_weights(config, 0))
    together = table_logits(config, [flat], strings)[0]
    for rows in (np.arange(200)[::-1], np.array([7]), np.array([3, 150, 3])):
        close(table_logits(config, [flat], strings.take(rows))[0], together[rows], 1e-13)


def test_longer_strings_than_learned_places_have_no_logit() -> None:
    config = NetworkConfig(positions="learned", trained_length=3, precision="float64")
    strings = TokenStrings.of_lists(3, [[0, 1, 2], [0, 1, 2, 0], []])
    flat = pack(config, random_weights(config, 0))
    assert np.isfinite(table_logits(config, [flat], strings)).tolist() == [[True, False, True]]


def test_places_drawn_for_testing_depend_on_length_and_seed_alone() -> None:
    config = NetworkConfig(positions="alibi", position_range=50, place_seed=1)
    (places,) = places_in_testing(config, 9)
    assert len(places) == 10
    assert (np.diff(places) > 0).all()
    assert places.tolist() == places_in_testing(config, 9)[0].tolist()
    other = places_in_testing(config.model_copy(update={"place_seed": 2}), 9)[0]
    assert places.tolist() != other.tolist()


NOT_COMPILED = [
    ({"dropout_rate": 0.5}, "dropout_rate=0.5 makes equal letters differ"),
    ({"num_blocks": 2}, "num_blocks=2: one block is compiled"),
    ({"architecture": "lstm"}, "architecture='lstm' is not compiled"),
    (
        {"readout": "mean", "attention_mask": "causal"},
        "readout='mean' with attention_mask='causal' is not compiled",
    ),
    (
        {"readout": "mean", "positions": "alibi"},
        "readout='mean' with positions='alibi' is not compiled",
    ),
    ({"norm_placement": "post"}, "norm_placement='post' is not compiled"),
    (
        {"positions": "learned", "readout": "last"},
        "readout='last' with positions='learned' is not compiled",
    ),
]


@pytest.mark.parametrize(("fields", "reason"), NOT_COMPILED, ids=str)
def test_what_is_not_compiled_is_said(fields: dict[str, Any], reason: str) -> None:
    from seqcls.engines.fused.engine import Fused

    config = RunConfig(task="parity", **fields)
    assert Fused().obstacle(resolve(config), "cpu") == reason
    assert choose_engine(resolve(config)).name != "fused"


@pytest.mark.parametrize("positions", SCHEMES)
def test_one_block_with_positions_is_compiled(positions: str) -> None:
    config = RunConfig(task="parity", positions=positions, attention_head_size=2)
    assert (
        str(choose_engine(resolve(config))) == "fused: one block is read at one place, on the CPU"
    )


@pytest.mark.parametrize("positions", sorted(set(SCHEMES) - {"relative"}))
def test_training_at_drawn_places_is_that_of_one_string_at_a_time(positions: str) -> None:
    config = RunConfig.from_mapping(
        {
            **SHORT,
            "task": "parity",
            "hidden_size": 4,
            "attention_head_size": 2,
            "train_max_length": 10,
            "positions": positions,
            "position_range": 60,
            "precision": "float64",
            "max_num_epochs": 2,
            "min_num_epochs": 2,
        }
    )
    compiled, plain = (
        train_group([(resolve(config), 3)], engine=name)[0] for name in ("fused", "strings")
    )
    for losses in ("train_losses", "validation_losses"):
        np.testing.assert_allclose(getattr(compiled, losses), getattr(plain, losses), rtol=1e-12)
    for name, weights in compiled.kept_weights.items():
        np.testing.assert_allclose(weights, plain.kept_weights[name], atol=1e-12)


@pytest.mark.parametrize("readout", ["first", "last"])
def test_empty_strings_alone_are_answered_as_in_company(readout: Readout) -> None:
    config = NetworkConfig(positions="alibi", readout=readout, attention_head_size=2)
    flat = pack(config, random_weights(config, 0))
    alone = TokenStrings.of_lists(config.num_letters, [(), ()])
    together = TokenStrings.of_lists(config.num_letters, [(), (0, 1), ()])
    logits = table_logits(config, [flat], together)[0]
    assert table_logits(config, [flat], alone)[0].tolist() == logits[[0, 2]].tolist()
