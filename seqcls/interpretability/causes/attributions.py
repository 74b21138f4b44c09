"""Errors attributed to their causes."""

from dataclasses import dataclass


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
