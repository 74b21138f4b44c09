"""Families of strings: their notation, and where the answer changes, against answering each."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqcls.errors import InvalidStringError
from seqcls.interpretability.families import COUNT_RANGE, answers_along
from seqcls.interpretability.readable_model import plain_model
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.positions import longest_readable
from seqcls.strings.free_counts import parse_family
from seqcls.strings.tokenizer import Tokenizer
from tests.oracles.counting import true_logits
from tests.zoo import FIELDS, LSTM, TWO_BLOCKS, scattered_model, untrained

ABC = Tokenizer("abc")


WRITTEN: dict[str, tuple[tuple[str, ...], tuple[int, ...], tuple[tuple[int, ...], ...]]] = {
    "ab{n}": (("n",), (1, 0, 0), ((0, 1, 0),)),
    "a{n}b": (("n",), (0, 1, 0), ((1, 0, 0),)),
    "b{2}c{n}": (("n",), (0, 2, 0), ((0, 0, 1),)),
    "a{m}b{n}": (("m", "n"), (0, 0, 0), ((1, 0, 0), (0, 1, 0))),
    "b{n}ca{n}b{n}": (("n",), (0, 0, 1), ((1, 2, 0),)),
}


def test_family_has_fixed_and_free_counts() -> None:
    for text, expected in WRITTEN.items():
        family = parse_family(ABC, text)
        free = tuple(map(tuple, family.free.tolist()))
        assert (family.names, tuple(family.fixed), free) == expected
        values = tuple(range(5, 5 + len(family.names)))
        spelled = scattered_model().tokenizer.counts(family.member(values))
        assert tuple(family.counts(np.array([values]))[0]) == spelled
    # Groups are spelled out, and brackets are tokens like others.
    family = parse_family(Tokenizer("01"), "<01>{n}1{2}0{n}")
    assert family.letters(3) == (0, 1, 0, 1, 0, 1, 1, 1, 0, 0, 0)
    assert parse_family(Tokenizer("01"), "0{m}<10>{n}").letters(2, 3) == (0, 0, 1, 0, 1, 0, 1, 0)
    assert parse_family(Tokenizer("()"), "({n}){n}").letters(2) == (0, 0, 1, 1)


def test_malformed_family_is_refused_in_one_line() -> None:
    for text, words in (
        ("ab{3}", ("'ab{3}'", "one or two")),
        ("a{k}b{m}c{n}", ("3 free counts", "one or two")),
        ("d{n}", ("'d'", "'abc'")),
        ("ab{n}{n}", ("'ab{n}{n}'",)),
        ("<ab{n}", ("'<ab{n}'", "character 1")),
        ("a{9999999999999}b{n}", ("1,000,000,000,000",)),
    ):
        with pytest.raises(InvalidStringError, match=r"\A[^\n]+\Z") as error:
            parse_family(ABC, text)
        assert all(word in str(error.value) for word in words)


@given(FIELDS, st.integers(0, 10**6), st.sampled_from(["ab{n}", "a{n}b{n}c{n}", "b{20}c{n}"]))
def test_reported_changes_lie_between_tried_counts_that_differ(
    fields: dict[str, object], seed: int, text: str
) -> None:
    model = scattered_model(seed, **fields)
    found = answers_along(model, text)
    every = np.arange(1, 3001)
    answers = true_logits(model, found.family.counts(every[:, None])) > 0
    changes = np.flatnonzero(answers[1:] != answers[:-1]) + 2
    reported = np.array([after.values[0] for _, after in found.changes], dtype=int)
    assert set(reported[reported <= 3000]) <= set(changes)
    tried = np.array(found.grid)
    tried = tried[tried <= 3000]
    for low, high in pairwise(tried):
        differ = answers[low - 1] != answers[high - 1]
        assert np.count_nonzero((reported > low) & (reported <= high)) == differ


def flipping_network() -> TrainedModel:
    """A network that changes its answer for `ab{n}` somewhere."""
    for seed in range(100):
        network = scattered_model(seed, no_attend_cls=True, layer_norm_eps=0.0)
        changes = answers_along(network, "ab{n}").changes
        if changes and 3 < changes[0][1].values[0] < 500:
            return network
    raise AssertionError("no such network")


def test_family_flips_where_the_readable_model_does() -> None:
    network = flipping_network()
    found = answers_along(network, "ab{n}")
    model = plain_model(network)
    for before, after in found.changes[:1]:
        assert after.values[0] == before.values[0] + 1
        logits = tuple(
            float(model(torch.tensor([network.tokenizer.encode(x.input)])).detach())
            for x in (before, after)
        )
        assert logits == pytest.approx((before.score, after.score), abs=1e-10)
        assert (logits[0] > 0, logits[1] > 0) == (before.output, after.output)
        assert before.output != after.output
    assert all(x.target is True for x in found.members)
    assert [x.is_right for x in found.members] == [x.score > 0 for x in found.members]


def test_family_members_include_every_change_and_approach_the_limit() -> None:
    network = flipping_network()
    found = answers_along(network, "ab{n}")
    values = [x.values[0] for x in found.members]
    assert (values[0], values[-1]) == (1, COUNT_RANGE.longest)
    assert set(range(1, 17)) <= set(values)
    for _, after in found.changes:
        assert {after.values[0] - 1, after.values[0]} <= set(values)
    (far,) = true_logits(network, np.array([[1, 10**15, 0]]))
    assert found.limit == pytest.approx(far, abs=1e-9)


def test_family_counts_how_many_answers_are_correct() -> None:
    model = scattered_model(0, task="parity")
    found = answers_along(model, "0{20}1{n}")
    ((_, change),) = found.changes
    after = [x for x in found.members if x.values >= change.values]
    right = sum(x.is_right for x in after)
    assert 0 < right < len(after)
    *_, turn, limit = map(str, found.describe(model))
    assert f"predicts negative (correct for {right} of the {len(after)} tried)" in turn
    assert limit.endswith(": negative.")


def test_two_free_counts_flip_where_each_alone_does() -> None:
    network = flipping_network()
    found = answers_along(network, "a{m}b{n}")
    assert {x.values for x in found.members} >= {(m, n) for m in found.grid for n in found.grid}
    for row in found.rows[:9]:
        m = row[0].values[0]
        alone = answers_along(network, f"a{{{m}}}b{{n}}")
        changes = [after.values[1] for _, after in found.changes if after.values[0] == m]
        assert changes == [after.values[0] for _, after in alone.changes]
        counts = np.array([[*x.values, 0] for x in row])
        np.testing.assert_allclose([x.score for x in row], true_logits(network, counts), atol=1e-9)
    # Without CLS only proportions count: twice the a's, twice the b's.
    first, second = ((x.values[0], x.values[1]) for _, x in found.changes[:2])
    assert first[1] / first[0] == pytest.approx(second[1] / second[0], abs=2)


@pytest.mark.parametrize("text", ["ab{n}", "<ba>{n}", "a{m}b{n}"])
def test_family_by_letter_counts_equals_running_the_strings(text: str) -> None:
    fields = {name: TWO_BLOCKS[name] for name in ("num_blocks", "num_attention_heads")}
    model = untrained(task="contains_all", **fields)
    found = answers_along(model, text)
    assert found.by_counts
    members = [x for x in found.members if sum(x.values) <= 30]
    answers = model.ask_all([x.input for x in members])
    np.testing.assert_allclose([x.score for x in members], answers.score, atol=1e-9)
    assert [x.is_right for x in members] == (~answers.wrong).tolist()


@pytest.mark.parametrize(
    ("text", "middle"), [("<01>{n}", (0, 1) * 3), ("0{m}<10>{n}", (0,) * 9 + (1, 0) * 9)]
)
def test_family_changes_are_between_neighbors(text: str, middle: tuple[int, ...]) -> None:
    model = untrained(**LSTM)
    model.weights["classifier.bias"][:] -= model.answer(middle).logit
    found = answers_along(model, text)
    assert not found.by_counts
    assert found.grid[-1] == 2000
    for member in [x for x in found.members if max(x.values) <= 10]:
        answer = model.answer(found.family.letters(*member.values))
        assert member.score == pytest.approx(answer.logit)
        assert (member.target, member.is_right) == (answer.label, not answer.is_wrong)
    assert found.changes
    for before, after in found.changes:
        *others, n = after.values
        assert before.values == (*others, n - 1)
        letters = (found.family.letters(*x.values) for x in (before, after))
        model_answers = tuple(model.answer(x).predicted for x in letters)
        assert model_answers == (before.output, after.output) == (not after.output, after.output)


def test_family_reports_strings_beyond_the_position_table() -> None:
    fields = {**TWO_BLOCKS, "positions": "learned", "train_max_length": 9}
    model = untrained(validation_max_length=9, **fields)
    found = answers_along(model, "01{n}")
    places = longest_readable(model.problem.network) or 0
    assert {sum(x.values) + 1 <= places for x in found.members} == {True}
    assert found.no_places == len({*found.grid, *range(1, 17)}) - len(found.members) > 0
    first = str(next(found.describe(model)))
    assert first.startswith(f"Tried: {len(found.members)} strings of 01{{n}}, without ")
    assert first.endswith("between neighbors that agree a change is not excluded.")
    with pytest.raises(InvalidStringError, match="even its shortest string is longer than"):
        answers_along(model, f"0{{{2 * places}}}1{{n}}")
    with pytest.raises(InvalidStringError, match="even its first string has more than the 10,000"):
        answers_along(untrained(**LSTM), "0{10000}1{n}")


def test_family_with_nan_answers_is_refused() -> None:
    model = untrained(**LSTM)
    model.weights["classifier.bias"][:] = np.nan
    with pytest.raises(InvalidStringError, match="none of its strings has an answer"):
        answers_along(model, "01{n}")
