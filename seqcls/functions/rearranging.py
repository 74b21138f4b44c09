"""Rearrangements: of the tokens of a string, be they characters or letters' numbers."""

from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def same(tokens: Sequence[T]) -> list[T]:
    """`abb` stays `abb`."""
    return list(tokens)


def backwards(tokens: Sequence[T]) -> list[T]:
    """`abb` becomes `bba`."""
    return list(tokens[::-1])


def twice(tokens: Sequence[T]) -> list[T]:
    """`abb` becomes `abbabb`."""
    return [*tokens, *tokens]


def odds_first(tokens: Sequence[T]) -> list[T]:
    """`0011` becomes `0101`: the tokens at places 1, 3, 5, ..., then those at 2, 4, 6, ...."""
    return [*tokens[0::2], *tokens[1::2]]


def ascending(tokens: Sequence[Any]) -> list[Any]:
    """`3132` becomes `1233`."""
    return sorted(tokens)
