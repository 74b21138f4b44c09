"""Places that tokens of input and output share, in training moved by one offset a string."""

import numpy as np
import pytest
import torch

from seqcls.errors import ConfigError
from seqcls.kinds import examples_of
from seqcls.models.positions import table_size
from seqcls.models.positions.places import TrainingPlaces, places_of
from seqcls.models.reading import read_ids
from seqcls.problem import Problem, configuration, resolve
from seqcls.tokens.strings import TokenStrings
from seqcls.tokens.tokenizer import PAD
from seqcls.training import train_group

SIZES = {"hidden_size": 8, "num_attention_heads": 1, "attention_head_size": 8, "train_size": 128}
LENGTHS = {"train_max_length": 7, "validation_max_length": 7, "test_max_length": 11}


def problem_of(task: str, **fields: object) -> Problem:
    return resolve(
        configuration({"task": task, "positions": "coupled", **SIZES, **LENGTHS, **fields})
    )


def ids_of(problem: Problem, *inputs: str) -> torch.Tensor:
    tokenizer = problem.tokenizer
    letters = [[x - 2 for x in tokenizer.encode(text)[1:]] for text in inputs]
    strings = TokenStrings.of_lists(tokenizer.num_letters, letters)
    read = problem.kind.reading(problem.task, examples_of(problem.task, strings))
    return torch.from_numpy(read_ids(read, "first")).long()


def test_an_input_token_and_its_copy_share_a_place() -> None:
    places = places_of((problem := problem_of("copy")).network, ids_of(problem, "abb", "a"))
    # CLS a b b SEP a b b
    assert places.tolist() == [[0, 1, 2, 3, 0, 1, 2, 3], [0, 1, 0, 1, 0, 0, 0, 0]]
    backwards = problem_of("reverse")
    assert places_of(backwards.network, ids_of(backwards, "abb")).tolist() == [
        [0, 1, 2, 3, 0, 3, 2, 1]
    ]


def test_digits_of_one_weight_share_a_place() -> None:
    problem = problem_of("addition", digit_order="least_first", base=10)
    # 321 + 9 = 330, least digit first.
    places = places_of(problem.network, ids_of(problem, "123+9="))
    assert places.tolist() == [[0, 1, 2, 3, 0, 1, 0, 0, 1, 2, 3]]


def test_training_moves_all_that_share_by_one_offset() -> None:
    problem = problem_of("copy")
    ids = ids_of(problem, *["abab"] * 4000)
    size = table_size(problem.network)
    assert size is not None
    drawn = TrainingPlaces(problem.network, 0).draw(ids).numpy()
    alone = places_of(problem.network, ids).numpy()
    assert (drawn[alone == 0] == 0).all()
    offsets = (drawn - alone)[:, 1]
    assert ((drawn - alone)[:, 1:5] == offsets[:, None]).all()
    assert (drawn[:, 6:] == drawn[:, 1:5]).all()
    assert drawn.max() == size - 1
    counts = np.bincount(offsets)
    assert len(counts) == size - 4
    assert counts.min() > 0.6 * len(ids) / len(counts)
    again = TrainingPlaces(problem.network, 0).draw(ids).numpy()
    assert (again == drawn).all()


def test_a_model_trains_with_them_and_is_asked_about_every_test_string() -> None:
    problem = problem_of("copy")
    (trained,) = train_group([(problem, 0)])
    assert trained.failure is None
    assert problem.longest_tested == 11
    size = table_size(problem.network)
    assert trained.kept_weights["positions.table.weight"].shape == (size, 8)
    assert PAD == 1


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"task": "sort"}, "task='sort'"),
        ({"task": "addition", "digit_order": "most_first"}, "task='addition'"),
        ({"task": "parity"}, "have no output"),
        ({"task": "contains_all"}, "have no output"),
        ({"task": "copy", "position_range": 100}, "position_range=100"),
    ],
)
def test_where_nothing_belongs_together_it_is_refused(
    fields: dict[str, object], expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        configuration({"positions": "coupled", **fields})
