"""Explanations, families and proofs of the shipped models."""

from functools import cache, lru_cache
from math import comb

import numpy as np
import pytest

from seqcls.interpretability.certification import certify
from seqcls.interpretability.explanations import explain
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.interpretability.verdicts import errors_up_to
from seqcls.problem import resolve
from seqcls.weights import weights_of
from sweeps.store.database import Store
from sweeps.store.opening import open_reader
from sweeps.store.reads import checkpoints, misclassified, queries
from tests.conftest import LONG, ROOT
from tests.oracles.counting import true_logits
from tests.science.test_explanations import assert_every_claim_holds

FAILING = (1, 2, 3, 4, 5, 6, 7, 9, 10, 16, 37, 38, 39, 40, 42, 43)
"""The runs that make errors."""

SEED_2 = "generalization_errors/2"


@cache
def shipped() -> Store:
    return open_reader(str(ROOT / "runs.db"))


@lru_cache(maxsize=64)
def network_of(run: int | str) -> TrainedModel:
    """A shipped model, its weights in double precision."""
    run_id = queries.find_run(shipped(), str(run))
    problem = resolve(queries.run_config(shipped(), run_id))
    weights = weights_of(problem, checkpoints.weights(shipped(), run_id))
    return TrainedModel(problem, {name: x.astype(np.float64) for name, x in weights.items()})


def test_failing_runs_are_listed() -> None:
    runs = queries.runs(shipped())
    assert tuple(runs[runs["errors"] > 0]["id"]) == FAILING


REPORTED: list[tuple[str, str, str, tuple[str, int | None, str, str | None], list[str]]] = [
    # The first head attends mostly to a and then to b: a large number of b overwhelms it, and the
    # c have no impact.
    (SEED_2, "ab{100}c{55}", "false negative", ("dilution", 0, "a", "b"),
     ["the 100 b's drown the a", "The 55 c's have no part", "ab{66}"]),
    # The value of c is so near to that of a that enough of them look like it.
    (SEED_2, "b{2}c{152}", "false positive", ("value interference", 0, "c", "a"),
     ["head 0 takes the 152 c's for a", "1.36", "2.02"]),
    ("lower_magnitude_initializations/2", "bc{9}", "false positive",
     ("two heads on one letter", None, "b", None), ["have no part"]),
]  # fmt: skip


def test_errors_are_explained_as_in_the_report() -> None:
    for run, string, error, cause, parts in REPORTED:
        found = explain(network_of(run), string)
        own, text = found.mechanism, " ".join(found.describe(network_of(run)))
        assert own is not None
        assert (found.error, own.name, own.letter) == (error, cause[0], cause[2])
        if cause[1] is not None:
            assert (own.head, own.by) == (cause[1], cause[3])
        assert all(part in text for part in (*parts, error)), text
    assert (found.smallest.string if found.smallest else "", found.no_part) == ("b", ("c",))
    seed_2 = explain(network_of(SEED_2), REPORTED[0][1])
    assert seed_2.heads[0].order[:2] == ("a", "b")
    # The fourth digit differs between processors.
    assert seed_2.heads[0].gaps[0].outweighed_by == pytest.approx(42.0, rel=2e-3)


@pytest.mark.parametrize("run", FAILING)
def test_explanations_of_shipped_errors_hold(run: int) -> None:
    network = network_of(run)
    texts = misclassified.string_errors(shipped(), run)["string"].tolist()
    counts = np.unique([network.tokenizer.counts(x) for x in texts], axis=0)
    # A string that single precision alone misclassifies has no cause in double precision.
    wrong = true_logits(network, counts) > 0
    counts = counts[wrong != network.problem.count_task.labels_of_counts(counts)]
    assert len(counts) >= len(texts) * 0.9 > 0
    for row in counts[:: 1 if LONG else max(1, len(counts) // 10)].tolist():
        assert_every_claim_holds(network, tuple(row))


@pytest.mark.parametrize("run", [3, 5, 8, 16, 25, 39])
def test_no_string_up_to_200_contradicts_a_certificate(run: int) -> None:
    network = network_of(run)
    errors = errors_up_to(network)
    shares = errors.counts / errors.counts.sum(axis=1, keepdims=True)
    found = certify(network)
    assert found.least_length == 1
    for proof in found.supports:
        letters = ["abc".index(letter) for letter in proof.letters]
        has = np.isin(np.arange(3), letters)
        own = ((errors.counts > 0) == has).all(axis=1)
        if proof.claim == "certified right":
            assert not own.any()
        if proof.claim == "certified wrong":
            assert own.sum() == comb(200, len(letters))
        if proof.safe_share is not None:
            assert (shares[own][:, :2].min(axis=1) <= proof.safe_share).all()
        for interval in proof.intervals:
            if interval.right:
                first = shares[own, letters[0]]
                assert not ((first > interval.low) & (first < interval.high)).any()
