"""Proofs in plain sentences."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from seqcls.interpretability.rounded import MOST_DIGITS, rounded, written
from seqcls.interpretability.verdicts.certification import (
    Certification,
    ShareInterval,
    SupportProof,
)
from seqcls.interpretability.wording import sign


def certification_text(certification: Certification) -> tuple[str, ...]:
    """What is proved of strings of every length."""
    scope = (
        "Proved for strings of every length, since the logit depends on the proportions of the "
        "letters alone:"
        if certification.least_length == 1
        else f"Proved for strings of {certification.least_length:,} letters and more:"
    )
    said = [scope, *map(_proof, certification.supports)]
    if certification.left_out:
        said.append(f"No claim is made about strings of {', '.join(certification.left_out)}.")
    return tuple(said)


def _proof(proof: SupportProof) -> str:
    said = f"strings of {' and '.join(proof.letters)} ({sign(proof.label)}): {proof.claim}"
    if proof.margin is not None:
        least = written(rounded(proof.margin, up=False))
        return f"{said}, the logit at least {least} from zero"
    if proof.claim == "certified wrong":
        return said
    if len(proof.letters) > 1:
        said += f"; {_proved(proof.right, proof.wrong)}, at most {_share(proof.open, up=True)} "
        said += "not proved"
        in_the_end = _proved(proof.right_in_the_end, proof.wrong_in_the_end)
        if in_the_end != _proved(proof.right, proof.wrong):
            said += f"; as they grow without bound, {in_the_end}"
    wrong = [x for x in proof.intervals if x.right is False]
    if wrong:
        said += f"; wrong where the share of {proof.letters[0]} is "
        said += " and ".join(map(_within, wrong))
    if proof.safe_share:
        _, share = _end(proof.safe_share, up=True)
        said += f"; right wherever each required letter has more than {share}"
    return said


def _proved(right: float, wrong: float) -> str:
    return (
        f"right for at least {_share(right)} of all proportions, wrong for at least {_share(wrong)}"
    )


def _share(x: float, *, up: bool = False) -> str:
    if 1e-4 <= x <= 1 - 1e-4:
        return f"{Decimal(x).quantize(Decimal('1e-4'), ROUND_CEILING if up else ROUND_FLOOR):.2%}"
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
        rest = rounded(1 - x, up=not up, digits=digits)
        return 1 - rest, f"1 - {written(rest)}"
    share = rounded(x, up=up, digits=digits)
    return share, written(share)
