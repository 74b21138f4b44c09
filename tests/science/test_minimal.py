"""Minimal, shortest and nearest strings, against trying every string there is."""

import itertools
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from seqcls.errors import InvalidStringError
from seqcls.interpretability.domains import (
    affordable_length,
    obstacle,
    strings_of_length,
)
from seqcls.interpretability.minimal import (
    delta_debug,
    edits_of,
    how_near,
    minimal_failing,
    nearest_right,
    shortest_failing,
)
from seqcls.interpretability.readable_model import check_length
from seqcls.interpretability.trained_model import Letters, TrainedModel
from seqcls.kinds.output_errors import edits
from seqcls.strings.datasets import remember
from sweeps.datasets import read_dataset
from tests.zoo import LSTM, TWO_BLOCKS, untrained

ADDING = {"train_max_length": 6, "validation_max_length": 6, "test_max_length": 6}
models = pytest.mark.parametrize("name", ["blocks", "lstm"])


@cache
def model_of(name: str) -> TrainedModel:
    return untrained(**{"blocks": TWO_BLOCKS, "lstm": LSTM}[name])


@cache
def wrong_by_string(name: str) -> dict[Letters, bool]:
    """Every string of up to six tokens; True where the model gets it wrong."""
    model = model_of(name)
    letters = range(model.num_letters)
    strings = [own for n in range(7) for own in itertools.product(letters, repeat=n)]
    return dict(zip(strings, model.ask_all(strings).wrong.tolist(), strict=True))


def failing(name: str, length: int) -> list[Letters]:
    """The strings of a length that the model gets wrong."""
    return [own for own, wrong in wrong_by_string(name).items() if wrong and len(own) == length]


def test_delta_debugging_finds_the_needed_letters() -> None:
    def fails(string: Letters) -> bool:
        return 3 in string and string.count(7) >= 2

    string = (1, 7, 2, 3, 4, 7, 7, 5, 3)
    found = delta_debug(string, lambda strings: [fails(own) for own in strings])
    assert sorted(found) == [3, 7, 7]


@models
def test_minimal_failing_string_fails_and_no_single_deletion_does(name: str) -> None:
    model = model_of(name)
    rows = [(0, 1, 1, 0, 1, 0, 0, 1) * 3, (1, 0) * 7, (0, 0, 0, 1) * 4 + (1,), (1,) * 9 + (0,)]
    wrong = [row for row in rows if model.answer(row).is_wrong]
    assert wrong
    for row in wrong[:2]:
        found = minimal_failing(model, row)
        assert found.given.is_wrong
        assert found.minimal.is_wrong
        left = model.letters(found.minimal.string)
        smaller = [(*left[:place], *left[place + 1 :]) for place in range(len(left))]
        assert not model.ask_all(smaller).wrong.any()
    right = next(own for own, is_wrong in wrong_by_string(name).items() if not is_wrong)
    with pytest.raises(InvalidStringError, match="is correctly classified"):
        minimal_failing(model, right)


def test_minimal_string_is_not_empty_where_tests_have_no_empty_string() -> None:
    model = untrained(task="contains_all", test_sampler="variable_length", **LSTM)
    assert not model.problem.tries_empty
    strings = itertools.product(range(3), repeat=3)
    row = next(own for own in strings if model.answer(own).is_wrong)
    assert minimal_failing(model, row).minimal.length >= 1


@models
def test_shortest_failing_strings_are_complete(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqcls.interpretability.minimal.MAX_STRINGS", 100)
    found = shortest_failing(model_of(name))
    least = min(len(own) for own, wrong in wrong_by_string(name).items() if wrong)
    assert (found.length, found.max_length) == (least, 5)
    expected = [model_of(name).text(own) for own in failing(name, least)]
    assert [answer.string for answer in found.answers] == expected
    assert found.count == len(expected)


def test_strings_are_enumerated_once_by_length() -> None:
    every = (strings_of_length(3, length) for length in range(5))
    found = [tuple(row) for strings in every for row in strings.letters]
    expected = [own for n in range(5) for own in itertools.product(range(3), repeat=n)]
    assert found == expected
    assert (affordable_length(2), affordable_length(3)) == (16, 10)


def test_edits_are_enumerated_once() -> None:
    string = (0, 1, 1)
    found = list(edits_of(string, 2))
    expected = set()
    for place in range(4):
        for letter in range(2):
            expected.add((*string[:place], letter, *string[place:]))
            expected.add((*string[:place], letter, *string[place + 1 :]))
        expected.add((*string[:place], *string[place + 1 :]))
    assert len(found) == len(set(found))
    assert set(found) == expected - {string} | {(0, 1, 1, 0), (0, 1, 1, 1)} - {string}


@models
def test_nearest_right_string_is_right_and_none_is_nearer(name: str) -> None:
    model, kinds = model_of(name), set()
    assert failing(name, 5), "an untrained model misclassifies something"
    for string in failing(name, 5)[:6]:
        given, once = model.answer(string), list(edits_of(string, 2))
        answers = model.ask_all(once)
        found = nearest_right(model, string)
        assert found.answer is not None
        assert not found.answer.is_wrong
        # Of strings as near one with the failing string's label is preferred.
        flips = bool((answers.right & (answers.targets == given.label)).any())
        assert (found.edits == 1) == answers.right.any()
        if found.edits == 1:
            assert answers.right[once.index(found.letters)]
            assert (found.answer.label == given.label) == flips
            kinds.add(flips)
        near = nearest_right(model, string, same_length=True)
        assert near.answer is None or near.answer.predicted != given.predicted
    assert kinds


def test_incomplete_search_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqcls.interpretability.minimal.MAX_TRIED", 0)
    found = nearest_right(model_of("lstm"), failing("lstm", 5)[0])
    assert (found.answer, found.complete, found.tried) == (None, False, 0)


@pytest.fixture
def file_model(tmp_path: Path) -> TrainedModel:
    """A model of the strings of a file, every second of up to five tokens, of any labels."""
    strings = [own for n in range(1, 6) for own in itertools.product("ab", repeat=n)][::2]
    rows = [f"{''.join(own)},{number % 3 % 2}" for number, own in enumerate(strings)]
    (tmp_path / "own.csv").write_text("\n".join(["tokens,label", *rows]))
    digest = remember(read_dataset(tmp_path / "own.csv"))
    return untrained(task="file", dataset=digest, **LSTM)


def known(model: TrainedModel) -> dict[Letters, bool]:
    """The strings of the file; True where the model gets one wrong."""
    strings = model.problem.known_strings
    assert strings is not None
    rows = zip(strings.letters.tolist(), strings.lengths.tolist(), strict=True)
    letters = [tuple(row[:length]) for row, length in rows]
    return dict(zip(letters, model.ask(strings).wrong.tolist(), strict=True))


def test_minimal_and_nearest_strings_of_a_file_are_in_the_file(
    file_model: TrainedModel,
) -> None:
    rows = known(file_model)
    wrong = [own for own, is_wrong in rows.items() if is_wrong]
    assert 0 < len(wrong) < len(rows)
    for string in wrong:
        found = nearest_right(file_model, string)
        away = {own: edits(own, string) for own, is_wrong in rows.items() if not is_wrong}
        if found.answer is None:
            assert min(away.values()) > 2
        else:
            assert away[found.letters] == found.edits == min(away.values())
            assert found.answer.label is not None
        left = file_model.letters(minimal_failing(file_model, string).minimal.string)
        shorter = {(*left[:place], *left[place + 1 :]) for place in range(len(left))}
        assert rows[left]
        assert not any(rows.get(own) for own in shorter)
    shortest = shortest_failing(file_model)
    assert shortest.length == min(map(len, wrong))
    assert shortest.count == sum(len(own) == shortest.length for own in wrong)
    assert shortest.tried == sum(len(own) <= shortest.length for own in rows)


def test_string_outside_the_file_is_neither_right_nor_wrong(
    file_model: TrainedModel,
) -> None:
    unknown = next(
        own for own in itertools.product(range(2), repeat=4) if own not in known(file_model)
    )
    answer = file_model.answer(unknown)
    assert answer.label is None
    assert not answer.is_wrong
    assert "label not known, predicted" in answer.text
    assert "label" not in how_near(1, answer, answer)
    with pytest.raises(InvalidStringError, match="not in the file, so its label is not known"):
        minimal_failing(file_model, unknown)
    counting = untrained(task="file", dataset=file_model.config.dataset).problem
    assert "nobody knows what is right" in str(obstacle(counting))
    assert "order of tokens decides" not in str(obstacle(counting))


@pytest.mark.parametrize("fields", [{}, {"positions": "learned"}], ids=["any", "places"])
def test_invalid_input_is_refused_with_the_expected_form(fields: dict[str, Any]) -> None:
    model = untrained(task="addition", architecture="transformer", **ADDING, **fields)
    for text in ("1", "1+", "1+1", "=", "1{40}"):
        for ask in (model.answer, lambda own: minimal_failing(model, own)):
            with pytest.raises(InvalidStringError, match=r"expected x\+y= with digits 0 to 1"):
                ask(model.letters(text))
        with pytest.raises(InvalidStringError, match=r"expected x\+y="):
            check_length(model, model.letters(text))
    if fields:
        with pytest.raises(InvalidStringError, match="45 tokens with SEP and its target"):
            model.answer(model.letters("1{20}+1="))
