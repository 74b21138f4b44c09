"""How a trained model does on its test strings: in all, by length, and string by string."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.config import RunConfig
from seqcls.data import network_of, sampler_of
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.models.positions import longest_readable
from seqcls.results import Confusion, Evaluation, StringError, Weights
from seqcls.sampling import Sampler
from seqcls.sampling.streams import stream
from seqcls.strings import TokenStrings
from seqcls.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class DistinctStrings:
    """The distinct strings of a test set."""

    strings: TokenStrings
    occurrences: Int64[np.ndarray, " string"]
    labels: Bool[np.ndarray, " string"]
    texts: list[str]


@lru_cache(maxsize=16)
def distinct_test_strings(sampler: Sampler) -> DistinctStrings:
    """The first epoch of a stream, each string once, made once for all models tested on it."""
    drawn = stream(sampler).epoch(0)
    # Strings that were drawn by counts differ in nothing else.
    own = drawn.strings
    rows: np.ndarray = own.counts if own.is_counted else own.letters
    _, first, occurrences = np.unique(rows, axis=0, return_index=True, return_counts=True)
    distinct = drawn.take(first)
    tokenizer = Tokenizer(sampler.task.alphabet)
    texts = [tokenizer.decode(ids) for ids in distinct.strings.ids.tolist()]
    return DistinctStrings(distinct.strings, occurrences, distinct.labels, texts)


def logits_of(
    config: RunConfig,
    weights: Sequence[Weights],
    strings: TokenStrings,
    *,
    engine: str = "auto",
    device: str = "auto",
) -> Float[np.ndarray, "member string"]:
    """Logits of models of one shape for strings; positive means label 1.

    Dropout is off. Engine and device are as for `seqcls.training.train_group`. Strings beyond the
    places that the models know, about which they cannot be asked, have none but NaN.
    """
    own = engine_named(choose_engine(config, engine, device).name)
    readable = readable_strings(config, strings)
    if readable.all():
        return own.logits(config, weights, strings, device=device)
    known = own.logits(config, weights, strings.take(np.flatnonzero(readable)), device=device)
    logits = np.full((len(weights), len(strings)), np.nan, dtype=known.dtype)
    logits[:, readable] = known
    return logits


def readable_strings(config: RunConfig, strings: TokenStrings) -> Bool[np.ndarray, " string"]:
    """Which strings a configuration's models can be asked about: all, or those with places."""
    end = longest_readable(network_of(config))
    return strings.lengths <= (np.inf if end is None else end)


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
    test = distinct_test_strings(sampler_of(config, "test"))
    logits = logits_of(config, weights, test.strings, engine=engine, device=device)
    return [evaluation_of(config, test, own) for own in logits]


def evaluation_of(
    config: RunConfig, test: DistinctStrings, logits: Float[np.ndarray, " string"]
) -> Evaluation:
    """What these logits of the test strings make of one model."""
    predicted = logits > 0
    asked = readable_strings(config, test.strings)
    wrong = np.flatnonzero((predicted != test.labels) & asked)
    # One count for every length and cell, the cells in the order of Confusion.
    lengths = test.strings.lengths
    cells = 4 * lengths + 2 * test.labels + predicted
    table = np.bincount(cells, test.occurrences * asked, 4 * (config.test_max_length + 1))
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
                    length=int(lengths[row]),
                    label=int(test.labels[row]),
                    logit=float(logits[row]),
                    occurrences=int(test.occurrences[row]),
                )
                for row in wrong
            ),
            key=lambda error: error.string,
        ),
        solved_length=_solved_length(config, lengths[wrong]),
    )


def _solved_length(config: RunConfig, wrong: Int64[np.ndarray, " error"]) -> int:
    """The greatest length up to which all are right, given those of the errors."""
    if len(wrong):
        return int(wrong.min()) - 1
    end = longest_readable(network_of(config))
    return config.test_max_length if end is None else min(end, config.test_max_length)
