"""Learned places that training shifts by an offset for each string."""

import math
from typing import Any

import pytest
import torch

from seqcls.engines.choice import choose_engine
from seqcls.errors import InvalidStringError
from seqcls.models.initialization import initial_parameters
from seqcls.models.positions import longest_readable, table_size
from seqcls.models.positions.places import TrainingPlaces, positions_of
from seqcls.prediction import predict
from seqcls.problem import configuration, resolve
from seqcls.strings.tokenizer import CLS, PAD
from seqcls.training import train_group
from seqcls.weights import to_bytes
from tests.unit.networks import plain_model


def table_for(**fields: Any) -> dict[str, Any]:
    """Learned places that are shifted in training, in a table for tests of up to 30 tokens."""
    return {
        "positions": "learned",
        "position_draw": "shifted",
        "validation_max_length": 20,
        "test_max_length": 30,
        **fields,
    }


def test_shifted_places_take_every_offset_with_which_a_string_fits_the_table() -> None:
    network = resolve(configuration(table_for())).network
    assert (network.trained_length, network.tested_length) == (10, 30)
    assert table_size(network) == 31
    assert longest_readable(network) == 30
    lengths = [2, 31, 20]
    ids = torch.full((3, 31), 2)
    for row, length in zip(ids, lengths, strict=True):
        row[length:] = PAD
    one, same, other = (TrainingPlaces(network, seed) for seed in (1, 1, 2))
    drawn = torch.stack([one.draw(ids) for _ in range(6000)])
    assert torch.equal(drawn, torch.stack([same.draw(ids) for _ in range(6000)]))
    assert not torch.equal(drawn[:10], torch.stack([other.draw(ids) for _ in range(10)]))
    assert torch.equal(drawn - drawn[:, :, :1], torch.arange(31).expand(6000, 3, 31))
    for row, length in enumerate(lengths):
        choices = 31 - length + 1
        counts = drawn[:, row, 0].bincount()
        assert len(counts) == choices, "every one, and none beyond"
        expected = 6000 / choices
        # Far beyond what a chi-squared of so many degrees reaches by chance.
        assert ((counts - expected) ** 2 / expected).sum() < 3 * choices
    pairs = drawn[:, [0, 2], 0].double().T
    assert abs(torch.corrcoef(pairs)[0, 1]) < 0.05, "each string has an offset of its own"


def test_shifted_places_are_those_of_offset_zero_when_nothing_is_learned() -> None:
    network = resolve(configuration(table_for())).network
    ids = torch.tensor([[CLS, 2, PAD], [CLS, 2, 3]])
    assert positions_of(network, ids).tolist() == [[0, 1, 2]]
    model = plain_model(network, initial_parameters(network, 0))
    assert torch.equal(model(ids), model(ids, torch.arange(3).unsqueeze(0)))
    assert not torch.equal(model(ids), model(ids, torch.arange(1, 4).unsqueeze(0)))


def test_members_of_a_group_see_the_same_shifted_places() -> None:
    problem = resolve(configuration(table_for(train_size=64, max_num_epochs=2, num_blocks=2)))
    alone = [train_group([(problem, seed)])[0] for seed in (0, 1)]
    for member, own in zip(train_group([(problem, 0), (problem, 1)]), alone, strict=True):
        assert member.train_losses == own.train_losses
    assert choose_engine(problem).name == "strings"


def test_the_longest_test_strings_can_be_asked_of_shifted_places_and_longer_ones_not() -> None:
    problem = resolve(configuration(table_for(train_size=64, max_num_epochs=1)))
    (member,) = train_group([(problem, 0)])
    weights = to_bytes(member.kept_weights)
    (answered,) = predict(problem, weights, ["a{30}"])
    assert math.isfinite(answered.logit)
    with pytest.raises(InvalidStringError, match="at most 30 tokens"):
        predict(problem, weights, ["a{31}"])


def test_no_network_but_that_of_shifted_places_depends_on_the_longest_test_string() -> None:
    networks = [
        resolve(configuration({"positions": "learned", **lengths})).network
        for lengths in ({"validation_max_length": 9, "test_max_length": x} for x in (9, 90))
    ]
    assert networks[0] == networks[1]
    assert networks[0].tested_length == 0
