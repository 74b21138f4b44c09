"""Why a model answers one string as it does."""

import math
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from seqcls.errors import InvalidStringError
from seqcls.interpretability import rows
from seqcls.interpretability.deletions import (
    MinimalString,
    Removal,
    additions,
    minimal_string,
    removals,
    without_part,
)
from seqcls.interpretability.interventions import mechanism_of
from seqcls.interpretability.mechanisms import Mechanism
from seqcls.interpretability.network import Network, refuse, sigmoid
from seqcls.interpretability.states_by_counts import Activations, activations
from seqcls.prediction import not_a_number

# What an explanation consists of: plain values that a person, a page or a test can check.

ErrorKind = Literal["false positive", "false negative"]


@dataclass(frozen=True)
class AttentionEntry:
    """One token type as one head sees it from `CLS`."""

    token_type: str
    count: int
    score: float
    weight: float
    """Attention to all tokens of the token type together."""
    value: tuple[float, ...]
    adds: float
    """weight x what the value adds to the logit directly, past the feed-forward."""


@dataclass(frozen=True)
class ScoreGap:
    """How far one letter's score lies above the next one's in a head."""

    over: str
    under: str
    gap: float
    outweighed_by: float
    """e^gap: so many of `under` weigh as much as one of `over`."""


@dataclass(frozen=True)
class NearValue:
    """A letter whose value in a head lies closest to that of another."""

    letter: str
    near_to: str
    distance: float
    next_nearest: str | None
    next_distance: float | None


@dataclass(frozen=True)
class HeadReading:
    """One head, looking at one string."""

    head: int
    order: tuple[str, ...]
    """All letters of the alphabet, those with the highest score first."""
    gaps: tuple[ScoreGap, ...]
    """Between neighbours in `order`."""
    seen: tuple[AttentionEntry, ...]
    """The token types that the string has and that can be attended to, the largest weight first."""
    values: tuple[tuple[float, ...], ...]
    """For every letter of the alphabet, in its order, whether the string has it or not."""
    near_values: tuple[NearValue, ...]
    """The near values, in the same order."""
    mixed_value: tuple[float, ...]


@dataclass(frozen=True)
class Explanation:
    """A string's answer and its cause."""

    string: str
    counts: tuple[int, ...]
    label: bool
    logit: float
    probability: float
    error: ErrorKind | None
    """None where the answer is right; then `smallest` and `mechanism` are absent too."""
    heads: tuple[HeadReading, ...]
    removals: tuple[Removal, ...]
    """Deletions, a letter of which no number does it left out."""
    additions: tuple[Removal, ...]
    """The same for more of a letter that the string has."""
    no_part: tuple[str, ...]
    """Letters of which any number may go, all of them together too, without a change of answer."""
    smallest: MinimalString | None
    mechanism: Mechanism | None

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        record: dict[str, Any] = rows.record(asdict(self))
        for head in record["heads"]:
            # Programs read this name.
            head["seen"] = [{"kind": entry.pop("token_type"), **entry} for entry in head["seen"]]
        return record


# The cause of a string's answer, as data; `explanation_text` puts it into words.


def explain(network: Network, string: str) -> Explanation:
    """Why the model answers a string as it does; for an error, its mechanism.

    Every claim is checked by changing the string, or one thing inside the network, and asking
    again: see `deletions` and `interventions` of `seqcls.interpretability`.

    Raises:
        ConfigError: of this model or task the explanation would not be true.
        InvalidStringError: the string is not of this alphabet.
    """
    refuse(network.problem)
    states = activations(network, [string])
    counts = network.tokenizer.counts(string)
    label = network.label_of(counts)
    logit = float(states.logit[0])
    if math.isnan(logit):
        raise InvalidStringError(not_a_number(string))
    failed = (logit > 0) != label
    return Explanation(
        string=string,
        counts=counts,
        label=label,
        logit=logit,
        probability=float(sigmoid(states.logit)[0]),
        error=("false negative" if label else "false positive") if failed else None,
        heads=tuple(
            _head(network, states, head) for head in range(network.config.num_attention_heads)
        ),
        removals=removals(network, counts),
        additions=additions(network, counts),
        no_part=tuple(network.tokenizer.alphabet[x] for x in without_part(network, counts)),
        smallest=minimal_string(network, counts) if failed else None,
        mechanism=mechanism_of(network, counts) if failed else None,
    )


def _head(network: Network, states: Activations, head: int) -> HeadReading:
    """What a head makes of the first of some strings."""
    scores = network.scores[head, 0]
    order = sorted(range(1, len(scores)), key=lambda token_type: -scores[token_type])
    token_types = network.token_types
    return HeadReading(
        head=head,
        order=tuple(token_types[token_type] for token_type in order),
        gaps=tuple(
            _gap(token_types[over], token_types[under], float(scores[over] - scores[under]))
            for over, under in pairwise(order)
        ),
        seen=_entries(network, states, head),
        values=tuple(map(tuple, network.value[head, 1:].tolist())),
        near_values=_near_values(network, head),
        mixed_value=tuple(states.mixed_value[0, head, 0].tolist()),
    )


def _gap(over: str, under: str, gap: float) -> ScoreGap:
    # Above 700 the exponential is no number that anybody could count to.
    return ScoreGap(over, under, gap, float(np.exp(min(gap, 700.0))))


def _entries(network: Network, states: Activations, head: int) -> tuple[AttentionEntry, ...]:
    weights = states.weights[0, head, 0]
    direct = network.ov_output[head] @ network.classifier
    attended = np.flatnonzero(states.attended[0])
    return tuple(
        AttentionEntry(
            token_type=network.token_types[token_type],
            count=int(states.counts[0, token_type]),
            score=float(network.scores[head, 0, token_type]),
            weight=float(weights[token_type]),
            value=tuple(network.value[head, token_type].tolist()),
            adds=float(weights[token_type] * direct[token_type]),
        )
        for token_type in attended[np.argsort(-weights[attended], kind="stable")]
    )


def _near_values(network: Network, head: int) -> tuple[NearValue, ...]:
    values = network.value[head, 1:]
    distances = np.linalg.norm(values[:, None] - values, axis=2)
    alphabet = network.tokenizer.alphabet
    ranges = []
    for letter, row in enumerate(distances):
        others = sorted((float(x), alphabet[k]) for k, x in enumerate(row) if k != letter)
        distance, near_to = others[0]
        next_distance, next_nearest = others[1] if len(others) > 1 else (None, None)
        ranges.append(NearValue(alphabet[letter], near_to, distance, next_nearest, next_distance))
    return tuple(ranges)
