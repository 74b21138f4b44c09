"""Families of strings: how they are written, and where the answer changes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqcls.errors import InvalidStringError
from seqcls.interpretability.bounds import sign_changes
from seqcls.interpretability.families import MAX_COUNT, answers, counted_curve, counted_map
from seqcls.interpretability.family import Curve, FamilyMap, parse_family
from seqcls.interpretability.network import Network
from seqcls.strings.tokenizer import Tokenizer
from tests.unit.explained import random_network
from tests.unit.networks import plain_model

ABC = Tokenizer("abc")

FIELDS = st.fixed_dictionaries(
    {
        "hidden_size": st.integers(1, 5),
        "num_attention_heads": st.integers(0, 3),
        "feed_forward_size": st.integers(0, 4),
        "layer_norm": st.sampled_from(["rms", "nn"]),
        "layer_norm_eps": st.sampled_from([0.0, 1e-2]),
        "no_attend_cls": st.booleans(),
    }
)


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


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ab{3}", "'ab{3}' has no free counts; expected one or two"),
        ("a{k}b{m}c{n}", "has 3 free counts; expected one or two"),
        ("d{n}", "unknown letter 'd' in 'd': the alphabet is 'abc'"),
        ("ab{n}{n}", "cannot read"),
        ("a{9999999999999}b{n}", "fixes a count above 1,000,000,000,000"),
    ],
)
def test_what_is_no_family_is_refused_in_one_line(text: str, problem: str) -> None:
    with pytest.raises(InvalidStringError) as error:
        parse_family(ABC, text)
    assert problem in str(error.value)
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
    weights = {name: torch.from_numpy(value) for name, value in network.weights.items()}
    model = plain_model(network.problem.network, weights)
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


def test_one_free_count_is_a_curve_and_two_are_a_map() -> None:
    network = random_network()
    found = answers(network, "ab{n}")
    assert isinstance(found, Curve)
    assert found.n[-1] == MAX_COUNT
    found = answers(network, "a{m}b{n}")
    assert isinstance(found, FamilyMap)
    assert found.exact
