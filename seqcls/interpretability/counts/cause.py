"""What an explanation consists of: plain values that a person, a page or a test can check."""

from dataclasses import dataclass
from typing import Literal

from seqcls.interpretability.mechanisms import MechanismName

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
    """Of every letter of the alphabet, in its order, whether the string has it or not."""
    near_values: tuple[NearValue, ...]
    """Likewise."""
    mixed_value: tuple[float, ...]


@dataclass(frozen=True)
class Removal:
    """The least change of one letter's number that changes the answer, all else unchanged."""

    letter: str
    count: int
    left: int
    """Less than `count` for a deletion, more for an addition."""
    string: str
    logit: float
    """Of the string so changed."""


@dataclass(frozen=True)
class MinimalString:
    """What is left of a misclassified string when no letter can go without its being right."""

    string: str
    counts: tuple[int, ...]
    logit: float


@dataclass(frozen=True)
class Mechanism:
    """Why the string fails, decided by what would turn its answer."""

    name: MechanismName
    head: int | None
    letter: str | None
    """The letter that is drowned, that is taken for another, or that all heads attend to.

    None where several together are taken for another.
    """
    by: str | None
    """What drowns it, the letter for which it is taken, or the one that no head looks for."""
    unit: int | None
    """The feed-forward unit that saturates."""
    counterfactual: str
    """What was changed inside the network, in words."""
    logit: float
    """Of the string as it is."""
    logit_with: float
    """And with the counterfactual."""


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
