"""An exhaustive check by letter counts: every string up to a length, as a multiset of letters."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.engines.choice import names_one_by_strings
from seqcls.evaluation import logits_of
from seqcls.interpretability.multisets import all_multisets, multisets_differ, num_multisets
from seqcls.problem import Problem
from seqcls.results import Verdict, Weights
from seqcls.tokens.strings import TokenStrings

MAX_MULTISETS = 2_000_000
"""What a model is checked on in a fraction of a second, in about 200 MB."""


def unaffordable(problem: Problem) -> str | None:
    """Why a problem's models are not checked exhaustively; None where they are."""
    if problem.no_language:
        return problem.no_language
    if problem.unknown_labels:
        return problem.unknown_labels
    if reason := multisets_differ(problem):
        return f"{reason}, so there are far too many strings to try them all"
    letters = len(problem.task.alphabet)
    longest = problem.test.lengths[-1]
    multisets = num_multisets(letters, longest)
    if multisets > MAX_MULTISETS:
        return (
            f"there are {multisets:,} multisets of {letters} letters up to length "
            f"{longest}, more than {MAX_MULTISETS:,}"
        )
    return None


@lru_cache(maxsize=1)
def _kept_strings(num_letters: int, max_length: int, has_empty: bool) -> TokenStrings:
    """The same strings for one group after another, so that an engine may keep what it makes."""
    counts = all_multisets(num_letters, max_length, empty=has_empty)
    return TokenStrings.of_counts(num_letters, counts)


def verdicts(
    problem: Problem, weights: Sequence[Weights], *, engine: str = "auto", device: str = "auto"
) -> list[Verdict]:
    """What models of one shape make of all strings up to their longest test length.

    The caller has asked `unaffordable`. Engine and device are as for `seqcls.training.train_group`.
    """
    letters, longest = len(problem.task.alphabet), problem.test.lengths[-1]
    strings = _kept_strings(letters, longest, problem.tries_empty)
    counts = strings.counts
    positive = problem.count_task.labels_of_counts(counts)
    # Without dropout, which is off here, any engine that trains by letter counts can answer.
    by = "auto" if names_one_by_strings(engine) else engine
    # One model at a time: each has more than a million logits.
    wrong = []
    for member_weights in weights:
        logits = logits_of(
            problem.without_dropout, [member_weights], strings, engine=by, device=device
        )
        # Without an answer, which NaN is not, a multiset is misclassified.
        predicted = np.where(np.isnan(logits[0]), ~positive, logits[0] > 0)
        wrong.append(_verdict(problem, counts, positive, predicted))
    return wrong


def _verdict(
    problem: Problem,
    counts: Int64[np.ndarray, "multiset letter"],
    positive: Bool[np.ndarray, " multiset"],
    predicted: Bool[np.ndarray, " multiset"],
) -> Verdict:
    wrong = np.flatnonzero(predicted != positive)
    false_positives = int(predicted[wrong].sum())
    shortest = None
    if len(wrong):
        lengths = counts[wrong].sum(axis=1)
        tokenizer = problem.tokenizer
        least = counts[wrong[lengths == lengths.min()]].tolist()
        shortest = min(map(tokenizer.text_of_counts, least))
    return Verdict(
        max_length=problem.test.lengths[-1],
        unit="multiset",
        inputs=len(counts),
        false_positives=false_positives,
        false_negatives=len(wrong) - false_positives,
        shortest_error=shortest,
    )
