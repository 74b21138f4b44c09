"""Lengths of tested strings follow from their sampler, whatever unread fields are."""

from typing import Any

import numpy as np
import pytest

from seqcls.config import RunConfig
from seqcls.evaluation import distinct_test_strings, evaluation_of
from seqcls.interpretability.certification import certify
from seqcls.interpretability.domains import multisets_of
from seqcls.interpretability.verdicts import (
    errors_up_to,
    string_verdict,
    unaffordable,
    verdicts,
)
from seqcls.kinds.base import Questions
from seqcls.kinds.membership import MembershipKind
from seqcls.problem import configuration, resolve
from seqcls.results import Evaluation
from tests.zoo import untrained

FIXED: dict[str, Any] = {"test_sampler": "fixed_length", "sequence_length": 5}
FROM_THREE: dict[str, Any] = {"task": "parity", "test_min_length": 3, "test_max_length": 6}


def evaluated(config: RunConfig, *wrong: int) -> Evaluation:
    """The evaluation of a model that is wrong on the strings of these lengths alone."""
    test = distinct_test_strings(resolve(config).test)
    right = test.labels ^ np.isin(test.strings.lengths, wrong)
    answers = MembershipKind().judge(Questions.about(test), np.where(right, 1.0, -1.0))
    return evaluation_of(resolve(config), test, answers)


def test_solved_length_is_at_most_the_longest_tested() -> None:
    assert evaluated(configuration(FIXED)).solved_length == 4
    assert evaluated(configuration(FIXED), 4).solved_length == 3
    assert evaluated(configuration(FROM_THREE)).solved_length == 6
    assert evaluated(RunConfig()).solved_length == 200
    # Strings longer than an unread field are counted.
    found = evaluated(configuration({**FIXED, "sequence_length": 8, "test_max_length": 5}), 7)
    assert found.lengths.tolist() == [7]
    assert sum(found.confusion) == 3**7


def test_verdict_includes_the_empty_string_only_where_tests_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("seqcls.interpretability.verdicts.MAX_STRINGS", 6)
    assert multisets_of(resolve(configuration(FIXED))).sum(axis=1).min() == 1
    for fields, shortest in (({**FROM_THREE, "test_min_length": 0}, 0), (FROM_THREE, 1)):
        model = untrained(**fields)
        multisets = multisets_of(model.problem)
        assert multisets.sum(axis=1).min() == shortest
        assert model.problem.tries_empty == (shortest == 0)
        assert string_verdict(model).inputs == 2 + 4 + (shortest == 0)
        (verdict,) = verdicts(model.problem, [model.weights])
        assert verdict.inputs == len(multisets)


def test_exhaustive_checks_end_at_the_longest_tested_length() -> None:
    model = untrained(**FIXED, task="contains_all", test_max_length=10_000)
    assert unaffordable(model.problem) is None
    (found,) = verdicts(model.problem, [model.weights])
    assert (found.max_length, found.inputs) == (4, 34)
    assert string_verdict(model).max_length == 4
    assert errors_up_to(model).max_length == 4
    assert certify(model).least_length == 5
