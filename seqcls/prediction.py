"""A stored model's answers for strings as a user types them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqcls.config import RunConfig
from seqcls.counts.invariance import counts_suffice
from seqcls.data import network_of, tokenizer_of
from seqcls.errors import StringError
from seqcls.evaluation import logits_of
from seqcls.models.positions import longest_readable
from seqcls.strings import TokenStrings
from seqcls.tokenizer import FIRST_LETTER
from seqcls.weights import from_bytes


@dataclass(frozen=True)
class Prediction:
    """What a model says of a string; a positive logit means that it is in the language."""

    logit: float
    probability: float


def predict(config: RunConfig, weights: bytes, strings: Sequence[str]) -> list[Prediction]:
    """The model's answer for each string, from its letter counts where they suffice.

    Args:
        config: the run's configuration.
        weights: its parameters, as safetensors bytes.
        strings: in the notation of `seqcls.tokenizer`.

    Raises:
        StringError: a string that is not of this alphabet, or longer than the model can read.
    """
    typed = _typed(config, strings)
    end = longest_readable(network_of(config))
    for string, length in zip(strings, typed.lengths.tolist(), strict=True):
        if end is not None and length > end:
            raise StringError(
                f"string {string[:60]!r}: {length} tokens, and positions={config.positions!r} of "
                f"this model end at {end}; expected no longer a string"
            )
    logits = logits_of(config, [from_bytes(weights)], typed)[0].tolist()
    return [Prediction(logit, _sigmoid(logit)) for logit in logits]


def _typed(config: RunConfig, strings: Sequence[str]) -> TokenStrings:
    tokenizer = tokenizer_of(config)
    if counts_suffice(config, training=False) is None:
        counts = np.array([tokenizer.counts(string) for string in strings], dtype=np.int64)
        return TokenStrings.of_counts(tokenizer.num_letters, counts)
    ids = [tokenizer.encode(string) for string in strings]
    letters = [[token - FIRST_LETTER for token in own if token >= FIRST_LETTER] for own in ids]
    return TokenStrings.of_lists(tokenizer.num_letters, letters)


def _sigmoid(logit: float) -> float:
    small = math.exp(-abs(logit))
    return (small if logit < 0 else 1) / (1 + small)
