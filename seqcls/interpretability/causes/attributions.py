"""Errors attributed to their causes, and how many there are of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from seqcls.results import Cause


@dataclass(frozen=True)
class Attribution:
    """One error and its cause."""

    string: str
    mechanism: str
    head: int | None = None
    tokens: str = ""
    agreement: float | None = None


def spread_evenly(number: int, most: int) -> list[int]:
    """Places of at most so many, spread evenly over a number of them, the first among them."""
    if number <= most:
        return list(range(number))
    return [number * place // most for place in range(most)]


def summed_up(attributions: Sequence[Attribution]) -> list[Cause]:
    """The causes of some errors, the most frequent first."""
    times: dict[tuple[str, int | None, str, float | None], int] = {}
    for attribution in attributions:
        key = (attribution.mechanism, attribution.head, attribution.tokens, attribution.agreement)
        times[key] = times.get(key, 0) + 1
    ranked = sorted(times.items(), key=lambda item: -item[1])
    return [
        Cause(mechanism, head, tokens, count / len(attributions), count, agrees)
        for (mechanism, head, tokens, agrees), count in ranked
    ]
