"""How a trained model does on its test strings: in all, by length, and string by string."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64

from seqcls.config import RunConfig
from seqcls.multiset import group_logits, log_counts
from seqcls.results import Confusion, Evaluation, StringError, Weights
from seqcls.sampling import Strings
from seqcls.sampling.streams import stream
from seqcls.tokenizer import Tokenizer

STRINGS_AT_ONCE = 4096
"""Keeps the widest activation of a group within tens of megabytes."""


def logits_of(
    config: RunConfig,
    weights: Sequence[Weights],
    counts: Int64[np.ndarray, "string letter"],
    device: str = "cpu",
) -> Float[np.ndarray, "member string"]:
    """Logits of models of one shape for strings given as letter counts; positive means label 1."""
    parameters = {
        name: torch.from_numpy(np.stack([own[name] for own in weights])).to(device)
        for name in weights[0]
    }
    encoded = log_counts(config, counts).to(device)
    with torch.no_grad():
        parts = [group_logits(config, parameters, x) for x in encoded.split(STRINGS_AT_ONCE)]
    return torch.cat(parts, dim=1).cpu().numpy()


def evaluate(
    configs: Sequence[RunConfig], weights: Sequence[Weights], device: str = "cpu"
) -> list[Evaluation]:
    """Tests the models of one group, in their order.

    Args:
        configs: configurations with the same `group_key`.
        weights: each one's trained parameters.
        device: where the logits are computed, `cpu` or `cuda`.
    """
    config = configs[0]
    test = stream(config.test_strings).epoch(0)
    # Strings with equal counts have equal logits; each is asked for once.
    counts, first, occurrences = np.unique(
        test.counts, axis=0, return_index=True, return_counts=True
    )
    distinct = test.take(first)
    return [
        _evaluation(config, distinct, occurrences, own)
        for own in logits_of(config, weights, counts, device)
    ]


def _evaluation(
    config: RunConfig,
    distinct: Strings,
    occurrences: Int64[np.ndarray, " string"],
    logits: Float[np.ndarray, " string"],
) -> Evaluation:
    predicted = logits > 0
    wrong = np.flatnonzero(predicted != distinct.positive)
    lengths = distinct.lengths
    by_length = {
        int(length): _confusion(distinct.positive, predicted, occurrences * (lengths == length))
        for length in np.unique(lengths)
    }
    return Evaluation(
        confusion=_confusion(distinct.positive, predicted, occurrences),
        by_length=by_length,
        errors=_errors(config, distinct, occurrences, logits, wrong),
        solved_length=int(lengths[wrong].min()) - 1 if len(wrong) else config.test_max_length,
    )


def _confusion(
    positive: Bool[np.ndarray, " string"],
    predicted: Bool[np.ndarray, " string"],
    occurrences: Int64[np.ndarray, " string"],
) -> Confusion:
    cells = np.bincount(2 * positive + predicted, weights=occurrences, minlength=4)
    return Confusion(*map(int, cells))


def _errors(
    config: RunConfig,
    distinct: Strings,
    occurrences: Int64[np.ndarray, " string"],
    logits: Float[np.ndarray, " string"],
    wrong: Int64[np.ndarray, " row"],
) -> list[StringError]:
    tokenizer = Tokenizer(config.num_letters)
    errors = [
        StringError(
            string=tokenizer.decode(distinct.ids[row]),
            length=int(distinct.lengths[row]),
            label=int(distinct.positive[row]),
            logit=float(logits[row]),
            occurrences=int(occurrences[row]),
        )
        for row in wrong
    ]
    return sorted(errors, key=lambda error: error.string)
