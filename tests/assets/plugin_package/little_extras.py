"""A package as somebody else would write it: a language, a position scheme, an architecture."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqcls.models.base import Classifier
from seqcls.models.layers import Embedding, Linear, masked_mean
from seqcls.models.positions.schemes import Positions
from seqcls.strings.tokenizer import PAD


@dataclass(frozen=True)
class EndsWithB:
    """Strings over a and b that end with b."""

    order_sensitive: ClassVar[bool] = True
    reads: ClassVar[frozenset[str]] = frozenset()
    alphabet: ClassVar[str] = "ab"

    def labels(self, strings):
        ends = strings.letters[np.arange(len(strings)), np.maximum(strings.lengths - 1, 0)]
        return (strings.lengths > 0) & (ends == 1)

    def has(self, length, positive):
        return length > 0 or not positive

    def draw(self, rng, length, positive):
        letters = rng.integers(2, size=length, dtype=np.uint8)
        letters[-1:] = positive
        return letters

    def features(self, strings):
        return {"b's": strings.counts[:, 1]}

    def describe(self):
        return "Strings that end with b are positive."


class EveryOther(Positions):
    """Adds 1 to the first number of every other token's embedding."""

    def embed(self, states, places):
        added = states.new_zeros(states.shape[2])
        added[0] = 1
        return states + (places % 2).unsqueeze(2).to(states.dtype) * added


class Bag(Classifier):
    """The mean of the embeddings, and a linear layer."""

    def __init__(self, config):
        super().__init__(config)
        self.embedding = Embedding(config.vocabulary_size, config.hidden_size)
        self.classifier = Linear(config.hidden_size, 1)

    def run(self, ids, record, places):
        del places
        mean = record("mean", masked_mean(self.embedding(ids), ids != PAD))
        return record("logit", self.classifier(mean).squeeze(-1))
