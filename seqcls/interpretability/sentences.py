"""Families, proofs, explanations and what was not learned in plain sentences."""

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from string import ascii_lowercase

from seqcls.interpretability.certification import Certification, ShareInterval, SupportProof
from seqcls.interpretability.explanations import Explanation, HeadReading
from seqcls.interpretability.families import MAX_COUNT
from seqcls.interpretability.family import Change, Curve, FamilyMap
from seqcls.interpretability.mechanisms import Mechanism
from seqcls.interpretability.wording import (
    MOST_DIGITS,
    format_decimal,
    number,
    percent,
    round_digits,
    sign,
)
from seqcls.kinds.base import Words
from seqcls.results import RangeCounts
from seqcls.text import count


def text_of(
    found: Explanation | Certification | Curve | FamilyMap, display: Callable[[str], str] = str
) -> tuple[str, ...]:
    """An answer in sentences.

    Args:
        display: how the tokenizer shows strings.
    """
    if isinstance(found, Explanation):
        return explanation_text(found, display)
    return certification_text(found) if isinstance(found, Certification) else family_text(found)


# What a model says of a family of strings, in plain sentences.


def family_text(curve: Curve | FamilyMap) -> tuple[str, ...]:
    """Where the answer changes: of two free counts, along some rows; the first sentence is of all.

    Where strings were run, it is said how many, and how many are misclassified.
    """
    if isinstance(curve, FamilyMap):
        return _counted_map(curve) if curve.exact else _tried_map(curve)
    return _tried_curve(curve) if curve.limit is None else _counted_curve(curve, curve.limit)


def _counted_curve(curve: Curve, limit: float) -> tuple[str, ...]:
    (name,) = curve.family.names
    start, label = float(curve.logits[0]), bool(curve.labels[0])
    said = [
        f"{curve.family.text} is {sign(label)} for every {name} from 1 on.",
        f"With {name} = 1 the model predicts {_describe_answer(start > 0, label)} (logit "
        f"{number(start)}).",
        *(
            f"From {name} = {change.n:,} on it predicts {_describe_answer(change.answer, label)} "
            f"(logit {number(change.logit_before)} before, {number(change.logit)} then)."
            for change in curve.changes
        ),
    ]
    if not curve.changes:
        said.append(f"The answer is the same for every {name} up to {MAX_COUNT:,}.")
    return (
        *said,
        f"As {name} grows without bound, the logit tends to {number(limit)}: "
        f"{_describe_answer(limit > 0, label)}.",
    )


def _tried_curve(curve: Curve) -> tuple[str, ...]:
    (name,) = curve.family.names
    labels, logits = curve.labels.tolist(), curve.logits.tolist()
    wrong = int(((curve.logits > 0) != curve.labels).sum())
    return (
        f"{count(len(labels), 'string')} of {curve.family.text} were run, {name} from "
        f"{curve.n[0]} to {curve.n[-1]:,}; between them the answer may change unseen.",
        f"With {name} = {curve.n[0]} it is {sign(labels[0])}, predicted {sign(logits[0] > 0)} "
        f"(logit {number(logits[0])}).",
        *(
            f"From {name} = {change.n:,} on it is predicted {sign(change.answer)}."
            for change in curve.changes
        ),
        "Every string that was run is answered rightly."
        if curve.first_wrong is None
        else f"{wrong} of them are misclassified, the first with {name} = {curve.first_wrong:,}.",
    )


def _counted_map(plane: FamilyMap) -> tuple[str, ...]:
    first, second = plane.family.names
    label = bool(plane.labels[0, 0])
    said = [f"{plane.family.text} is {sign(label)} for all {first} and {second} from 1 on."]
    for row in range(0, len(plane.first), max((len(plane.first) - 1) // 6, 1)):
        start = _describe_answer(float(plane.logits[row, 0]) > 0, label)
        changes = _changes(plane.changes[row], second)
        said.append(
            f"With {first} = {plane.first[row]:,}: {start} for {second} = 1; "
            f"{changes or f'the same up to {second} = {MAX_COUNT:,}'}."
        )
    return tuple(said)


def _tried_map(plane: FamilyMap) -> tuple[str, ...]:
    first, second = plane.family.names
    said = [
        f"{count(plane.labels.size, 'string')} of {plane.family.text} were run; "
        f"{int(plane.wrong.sum())} of them are misclassified."
    ]
    for row, value in enumerate(plane.first.tolist()):
        start = sign(float(plane.logits[row, 0]) > 0)
        changes = _changes(plane.changes[row], second)
        said.append(
            f"{first} = {value:,}: predicted {start} for {second} = 1"
            f"{'; ' + changes if changes else ', and no change seen'}; "
            f"{int(plane.wrong[row].sum())} misclassified"
        )
    return tuple(said)


def _changes(changes: tuple[Change, ...], name: str) -> str:
    return ", ".join(f"{sign(change.answer)} from {name} = {change.n:,} on" for change in changes)


def _describe_answer(answer: bool, label: bool) -> str:
    return f"{sign(answer)} ({'correct' if answer == label else 'wrong'})"


# Proofs in plain sentences.


def certification_text(certification: Certification) -> tuple[str, ...]:
    """What is proved of strings of every length."""
    scope = (
        "Proved for strings of every length, since the logit depends on the proportions of the "
        "letters alone:"
        if certification.least_length == 1
        else f"Proved for strings of {count(certification.least_length, 'letter')} and more:"
    )
    said = [scope, *map(_proof, certification.supports)]
    if certification.left_out:
        said.append(f"No claim is made about strings of {', '.join(certification.left_out)}.")
    return tuple(said)


def _proof(proof: SupportProof) -> str:
    said = f"strings of {' and '.join(proof.letters)} ({sign(proof.label)}): {proof.claim}"
    if proof.margin is not None:
        least = format_decimal(round_digits(proof.margin, up=False))
        return f"{said}, the logit at least {least} from zero"
    if proof.claim == "certified wrong":
        return said
    if len(proof.letters) > 1:
        said += (
            f"; {_describe_proof(proof.right, proof.wrong)}, at most {_share(proof.open, up=True)} "
        )
        said += "not proved"
        in_the_end = _describe_proof(proof.right_in_the_end, proof.wrong_in_the_end)
        if in_the_end != _describe_proof(proof.right, proof.wrong):
            said += f"; as they grow without bound, {in_the_end}"
    wrong = [x for x in proof.intervals if x.right is False]
    if wrong:
        said += f"; wrong where the share of {proof.letters[0]} is "
        said += " and ".join(map(_within, wrong))
    if proof.safe_share:
        _, share = _end(proof.safe_share, up=True)
        said += f"; right wherever each required letter has more than {share}"
    return said


def _describe_proof(right: float, wrong: float) -> str:
    return (
        f"right for at least {_share(right)} of all proportions, wrong for at least {_share(wrong)}"
    )


def _share(x: float, *, up: bool = False) -> str:
    if 1e-4 <= x <= 1 - 1e-4:
        toward = ROUND_CEILING if up else ROUND_FLOOR
        return percent(float(Decimal(x).quantize(Decimal("1e-4"), toward)))
    return _end(x, up=up)[1]


def _within(interval: ShareInterval) -> str:
    """The widest interval within this one whose ends have three digits, or more if it is narrow."""
    for digits in range(3, MOST_DIGITS):
        low, first = _end(interval.low, up=True, digits=digits)
        high, last = _end(interval.high, up=False, digits=digits)
        if low < high:
            return f"{first} to {last}"
    return f"{interval.low!r} to {interval.high!r}"


def _end(x: float, *, up: bool, digits: int = 3) -> tuple[Decimal, str]:
    """A share, rounded up or down, and how it is written."""
    if 0 < 1 - x < 1e-3:
        rest = round_digits(1 - x, up=not up, digits=digits)
        return 1 - rest, f"1 - {format_decimal(rest)}"
    share = round_digits(x, up=up, digits=digits)
    return share, format_decimal(share)


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
