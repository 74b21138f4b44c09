"""What an explanation consists of: plain values that a person, a page or a test can check."""

from dataclasses import dataclass
from typing import Literal

from seqcls.interpretability.causes.mechanisms import Mechanism
from seqcls.interpretability.minimal.deletions import MinimalString, Removal

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
