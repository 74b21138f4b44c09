"""The cause of a string's answer, as data; `seqcls.inside.sentences` puts it into words."""

from itertools import pairwise

import numpy as np

from seqcls.data import count_task_of
from seqcls.inside.cause import (
    Explanation,
    Gap,
    HeadReading,
    NearValue,
    Seen,
)
from seqcls.inside.mechanism import mechanism_of
from seqcls.inside.network import Network, sigmoid
from seqcls.inside.obstacle import refuse
from seqcls.inside.shrink import additions, removals, smallest_part, without_part
from seqcls.inside.stream import Activations, activations


def explain(network: Network, string: str) -> Explanation:
    """Why the model answers a string as it does; for an error, its mechanism.

    Every claim is checked by changing the string, or one thing inside the network, and asking
    again: see `seqcls.inside.shrink` and `seqcls.inside.mechanism`.

    Raises:
        ConfigError: of this model or task the explanation would not be true.
        StringError: the string is not of this alphabet.
    """
    refuse(network.config)
    states = activations(network, [string])
    counts = network.tokenizer.counts(string)
    label = bool(count_task_of(network.config).labels_of_counts(np.array([counts]))[0])
    logit = float(states.logit[0])
    failed = (logit > 0) != label
    return Explanation(
        string=string,
        counts=counts,
        label=label,
        logit=logit,
        probability=float(sigmoid(states.logit)[0]),
        error=("false negative" if label else "false positive") if failed else None,
        heads=read_heads(network, states),
        removals=removals(network, counts),
        additions=additions(network, counts),
        no_part=tuple(network.tokenizer.alphabet[x] for x in without_part(network, counts)),
        smallest=smallest_part(network, counts) if failed else None,
        mechanism=mechanism_of(network, counts) if failed else None,
    )


def read_heads(network: Network, states: Activations) -> tuple[HeadReading, ...]:
    """What each head makes of the first of some strings."""
    heads = range(network.config.num_attention_heads)
    return tuple(_head(network, states, head) for head in heads)


def _head(network: Network, states: Activations, head: int) -> HeadReading:
    scores = network.scores[head, 0]
    order = sorted(range(1, len(scores)), key=lambda kind: -scores[kind])
    kinds = network.kinds
    return HeadReading(
        head=head,
        order=tuple(kinds[kind] for kind in order),
        gaps=tuple(
            _gap(kinds[over], kinds[under], float(scores[over] - scores[under]))
            for over, under in pairwise(order)
        ),
        seen=_seen(network, states, head),
        values=tuple(map(tuple, network.value[head, 1:].tolist())),
        near_values=_near_values(network, head),
        mixed_value=tuple(states.mixed_value[0, head, 0].tolist()),
    )


def _gap(over: str, under: str, gap: float) -> Gap:
    # Beyond 700 the exponential is no number that anybody could count to.
    return Gap(over, under, gap, float(np.exp(min(gap, 700.0))))


def _seen(network: Network, states: Activations, head: int) -> tuple[Seen, ...]:
    weights = states.weights[0, head, 0]
    direct = network.writes[head] @ network.classifier
    attended = np.flatnonzero(states.attended[0])
    return tuple(
        Seen(
            kind=network.kinds[kind],
            count=int(states.counts[0, kind]),
            score=float(network.scores[head, 0, kind]),
            weight=float(weights[kind]),
            value=tuple(network.value[head, kind].tolist()),
            adds=float(weights[kind] * direct[kind]),
        )
        for kind in attended[np.argsort(-weights[attended], kind="stable")]
    )


def _near_values(network: Network, head: int) -> tuple[NearValue, ...]:
    values = network.value[head, 1:]
    distances = np.linalg.norm(values[:, None] - values, axis=2)
    alphabet = network.tokenizer.alphabet
    found = []
    for letter, row in enumerate(distances):
        others = sorted((float(x), alphabet[k]) for k, x in enumerate(row) if k != letter)
        distance, near_to = others[0]
        next_distance, next_nearest = others[1] if len(others) > 1 else (None, None)
        found.append(NearValue(alphabet[letter], near_to, distance, next_nearest, next_distance))
    return tuple(found)
