"""What the logit of a string would be if one thing inside the network were otherwise.

Each counterfactual changes one thing and computes all that follows from it as it is (activation
patching; Vig et al., *Investigating Gender Bias in Language Models Using Causal Mediation
Analysis*, 2020).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int64

from seqcls.interpretability.causes.mechanisms import Mechanism, MechanismName
from seqcls.interpretability.model.network import Network, softmax


@dataclass(frozen=True, eq=False)
class Counterfactuals:
    """A misclassified string, and what the counterfactuals need of it."""

    network: Network
    counts: Int64[np.ndarray, " letter"]

    @cached_property
    def logit(self) -> float:
        return float(self.network.logits(self.counts[None])[0])

    @cached_property
    def wrong(self) -> bool:
        """The model's answer, which is the wrong one."""
        return self.logit > 0

    @cached_property
    def attention(self) -> Float[np.ndarray, "head token_type"]:
        return self._attention(self.counts)

    @cached_property
    def reference(self) -> Float[np.ndarray, "head token_type"]:
        return self._attention(np.minimum(self.counts, 1))

    @cached_property
    def reference_logit(self) -> float:
        return self.with_attention(self.reference)

    @cached_property
    def reference_fails(self) -> bool:
        return (self.reference_logit > 0) == self.wrong

    @property
    def present(self) -> list[int]:
        return np.flatnonzero(self.counts).tolist()

    @property
    def missing(self) -> list[int]:
        """Required letters that are not there."""
        return [x for x in self.network.problem.required_letters if not self.counts[x]]

    @property
    def heads(self) -> range:
        return range(self.network.config.num_attention_heads)

    def name(self, letter: int) -> str:
        return self.network.tokenizer.alphabet[letter]

    def with_attention(self, attention: Float[np.ndarray, "head token_type"]) -> float:
        return float(self.network.logits_of_attention(attention[None])[0])

    def with_counts(self, letter: int, count: int) -> float:
        changed = self.counts.copy()
        changed[letter] = count
        return float(self.network.logits(changed[None])[0])

    def with_head(self, head: int, weights: Float[np.ndarray, " token_type"]) -> float:
        """The logit where one head attends like this, the others as they do."""
        changed = self.attention.copy()
        changed[head] = weights
        return self.with_attention(changed)

    def hidden_from(self, head: int, letter: int) -> float:
        """The logit where one head does not see a letter."""
        scores = self.scores(head)
        scores[1 + letter] = -np.inf
        return self.with_head(head, softmax(scores))

    def with_value_of(self, head: int, letter: int, other: int) -> float:
        """The logit where one head reads another letter's value off a letter."""
        weights = self.attention[head].copy()
        weights[1 + other] += weights[1 + letter]
        weights[1 + letter] = 0
        return self.with_head(head, weights)

    def exchanged(self, head: int, letter: int, other: int) -> float:
        """The logit where one head scores two letters each as the other."""
        scores = self.network.scores[head, 0].copy()
        scores[[1 + letter, 1 + other]] = scores[[1 + other, 1 + letter]]
        return self.with_head(head, softmax(scores + self._log_counts(self.counts)))

    def scores(self, head: int) -> Float[np.ndarray, " token_type"]:
        return np.asarray(self.network.scores[head, 0] + self._log_counts(self.counts))

    def favourite(self) -> int | None:
        """The letter that all heads, at least two, score highest."""
        favourites = set(self.network.scores[:, 0, 1:].argmax(axis=1).tolist())
        return favourites.pop() if len(self.heads) > 1 and len(favourites) == 1 else None

    def mechanism(
        self, name: MechanismName, counterfactual: str, logit_with: float, **about: int | str | None
    ) -> Mechanism:
        known: dict[str, Any] = {"head": None, "letter": None, "by": None, "unit": None, **about}
        return Mechanism(
            name=name,
            counterfactual=counterfactual,
            logit=self.logit,
            logit_with=logit_with,
            **known,
        )

    def _log_counts(self, counts: Int64[np.ndarray, " letter"]) -> Float[np.ndarray, " token_type"]:
        return np.asarray(self.network.log_counts(counts[None])[0])

    def _attention(
        self, counts: Int64[np.ndarray, " letter"]
    ) -> Float[np.ndarray, "head token_type"]:
        return np.asarray(self.network.attention(self._log_counts(counts)[None])[0])
