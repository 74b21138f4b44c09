"""Families of strings: how they are written, and where the answer changes.

By letter counts, and where strings are run, against asking about each.
"""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqcls.errors import InvalidStringError
from seqcls.interpretability.bounds import sign_changes
from seqcls.interpretability.families import (
    MAX_COUNT,
    answers,
    counted_curve,
    counted_map,
    tried_curve,
    tried_map,
)
from seqcls.interpretability.family import Curve, FamilyMap, parse_family
from seqcls.interpretability.network import Network
from seqcls.interpretability.readable_model import plain_model
from seqcls.strings.tokenizer import Tokenizer
from tests.unit.explained import FIELDS, random_network
from tests.zoo import LSTM, untrained

ABC = Tokenizer("abc")


@pytest.mark.parametrize(
    ("text", "names", "fixed", "free"),
    [
        ("ab{n}", ("n",), (1, 0, 0), ((0, 1, 0),)),
        ("a{n}b", ("n",), (0, 1, 0), ((1, 0, 0),)),
        ("b{2}c{n}", ("n",), (0, 2, 0), ((0, 0, 1),)),
        ("a{m}b{n}", ("m", "n"), (0, 0, 0), ((1, 0, 0), (0, 1, 0))),
        ("b{n}ca{n}b{n}", ("n",), (0, 0, 1), ((1, 2, 0),)),
    ],
)
def test_a_family_is_its_fixed_and_its_free_counts(
    text: str, names: tuple[str, ...], fixed: tuple[int, ...], free: tuple[tuple[int, ...], ...]
) -> None:
    family = parse_family(ABC, text)
    assert (family.names, family.fixed, family.free) == (names, fixed, free)
    values = list(range(5, 5 + len(names)))
    spelled = random_network().tokenizer.counts(family.member(values))
    assert tuple(family.counts(np.array([values]))[0]) == spelled


def test_groups_are_spelled_out_and_brackets_are_tokens_like_others() -> None:
    family = parse_family(Tokenizer("01"), "<01>{n}1{2}0{n}")
    assert family.letters(3) == (0, 1, 0, 1, 0, 1, 1, 1, 0, 0, 0)
    assert family.length(3) == 11
    assert parse_family(Tokenizer("01"), "0{m}<10>{n}").letters(2, 3) == (0, 0, 1, 0, 1, 0, 1, 0)
    assert parse_family(Tokenizer("()"), "({n}){n}").letters(2) == (0, 0, 1, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ab{3}", ("'ab{3}'", "one or two")),
        ("a{k}b{m}c{n}", ("3 free counts", "one or two")),
        ("d{n}", ("'d'", "'abc'")),
        ("ab{n}{n}", ("'ab{n}{n}'",)),
        ("<ab{n}", ("'<ab{n}'", "character 1")),
        ("a{9999999999999}b{n}", ("1,000,000,000,000",)),
    ],
)
def test_what_is_no_family_is_refused_in_one_line(text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(InvalidStringError) as error:
        parse_family(ABC, text)
    assert all(word in str(error.value) for word in words)
    assert "\n" not in str(error.value)


@given(FIELDS, st.integers(0, 10**6), st.tuples(*[st.integers(0, 3)] * 6))
def test_sign_changes_are_those_of_trying_every_count(
    fields: dict[str, object], seed: int, counts: tuple[int, ...]
) -> None:
    network = random_network(seed, **fields)
    start, step = np.array(counts[:3]), np.array(counts[3:])
    found = sign_changes(network, start, step, 0, 3000)
    answers = network.logits(start + np.arange(3001)[:, None] * step) > 0
    assert found.tolist() == (np.flatnonzero(answers[1:] != answers[:-1]) + 1).tolist()


def flipping_network() -> Network:
    """A network that changes its answer for `ab{n}` somewhere."""
    for seed in range(100):
        network = random_network(seed, no_attend_cls=True, layer_norm_eps=0.0)
        flips = counted_curve(network, parse_family(ABC, "ab{n}")).changes
        if flips and 3 < flips[0].n < 500:
            return network
    raise AssertionError("no such network")


def test_the_answer_flips_where_that_of_the_readable_model_does() -> None:
    network = flipping_network()
    found = counted_curve(network, parse_family(ABC, "ab{n}"))
    model = plain_model(network)
    for flip in found.changes[:1]:
        before, after = (
            float(model(torch.tensor([network.tokenizer.encode(f"ab{{{n}}}")])).detach())
            for n in (flip.n - 1, flip.n)
        )
        assert (before > 0) != (after > 0)
        assert (after > 0) == flip.answer
        assert (before, after) == pytest.approx((flip.logit_before, flip.logit), abs=1e-10)
    assert found.labels.all()
    assert found.first_wrong == (1 if found.logits[0] <= 0 else found.changes[0].n)


def test_a_curve_has_every_flip_among_its_points_and_ends_near_its_limit() -> None:
    network = flipping_network()
    found = counted_curve(network, parse_family(ABC, "ab{n}"))
    assert (found.n[0], found.n[-1]) == (1, MAX_COUNT)
    signs = found.logits > 0
    changes = found.n[1:][signs[1:] != signs[:-1]]
    assert changes.tolist() == [flip.n for flip in found.changes]
    far = network.logits(np.array([[1, 10**15, 0]]))[0]
    assert found.limit == pytest.approx(far, abs=1e-9)
    np.testing.assert_allclose(found.probability, 1 / (1 + np.exp(-found.logits)))


def test_a_map_has_a_boundary_and_is_made_of_curves() -> None:
    network = flipping_network()
    found = counted_map(network, parse_family(ABC, "a{m}b{n}"), points=7)
    assert found.logits.shape == (7, 7)
    for row, m in enumerate(found.first.tolist()):
        alone = counted_curve(network, parse_family(ABC, f"a{{{m}}}b{{n}}"))
        assert found.changes[row] == alone.changes
        on_curve = network.logits(np.array([[m, n, 0] for n in found.second.tolist()]))
        np.testing.assert_allclose(found.logits[row], on_curve, rtol=1e-12)
    # Without CLS only proportions count: twice the a's, twice the b's.
    assert found.changes[0][0].n == pytest.approx(found.changes[1][0].n / found.first[1], abs=2)


def test_every_change_is_between_neighbours() -> None:
    model = untrained(**LSTM)
    model.weights["classifier.bias"][:] -= model.answer((0, 1) * 3).logit
    found = tried_curve(model, parse_family(model.tokenizer, "<01>{n}"), points=6)
    assert found.n[-1] == 2000
    rows = [model.answer((0, 1) * n) for n in found.n[:16].tolist()]
    np.testing.assert_allclose(found.logits[:16], [answer.logit for answer in rows])
    assert found.labels[:16].tolist() == [answer.label for answer in rows]
    assert found.changes
    for change in found.changes:
        before, after = (model.answer((0, 1) * n).predicted for n in (change.n - 1, change.n))
        assert (before, after) == (not change.answer, change.answer)


def test_two_counts_are_asked_about_together() -> None:
    model = untrained(**LSTM)
    model.weights["classifier.bias"][:] -= model.answer((0,) * 9 + (1, 0) * 9).logit
    family = parse_family(model.tokenizer, "0{m}<10>{n}")
    found = tried_map(model, family, points=5)
    assert found.first.tolist() == found.second.tolist()
    assert found.first[-1] == 2000
    for row, m in enumerate(found.first[:3].tolist()):
        for column, n in enumerate(found.second[:3].tolist()):
            answer = model.answer((0,) * m + (1, 0) * n)
            assert found.logits[row, column] == pytest.approx(answer.logit)
            assert found.labels[row, column] == answer.label
            assert found.wrong[row, column] == answer.is_wrong
    assert any(found.changes)
    for m, changes in zip(found.first.tolist(), found.changes, strict=True):
        for own in changes:
            before, after = (model.answer((0,) * m + (1, 0) * n) for n in (own.n - 1, own.n))
            assert (before.predicted, after.predicted) == (not own.answer, own.answer)


def test_one_free_count_is_a_curve_and_two_are_a_map() -> None:
    network = random_network()
    curve, both = answers(network, "ab{n}"), answers(network, "a{m}b{n}")
    assert isinstance(curve, Curve)
    assert curve.limit is not None
    assert isinstance(both, FamilyMap)
    assert both.exact
    curve = answers(untrained(**LSTM), "0{n}")
    assert isinstance(curve, Curve)
    assert curve.limit is None
