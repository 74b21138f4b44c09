"""How a trained model does on its test strings: in all, by length, and string by string."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.config import RunConfig
from seqcls.engines.choice import choose_engine
from seqcls.results import Confusion, Evaluation, StringError, Weights
from seqcls.sampling import Sampler
from seqcls.sampling.streams import stream
from seqcls.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class DistinctStrings:
    """The distinct strings of a test set: strings with equal counts have equal logits."""

    counts: Int64[np.ndarray, "string letter"]
    occurrences: Int64[np.ndarray, " string"]
    positive: Bool[np.ndarray, " string"]
    lengths: Int64[np.ndarray, " string"]
    texts: list[str]


@lru_cache(maxsize=16)
def distinct_test_strings(sampler: Sampler) -> DistinctStrings:
    """The first epoch of a stream, each string once, made once for all models tested on it."""
    drawn = stream(sampler).epoch(0)
    counts, first, occurrences = np.unique(
        drawn.counts, axis=0, return_index=True, return_counts=True
    )
    strings = drawn.take(first)
    tokenizer = Tokenizer(counts.shape[1])
    texts = [tokenizer.decode(ids) for ids in strings.ids.tolist()]
    return DistinctStrings(counts, occurrences, strings.positive, strings.lengths, texts)


def logits_of(
    config: RunConfig,
    weights: Sequence[Weights],
    counts: Int64[np.ndarray, "string letter"],
    *,
    engine: str = "auto",
    device: str = "auto",
) -> Float[np.ndarray, "member string"]:
    """Logits of models of one shape for strings given as letter counts; positive means label 1.

    Dropout is off. Engine and device are as for `seqcls.training.train_group`.
    """
    # Each engine's library is loaded only where it is used.
    if choose_engine(config, engine, device).name == "fused":
        from seqcls.engines.fused.training import fused_logits

        return fused_logits(config, weights, counts)
    from seqcls.engines.stacked import stacked_logits

    return stacked_logits(config, weights, counts, device=device)


def evaluate(
    configs: Sequence[RunConfig],
    weights: Sequence[Weights],
    *,
    engine: str = "auto",
    device: str = "auto",
) -> list[Evaluation]:
    """Tests the models of one group, in their order.

    Args:
        configs: configurations with the same `group_key`.
        weights: each one's trained parameters.
        engine: as for `seqcls.training.train_group`.
        device: likewise.
    """
    config = configs[0]
    test = distinct_test_strings(config.test_strings)
    logits = logits_of(config, weights, test.counts, engine=engine, device=device)
    return [evaluation_of(config, test, own) for own in logits]


def evaluation_of(
    config: RunConfig, test: DistinctStrings, logits: Float[np.ndarray, " string"]
) -> Evaluation:
    """What these logits of the test strings make of one model."""
    predicted = logits > 0
    wrong = np.flatnonzero(predicted != test.positive)
    # One count for every length and cell, the cells in the order of Confusion.
    cells = 4 * test.lengths + 2 * test.positive + predicted
    table = np.bincount(cells, test.occurrences, 4 * (config.test_max_length + 1))
    by_length = table.astype(np.int64).reshape(-1, 4).tolist()
    return Evaluation(
        confusion=Confusion(*map(sum, zip(*by_length, strict=True))),
        by_length={
            length: Confusion(*confusion)
            for length, confusion in enumerate(by_length)
            if any(confusion)
        },
        errors=sorted(
            (
                StringError(
                    string=test.texts[row],
                    length=int(test.lengths[row]),
                    label=int(test.positive[row]),
                    logit=float(logits[row]),
                    occurrences=int(test.occurrences[row]),
                )
                for row in wrong
            ),
            key=lambda error: error.string,
        ),
        solved_length=(
            int(test.lengths[wrong].min()) - 1 if len(wrong) else config.test_max_length
        ),
    )
