"""Explanations and what was not learned in plain sentences."""

from collections.abc import Callable, Sequence
from string import ascii_lowercase

from seqcls.interpretability.explanations import Explanation, HeadReading
from seqcls.interpretability.mechanisms import Mechanism
from seqcls.interpretability.wording import number, sign
from seqcls.kinds.base import Words
from seqcls.results import RangeCounts

# An explanation in plain sentences, each with the numbers to check it by.

MOST_HEADS = 2
"""Heads that are described where no mechanism names one."""
MOST_LETTERS = 4
"""Letters of each head that are; all are in the data."""


def explanation_text(
    explanation: Explanation, display: Callable[[str], str] = str
) -> tuple[str, ...]:
    """What was found, most important first.

    Args:
        explanation: of a string.
        display: how the tokenizer shows strings.
    """
    said = [_answer(explanation, display(explanation.string) or "The empty string")]
    if explanation.mechanism is not None and any(explanation.counts):
        said.append(_mechanism(explanation, explanation.mechanism))
    said += [_head(explanation, head) for head in _relevant(explanation)]
    said += _near(explanation)
    said += _flips(explanation)
    said += _no_part(explanation)
    if explanation.smallest is not None and explanation.smallest.string != explanation.string:
        said.append(
            f"The smallest part that still fails is {display(explanation.smallest.string)} (logit "
            f"{number(explanation.smallest.logit)}): with fewer of any one letter it is right."
        )
    return tuple(said)


def _answer(explanation: Explanation, string: str) -> str:
    is_, said = sign(explanation.label), sign(explanation.logit > 0)
    numbers = f"(logit {number(explanation.logit)}, probability {explanation.probability:.3g})"
    if explanation.error is None:
        return f"{string} is {is_}, and the model agrees {numbers}."
    return f"{string} is {is_}, but the model predicts {said} {numbers}: a {explanation.error}."


def _mechanism(explanation: Explanation, mechanism: Mechanism) -> str:
    then = f"the logit would be {number(mechanism.logit_with)}"
    if mechanism.name == "no single mechanism":
        return (
            "No single mechanism: neither dilution in one head, nor values of one head, nor one "
            f"feed-forward unit explains it alone. If {mechanism.counterfactual}, {then}."
        )
    return (
        f"{mechanism.name.capitalize()}: {_what(explanation, mechanism)}. "
        f"If {mechanism.counterfactual}, {then}: {sign(mechanism.logit_with > 0)}."
    )


def _what(explanation: Explanation, mechanism: Mechanism) -> str:
    if mechanism.name == "dilution":
        seen = explanation.heads[mechanism.head or 0].seen
        weight = next(x.weight for x in seen if x.token_type == mechanism.letter)
        return (
            f"in head {mechanism.head}, {_some(explanation, mechanism.by)} "
            f"{_drown(explanation, mechanism.by)} {_some(explanation, mechanism.letter)}, "
            f"whose weight is {number(weight)}"
        )
    if mechanism.name == "two heads on one letter":
        return (
            f"{_all(len(explanation.heads))} heads score {mechanism.letter} highest, so none "
            f"looks for {mechanism.by}"
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
    return f"head {mechanism.head} takes {_some(explanation, mechanism.letter)} for {mechanism.by}"


def _relevant(explanation: Explanation) -> tuple[HeadReading, ...]:
    mechanism = explanation.mechanism
    if len(explanation.heads) > MOST_HEADS and mechanism is not None and mechanism.head is not None:
        return (explanation.heads[mechanism.head],)
    return explanation.heads[:MOST_HEADS]


def _head(explanation: Explanation, head: HeadReading) -> str:
    said = f"Head {head.head} attends to {', then to '.join(head.order[:MOST_LETTERS])}"
    if head.gaps:
        gaps = (
            f"{gap.over} outscores {gap.under} by {number(gap.gap)}, so one {gap.over} weighs as "
            f"much as {number(gap.outweighed_by)} {gap.under}'s"
            for gap in head.gaps[: MOST_LETTERS - 1]
        )
        said += f": {'; '.join(gaps)}"
    weights = (
        f"{number(seen.weight)} on {_some(explanation, seen.token_type)}"
        for seen in head.seen[: MOST_LETTERS + 1]
    )
    return f"{said}. Here its attention is {', '.join(weights)}." if head.seen else f"{said}."


def _near(explanation: Explanation) -> list[str]:
    mechanism = explanation.mechanism
    if mechanism is None or mechanism.name != "value interference" or mechanism.head is None:
        return []
    head = explanation.heads[mechanism.head]
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


def _flips(explanation: Explanation) -> list[str]:
    if not any(explanation.counts):
        return ["There is no letter to attend to: the answer is that of CLS alone."]
    changes = [
        f"{_several(x.left, x.letter)} instead of {x.count:,} (logit {number(x.logit)})"
        for x in (*explanation.removals, *explanation.additions)
    ]
    if not changes:
        return ["No other number of any one letter that it has, up to a million, flips the answer."]
    return [f"The answer would flip with {'; or with '.join(changes)}; all else unchanged."]


def _no_part(explanation: Explanation) -> list[str]:
    if not explanation.no_part:
        return []
    letters = " and ".join(_some(explanation, letter) for letter in explanation.no_part)
    one = sum(_count(explanation, letter) for letter in explanation.no_part) == 1
    has, fewer = ("has", "without it") if one else ("have", "with fewer of them, or none,")
    return [f"{letters[0].upper()}{letters[1:]} {has} no part in it: {fewer} it is the same."]


def _some(explanation: Explanation, token_type: str | None) -> str:
    count = _count(explanation, token_type)
    return f"the {token_type}" if count == 1 else f"the {count:,} {token_type}'s"


def _several(count: int, letter: str) -> str:
    return f"no {letter}" if count == 0 else f"{count:,} {letter}" + "'s" * (count > 1)


def _all(heads: int) -> str:
    return "both" if heads == 2 else f"all {heads}"


def _drown(explanation: Explanation, token_type: str | None) -> str:
    return "drowns" if _count(explanation, token_type) == 1 else "drown"


def _count(explanation: Explanation, token_type: str | None) -> int:
    """How many of a token type the string has; there is one `CLS`."""
    letters = dict(zip(ascii_lowercase, explanation.counts, strict=False))
    return letters.get(token_type or "", 1)


def _values(value: tuple[float, ...]) -> str:
    numbers = ", ".join(map(number, value))
    return numbers if len(value) == 1 else f"({numbers})"


# How it shows that a model has not learned the lengths that it was trained on.

STILL_FALLS = 0.98
"""A loss still falls at the end where its last quarter comes to less than this share of the one
before."""


def not_learned_text(
    counts: RangeCounts, words: Words, train_losses: Sequence[float], kept_epoch: int | None
) -> str:
    """What a model gets wrong of trained lengths, how its training ended, and what was kept.

    Args:
        counts: strings of trained lengths, and which of them it gets wrong.
        train_losses: one for each epoch; none where they are not known.
        kept_epoch: counted from 1.
    """
    strings = words.plural(counts.within_from)
    said = [
        f"wrong on {counts.wrong_within:,} of {counts.tested_within:,} {strings} of trained lengths"
    ]
    epochs = len(train_losses)
    if epochs > 1:
        quarter = max(epochs // 4, 1)
        last, before = train_losses[-quarter:], train_losses[-2 * quarter : -quarter]
        falls = "was still" if sum(last) < STILL_FALLS * sum(before) else "was no longer"
        said.append(f"training loss {falls} falling at the end")
    if epochs:
        kept = "" if kept_epoch is None else f", epoch {kept_epoch:,} kept"
        said.append(f"{epochs:,} epoch{'s' * (epochs > 1)}{kept}")
    return "; ".join(said)
