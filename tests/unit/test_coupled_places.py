"""Places that tokens of input and output share, in training moved by one offset a string."""

import numpy as np
import pytest
import torch

from seqcls.config import COUPLED
from seqcls.errors import ConfigError
from seqcls.kinds import examples_of
from seqcls.models.positions import read_ids, table_size
from seqcls.models.positions.places import TrainingPlaces, coupled_positions, positions_of
from seqcls.problem import Problem, configuration, resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import PAD
from seqcls.training import train_group

SIZES = {"hidden_size": 8, "num_attention_heads": 1, "attention_head_size": 8, "train_size": 128}
LENGTHS = {"train_max_length": 7, "validation_max_length": 7, "test_max_length": 11}


def problem_of(task: str, positions: str = "coupled", **fields: object) -> Problem:
    return resolve(
        configuration({"task": task, "positions": positions, **SIZES, **LENGTHS, **fields})
    )


def places_of_text(problem: Problem, text: str) -> list[int]:
    """Before training or tests move them."""
    (row,) = coupled_positions(problem.network.coupling, ids_of(problem, text)).tolist()
    return list(row)


def ids_of(problem: Problem, *inputs: str) -> torch.Tensor:
    tokenizer = problem.tokenizer
    letters = [[x - 2 for x in tokenizer.encode(text)[1:]] for text in inputs]
    strings = TokenStrings.of_lists(tokenizer.num_letters, letters)
    read = problem.kind.reading(problem.task, examples_of(problem.task, strings))
    return torch.from_numpy(read_ids(read, "first")).long()


def test_an_input_token_and_its_copy_share_a_place() -> None:
    places = positions_of((problem := problem_of("copy")).network, ids_of(problem, "abb", "a"))
    # CLS a b b SEP a b b
    assert places.tolist() == [[0, 1, 2, 3, 0, 1, 2, 3], [0, 1, 0, 1, 0, 0, 0, 0]]
    backwards = problem_of("reverse")
    assert positions_of(backwards.network, ids_of(backwards, "abb")).tolist() == [
        [0, 1, 2, 3, 0, 3, 2, 1]
    ]


def test_digits_of_one_weight_share_a_place() -> None:
    problem = problem_of("addition", digit_order="least_first", base=10)
    # 321 + 9 = 330, least digit first.
    places = positions_of(problem.network, ids_of(problem, "123+9="))
    assert places.tolist() == [[0, 1, 2, 3, 0, 1, 0, 0, 1, 2, 3]]


def test_marks_stand_one_place_before_the_ones() -> None:
    problem = problem_of("addition", "coupled_marks", digit_order="least_first", base=10)
    # CLS 1 2 3 + 9 = SEP 0 3 3
    assert places_of_text(problem, "123+9=") == [0, 2, 3, 4, 1, 2, 1, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("task", "output"),
    [
        ("copy", [1, 2, 3, 4]),
        ("reverse", [5, 4, 3, 2]),
        ("duplicate", [1, 2, 3, 4, 2, 3, 4]),
        ("write_odds_first", [1, 2, 4, 3]),
    ],
)
def test_an_output_begins_one_step_from_its_separator(task: str, output: list[int]) -> None:
    problem = problem_of(task, "coupled_marks")
    # CLS a b b SEP ...
    assert places_of_text(problem, "abb") == [0, 2, 3, 4, *output]


@pytest.mark.parametrize("positions", COUPLED)
def test_what_is_written_beyond_a_target_has_no_place(positions: str) -> None:
    problem = problem_of("copy", positions)
    longer = torch.cat([ids_of(problem, "ab"), torch.tensor([[2, 3]])], dim=1)
    assert positions_of(problem.network, longer)[0, -2:].tolist() == [0, 0]


def test_marks_are_moved_along_to_every_offset_and_cls_is_not() -> None:
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


@pytest.mark.parametrize(
    ("task", "fields", "text"),
    [
        ("addition", {"digit_order": "least_first"}, "101010101+="),
        ("copy", {}, "a" * 11),
        ("reverse", {}, "a" * 11),
        ("duplicate", {}, "a" * 11),
    ],
)
def test_tests_stand_where_training_has_seen_every_place_in_every_role(
    task: str, fields: dict[str, object], text: str
) -> None:
    problem = problem_of(task, "coupled_marks", **fields)
    size = table_size(problem.network)
    assert size is not None
    text = text.replace("+=", "+1=")[-11:]
    (tested,) = positions_of(problem.network, ids_of(problem, text)).numpy()
    (alone,) = coupled_positions(problem.network.coupling, ids_of(problem, text)).numpy()
    (offset,) = set((tested - alone)[1:].tolist())
    assert tested[0] == 0
    # Of the longest strings, with as much room before them as behind; 1 is the least place.
    before, behind = tested[1:].min() - 1, size - 1 - tested.max()
    assert before >= offset > 0
    assert behind >= before - 1
    # A shorter string is moved by as much: its places do not depend on who is tested with it.
    shorter = positions_of(problem.network, ids_of(problem, text, text[-4:]))[1].numpy()
    unmoved = coupled_positions(problem.network.coupling, ids_of(problem, text, text[-4:]))[
        1
    ].numpy()
    assert set((shorter - unmoved)[unmoved > 0].tolist()) == {offset}


def test_tests_of_places_without_marks_move_none() -> None:
    problem = problem_of("copy")
    ids = ids_of(problem, "abab")
    assert (
        positions_of(problem.network, ids) == coupled_positions(problem.network.coupling, ids)
    ).all()
    # As it always was, so that stored runs mean what they meant.
    assert problem.network.coupling == '{"distinct":false,"num_tokens":2,"task":"copy"}'


def test_a_separator_knows_by_how_much_its_input_was_moved_only_with_its_marks() -> None:
    for positions, knows in (("coupled", False), ("coupled_marks", True)):
        problem = problem_of("addition", positions, digit_order="least_first")
        ids = ids_of(problem, *["11+1="] * 100)
        drawn = TrainingPlaces(problem.network, 0).draw(ids)
        at_separator = drawn[:, 1 + len("11+1=")]
        assert (len(at_separator.unique()) > 1) == knows, positions


def test_training_moves_all_that_share_by_one_offset() -> None:
    problem = problem_of("copy")
    ids = ids_of(problem, *["abab"] * 4000)
    size = table_size(problem.network)
    assert size is not None
    drawn = TrainingPlaces(problem.network, 0).draw(ids).numpy()
    alone = positions_of(problem.network, ids).numpy()
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


@pytest.mark.parametrize("positions", COUPLED)
def test_a_model_trains_with_them_and_is_asked_about_every_test_string(positions: str) -> None:
    problem = problem_of("copy", positions)
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
    for positions in COUPLED:
        with pytest.raises(ConfigError, match=expected):
            configuration({"positions": positions, **fields})
