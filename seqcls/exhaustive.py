"""An exhaustive check: every string up to a length, as a multiset of letters."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.config import RunConfig
from seqcls.data import count_task_of, tokenizer_of
from seqcls.evaluation import logits_of
from seqcls.results import Verdict, Weights
from seqcls.strings import TokenStrings

MAX_MULTISETS = 2_000_000
"""What a model is checked on in a fraction of a second, in about 100 MB."""


def num_multisets(num_letters: int, max_length: int) -> int:
    """How many multisets of 1 to `max_length` letters there are."""
    return math.comb(num_letters + max_length, num_letters) - 1


def unaffordable(config: RunConfig) -> str | None:
    """Why a configuration's models are not checked exhaustively; None where they are."""
    multisets = num_multisets(config.num_letters, config.test_max_length)
    if multisets > MAX_MULTISETS:
        return (
            f"there are {multisets:,} multisets of {config.num_letters} letters up to length "
            f"{config.test_max_length}, more than {MAX_MULTISETS:,}"
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


def verdicts(
    config: RunConfig, weights: Sequence[Weights], *, engine: str = "auto"
) -> list[Verdict]:
    """What models of one shape make of all strings up to their longest test length.

    The caller has asked `unaffordable`.
    """
    counts = all_multisets(config.num_letters, config.test_max_length)
    positive = count_task_of(config).labels_of_counts(counts)
    strings = TokenStrings.of_counts(config.num_letters, counts)
    # One model at a time: each has more than a million logits.
    return [
        _verdict(config, counts, positive, logits_of(config, [own], strings, engine=engine)[0] > 0)
        for own in weights
    ]


def _verdict(
    config: RunConfig,
    counts: Int64[np.ndarray, "multiset letter"],
    positive: Bool[np.ndarray, " multiset"],
    predicted: Bool[np.ndarray, " multiset"],
) -> Verdict:
    wrong = np.flatnonzero(predicted != positive)
    false_positives = int(predicted[wrong].sum())
    shortest = None
    if len(wrong):
        lengths = counts[wrong].sum(axis=1)
        tokenizer = tokenizer_of(config)
        least = counts[wrong[lengths == lengths.min()]].tolist()
        shortest = min(map(tokenizer.text_of_counts, least))
    return Verdict(
        max_length=config.test_max_length,
        unit="multiset",
        inputs=len(counts),
        false_positives=false_positives,
        false_negatives=len(wrong) - false_positives,
        shortest_error=shortest,
    )
