"""Proofs about all strings, against strings drawn at random."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqcls.interpretability.bounds import block_of, logit_bounds
from seqcls.interpretability.certification import (
    Cells,
    SupportProof,
    certify,
    divide,
    prove,
)
from seqcls.interpretability.readable_model import logits
from seqcls.interpretability.trained_model import TrainedModel
from tests.zoo import FIELDS, scattered_model


def proof_of(
    model: TrainedModel, support: tuple[int, ...], least_length: int
) -> tuple[SupportProof, Cells]:
    """The proof for strings of at least so many letters of a support, and its cells."""
    block = block_of(model)
    limits = cells = divide(block, support, 0.0)
    if not model.config.no_attend_cls:
        cells = divide(block, support, 1 / least_length)
    return prove(model, support, cells, limits), cells


@given(FIELDS, st.integers(0, 10**6))
def test_bounds_hold_between_the_corners_of_cells(fields: dict[str, object], seed: int) -> None:
    network = scattered_model(seed, **fields)
    random = np.random.default_rng(seed)
    corners = random.integers(1, 50, size=(40, 3, 3))
    block = block_of(network)
    attended = np.full((40, 3, 1), not network.config.no_attend_cls)
    bounds = logit_bounds(block, block.attend(np.concatenate([attended, corners], axis=2)))
    # Sums of multiples of the corners point between them, and CLS has the same share as there.
    times = random.integers(1, 100, size=(40, 200, 3))
    between = np.einsum("cnk,ckl->cnl", times, corners).reshape(-1, 3).astype(float)
    found = logits(network, between / times.sum(axis=2).reshape(-1, 1)).reshape(40, 200)
    assert (found >= bounds.low[:, None]).all()
    assert (found <= bounds.high[:, None]).all()


@given(st.integers(0, 10**6))
def test_bounds_tighten_as_a_cell_shrinks(seed: int) -> None:
    network = scattered_model(seed, hidden_size=3, layer_norm_eps=0.0)
    point = np.array([[[3.0, 4.0, 5.0]] * 3])
    widths = []
    for size in (1e-1, 1e-2, 1e-3):
        cell = point + size * np.eye(3)
        block = block_of(network)
        bounds = logit_bounds(block, block.attend(np.insert(cell, 0, 1.0, axis=2)))
        widths.append(float(bounds.high[0] - bounds.low[0]))
    assert widths[2] <= 0.03 * widths[0] + 1e-8


@given(FIELDS, st.integers(0, 10**6))
def test_certificates_hold_for_random_strings_of_any_length(
    fields: dict[str, object], seed: int
) -> None:
    network = scattered_model(seed, **fields)
    random = np.random.default_rng(seed)
    for support in ((0,), (1, 2), (0, 1, 2)):
        proof, cells = proof_of(network, support, 201)
        assert cells.volume.sum() == pytest.approx(1)
        assert proof.right + proof.wrong + proof.open == pytest.approx(1)
        counts = np.zeros((300, 3), dtype=np.int64)
        sizes = 10.0 ** random.uniform(0, 7, size=(300, len(support)))
        counts[:, support] = np.ceil(sizes) + 201
        found = logits(network, counts)
        assert_bounds_hold_inside_cells(network, support, cells, random)
        if proof.claim in ("certified right", "certified wrong"):
            right = (found > 0) == proof.label
            assert right.all() if proof.claim == "certified right" else not right.any()
        limits = logits(network, counts, special=0.0)
        if proof.claim in ("right in the end", "wrong in the end"):
            right = (limits > 0) == proof.label
            assert right.all() if proof.claim == "right in the end" else not right.any()
        if proof.margin is not None:
            assert np.abs(found).min() >= proof.margin
        if proof.safe_share is not None:
            shares = counts[:, [0, 1]] / counts.sum(axis=1, keepdims=True)
            assert (found[(shares > proof.safe_share).all(axis=1)] > 0).all()


def assert_bounds_hold_inside_cells(
    network: TrainedModel, support: tuple[int, ...], cells: Cells, random: np.random.Generator
) -> None:
    rows = random.integers(len(cells.low), size=300)
    weights = random.dirichlet([0.5] * len(support), size=300)
    occurrences = np.zeros((300, 3))
    occurrences[:, support] = np.einsum("sc,scl->sl", weights, cells.corners[rows])
    # Of one `CLS` there are so many letters.
    occurrences *= 10.0 ** random.uniform(np.log10(201), 9, size=(300, 1))
    found = logits(network, occurrences)
    assert (found >= cells.low[rows]).all()
    assert (found <= cells.high[rows]).all()


def test_every_set_of_letters_is_certified() -> None:
    network = scattered_model(no_attend_cls=True)
    found = certify(network)
    assert [proof.letters for proof in found.supports] == ["a", "b", "c", "ab", "ac", "bc", "abc"]
    assert [proof.label for proof in found.supports] == [False] * 3 + [True, False, False, True]
    assert found.least_length == 1
    assert found.left_out == ()
    assert certify(scattered_model(no_attend_cls=False)).least_length == 201
    many = certify(scattered_model(num_letters=5, hidden_size=1, no_attend_cls=True))
    assert many.left_out == ("more than 4 letters",)
    assert max(len(proof.letters) for proof in many.supports) == 4


def test_limit_of_long_strings_may_differ_from_short_ones() -> None:
    changing = 0
    for seed in range(60):
        network = scattered_model(seed, hidden_size=2)
        proof, _ = proof_of(network, (1,), 2)
        short, long = logits(network, np.array([[0, 1, 0], [0, 10**15, 0]]))
        if proof.claim == "wrong in the end":
            changing += short <= 0
            assert long > 0
            assert proof.wrong_in_the_end == 1
    assert changing > 0


def test_intervals_of_two_letters_cover_all_shares() -> None:
    for seed in range(20):
        network = scattered_model(seed, no_attend_cls=True, layer_norm_eps=0.0)
        proof, _ = proof_of(network, (0, 1), 1)
        ends = [(x.low, x.high) for x in proof.intervals]
        assert ends[0][0] == 0
        assert ends[-1][1] == 1
        assert all(one[1] == other[0] for one, other in pairwise(ends))
        for interval in proof.intervals:
            share = (interval.low + interval.high) / 2
            (logit,) = logits(network, np.array([[share, 1 - share, 0]]), special=0.0)
            assert interval.right in (None, logit > 0)
