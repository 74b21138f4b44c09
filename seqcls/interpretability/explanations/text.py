"""An explanation in plain sentences, each with the numbers to check it by."""

from string import ascii_lowercase

from seqcls.interpretability.causes.mechanisms import Mechanism
from seqcls.interpretability.explanations.explanation import Explanation, HeadReading
from seqcls.interpretability.minimal.by_counts import Removal
from seqcls.interpretability.wording import number, sign

MOST_HEADS = 2
"""Heads that are described where no mechanism names one."""
MOST_LETTERS = 4
"""Letters of each head that are; all are in the data."""


def explanation_text(found: Explanation) -> tuple[str, ...]:
    """What was found, most important first."""
    said = [_answer(found)]
    if found.mechanism is not None and any(found.counts):
        said.append(_mechanism(found, found.mechanism))
    said += [_head(found, head) for head in _relevant(found)]
    said += _near(found)
    said += _changes(found)
    said += _no_part(found)
    if found.smallest is not None and found.smallest.string != found.string:
        said.append(
            f"The smallest part that still fails is {_quoted(found.smallest.string)} (logit "
            f"{number(found.smallest.logit)}): with fewer of any one letter it is right."
        )
    return tuple(said)


def _answer(found: Explanation) -> str:
    is_, said = sign(found.label), sign(found.logit > 0)
    numbers = f"(logit {number(found.logit)}, probability {found.probability:.3g})"
    if found.error is None:
        return f"{_quoted(found.string)} is {is_}, and the model agrees {numbers}."
    string = _quoted(found.string)
    return f"{string} is {is_}, but the model predicts {said} {numbers}: a {found.error}."


def _mechanism(found: Explanation, mechanism: Mechanism) -> str:
    then = f"the logit would be {number(mechanism.logit_with)}"
    if mechanism.name == "no single mechanism":
        return (
            "No single mechanism: neither dilution in one head, nor values of one head, nor one "
            f"feed-forward unit explains it alone. If {mechanism.counterfactual}, {then}."
        )
    return (
        f"{mechanism.name.capitalize()}: {_what(found, mechanism)}. "
        f"If {mechanism.counterfactual}, {then}: {sign(mechanism.logit_with > 0)}."
    )


def _what(found: Explanation, mechanism: Mechanism) -> str:
    if mechanism.name == "dilution":
        weight = _weight(found.heads[mechanism.head or 0], mechanism.letter)
        return (
            f"in head {mechanism.head}, {_some(found, mechanism.by)} "
            f"{_drown(found, mechanism.by)} {_some(found, mechanism.letter)}, whose weight is "
            f"{number(weight)}"
        )
    if mechanism.name == "two heads on one letter":
        return (
            f"{_all(len(found.heads))} heads score {mechanism.letter} highest, so none looks for "
            f"{mechanism.by}"
        )
    if mechanism.name == "feed-forward saturation":
        return (
            f"feed-forward unit {mechanism.unit} lets next to nothing of its input through, and "
            "no head alone is to blame"
        )
    if mechanism.letter is None:
        return f"head {mechanism.head} takes its letters together for {mechanism.by}"
    if mechanism.by is None:
        return f"what head {mechanism.head} reads off {mechanism.letter} outweighs the rest"
    return f"head {mechanism.head} takes {_some(found, mechanism.letter)} for {mechanism.by}"


def _relevant(found: Explanation) -> tuple[HeadReading, ...]:
    mechanism = found.mechanism
    if len(found.heads) > MOST_HEADS and mechanism is not None and mechanism.head is not None:
        return (found.heads[mechanism.head],)
    return found.heads[:MOST_HEADS]


def _head(found: Explanation, head: HeadReading) -> str:
    said = f"Head {head.head} attends to {', then to '.join(head.order[:MOST_LETTERS])}"
    if head.gaps:
        gaps = (
            f"{gap.over} outscores {gap.under} by {number(gap.gap)}, so one {gap.over} weighs as "
            f"much as {number(gap.outweighed_by)} {gap.under}'s"
            for gap in head.gaps[: MOST_LETTERS - 1]
        )
        said += f": {'; '.join(gaps)}"
    weights = (
        f"{number(seen.weight)} on {_some(found, seen.token_type)}"
        for seen in head.seen[: MOST_LETTERS + 1]
    )
    return f"{said}. Here its attention is {', '.join(weights)}." if head.seen else f"{said}."


def _near(found: Explanation) -> list[str]:
    mechanism = found.mechanism
    if mechanism is None or mechanism.name != "value interference" or mechanism.head is None:
        return []
    head = found.heads[mechanism.head]
    letters = [x.letter for x in head.near_values]
    if mechanism.letter is None:
        wanted = head.values[letters.index(mechanism.by or "")]
        return [
            f"In head {head.head} {mechanism.by} has the value {_values(wanted)}; so many of the "
            f"letters move what the head reads towards it, to {_values(head.mixed_value)}."
        ]
    nearest = head.near_values[letters.index(mechanism.letter)]
    value, other = (head.values[letters.index(x)] for x in (nearest.letter, nearest.near_to))
    said = (
        f"In head {head.head} the value of {nearest.letter}, {_values(value)}, lies closest to "
        f"that of {nearest.near_to}, {_values(other)}: {number(nearest.distance)} apart"
    )
    if nearest.next_distance is not None:
        said += f", against {number(nearest.next_distance)} from that of {nearest.next_nearest}"
    return [f"{said}. The head's mixed value is {_values(head.mixed_value)}."]


def _changes(found: Explanation) -> list[str]:
    if not any(found.counts):
        return ["There is no letter to attend to: the answer is that of CLS alone."]
    changes = [_change(x) for x in (*found.removals, *found.additions)]
    if not changes:
        return ["No other number of any one letter that it has, up to a million, flips the answer."]
    return [f"The answer would flip with {'; or with '.join(changes)}; all else unchanged."]


def _change(change: Removal) -> str:
    return (
        f"{_several(change.left, change.letter)} instead of {change.count:,} "
        f"(logit {number(change.logit)})"
    )


def _no_part(found: Explanation) -> list[str]:
    if not found.no_part:
        return []
    letters = " and ".join(_some(found, letter) for letter in found.no_part)
    one = sum(_count(found, letter) for letter in found.no_part) == 1
    has, fewer = ("has", "without it") if one else ("have", "with fewer of them, or none,")
    return [f"{letters[0].upper()}{letters[1:]} {has} no part in it: {fewer} it is the same."]


def _weight(head: HeadReading, letter: str | None) -> float:
    return next(seen.weight for seen in head.seen if seen.token_type == letter)


def _some(found: Explanation, token_type: str | None) -> str:
    count = _count(found, token_type)
    return f"the {token_type}" if count == 1 else f"the {count:,} {token_type}'s"


def _several(count: int, letter: str) -> str:
    return f"no {letter}" if count == 0 else f"{count:,} {letter}" + "'s" * (count > 1)


def _all(heads: int) -> str:
    return "both" if heads == 2 else f"all {heads}"


def _drown(found: Explanation, token_type: str | None) -> str:
    return "drowns" if _count(found, token_type) == 1 else "drown"


def _count(found: Explanation, token_type: str | None) -> int:
    """How many of a token type the string has; there is one `CLS`."""
    letters = dict(zip(ascii_lowercase, found.counts, strict=False))
    return letters.get(token_type or "", 1)


def _values(value: tuple[float, ...]) -> str:
    numbers = ", ".join(map(number, value))
    return numbers if len(value) == 1 else f"({numbers})"


def _quoted(string: str) -> str:
    return string or "The empty string"
