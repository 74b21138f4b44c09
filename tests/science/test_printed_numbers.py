"""Rules and proofs hold with the numbers as they are printed."""

import re
from decimal import Decimal
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seqcls.interpretability.bounds import block_of
from seqcls.interpretability.certification import (
    Certification,
    SupportProof,
    divide,
    prove,
)
from seqcls.interpretability.rules import bounds
from seqcls.interpretability.wording import (
    between,
    format_decimal,
    p_value_text,
    percent,
    percents,
    round_digits,
)
from tests.zoo import scattered_model

POSITIVE = st.floats(1e-12, 1e12)
NUMBER = r"(?:1 - )?\d[\d.]*(?:e-?\d+)?"


def read(text: str) -> Decimal:
    """The number that a text means."""
    if text.startswith("1 - "):
        return 1 - Decimal(text.removeprefix("1 - "))
    return Decimal(text.removesuffix("%")) / (100 if text.endswith("%") else 1)


@given(POSITIVE, st.integers(1, 15))
def test_rounding_keeps_its_side(x: float, digits: int) -> None:
    low, high = (round_digits(x, up=up, digits=digits) for up in (False, True))
    assert low <= Decimal(x) <= high
    assert [Decimal(format_decimal(low)), Decimal(format_decimal(high))] == [low, high]


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_printed_bound_lies_between_both_values(one: float, other: float) -> None:
    low, high = sorted((one, other))
    if low < high:
        assert low <= float(between(low, high)) < high


def test_percentages_print_0_and_100_only_when_exact() -> None:
    bounds_of = {(0.5, 0.6): "0.5", (0.50632911, 0.6): "0.50633", (12345, 12346): "12345"}
    assert {ends: between(*ends) for ends in bounds_of} == bounds_of
    shares = {1: "100%", 0: "0%", 0.986: "98.6%", 0.99996: "99.996%", 1e-5: "0.001%"}
    assert {share: percent(share) for share in shares} == shares
    differences = {0.0: "0%", -1.0: "-100%", 0.125: "12.5%", -0.00004: "-0.004%", 1e-17: "0%"}
    assert {share: percent(share, 1) for share in differences} == differences
    assert percents(0.0, 0.9996) == "0% to 99.96%"
    assert [p_value_text(p) for p in (1.0, 0.03125, 1e-9)] == ["p = 1", "p = 0.0312", "p < 0.0001"]


def test_rule_agrees_with_its_printed_bound() -> None:
    random = np.random.default_rng(0)
    lengths = random.integers(1, 200, size=3_000)
    ones = random.binomial(lengths, 0.5)
    for values in (ones / lengths, lengths.astype(float), lengths * 100.0 + 5):
        for predicted in (values > np.quantile(values, share) for share in (0.2, 0.5, 0.7)):
            for own in bounds(values, predicted, np.ones(len(values))):
                above, bound = re.fullmatch(r"(above|at most) (\S+)", str(own)).groups()  # type: ignore[union-attr]
                says = own.says(values)
                assert ((values > float(bound)) == (says == (above == "above"))).all()
                assert (says == predicted).all() == (above == "above")


def test_proofs_hold_with_printed_numbers() -> None:
    printed = {"margin": 0, "interval": 0, "safe share": 0, "shares": 0}
    supports: list[tuple[int, ...]] = [(0,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    for seed, support in product(range(12), supports):
        network = scattered_model(seed, no_attend_cls=True, layer_norm_eps=0.0)
        cells = divide(block_of(network), support, 0.0)
        proof = prove(network, support, cells, cells)
        _, text = Certification(1, (proof,), ()).describe()
        if found := re.search(rf"at least ({NUMBER}) from zero", text):
            assert proof.margin is not None
            assert 0 < read(found[1]) <= proof.margin
            printed["margin"] += 1
        if found := re.search(rf"more than ({NUMBER})$", text):
            assert proof.safe_share is not None
            assert proof.safe_share <= read(found[1]) < 1
            printed["safe share"] += 1
        printed["interval"] += assert_intervals_lie_within(proof, text)
        printed["shares"] += assert_shares_are_proved(proof, text)
    assert min(printed.values()) > 5, printed


def assert_intervals_lie_within(proof: SupportProof, text: str) -> int:
    found = re.search(r"wrong where the share of \w is (.*?)(?:;|$)", text)
    ends = re.findall(rf"({NUMBER}) to ({NUMBER})", found[1]) if found else []
    wrong = [x for x in proof.intervals if x.right is False]
    if proof.claim != "certified wrong":
        assert len(ends) == len(wrong)
    for interval, (low, high) in zip(wrong, ends, strict=False):
        assert interval.low <= read(low) < read(high) <= interval.high
    return len(ends)


def assert_shares_are_proved(proof: SupportProof, text: str) -> int:
    share = rf"({NUMBER}%?)"
    found = re.search(
        rf"; right for at least {share} of all proportions, wrong for at least {share}, at most "
        rf"{share} not proved",
        text,
    )
    if not found:
        return 0
    right, wrong, left = map(read, found.groups())
    assert right <= proof.right
    assert wrong <= proof.wrong
    assert left >= proof.open
    return 1
