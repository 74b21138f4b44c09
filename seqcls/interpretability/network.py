"""One model as a function of letter counts, in float64 NumPy, open for every look inside.

A *token type* is `CLS` (type 0) or a letter of the alphabet (type 1 and on). Equal letters have
equal states, so what a string does is determined by how often each type occurs; `CLS` occurs
once, and counts in attention only where it is attended to. `seqcls.models.transformer` is the
same function, string by string and in PyTorch, which takes long to load and is not loaded here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Literal

import numpy as np
from jaxtyping import Float, Int64

from seqcls.cancellation import check_each
from seqcls.config import REPORT_TASK, NetworkConfig
from seqcls.counts import counts_suffice
from seqcls.errors import ConfigError
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.strings.tokenizer import CLS, FIRST_LETTER
from seqcls.tasks import CountTask
from seqcls.weights import weights_of

# Which models analyses by letter counts are true of: asked by them, by commands and by pages.


Needs = Literal["states", "labels", "required letters"]
"""What an analysis rests on, each on all before it.

`states`: the model is the function of letter counts that `network` computes.
`labels`: letter counts decide what is right, too. `required letters`: what is right is that each
of some letters occurs, of which the sentences on mechanisms, families and proofs speak.
"""

_AS_WRITTEN: tuple[tuple[str, object, str], ...] = (
    ("num_blocks", 1, "one block"),
    ("readout", "first", "a readout at CLS"),
    ("attention_scale", "sqrt", "scores that do not depend on the length"),
    ("norm_placement", "pre", "norms before attention and feed-forward"),
    ("activation", "gelu", "GELU"),
    ("biases", False, "no biases"),
    ("final_norm", False, "no norm after the last block"),
)


def obstacle(problem: Problem, needs: Needs = "required letters") -> str | None:
    """Why an analysis by letter counts would say what is not so of a model; None where it holds.

    Args:
        needs: what the analysis rests on.
    """
    network = problem.network
    reason = (
        problem.lacks("labels")
        or counts_suffice(network, training=False)
        or _other_network(network)
    )
    if reason is not None or needs == "states":
        return reason
    task = problem.config.task
    if problem.unknown_labels is not None:
        return problem.unknown_labels
    if not isinstance(problem.task, CountTask):
        return f"in task={task!r} the order of tokens decides, not letter counts"
    if needs == "required letters" and task != REPORT_TASK:
        return f"the analysis is of required letters, and task={task!r} requires none"
    return None


def refuse(problem: Problem, needs: Needs = "required letters") -> None:
    """Refuses a model that the analysis does not hold for.

    Raises:
        ConfigError: with the reason of `obstacle`.
    """
    reason = obstacle(problem, needs)
    if reason is not None:
        raise ConfigError(f"this analysis does not hold here: {reason}")


def _other_network(config: NetworkConfig) -> str | None:
    for field, written, words in _AS_WRITTEN:
        value = getattr(config, field)
        if value != written:
            return f"{field}={value!r}: this analysis is of models with {words}"
    return None


CHUNK = 1 << 12
"""Strings computed at a time, so that their states stay in the processor's cache."""

MODERATE = 500.0
"""Scores no further apart than that can be told apart without logarithms: e^-500 is no zero."""


@dataclass(frozen=True, eq=False)
class FeedForwardStates:
    """What the second half of the block makes of states, any number of axes before the last."""

    norm: Float[np.ndarray, "*state hidden"]
    input: Float[np.ndarray, "*state ff"]
    activation: Float[np.ndarray, "*state ff"]
    output: Float[np.ndarray, "*state hidden"]


@dataclass(frozen=True, eq=False)
class Network(TrainedModel):
    """A model, and all of it that no string changes.

    Its weights are in float64, by the names of `seqcls.models.transformer.Transformer`.
    """

    @classmethod
    def of(cls, problem: Problem, weights: Weights | bytes) -> "Network":
        """The network of a problem with these parameters, or their safetensors bytes.

        Raises:
            ConfigError: the model is no function of letter counts, or not this one.
            StoreError: the bytes are damaged.
        """
        refuse(problem, "states")
        named = weights_of(problem, weights) if isinstance(weights, bytes) else weights
        return cls(problem, {name: value.astype(np.float64) for name, value in named.items()})

    @cached_property
    def token_types(self) -> tuple[str, ...]:
        """The names of the token types: `CLS` and the letters."""
        return ("CLS", *self.tokenizer.alphabet)

    @cached_property
    def embedding(self) -> Float[np.ndarray, "token_type hidden"]:
        rows = [CLS, *range(FIRST_LETTER, FIRST_LETTER + self.num_letters)]
        return np.asarray(self.weights["embedding.weight"][rows])

    @cached_property
    def attention_norm(self) -> Float[np.ndarray, "token_type hidden"]:
        """The embeddings as attention reads them: normalised where there is a norm."""
        return self.norm("attention_norm", self.embedding)

    @cached_property
    def query(self) -> Float[np.ndarray, "head token_type head_size"]:
        return self._by_head("query")

    @cached_property
    def key(self) -> Float[np.ndarray, "head token_type head_size"]:
        return self._by_head("key")

    @cached_property
    def value(self) -> Float[np.ndarray, "head token_type head_size"]:
        return self._by_head("value")

    @cached_property
    def scores(self) -> Float[np.ndarray, "head token_type token_type"]:
        """As query . key / sqrt(head_size): row the query's token type, column the key's."""
        size = math.sqrt(self.config.attention_head_size)
        return np.asarray(self.query @ self.key.swapaxes(1, 2) / size)

    @cached_property
    def _factors(self) -> list[Float[np.ndarray, " token_type"] | None]:
        """Per head exp(score of `CLS` for each token type), the highest 1; none if not moderate."""
        scores = self.scores[:, 0]
        return [np.exp(row - row.max()) if np.ptp(row) < MODERATE else None for row in scores]

    @cached_property
    def head_to_hidden(self) -> Float[np.ndarray, "head head_size hidden"]:
        """Each head's part of the attention's output matrix."""
        heads, size = self.config.num_attention_heads, self.config.attention_head_size
        output = self.weights["blocks.0.attention.output.weight"]
        return np.asarray(output.T.reshape(heads, size, self.config.hidden_size))

    @cached_property
    def ov_output(self) -> Float[np.ndarray, "head token_type hidden"]:
        """What a head adds to the stream where all its attention is on one token type."""
        return np.asarray(self.value @ self.head_to_hidden)

    @cached_property
    def classifier(self) -> Float[np.ndarray, " hidden"]:
        return np.asarray(self.weights["classifier.weight"][0])

    def norm(
        self, name: str, states: Float[np.ndarray, "*state hidden"]
    ) -> Float[np.ndarray, "*state hidden"]:
        """`attention_norm` or `feed_forward_norm` of states; the states where there is no norm."""
        config = self.config
        if not config.has_norms:
            return states
        weight = self.weights[f"blocks.0.{name}.weight"]
        if config.layer_norm == "rms":
            scale = np.sqrt((states**2).mean(axis=-1, keepdims=True) + config.layer_norm_eps)
            return np.asarray(weight * states / scale)
        centred = states - states.mean(axis=-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + config.layer_norm_eps)
        return np.asarray(weight * centred / scale + self.weights[f"blocks.0.{name}.bias"])

    def feed_forward(self, states: Float[np.ndarray, "*state hidden"]) -> FeedForwardStates:
        """Norm, linear, GELU, linear; the output is yet to be added to the states."""
        norm = self.norm("feed_forward_norm", states)
        inner = norm @ self.weights["blocks.0.feed_forward.input.weight"].T
        activation = gelu(inner)
        output = activation @ self.weights["blocks.0.feed_forward.output.weight"].T
        return FeedForwardStates(norm, inner, activation, output)

    def occurrences(
        self, counts: Int64[np.ndarray, "string letter"]
    ) -> Float[np.ndarray, "string token_type"]:
        """How often each token type occurs that can be attended to."""
        occurrences = np.zeros((len(counts), self.num_letters + 1))
        occurrences[:, 0] = not self.config.no_attend_cls
        occurrences[:, 1:] = counts
        return occurrences

    def log_counts(
        self, counts: Int64[np.ndarray, "string letter"]
    ) -> Float[np.ndarray, "string token_type"]:
        """The logarithm of each token type's number; -inf where there is none to attend to."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.occurrences(counts)))

    def head_output(
        self, head: int, occurrences: Float[np.ndarray, "string token_type"]
    ) -> Float[np.ndarray, "string hidden"]:
        """What a head adds to the stream of `CLS`; occurrences need not be whole numbers."""
        factors = self._factors[head]
        if factors is not None:
            # n exp(score), without the logarithm of n: a third of the time.
            weights = occurrences * factors
            total = weights @ np.ones(len(factors))
            return np.asarray(
                weights @ self.ov_output[head] / np.where(total == 0, 1, total)[:, None]
            )
        with np.errstate(divide="ignore"):
            scores = self.scores[head, 0] + np.log(occurrences)
        return np.asarray(softmax(scores) @ self.ov_output[head])

    def logits_of_occurrences(
        self, occurrences: Float[np.ndarray, "string token_type"]
    ) -> Float[np.ndarray, " string"]:
        """The logits of strings of which each token type that is attended to makes up so much."""
        states = np.tile(self.embedding[0], (len(occurrences), 1))
        for head in range(self.config.num_attention_heads):
            states += self.head_output(head, occurrences)
        return self.logits_after_attention(states)

    def attention(
        self, log_counts: Float[np.ndarray, "string token_type"]
    ) -> Float[np.ndarray, "string head token_type"]:
        """The weights that `CLS` gives to all tokens of each token type together, per head.

        softmax(score + log n); zeros where there is nothing to attend to.
        """
        return softmax(self.scores[:, 0] + log_counts[:, None])

    def after_attention(
        self, attention: Float[np.ndarray, "string head token_type"]
    ) -> Float[np.ndarray, "string hidden"]:
        """The state of `CLS` after the first residual, with these attention weights."""
        flat = attention.reshape(len(attention), -1)
        added = flat @ self.ov_output.reshape(flat.shape[1], self.config.hidden_size)
        return np.asarray(self.embedding[0] + added)

    def logits_after_attention(
        self, states: Float[np.ndarray, "string hidden"]
    ) -> Float[np.ndarray, " string"]:
        """The logits of `CLS` states after the first residual."""
        return np.asarray((states + self.feed_forward(states).output) @ self.classifier)

    def logits_of_attention(
        self, attention: Float[np.ndarray, "string head token_type"]
    ) -> Float[np.ndarray, " string"]:
        """The logits that these attention weights lead to."""
        return self.logits_after_attention(self.after_attention(attention))

    def logits(self, counts: Int64[np.ndarray, "string letter"]) -> Float[np.ndarray, " string"]:
        """The logits of strings given as letter counts; positive means in the language."""
        parts = [
            self.logits_of_occurrences(self.occurrences(counts[first : first + CHUNK]))
            for first in check_each(range(0, len(counts), CHUNK))
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def logit_of(self, counts: Sequence[int]) -> float:
        """The logit of one string."""
        return float(self.logits(np.array([counts], dtype=np.int64))[0])

    def label_of(self, counts: Sequence[int]) -> bool:
        """Whether one string is in the language."""
        return bool(self.problem.count_task.labels_of_counts(np.array([counts]))[0])

    def limit_logits(
        self, proportions: Float[np.ndarray, "string letter"]
    ) -> Float[np.ndarray, " string"]:
        """What the logits tend to as strings with these proportions of letters grow without end.

        `CLS`, of which there is always one, loses its weight; without it, the logit depends on
        nothing but proportions at any length.
        """
        return self.logits_of_occurrences(np.insert(proportions, 0, 0.0, axis=1))

    def counts(self, strings: list[str] | tuple[str, ...]) -> Int64[np.ndarray, "string letter"]:
        """The letter counts of strings.

        Raises:
            InvalidStringError: a string that is not of this alphabet.
        """
        rows = [self.tokenizer.counts(string) for string in strings]
        return np.array(rows, dtype=np.int64).reshape(len(rows), self.num_letters)

    def _by_head(self, name: str) -> Float[np.ndarray, "head token_type head_size"]:
        heads, size = self.config.num_attention_heads, self.config.attention_head_size
        states = self.attention_norm @ self.weights[f"blocks.0.attention.{name}.weight"].T
        return states.reshape(len(states), heads, size).swapaxes(0, 1)


def as_network(model: TrainedModel, needs: Needs = "required letters") -> Network | None:
    """A model as a function of letter counts; None where what an analysis needs does not hold."""
    if obstacle(model.problem, needs) is not None:
        return None
    return model if isinstance(model, Network) else Network.of(model.problem, model.weights)


def softmax(scores: Float[np.ndarray, "*row token_type"]) -> Float[np.ndarray, "*row token_type"]:
    """Softmax over the last axis; zeros where every score is -inf."""
    # Column by column: reducing over a short last axis is many times slower.
    columns = [scores[..., token_type] for token_type in range(scores.shape[-1])]
    highest = reduce(np.maximum, columns)
    highest = np.where(np.isfinite(highest), highest, 0)
    exponentials = np.exp(scores - highest[..., None])
    total = reduce(
        np.add, [exponentials[..., token_type] for token_type in range(scores.shape[-1])]
    )
    return np.asarray(exponentials / np.where(total == 0, 1, total)[..., None])


def sigmoid(logits: Float[np.ndarray, "*logit"]) -> Float[np.ndarray, "*logit"]:
    """The probability of a logit, without overflow."""
    small = np.exp(-np.abs(logits))
    return np.asarray(np.where(logits < 0, small, 1) / (1 + small))


def gelu(x: Float[np.ndarray, "*any"]) -> Float[np.ndarray, "*any"]:
    """The exact GELU: x times the probability that a standard normal variable is below x."""
    # Imported where it is used: what only asks for obstacles has no need of SciPy.
    from scipy.special import ndtr

    return np.asarray(x * ndtr(x))
