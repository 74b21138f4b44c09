"""A stored model's answers for strings as a user types them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqcls.config import RunConfig
from seqcls.data import tokenizer_of
from seqcls.evaluation import logits_of
from seqcls.strings import TokenStrings
from seqcls.weights import from_bytes


@dataclass(frozen=True)
class Prediction:
    """What a model says of a string; a positive logit means that it is in the language."""

    logit: float
    probability: float


def predict(config: RunConfig, weights: bytes, strings: Sequence[str]) -> list[Prediction]:
    """The model's answer for each string, from its letter counts.

    Args:
        config: the run's configuration.
        weights: its parameters, as safetensors bytes.
        strings: in the notation of `seqcls.tokenizer`.

    Raises:
        StringError: a string that is not of this alphabet.
    """
    tokenizer = tokenizer_of(config)
    counts = np.array([tokenizer.counts(string) for string in strings], dtype=np.int64)
    typed = TokenStrings.of_counts(tokenizer.num_letters, counts)
    logits = logits_of(config, [from_bytes(weights)], typed)[0].tolist()
    return [Prediction(logit, _sigmoid(logit)) for logit in logits]


def _sigmoid(logit: float) -> float:
    small = math.exp(-abs(logit))
    return (small if logit < 0 else 1) / (1 + small)
