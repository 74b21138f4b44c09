"""Parts and states of encoder-decoders: what they can do without, and what they keep."""

from typing import Any

import numpy as np
import pytest
import torch

from seqcls.errors import ConfigError
from seqcls.interpretability.ablation.ablation import judge_of, rank
from seqcls.interpretability.ablation.by_strings import main_parts, parts_of
from seqcls.interpretability.model.readable_model import ids_of, plain_model
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.interpretability.states.by_strings import recurrent_units
from seqcls.models.parts import Part
from seqcls.problem import configuration, resolve
from tests.unit.streams import random_values
from tests.unit.test_paragraph import RECURRENT, SMALL, trained_of

COPY: dict[str, Any] = {
    "task": "copy", "architecture": "encoder_decoder", "hidden_size": 8, "num_blocks": 2,
    "num_attention_heads": 2, "attention_head_size": 4, "feed_forward_size": 6,
    "train_max_length": 4, "validation_max_length": 4, "test_max_length": 6, "test_size": 40,
}  # fmt: skip
CROSSING = Part(1, "head", 1, side="decoder", which="cross-attention ")


def copying(**fields: Any) -> TrainedModel:
    problem = resolve(configuration({**COPY, **fields}))
    values = random_values(problem.network)
    return TrainedModel(problem, {name: value.numpy() for name, value in values.items()})


def test_the_heads_of_both_sides_have_names() -> None:
    texts = [part.text for part in main_parts(copying())]
    assert texts[:3] == [
        "encoder block 0, head 0", "encoder block 0, head 1", "encoder block 0, feed-forward",
    ]  # fmt: skip
    assert texts[6:11] == [
        "decoder block 0, head 0", "decoder block 0, head 1",
        "decoder block 0, cross-attention head 0", "decoder block 0, cross-attention head 1",
        "decoder block 0, feed-forward",
    ]  # fmt: skip
    assert len(texts) == len(set(texts)) == 16
    of_pictures = [part.text for part in main_parts(trained_of(SMALL))]
    assert len(of_pictures) == 10
    assert all(text.startswith("decoder") for text in of_pictures)
    assert CROSSING.text in of_pictures


@pytest.mark.parametrize("part", [part.text for part in main_parts(copying())])
def test_a_part_that_adds_nothing_is_one_whose_weights_are_zero(part: str) -> None:
    model = copying()
    (found,) = [each for each in main_parts(model) if each.text == part]
    weights = {name: value.copy() for name, value in model.weights.items()}
    inside = f"{found.side}.blocks.{found.block}"
    if found.kind == "feed-forward":
        weights[f"{inside}.feed_forward.output.weight"][:] = 0
    else:
        name = "cross_attention" if found.which else "attention"
        columns = slice(4 * found.number, 4 * found.number + 4)
        weights[f"{inside}.{name}.output.weight"][:, columns] = 0
    ablated = judge_of(model).outputs({found: "zero"})
    np.testing.assert_allclose(
        ablated, judge_of(TrainedModel(model.problem, weights)).outputs({}), atol=1e-9
    )
    assert abs(ablated - judge_of(model).outputs({})).max() > 1e-6


def test_a_part_that_adds_its_mean_adds_that_over_the_tokens_of_its_stream() -> None:
    model = copying()
    judge = judge_of(model)
    for part in (CROSSING, Part(0, "head", 0, side="encoder")):
        state = plain_model(model).parts()[part]
        found, tokens = torch.zeros(4, dtype=torch.float64), 0
        with torch.no_grad():
            for ids in judge._batches:  # type: ignore[attr-defined]
                kept = plain_model(model).activations(ids)[state][:, part.number]
                separator = len(model.tokenizer.alphabet) + 2
                lengths = (ids == separator).int().argmax(dim=1)
                if part.side == "decoder":
                    lengths = (ids != 1).sum(dim=1) - lengths
                for row, length in enumerate(lengths.tolist()):
                    found += kept[row, :length].sum(dim=0)
                    tokens += length
        mean = judge._means[part]  # type: ignore[attr-defined]
        torch.testing.assert_close(mean, found / tokens)


def test_reading_a_picture_hangs_on_heads_that_can_be_ranked() -> None:
    judge = judge_of(trained_of(SMALL), 20)
    ranked = rank(judge, judge.parts, "mean")
    assert len(ranked) == 10
    assert all(np.isfinite(outcome.loss) for outcome in ranked)
    assert {outcome.loss for outcome in ranked} != {judge.without({}).loss}


def test_a_recurrent_reader_says_that_it_names_no_parts() -> None:
    with pytest.raises(ConfigError, match="'recurrent_attention' names no parts"):
        parts_of(trained_of(RECURRENT))


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_the_decoders_states_are_those_after_each_token_that_is_written(placement: str) -> None:
    model = copying(norm_placement=placement)
    letters = model.letters("ab")
    found = recurrent_units(model, letters)
    assert found.tokens[0] == "SEP"
    assert found.states.shape == (2, len(found.tokens), 8)
    plain = plain_model(model)
    with torch.no_grad():
        outputs = plain(ids_of(model, [letters]))[0, 3:].numpy()
    head = plain.get_parameter("classifier.weight").detach().numpy()
    np.testing.assert_allclose(found.states[-1] @ head.T, outputs, atol=1e-9)


@pytest.mark.parametrize(("fields", "layers"), [(SMALL, 2), (RECURRENT, 1)])
def test_readers_of_pictures_have_states_of_their_decoders(
    fields: dict[str, Any], layers: int
) -> None:
    model = trained_of(fields)
    found = recurrent_units(model, model.letters("12/3"))
    assert found.states.shape == (layers, len(found.tokens), 8)
