"""What makes a model fail, summed up over its errors."""

from collections.abc import Sequence
from dataclasses import dataclass

from seqcls.interpretability.causes.attributions import spread_evenly
from seqcls.interpretability.causes.interventions import mechanism_of_error
from seqcls.interpretability.causes.mechanisms import Mechanism
from seqcls.interpretability.model.network import Network

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
    picked = [strings[place] for place in spread_evenly(len(strings), MOST_ERRORS)]
    by_phrase: dict[str, list[str]] = {}
    for string in picked:
        by_phrase.setdefault(phrase_of(mechanism_of_error(network, string)), []).append(string)
    shares = [Share(phrase, len(errors), errors[0]) for phrase, errors in by_phrase.items()]
    shares.sort(key=lambda share: -share.errors)
    return Causes(len(picked), len(strings), tuple(shares))


def phrase_of(mechanism: Mechanism | None) -> str:
    """A mechanism, or rounding, in words that hold for many strings."""
    if mechanism is None:
        return "rounding: in double precision the answer is right"
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
