"""An exhaustive check: every string up to a length, as a multiset of letters."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.counts.invariance import counts_suffice
from seqcls.evaluation import logits_of
from seqcls.problem import Problem
from seqcls.results import Verdict, Weights
from seqcls.tasks import CountTask
from seqcls.tokens.strings import TokenStrings

MAX_MULTISETS = 2_000_000
"""What a model is checked on in a fraction of a second, in about 200 MB."""


def num_multisets(num_letters: int, max_length: int) -> int:
    """How many multisets of 1 to `max_length` letters there are."""
    return math.comb(num_letters + max_length, num_letters) - 1


def unaffordable(problem: Problem) -> str | None:
    """Why a problem's models are not checked exhaustively; None where they are.

    Multisets stand for all strings where letter counts decide both what is right and what the
    model answers; dropout, which is off when it answers, has no part in it.
    """
    if problem.no_language:
        return problem.no_language
    if not isinstance(problem.task, CountTask):
        return (
            f"task={problem.config.task!r}: the order of tokens decides, so there are far too many "
            "strings to try them all"
        )
    reason = counts_suffice(problem.network, training=False)
    if reason is not None:
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


@lru_cache(maxsize=2)
def all_multisets(num_letters: int, max_length: int) -> Int64[np.ndarray, "multiset letter"]:
    """The letter counts of every multiset of 1 to `max_length` letters."""
    counts = np.zeros((1, 0), dtype=np.int64)
    left = np.array([max_length])
    for _ in range(num_letters):
        # Each multiset so far goes on with every number of the next letter that still fits.
        choices = left + 1
        starts = np.repeat(np.cumsum(choices) - choices, choices)
        number = np.arange(len(starts)) - starts
        counts = np.column_stack([np.repeat(counts, choices, axis=0), number])
        left = np.repeat(left, choices) - number
    return counts[1:]


def multisets_of(
    problem: Problem, max_length: int | None = None
) -> Int64[np.ndarray, "multiset letter"]:
    """The multisets that stand for all strings of a problem's language, up to a length.

    Args:
        problem: of a language in which letter counts decide.
        max_length: the longest test string's if not given.
    """
    length = problem.test.lengths[-1] if max_length is None else max_length
    return _multisets(len(problem.task.alphabet), length, tries_empty(problem))


def tries_empty(problem: Problem) -> bool:
    """Whether the empty string is one of those tried: where a test may hold it."""
    return 0 in problem.test.lengths


def _multisets(
    num_letters: int, max_length: int, has_empty: bool
) -> Int64[np.ndarray, "multiset letter"]:
    counts = all_multisets(num_letters, max_length)
    return np.concatenate([np.zeros_like(counts[:1]), counts]) if has_empty else counts


def _strings_of(problem: Problem) -> TokenStrings:
    letters, longest = len(problem.task.alphabet), problem.test.lengths[-1]
    return _kept_strings(letters, longest, tries_empty(problem))


@lru_cache(maxsize=1)
def _kept_strings(num_letters: int, max_length: int, has_empty: bool) -> TokenStrings:
    """The same strings for one group after another, so that an engine may keep what it makes."""
    counts = _multisets(num_letters, max_length, has_empty)
    return TokenStrings.of_counts(num_letters, counts)


def verdicts(
    problem: Problem, weights: Sequence[Weights], *, engine: str = "auto", device: str = "auto"
) -> list[Verdict]:
    """What models of one shape make of all strings up to their longest test length.

    The caller has asked `unaffordable`. Engine and device are as for `seqcls.training.train_group`.
    """
    strings = _strings_of(problem)
    counts = strings.counts
    positive = problem.count_task.labels_of_counts(counts)
    # Without dropout, which is off here, any engine that trains by letter counts can answer.
    by = "auto" if engine == "strings" else engine
    # One model at a time: each has more than a million logits.
    found = []
    for member_weights in weights:
        logits = logits_of(
            problem.without_dropout, [member_weights], strings, engine=by, device=device
        )
        found.append(_verdict(problem, counts, positive, logits[0] > 0))
    return found


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
