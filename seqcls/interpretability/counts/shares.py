"""What makes a model fail, summed up over its errors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqcls.interpretability.counts.cause import Mechanism
from seqcls.interpretability.counts.mechanism import mechanism_of
from seqcls.interpretability.counts.network import Network

MOST_ERRORS = 300
"""Errors that are looked at, which takes a fraction of a second; of more, evenly picked ones."""


@dataclass(frozen=True)
class Share:
    """The errors with one cause."""

    phrase: str
    """The cause, in words."""
    errors: int
    shortest: str


@dataclass(frozen=True)
class Causes:
    """The causes of a model's errors, the most frequent first."""

    examined: int
    errors: int
    """How many there are in all."""
    shares: tuple[Share, ...]


def causes(network: Network, strings: Sequence[str]) -> Causes:
    """Why a model fails.

    Args:
        network: the model.
        strings: its misclassified strings, the shortest first.
    """
    picked = [strings[i] for i in _even(len(strings))]
    found: dict[str, list[str]] = {}
    for string in picked:
        counts = network.tokenizer.counts(string)
        # In double precision an error that hangs on rounding may be none.
        if (network.logits(np.array([counts]))[0] > 0) == _label(network, counts):
            phrase = "rounding: in double precision the answer is right"
        else:
            phrase = phrase_of(mechanism_of(network, counts))
        found.setdefault(phrase, []).append(string)
    shares = [Share(phrase, len(own), own[0]) for phrase, own in found.items()]
    shares.sort(key=lambda share: -share.errors)
    return Causes(len(picked), len(strings), tuple(shares))


def phrase_of(mechanism: Mechanism) -> str:
    """A mechanism in words that hold for many strings."""
    head, letter, by = mechanism.head, mechanism.letter, mechanism.by
    match mechanism.name:
        case "dilution":
            return f"dilution in head {head}: {letter} is drowned by {by}"
        case "value interference" if letter is None:
            return f"value interference in head {head}: its letters together are taken for {by}"
        case "value interference" if by is not None:
            return f"value interference in head {head}: {letter} is taken for {by}"
        case "value interference":
            return (
                f"value interference in head {head}: what it reads off {letter} outweighs the rest"
            )
        case "two heads on one letter":
            return f"two heads on one letter: all look for {letter}, none for {by}"
        case "feed-forward saturation":
            return f"feed-forward saturation: unit {mechanism.unit} lets next to nothing through"
    return "no single mechanism"


def _label(network: Network, counts: tuple[int, ...]) -> bool:
    return bool(network.problem.count_task.labels_of_counts(np.array([counts]))[0])


def _even(number: int) -> list[int]:
    """Places spread evenly over some errors, the first among them."""
    if number <= MOST_ERRORS:
        return list(range(number))
    return [number * i // MOST_ERRORS for i in range(MOST_ERRORS)]
