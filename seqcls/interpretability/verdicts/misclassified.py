"""Where the misclassified strings lie, among all strings up to a length."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.errors import ConfigError
from seqcls.interpretability.model.network import Network
from seqcls.interpretability.model.obstacle import refuse
from seqcls.interpretability.multisets import multisets_of, num_multisets
from seqcls.interpretability.verdicts.by_counts import MAX_MULTISETS


@dataclass(frozen=True, eq=False)
class Errors:
    """All misclassified multisets up to a length, the shortest first, then as text."""

    max_length: int
    multisets: int
    """How many were tried."""
    counts: Int64[np.ndarray, "error letter"]
    logits: Float[np.ndarray, " error"]
    label: Bool[np.ndarray, " error"]
    texts: tuple[str, ...]

    @property
    def lengths(self) -> Int64[np.ndarray, " error"]:
        """Letters of each."""
        return np.asarray(self.counts.sum(axis=1))

    def by_length(self) -> Int64[np.ndarray, "length token_type"]:
        """False positives and false negatives of every length from 0 on."""
        cells = np.bincount(2 * self.lengths + self.label, minlength=2 * (self.max_length + 1))
        return cells.reshape(-1, 2)

    def page(self, first: int, size: int) -> "Errors":
        """Some of them, in order."""
        part = slice(first, first + size)
        return Errors(
            self.max_length,
            self.multisets,
            self.counts[part],
            self.logits[part],
            self.label[part],
            self.texts[part],
        )


def errors_up_to(network: Network, max_length: int | None = None) -> Errors:
    """Every misclassified multiset of at most `max_length` letters, in float64.

    The stored verdict is that of the run's own precision: the two may differ in multisets whose
    logit is zero but for rounding.

    Args:
        network: the model.
        max_length: the longest test string's if not given.

    Raises:
        ConfigError: there are more than `MAX_MULTISETS`, or the order of tokens has a part.
    """
    refuse(network.problem, "labels")
    letters = network.num_letters
    length = network.problem.test.lengths[-1] if max_length is None else max_length
    multisets = num_multisets(letters, length)
    if multisets > MAX_MULTISETS:
        raise ConfigError(
            f"max_length={length}: there are {multisets:,} multisets of {letters} letters, "
            f"expected at most {MAX_MULTISETS:,}; lower max_length"
        )
    counts = multisets_of(network.problem, length)
    logits = network.logits(counts)
    label = network.problem.count_task.labels_of_counts(counts)
    wrong = np.flatnonzero(((logits > 0) != label) | np.isnan(logits))
    texts = [network.tokenizer.text_of_counts(row) for row in counts[wrong].tolist()]
    lengths = counts[wrong].sum(axis=1).tolist()
    order = sorted(range(len(wrong)), key=lambda x: (lengths[x], texts[x]))
    wrong = wrong[order]
    return Errors(
        max_length=length,
        multisets=len(counts),
        counts=counts[wrong],
        logits=logits[wrong],
        label=label[wrong],
        texts=tuple(texts[x] for x in order),
    )
