"""Position schemes against their published definitions."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from seqcls.config import COUPLED, NetworkConfig
from seqcls.engines.member import draw_initial
from seqcls.errors import InvalidStringError
from seqcls.evaluation import drawn_test_set, evaluate
from seqcls.kinds import examples_of
from seqcls.models.initialization import initial_parameters
from seqcls.models.positions import longest_readable, read_ids, table_size
from seqcls.models.positions.numbers import buckets, slopes
from seqcls.models.positions.places import TrainingPlaces, coupled_positions, positions_of
from seqcls.models.transformer import Transformer
from seqcls.problem import Problem, configuration, resolve
from seqcls.questions import RunModel
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, PAD
from tests.conftest import SHORT
from tests.zoo import readable_model

SHIFTED: dict[str, Any] = {
    "positions": "learned", "position_draw": "shifted", "validation_max_length": 20,
    "test_max_length": 30,
}  # fmt: skip
"""Learned places that are shifted in training, in a table for tests of up to 30 tokens."""


def test_alibi_slopes_are_the_published_ones() -> None:
    assert slopes(8) == [2.0**-x for x in range(1, 9)]
    assert slopes(3) == [2.0**-4, 2.0**-8, 2.0**-2]
    assert slopes(12)[8:] == pytest.approx([2.0**-x for x in (0.5, 1.5, 2.5, 3.5)])


def test_relative_buckets_are_those_of_t5() -> None:
    distances = np.array([0, -1, -7, -8, -11, -12, -16, -64, -127, -128, -900, 1, 7, 8, 900])
    both = [0, 1, 7, 8, 8, 9, 10, 14, 15, 15, 15, 17, 23, 24, 31]
    assert buckets(distances, both_directions=True).tolist() == both
    backwards = np.array([5, 0, -15, -16, -32, -64, -127, -128, -900])
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
def test_fire_bias_equals_its_formula(mask: Any) -> None:
    config = NetworkConfig(
        positions="fire", attention_mask=mask, num_attention_heads=3, trained_length=16,
        readout="last", precision="float64", hidden_size=4,
    )  # fmt: skip
    values = initial_parameters(config, 0)
    assert float(values["positions.log_scale"].exp()) == pytest.approx(0.1)
    assert float(values["positions.log_threshold"].exp()) == pytest.approx(4)
    model = readable_model(config, values)
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


def test_training_draws_new_positions_for_every_batch() -> None:
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


def test_tested_positions_depend_on_length_and_test_seed_alone() -> None:
    config = NetworkConfig(positions="alibi", position_range=50, place_seed=3)
    ids = torch.tensor([[CLS, 2, PAD, PAD, PAD], [CLS, 2, 3, 4, 2], [CLS, 3, PAD, PAD, PAD]])
    positions = positions_of(config, ids)
    assert torch.equal(positions[0], positions[2])
    assert torch.equal(positions[0, :2], positions_of(config, ids[:1, :2])[0])
    assert len(positions[1].unique()) == 5
    elsewhere = config.model_copy(update={"place_seed": 4})
    assert not torch.equal(positions, positions_of(elsewhere, ids))
    tests = [{"test_seed": 3, "positions": "alibi", "position_range": x} for x in (0, 500)]
    assert [resolve(configuration(own)).network.place_seed for own in tests] == [0, 3]


def test_strings_beyond_the_learned_table_are_not_tested() -> None:
    fields = {"required_letters": "a", "num_letters": 2, "layer_norm_eps": 0.0}
    lengths = {"positions": "learned", "validation_max_length": 10, "test_max_length": 40}
    problem = resolve(configuration({**SHORT, **fields, **lengths}))
    (weights,) = draw_initial([(problem, 0)])
    # Ten letters and CLS.
    assert weights["positions.table.weight"].shape == (11, 2)
    for value in weights.values():
        value[:] = 0
    # This one rejects every string.
    (tested,) = evaluate(problem, [weights])
    assert tested.lengths.max() == 10
    assert sum(tested.confusion) == tested.tested < 512
    lengths_wrong = drawn_test_set(problem).lengths[tested.errors.numbers]
    assert lengths_wrong.max() <= 10
    assert tested.solved_length == lengths_wrong.min() - 1
    assert RunModel(problem, weights).predict(["ab", "a{10}"])["logit"] == [0, 0]
    with pytest.raises(InvalidStringError, match="longer than the model has places for"):
        RunModel(problem, weights).predict(["a{11}"], partial=False)
    # CLS attends to all tokens equally, so its state detects an a: all answers are right.
    weights["embedding.weight"][2] = weights["classifier.weight"][:] = [1, 0]
    for name in ("value", "output"):
        weights[f"blocks.0.attention.{name}.weight"][0, 0] = 1
    (tested,) = evaluate(problem, [weights])
    assert len(tested.errors.numbers) == 0
    assert tested.solved_length == 10


# Places that training shifts by an offset for each string.


def test_shifted_positions_are_drawn_from_every_offset() -> None:
    network = resolve(configuration(SHIFTED)).network
    assert (network.trained_length, network.tested_length) == (10, 30)
    assert table_size(network) == 31
    assert longest_readable(network) == 30
    lengths = [2, 31, 20]
    ids = torch.full((3, 31), 2)
    for row, length in zip(ids, lengths, strict=True):
        row[length:] = PAD
    one, same, other = (TrainingPlaces(network, seed) for seed in (1, 1, 2))
    drawn = torch.stack([one.draw(ids) for _ in range(2000)])
    assert torch.equal(drawn, torch.stack([same.draw(ids) for _ in range(2000)]))
    assert not torch.equal(drawn[:10], torch.stack([other.draw(ids) for _ in range(10)]))
    assert torch.equal(drawn - drawn[:, :, :1], torch.arange(31).expand(2000, 3, 31))
    for row, length in enumerate(lengths):
        choices = 31 - length + 1
        counts = drawn[:, row, 0].bincount()
        assert len(counts) == choices, "every one, and none beyond"
        expected = 2000 / choices
        # Far beyond what a chi-squared of so many degrees reaches by chance.
        assert ((counts - expected) ** 2 / expected).sum() < 3 * choices
    pairs = drawn[:, [0, 2], 0].double().T
    assert abs(torch.corrcoef(pairs)[0, 1]) < 0.1, "each string has an offset of its own"


def test_shifted_positions_have_no_offset_in_tests() -> None:
    problem = resolve(configuration(SHIFTED))
    network, (weights,) = problem.network, draw_initial([(problem, 0)])
    ids = torch.tensor([[CLS, 2, PAD], [CLS, 2, 3]])
    assert positions_of(network, ids).tolist() == [[0, 1, 2]]
    model = readable_model(network, weights)
    assert torch.equal(model(ids), model(ids, torch.arange(3).unsqueeze(0)))
    assert not torch.equal(model(ids), model(ids, torch.arange(1, 4).unsqueeze(0)))
    (logit,) = RunModel(problem, weights).predict(["a{30}"])["logit"]
    assert math.isfinite(logit)
    with pytest.raises(InvalidStringError, match="at most 30 tokens"):
        RunModel(problem, weights).predict(["a{31}"], partial=False)
    # No other network depends on the longest test string.
    learned = {"positions": "learned", "validation_max_length": 9}
    short, long = (resolve(configuration({**learned, "test_max_length": x})) for x in (9, 90))
    assert short.network == long.network
    assert short.network.tested_length == 0


# Places that tokens of input and output share.

SIZES = {"hidden_size": 8, "num_attention_heads": 1, "attention_head_size": 8, "train_size": 128}
LENGTHS = {"train_max_length": 7, "validation_max_length": 7, "test_max_length": 11}


def problem_of(task: str, positions: str = "coupled", **fields: object) -> Problem:
    return resolve(
        configuration({"task": task, "positions": positions, **SIZES, **LENGTHS, **fields})
    )


def ids_of(problem: Problem, *inputs: str) -> torch.Tensor:
    tokenizer = problem.tokenizer
    letters = [[x - 2 for x in tokenizer.encode(text)[1:]] for text in inputs]
    strings = TokenStrings.of_lists(tokenizer.num_letters, letters)
    read = problem.kind.reading(problem.task, examples_of(problem.task, strings))
    return torch.from_numpy(read_ids(read, "first")).long()


SUM: dict[str, Any] = {"digit_order": "least_first", "base": 10}
WORKED: list[tuple[str, str, dict[str, Any], str, list[int]]] = [
    # CLS a b b SEP a b b
    ("copy", "coupled", {}, "abb", [0, 1, 2, 3, 0, 1, 2, 3]),
    ("reverse", "coupled", {}, "abb", [0, 1, 2, 3, 0, 3, 2, 1]),
    # 321 + 9 = 330, least digit first.
    ("addition", "coupled", SUM, "123+9=", [0, 1, 2, 3, 0, 1, 0, 0, 1, 2, 3]),
    # CLS 1 2 3 + 9 = SEP 0 3 3: marks are one place before the ones.
    ("addition", "coupled_marks", SUM, "123+9=", [0, 2, 3, 4, 1, 2, 1, 1, 2, 3, 4]),
    # CLS a b b SEP ...: an output begins one step from its separator.
    ("copy", "coupled_marks", {}, "abb", [0, 2, 3, 4, 1, 2, 3, 4]),
    ("reverse", "coupled_marks", {}, "abb", [0, 2, 3, 4, 5, 4, 3, 2]),
    ("duplicate", "coupled_marks", {}, "abb", [0, 2, 3, 4, 1, 2, 3, 4, 2, 3, 4]),
    ("write_odds_first", "coupled_marks", {}, "abb", [0, 2, 3, 4, 1, 2, 4, 3]),
]


def test_coupled_tokens_share_a_position() -> None:
    for task, positions, fields, text, places in WORKED:
        problem = problem_of(task, positions, **fields)
        # Before training or tests move them.
        found = coupled_positions(problem.network.coupling, ids_of(problem, text))
        assert found.tolist() == [places], (task, positions)
    copies = problem_of("copy")
    padded = positions_of(copies.network, ids_of(copies, "abb", "a"))
    assert padded[1].tolist() == [0, 1, 0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("positions", COUPLED)
def test_output_beyond_the_target_has_position_zero(positions: str) -> None:
    problem = problem_of("copy", positions)
    longer = torch.cat([ids_of(problem, "ab"), torch.tensor([[2, 3]])], dim=1)
    assert positions_of(problem.network, longer)[0, -2:].tolist() == [0, 0]


def test_coupled_marks_are_shifted_with_their_tokens() -> None:
    problem = problem_of("addition", "coupled_marks", digit_order="least_first")
    ids = ids_of(problem, *["11+1="] * 4000)
    alone = coupled_positions(problem.network.coupling, ids)
    offsets = TrainingPlaces(problem.network, 0).draw(ids) - alone
    assert (offsets[:, 0] == 0).all()
    assert (offsets[:, 1:] == offsets[:, 1:2]).all()
    size = table_size(problem.network)
    assert size is not None
    # Those at the ends of the table are no rarer than others.
    counts = np.bincount(offsets[:, 1].numpy())
    assert len(counts) == size - int(alone.max())
    assert counts.min() > 0.6 * len(ids) / len(counts)


@pytest.mark.parametrize("task", ["addition", "copy", "reverse", "duplicate"])
def test_coupled_tests_use_the_middle_of_the_position_table(task: str) -> None:
    text = "01010101+1=" if task == "addition" else "a" * 11
    problem = problem_of(task, "coupled_marks", **(SUM if task == "addition" else {}))
    ids, size = ids_of(problem, text, text[-4:]), table_size(problem.network)
    assert size is not None
    moved = positions_of(problem.network, ids).numpy()
    alone = coupled_positions(problem.network.coupling, ids).numpy()
    tested = moved[0]
    (offset,) = set((tested - alone[0])[1:].tolist())
    assert tested[0] == 0
    # Of the longest strings, with as much room before them as behind; 1 is the least place.
    before, behind = tested[1:].min() - 1, size - 1 - tested.max()
    assert before >= offset > 0
    assert behind >= before - 1
    # A shorter string is moved by as much: its places do not depend on who is tested with it.
    assert set((moved[1] - alone[1])[alone[1] > 0].tolist()) == {offset}


def test_coupled_positions_without_marks_are_not_shifted() -> None:
    problem = problem_of("copy")
    ids = ids_of(problem, "abab")
    assert (
        positions_of(problem.network, ids) == coupled_positions(problem.network.coupling, ids)
    ).all()
    # As it always was, so that stored runs mean what they meant.
    assert problem.network.coupling == '{"distinct":false,"num_tokens":2,"task":"copy"}'
    # Nor is their separator in training.
    for positions, knows in (("coupled", False), ("coupled_marks", True)):
        problem = problem_of("addition", positions, digit_order="least_first")
        ids = ids_of(problem, *["11+1="] * 100)
        drawn = TrainingPlaces(problem.network, 0).draw(ids)
        at_separator = drawn[:, 1 + len("11+1=")]
        assert (len(at_separator.unique()) > 1) == knows, positions
