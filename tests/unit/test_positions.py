"""Position schemes are what their sources define, and are refused where they cannot be."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.engines.choice import choose_engine
from seqcls.engines.member import draw_initial
from seqcls.errors import ConfigError, InvalidStringError
from seqcls.evaluation import drawn_test_set, evaluate
from seqcls.models.initialization import initial_parameters
from seqcls.models.positions import POSITIONS, read_ids
from seqcls.models.positions.numbers import slopes
from seqcls.models.positions.places import TrainingPlaces, positions_of
from seqcls.models.positions.schemes import Positions, buckets
from seqcls.models.transformer import Transformer
from seqcls.prediction import predict
from seqcls.problem import configuration, resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, PAD
from seqcls.training import train_group
from seqcls.weights import to_bytes
from tests.conftest import SHORT
from tests.unit.networks import plain_model

DOUBLE = torch.float64
SHIFTED = {"positions": "learned", "position_draw": "shifted"}


def scheme(**fields: Any) -> Positions:
    config = NetworkConfig(precision="float64", **fields)
    made: Positions = POSITIONS[config.positions].load()(config)
    return made


@pytest.mark.parametrize("hidden_size", [1, 5, 8])
def test_sinusoidal_positions_are_their_formula(hidden_size: int) -> None:
    places = torch.tensor([[0, 3, 501]])
    made = scheme(positions="sinusoidal", hidden_size=hidden_size)
    added = made.embed(torch.zeros(1, 3, hidden_size, dtype=DOUBLE), places)
    frequencies = [10_000 ** (-2 * k / hidden_size) for k in range(math.ceil(hidden_size / 2))]
    for own, place in zip(added[0].tolist(), (0, 3, 501), strict=True):
        waves = [f(place * x) for f in (math.sin, math.cos) for x in frequencies]
        assert own == pytest.approx(waves[:hidden_size], abs=1e-12)


def test_rotary_positions_turn_pairs_by_their_place() -> None:
    made = scheme(positions="rotary", attention_head_size=6)
    head = torch.randn(1, 1, 1, 6, dtype=DOUBLE)
    turned = made.rotate(head, torch.tensor([[7]]))[0, 0, 0]
    for k in range(3):
        one, other = head[0, 0, 0, 2 * k : 2 * k + 2].tolist()
        number = complex(one, other) * complex(
            math.cos(7 * 10_000 ** (-k / 3)), math.sin(7 * 10_000 ** (-k / 3))
        )
        assert turned[2 * k : 2 * k + 2].tolist() == pytest.approx([number.real, number.imag])
    query, key = torch.randn(2, 1, 1, 1, 6, dtype=DOUBLE)

    def score(i: int, j: int) -> Tensor:
        turned = [made.rotate(x, torch.tensor([[p]])) for x, p in ((query, i), (key, j))]
        return (turned[0] * turned[1]).sum()

    torch.testing.assert_close(score(3, 10), score(503, 510), rtol=1e-10, atol=1e-10)


def test_alibi_lowers_scores_by_the_distance_in_both_directions() -> None:
    assert slopes(8) == [2.0**-x for x in range(1, 9)]
    assert slopes(3) == [2.0**-4, 2.0**-8, 2.0**-2]
    assert slopes(12)[8:] == pytest.approx([2.0**-x for x in (0.5, 1.5, 2.5, 3.5)])
    places = torch.tensor([[0, 2, 5]])
    bias = scheme(positions="alibi", num_attention_heads=2).bias(places, places)
    assert bias is not None
    distances = torch.tensor([[0, 2, 5], [2, 0, 3], [5, 3, 0]], dtype=DOUBLE)
    torch.testing.assert_close(bias[0], torch.stack([-distances / 2**4, -distances / 2**8]))


def test_relative_distances_fall_into_t5s_buckets() -> None:
    distances = torch.tensor([0, -1, -7, -8, -11, -12, -16, -64, -127, -128, -900, 1, 7, 8, 900])
    both = [0, 1, 7, 8, 8, 9, 10, 14, 15, 15, 15, 17, 23, 24, 31]
    assert buckets(distances, both_directions=True).tolist() == both
    backwards = torch.tensor([5, 0, -15, -16, -32, -64, -127, -128, -900])
    found = buckets(backwards, both_directions=False).tolist()
    assert found == [0, 0, 15, 16, 21, 26, 31, 31, 31]


def fire_of(
    config: NetworkConfig, values: dict[str, Tensor], head: int, i: int, j: int, n: int
) -> float:
    """The bias of places i and j in a string of n tokens, number by number."""
    c, least = (float(values[f"positions.log_{x}"].exp()) for x in ("scale", "threshold"))
    longest = max(least, i + 1 if config.attention_mask == "causal" else n)
    share = math.log(c * abs(i - j) + 1) / math.log(c * longest + 1)
    weights = [values[f"positions.{x}"] for x in ("input.weight", "input.bias", "output.weight")]
    first, bias, second = weights
    inner = [max(float(w * share + b), 0.0) for w, b in zip(first[:, 0], bias, strict=True)]
    found = sum(x * float(w) for x, w in zip(inner, second[head], strict=True))
    return found + float(values["positions.output.bias"][head])


@pytest.mark.parametrize("mask", ["causal", "full"])
@torch.no_grad()
def test_fire_is_a_function_of_the_share_of_what_is_read(mask: Any) -> None:
    config = NetworkConfig(
        positions="fire", attention_mask=mask, num_attention_heads=3, trained_length=16,
        readout="last", precision="float64", hidden_size=4,
    )  # fmt: skip
    values = initial_parameters(config, 0)
    assert float(values["positions.log_scale"].exp()) == pytest.approx(0.1)
    assert float(values["positions.log_threshold"].exp()) == pytest.approx(4)
    model = plain_model(config, values)
    lengths = (9, 3, 1)
    ids = torch.full((3, 9), PAD)
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = CLS
    places = positions_of(config, ids)
    assert isinstance(model, Transformer)
    bias = model.positions.bias(places, places)
    assert bias is not None
    for row, length in enumerate(lengths):
        own = bias[min(row, len(bias) - 1)]
        for head in range(3):
            for i in range(length):
                for j in range(i + 1 if mask == "causal" else length):
                    right = fire_of(config, values, head, i, j, length)
                    assert float(own[head, i, j]) == pytest.approx(right, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("mask", ["causal", "full"])
@torch.no_grad()
def test_fire_knows_nothing_of_strings_beside_one(mask: Any) -> None:
    config = NetworkConfig(
        positions="fire", attention_mask=mask, num_blocks=2, trained_length=4, readout="last",
        precision="float64", hidden_size=4,
    )  # fmt: skip
    model = plain_model(config, initial_parameters(config, 1))
    strings = TokenStrings.of_lists(3, [[0, 1, 2, 2, 1, 0], [1], [], [2, 0]])
    ids = torch.from_numpy(read_ids(strings, "last")).int()
    together = model(ids)
    for row, own in enumerate(ids):
        alone = model(own[own != PAD].unsqueeze(0))
        torch.testing.assert_close(together[row : row + 1], alone, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("positions", ["alibi", "fire", "none", "relative", "sinusoidal"])
@torch.no_grad()
def test_the_mean_of_an_empty_string_has_a_logit(positions: Any) -> None:
    config = NetworkConfig(positions=positions, readout="mean", hidden_size=4)
    model = plain_model(config, initial_parameters(config, 1))
    empty, beside = torch.zeros((1, 0), dtype=torch.int), torch.tensor([[PAD, PAD], [2, 3]]).int()
    torch.testing.assert_close(model(empty), model(beside)[:1])


def test_fire_trains_by_strings_and_reads_one_stream() -> None:
    fields = {"task": "parity", "positions": "fire", **SHORT}
    problem = resolve(configuration(fields))
    assert choose_engine(problem, device="cpu").name == "strings"
    (trained,) = train_group([(problem, 0)], device="cpu")
    begun = initial_parameters(problem.network, 0)
    assert all(
        (trained.kept_weights[x] != begun[x].numpy()).any() for x in begun if "positions" in x
    )
    with pytest.raises(ConfigError, match="positions='fire' with architecture='encoder_decoder'"):
        configuration({"task": "copy", "positions": "fire", "architecture": "encoder_decoder"})


def test_a_learned_table_has_the_places_of_the_longest_training_string() -> None:
    config = configuration({"positions": "learned", "validation_max_length": 10})
    parameters = initial_parameters(resolve(config).network, 0)
    # Ten letters and CLS.
    assert parameters["positions.table.weight"].shape == (11, 2)
    wide = configuration({"positions": "learned", "position_range": 300})
    assert initial_parameters(resolve(wide).network, 0)["positions.table.weight"].shape == (300, 2)


def test_training_draws_new_places_for_every_batch_and_the_same_for_the_same_seed() -> None:
    config = NetworkConfig(positions="alibi", position_range=50)
    one, same, other = (TrainingPlaces(config, seed) for seed in (1, 1, 2))
    ids = torch.full((2, 20), CLS)
    drawn = [one.draw(ids) for _ in range(3)]
    for own in drawn:
        assert torch.equal(own, own.unique().unsqueeze(0)), "sorted, and none twice"
        assert 0 <= own.min() <= own.max() < 50
        assert torch.equal(own, same.draw(ids))
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], other.draw(ids))
    assert one.draw(torch.full((1, 50), CLS)).tolist() == [list(range(50))]


def test_tested_places_depend_on_the_length_and_the_seed_of_testing_alone() -> None:
    config = NetworkConfig(positions="alibi", position_range=50, place_seed=3)
    ids = torch.tensor([[CLS, 2, PAD, PAD, PAD], [CLS, 2, 3, 4, 2], [CLS, 3, PAD, PAD, PAD]])
    places = positions_of(config, ids)
    assert torch.equal(places[0], places[2])
    assert torch.equal(places[0, :2], positions_of(config, ids[:1, :2])[0])
    assert len(places[1].unique()) == 5
    elsewhere = config.model_copy(update={"place_seed": 4})
    assert not torch.equal(places, positions_of(elsewhere, ids))
    tests = [{"test_seed": 3, "positions": "alibi", "position_range": x} for x in (0, 500)]
    assert [resolve(configuration(own)).network.place_seed for own in tests] == [0, 3]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"positions": "rotary"}, "attention_head_size=1: expected an even number"),
        ({"positions": "learned"}, "validation_max_length=50: positions='learned' ends at 10"),
        (
            {"positions": "alibi", "position_range": 200},
            "position_range=200: expected at least 201, .* the longest test string",
        ),
        ({"positions": "none", "position_range": 500}, "position_range=500: not read by positions"),
        ({"positions": "relative", "position_range": 500}, "position_range=500: not read by"),
        (
            {**SHIFTED, "position_range": 50},
            "position_range=50 with position_draw='shifted': places are drawn one way or the other",
        ),
        (
            {**SHIFTED, "validation_max_length": 40, "test_max_length": 30},
            "validation_max_length=40: .* ends at 30, the longest string trained on or tested",
        ),
        (
            {"positions": "alibi", "position_draw": "shifted"},
            "position_draw='shifted': not read by positions 'alibi'; leave it out",
        ),
        (
            {"final_norm": True, "layer_norm_eps": 0.0},
            "final_norm=True with layer_norm_eps=0, which means no norm at all; leave one out",
        ),
        (
            {"architecture": "gru", "readout": "last", "final_norm": True},
            "final_norm=True: not read by architecture 'gru'; leave it out",
        ),
        (
            {
                "embeddings_init_strategy": "gpt2",
                "feed_forward_init_strategy": "output_fan_out",
            },
            "feed_forward_init_strategy='output_fan_out' with embeddings_init_strategy='gpt2'",
        ),
        (
            {"attention_mask": "causal"},
            "readout='first' with attention_mask='causal': CLS comes first",
        ),
        ({"architecture": "lstm"}, "readout='first' with architecture='lstm': CLS comes first"),
        (
            {"architecture": "gru", "readout": "last", "positions": "alibi"},
            "positions='alibi': not read by architecture 'gru'; leave it out",
        ),
        ({"architecture": "transfomer"}, "architecture='transfomer': did you mean 'transformer'"),
        ({"positions": "learnt"}, "positions='learnt': did you mean 'learned'"),
    ],
)
def test_what_cannot_be_is_refused_by_name(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        configuration(fields)


def test_beyond_a_learned_table_lengths_have_no_number() -> None:
    config = configuration(
        {
            **SHORT,
            "positions": "learned",
            "validation_max_length": 10,
            "test_max_length": 40,
            "precision": "float64",
        }
    )
    (weights,) = draw_initial([(resolve(config), 0)])
    # Whatever the letters, this one says no.
    weights["classifier.weight"][:] = 0
    (tested,) = evaluate(resolve(config), [weights])
    assert tested.lengths.max() == 10
    assert sum(tested.confusion) == tested.tested < 512
    lengths = drawn_test_set(resolve(config)).lengths[tested.errors.numbers]
    assert lengths.max() <= 10
    assert tested.solved_length == lengths.min() - 1
    said = predict(resolve(config), to_bytes(weights), ["ab", "a{10}"])
    assert [own.logit for own in said] == [0, 0]
    with pytest.raises(InvalidStringError, match="longer than the model has places for"):
        predict(resolve(config), to_bytes(weights), ["a{11}"])


def test_all_right_as_far_as_the_table_goes_is_solved_that_far() -> None:
    config = configuration(
        {
            **SHORT,
            "required_letters": "a",
            "num_letters": 2,
            "layer_norm_eps": 0.0,
            "positions": "learned",
        }
        | {"validation_max_length": 10, "test_max_length": 40}
    )
    (weights,) = draw_initial([(resolve(config), 0)])
    for name, value in weights.items():
        value[:] = 0 if name != "classifier.weight" else [[1, 0]]
    # CLS sees every token alike, so its state says whether there is any a.
    weights["embedding.weight"][2] = [1, 0]
    for name in ("value", "output"):
        weights[f"blocks.0.attention.{name}.weight"][0, 0] = 1
    (tested,) = evaluate(resolve(config), [weights])
    assert len(tested.errors.numbers) == 0
    assert tested.solved_length == 10


def test_a_strings_order_reaches_the_prediction() -> None:
    config = configuration(
        {"positions": "rotary", "attention_head_size": 2, "precision": "float64"}
    )
    (weights,) = draw_initial([(resolve(config), 0)])
    ab, ba = predict(resolve(config), to_bytes(weights), ["ab", "ba"])
    assert ab.logit != ba.logit
    strings = TokenStrings.of_lists(3, [[0, 1], [1, 0]])
    own = {name: torch.from_numpy(value) for name, value in weights.items()}
    ids = torch.from_numpy(read_ids(strings, "first")).int()
    expected = plain_model(resolve(config).network, own)(ids)
    assert [ab.logit, ba.logit] == pytest.approx(expected.tolist(), rel=1e-12)
