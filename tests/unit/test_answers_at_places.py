"""Answers at every position: membership of the prefix, next symbols, states."""

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from seqcls import fields as of_fields
from seqcls.errors import InvalidStringError
from seqcls.evaluation import distinct_test_strings, evaluate
from seqcls.interpretability.automaton import LearningBudget
from seqcls.interpretability.automaton_learning import learn
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.interpretability.verdicts import output_verdict
from seqcls.kinds.places import PlacesKind
from seqcls.problem import Problem, configuration, resolve
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import FIRST_LETTER, Tokenizer
from seqcls.tasks.places import AtEveryPlace
from seqcls.training import train_group
from tests.zoo import random_weights, readable_model

SMALL_SETS = {"train_size": 64, "validation_size": 32, "test_size": 200}
SHORT = {"train_max_length": 6, "validation_max_length": 6, "test_max_length": 12}
ALTERNATING = {"task": "regular", "alphabet": "ab", "pattern": "(ab)*"}


def problem_of(answers: str, **fields: Any) -> Problem:
    return resolve(
        configuration({**SMALL_SETS, **SHORT, **ALTERNATING, "answers": answers, **fields})
    )


def answers_in(problem: Problem, text: str) -> list[str]:
    """Reads the answers of a text in order."""
    assert isinstance(problem.kind, PlacesKind)
    assert isinstance(problem.task, AtEveryPlace)
    named = problem.kind._names(problem.task, ()).values()
    tokenizer = Tokenizer(tuple(named)).with_tokens_of(text)
    return [tokenizer.alphabet[x - FIRST_LETTER] for x in tokenizer.encode(text)[1:]]


def targets(problem: Problem, *strings: str) -> list[str]:
    rows = [["".join(problem.task.alphabet).index(token) for token in text] for text in strings]
    given = problem.kind.targets(
        problem.task, TokenStrings.of_lists(problem.tokenizer.num_letters, rows)
    )
    return list(problem.kind.texts(problem.task, given) or ())


def test_targets_name_the_answer_at_each_position() -> None:
    assert targets(problem_of("prefixes"), "", "abab", "ba") == ["1", "10101", "10{2}"]
    assert targets(problem_of("next_symbols"), "", "abab") == ["a$", "a$ b a$ b a$"]
    assert targets(problem_of("states"), "", "abb") == ["0", "0102"]


def test_next_symbols_have_only_strings_of_the_language_as_inputs() -> None:
    problem = problem_of("next_symbols")
    with pytest.raises(InvalidStringError, match="input 'ba': expected a string of the language"):
        targets(problem, "ba")
    drawn = stream(problem.test).epoch(0).strings
    assert {"a" * n for n in range(1)} | {("ab" * 6)[: int(n)] for n in drawn.lengths} == {
        problem.tokenizer.spell(row[:n].tolist())
        for row, n in zip(drawn.letters, drawn.lengths, strict=True)
    }
    by_length = np.bincount(drawn.lengths)[::2]
    assert len(by_length) == 7
    assert by_length.min() > 200 / 7 / 3


@pytest.mark.parametrize("pattern", ["(ab|b)*", "a*b*a*b*", "(a|b)*abb", "(aab|ba)*b?", "(ab)+"])
def test_next_symbols_are_the_tokens_of_some_continuation(pattern: str) -> None:
    problem = problem_of("next_symbols", pattern=pattern)
    is_in = re.compile(pattern).fullmatch
    words = ["".join(word) for n in range(10) for word in product("ab", repeat=n)]
    accepted = [word for word in words if is_in(word)]
    for text in [word for word in accepted if len(word) <= 5][:12]:
        expected = []
        for place in range(len(text) + 1):
            prefix = text[:place]
            follow = {
                word[place : place + 1] or "$" for word in accepted if word.startswith(prefix)
            }
            expected.append("".join(sorted(follow - {"$"})) + "$" * ("$" in follow))
        assert targets(problem, text) == targets_written(problem, expected)


def targets_written(problem: Problem, sets: list[str]) -> list[str]:
    """Sets of tokens as the kind writes them."""
    end = problem.network.vocabulary_size - 1
    ids = {"a": FIRST_LETTER, "b": FIRST_LETTER + 1, "$": end}
    codes = np.array([[sum(1 << ids[x] for x in tokens) for tokens in sets]])
    return list(problem.kind.texts(problem.task, codes) or ())


@pytest.mark.parametrize(
    "task",
    [
        {"task": "majority"},
        {"task": "dyck"},
        {"task": "marked_reversal"},
        {"task": "contains_all"},
        {"task": "dyck", "max_depth": 2},
    ],
)
def test_prefixes_are_labeled_as_the_language_labels_them(task: dict[str, Any]) -> None:
    problem = problem_of("prefixes", alphabet="", pattern="", **task)
    drawn = stream(problem.train).epoch(0)
    assert isinstance(problem.task, AtEveryPlace)
    of_language = problem.task.language
    for row in range(20):
        letters = drawn.strings.letters[row, : drawn.strings.lengths[row]].tolist()
        prefixes = TokenStrings.of_lists(
            drawn.strings.num_letters, [letters[:n] for n in range(len(letters) + 1)]
        )
        expected = of_language.labels(prefixes.with_a_place()).astype(int).tolist()
        assert drawn.targets[row, : len(letters) + 1].tolist() == expected
        assert (drawn.targets[row, len(letters) + 1 :] == -1).all()


@pytest.mark.parametrize("pattern", ["(ab|b)*", "a*b*", "(aab|ba)*b?"])
def test_inputs_of_a_length_are_the_strings_that_match(pattern: str) -> None:
    problem = problem_of("next_symbols", pattern=pattern)
    assert isinstance(problem.task, AtEveryPlace)
    for length in range(7):
        words = ["".join(word) for word in product("ab", repeat=length)]
        there = [word for word in words if re.fullmatch(pattern, word)]
        given = problem.task.inputs_of_length(length, 1000)
        assert [problem.tokenizer.spell(row) for row in given.letters.tolist()] == there
        assert len(problem.task.inputs_of_length(length, 1)) == min(2, len(there))


@pytest.mark.parametrize(
    ("alphabet", "pattern", "string", "spelled"),
    [("a", "a*", "aaaa", "a$ a${4}"), ("$-", "($-)*", "$-", "$,END - $,END")],
)
def test_sets_of_symbols_are_read_back_as_written(
    alphabet: str, pattern: str, string: str, spelled: str
) -> None:
    pattern = pattern.replace("$", r"\$") if "$" in alphabet else pattern
    problem = problem_of("next_symbols", alphabet=alphabet, pattern=pattern)
    ids = problem.tokenizer.encode(string)[1:]
    strings = TokenStrings.of_lists(
        problem.tokenizer.num_letters, [[x - FIRST_LETTER for x in ids]]
    )
    given = problem.kind.targets(problem.task, strings)
    (text,) = problem.kind.texts(problem.task, given) or ()
    assert text == problem.tokenizer.display(text) == spelled
    assert isinstance(problem.kind, PlacesKind)
    assert isinstance(problem.task, AtEveryPlace)
    names = problem.kind.names(problem.task, np.unique(given).tolist())
    assert answers_in(problem, text) == [names[code] for code in given[0].tolist()]


@pytest.mark.parametrize("answers", ["prefixes", "next_symbols", "states"])
def test_answers_of_named_tokens_are_separated_by_spaces(answers: str) -> None:
    task = {"task": "word_problem", "group": "S3", "alphabet": "", "pattern": ""}
    problem = problem_of(answers, **task)
    assert isinstance(problem.kind, PlacesKind)
    drawn = stream(problem.test).epoch(0)
    texts = problem.kind.texts(problem.task, drawn.targets)
    for text, length in zip(texts, drawn.strings.lengths.tolist(), strict=True):
        answers_read = answers_in(problem, text)
        assert len(answers_read) == length + 1
        displayed = problem.tokenizer.display(text)
        assert answers_in(problem, displayed) == answers_read


def test_prefixes_and_states_draw_the_same_strings_as_membership() -> None:
    once = resolve(configuration({**SMALL_SETS, **SHORT, **ALTERNATING}))
    for answers in ("prefixes", "states"):
        strings = stream(problem_of(answers).test).epoch(0).strings
        assert (strings.letters == stream(once.test).epoch(0).strings.letters).all()


@pytest.mark.parametrize(
    ("answers", "architecture"),
    [("prefixes", "rnn"), ("next_symbols", "transformer"), ("states", "mamba")],
)
def test_errors_at_positions_equal_reading_each_prefix_alone(
    answers: str, architecture: str
) -> None:
    fields = {"hidden_size": 4, "precision": "float64", "test_size": 30}
    problem = problem_of(answers, architecture=architecture, **fields)
    weights = random_weights(problem)
    model = readable_model(problem.network, weights)
    (evaluation,) = evaluate(problem, [weights])
    test = distinct_test_strings(problem.test)
    wrong = np.zeros(len(test.texts), dtype=bool)
    margins = np.zeros(len(test.texts))
    kinds = [""] * len(test.texts)
    for row, (letters, length) in enumerate(
        zip(test.strings.letters, test.strings.lengths.tolist(), strict=True)
    ):
        ids = [0, *(letters[:length] + FIRST_LETTER).tolist()]
        least = np.inf
        for place in range(length + 1):
            outputs = model(torch.tensor([ids[: place + 1]]))[0, -1].detach().numpy()
            target = int(test.targets[row, place])
            if answers == "states":
                others = np.delete(outputs, target)
                least = min(least, outputs[target] - others.max())
            else:
                bits = [(target >> bit) & 1 for bit in range(len(outputs))]
                least = min(
                    least, *(x if bit else -x for x, bit in zip(outputs, bits, strict=True))
                )
                more = any(x > 0 and not bit for x, bit in zip(outputs, bits, strict=True))
                less = any(x <= 0 and bit for x, bit in zip(outputs, bits, strict=True))
                found = {(True, False): "too much", (False, True): "too little"}
                if (more or less) and not kinds[row]:
                    kinds[row] = found.get((more, less), "wrong answer")
        wrong[row], margins[row] = least <= 0, least
    rows = test.in_order(wrong)
    assert evaluation.errors.numbers.tolist() == test.numbers[rows].tolist()
    np.testing.assert_allclose(evaluation.errors.logits, margins[rows], atol=1e-12)
    assert evaluation.outputs is not None
    # How the first wrong answer differs from the right one.
    expected = ["wrong answer" if answers == "states" else kinds[row] for row in rows]
    assert list(evaluation.outputs.error_kinds) == expected
    places = int((test.occurrences * (test.strings.lengths + 1)).sum())
    assert evaluation.outputs.target_tokens.sum() == places


@pytest.mark.parametrize("answers", ["prefixes", "next_symbols", "states"])
def test_loss_is_a_cross_entropy_at_each_position(answers: str) -> None:
    problem = problem_of(answers)
    drawn = stream(problem.train).epoch(0).take(slice(0, 5))
    encoded = torch.from_numpy(problem.kind.encoded(problem.task, drawn, problem.network))
    outputs = torch.randn(2, int((encoded >= 0).sum()), problem.network.num_outputs).double()
    given = problem.kind.losses(outputs, encoded, "default")
    expected, token = np.zeros((2, 5)), 0
    for row, codes in enumerate(encoded.tolist()):
        for code in [x for x in codes if x >= 0]:
            for member in range(2):
                numbers = outputs[member, token].numpy()
                if answers == "states":
                    loss = np.log(np.exp(numbers).sum()) - numbers[code]
                else:
                    signs = [1 if (code >> bit) & 1 else -1 for bit in range(len(numbers))]
                    loss = np.log1p(np.exp(-np.array(signs) * numbers)).mean()
                expected[member, row] += loss
            token += 1
    np.testing.assert_allclose(given.numpy(), expected)
    assert problem.kind.units(encoded) == token


def test_small_network_learns_next_symbols() -> None:
    problem = problem_of(
        "next_symbols", architecture="rnn", hidden_size=8, train_size=1000, max_num_epochs=20,
        train_batch_size=32, test_max_length=40, train_max_length=10,
    )  # fmt: skip
    (trained,) = train_group([(problem, 0)])
    (result,) = evaluate(problem, [trained.kept_weights])
    assert result.wrong == 0
    assert result.solved_length == 40
    model = TrainedModel(problem, trained.kept_weights)
    learned = learn(model, LearningBudget(strings=64, length=20))
    assert learned.error is None, "the machine of its answers is that of the language"
    assert sorted(set(learned.names.values())) == ["a$", "b", "∅"]
    assert "\\na$" in learned.dot()
    tried = output_verdict(model)
    assert (tried.max_length, tried.inputs, tried.wrong) == (40, 21, 0)


def test_answers_field_changes_key_test_set_and_task_name() -> None:
    fields = {**ALTERNATING, **SMALL_SETS}
    once, again = configuration(fields), configuration({**fields, "answers": "prefixes"})
    assert once.key == configuration({**fields, "answers": "string"}).key != again.key
    assert of_fields.test_set_key(once) != of_fields.test_set_key(again)
    named = "regular, alphabet=ab, pattern=(ab)*"
    assert of_fields.language_of(dict(once)) == named
    assert of_fields.language_of(dict(again)) == f"{named}, answers=prefixes"
