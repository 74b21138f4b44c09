"""Pictures of paragraphs, and models that read them."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from seqcls.decode import Anew, stepping
from seqcls.engines.pytorch import members
from seqcls.errors import InvalidStringError
from seqcls.kinds import examples_of
from seqcls.kinds.transduction import separator_id
from seqcls.models.base import Classifier
from seqcls.models.batches import Batch, compute
from seqcls.models.initialization import initial_parameters, make_model
from seqcls.models.pictures import Convolution, memory_shape, page_of
from seqcls.models.positions.places import positions_of
from seqcls.pictures import Page, glyphs_of
from seqcls.problem import Problem, configuration, resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, PAD
from seqcls.tasks.paragraph import Paragraph
from sweeps.grid.spec import load_specs
from tests.contracts.readable import compare_gradients
from tests.zoo import PICTURES, RECURRENT_READER, readable_model, scattered_weights

PAGE = Page("0123456789", 6, 6, "pillow", 0.7)


def letters(*texts: str) -> np.ndarray:
    return TokenStrings.of_lists(
        11, [["0123456789/".index(token) for token in text] for text in texts]
    ).letters


def example_ids(problem: Problem) -> Tensor:
    """`12/3`, `SEP` and its text; and `456`, all of which is padded more."""
    separator, slash = separator_id(problem.network), 12
    first = [CLS, 3, 4, slash, 5, separator, 3, 4, slash, 5]
    second = [CLS, 6, 7, 8, separator, 6, 7, 8, PAD, PAD]
    return torch.tensor([first, second])


def drawn(fields: dict[str, Any]) -> tuple[Problem, Classifier]:
    problem = resolve(configuration(fields))
    return problem, readable_model(problem.network, initial_parameters(problem.network, 1))


def test_picture_does_not_depend_on_other_strings() -> None:
    together = PAGE.draw(letters("12/345", "1", "7/890123/4"))
    alone = PAGE.draw(letters("12/345"))
    np.testing.assert_array_equal(together[:1], alone)
    assert together.shape == (3, 96, 48)
    assert together.min() >= 0
    assert together.max() <= 1
    assert abs(PAGE.draw(letters("12/345")) - PAGE.draw(letters("12/354"))).max() > 0.2


def test_undistorted_character_is_its_glyph() -> None:
    (picture,) = Page("0123456789", 6, 6, "pillow", 0.0).draw(letters("7/17"))
    first, below = picture[:16, :8], picture[16:32, 8:16]
    (glyph,) = glyphs_of("pillow", "7")[0]
    np.testing.assert_array_equal(first[3:14, 1:7], glyph)
    assert first.sum() == glyph.sum() > 5
    np.testing.assert_array_equal(first, below)
    assert not picture[32:].any()


def test_handwritten_digit_has_variants() -> None:
    (picture,) = Page("0123456789", 6, 6, "digits", 0.0).draw(letters("777777"))
    cells = {picture[:16, x : x + 8].tobytes() for x in range(0, 48, 8)}
    assert len(cells) > 1


def test_paragraphs_are_drawn_with_the_requested_length() -> None:
    task = Paragraph("", line_length=6, max_lines=6, font="pillow", distortion=0.0)
    rng = np.random.default_rng(0)
    assert [length for length in range(45) if task.has_input(length)] == list(range(1, 42))
    for length in range(1, 42):
        drawn_input = task.draw_input(rng, length)
        assert len(drawn_input) == length
        assert task.target(drawn_input).tolist() == drawn_input.tolist()


def test_features_count_characters_and_lines() -> None:
    strings = TokenStrings.of_lists(11, [[1, 2, 10, 3], [4], []])
    found = Paragraph().features(strings)
    assert found["characters"].tolist() == [3, 1, 0]
    assert found["lines"].tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    "fields", [PICTURES, RECURRENT_READER, {**RECURRENT_READER, "attention": "none"}]
)
def test_picture_reader_gives_one_output_whole_stepped_and_batched(fields: dict[str, Any]) -> None:
    problem, model = drawn(fields)
    read = example_ids(problem)
    whole: Tensor = model(read)
    batch = Batch(problem.network, read, positions_of(problem.network, read))
    torch.testing.assert_close(compute(model, batch), whole[batch.is_predicted])
    torch.testing.assert_close(model(read[1:, :8])[:, 4:], whole[1:, 4:8])
    begun = read[:, :6].clone()
    readers, tokens = (stepping(model), Anew(model)), torch.tensor([3, 4])
    (first, memory), (expected, again) = (reader.begin(begun, 4) for reader in readers)
    torch.testing.assert_close(first, expected)
    (first, _), (expected, _) = (
        reader.step(tokens, cached) for reader, cached in zip(readers, (memory, again), strict=True)
    )
    torch.testing.assert_close(first, expected)
    compare_gradients("strings", problem, scattered_weights(problem.network))


def test_picture_reader_depends_on_the_picture() -> None:
    problem, model = drawn(PICTURES)
    read = example_ids(problem)
    other = read.clone()
    other[0, 1] = 9
    assert (model(read) - model(other))[0, 5:].abs().max() > 1e-6
    activations = model.activations(read)
    rows, columns = memory_shape(problem.network)
    assert (rows, columns) == (6, 3)
    for name in model.attention():
        assert name in activations
    weights = activations["decoder.blocks.1.cross_attention.weights"]
    assert weights.shape == (2, 2, 5, rows * columns)


def test_shipped_paragraph_specification_has_the_published_sizes() -> None:
    (spec,) = load_specs("known/paragraphs_published")
    (config,) = spec.configs()
    with torch.device("meta"):
        network = resolve(config).network
        model = make_model(network)
    assert page_of(network).shape == (576, 640)
    assert memory_shape(network) == (18, 20)
    convolutions = [x for x in model.modules() if isinstance(x, Convolution)]
    # ResNet-18 has 17, three that bring a stage to the next one's size, and the one after it.
    assert len(convolutions) == 21
    assert convolutions[-1].weight.shape == (256, 512, 1, 1)
    assert 11_000_000 < sum(x.weight.numel() for x in convolutions[:-1]) < 11_200_000
    assert network.embedding_scale == "sqrt"
    # Large pictures are read few at a time.
    strings = TokenStrings.of_lists(28, [[3, 26, 3]] * 20)
    found = members.testing_pieces(network, strings, torch.device("cpu"))
    pieces = [len(rows) for rows, _ in found]
    assert sum(pieces) == 20
    assert max(pieces) <= 8


def test_paragraph_that_fits_no_page_is_refused() -> None:
    problem = resolve(configuration(PICTURES))
    for text in ("1//2", "1234", "1/", "1/2/3/4"):
        strings = TokenStrings.of_lists(11, [letters(text)[0].tolist()])
        with pytest.raises(InvalidStringError, match="1 to 3 lines of 1 to 3 characters"):
            examples_of(problem.task, strings)
