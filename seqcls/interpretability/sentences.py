"""Families and proofs in plain sentences."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from seqcls.interpretability.certification import Certification, ShareInterval, SupportProof
from seqcls.interpretability.families import MAX_COUNT
from seqcls.interpretability.family import Change, Curve, FamilyMap
from seqcls.interpretability.wording import (
    MOST_DIGITS,
    format_decimal,
    number,
    percent,
    round_digits,
    sign,
)
from seqcls.text import count


def text_of(found: Certification | Curve | FamilyMap) -> tuple[str, ...]:
    """An answer in sentences."""
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
