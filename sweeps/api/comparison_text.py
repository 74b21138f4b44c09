"""What the seeds of two configurations say about a question, in words."""

from seqcls.interpretability.wording import p_value_text, percent, percents
from sweeps.statistics.chance import Difference
from sweeps.statistics.differences import SIDES
from sweeps.statistics.intervals import ConfidenceInterval

QUESTIONS = {
    "learned": "share that learned",
    "generalizes": "share that generalizes, of seeds that learned",
    "beyond": "accuracy on longer strings, of seeds that learned",
    "within": "accuracy on trained lengths",
    "accuracy": "accuracy on all test strings",
    "fails": "share that fails",
}
"""What is asked of two configurations."""

SHARES = ("learned", "generalizes", "fails")
"""Those of them that ask for a share of seeds; all others ask for mean accuracies."""


def sentence_of(name: str, found: Difference) -> str:
    """What the seeds say about a question, in a line: by which test, of how many, and how surely.

    Args:
        name: that of the question in `QUESTIONS`.
    """
    both = f"{'' if found.counts else 'mean '}{' and '.join(shown_values(found))}"
    if found.p_value is None:
        lacking = " and ".join(x for x, n in zip(SIDES, found.seeds, strict=True) if not n)
        reason = f"{lacking} has no such seed, so that nothing can be compared"
        return f"{QUESTIONS[name]}: {both}; {reason}"
    interval, table, unlike = found.interval, found.table, ""
    limits = "no 95% interval"
    # NaN does not equal itself: an interval without limits is of too few seeds.
    if interval.low == interval.low:
        limits = f"95%: {percents(interval.low, interval.high, 2)}"
    if table is not None:
        unlike = f", {table.only_first} only in {SIDES[0]}, {table.only_second} only in {SIDES[1]}"
    return (
        f"{QUESTIONS[name]}: {both}; difference {percent(interval.value)} ({limits}; "
        f"{seeds_text(found)}{unlike}; {found.method}, {p_value_text(found.p_value)}): "
        f"{chance_of(found)}"
    )


def shown_values(found: Difference) -> tuple[str, str]:
    """Both values as text: mean accuracies, or how many of how many seeds."""
    if found.counts is not None:
        first, second = (f"{count:,} of {n:,}" for count, n in found.counts)
    else:
        first, second = ("not known" if x != x else percent(x) for x in found.values)
    return first, second


def seeds_text(found: Difference) -> str:
    """How many seeds are compared: `5 pairs`, `5 and 3 seeds`."""
    n, m = found.seeds
    if found.paired:
        return "1 pair" if n == 1 else f"{n:,} pairs"
    return f"{n:,} and {m:,} seeds"


def chance_of(found: Difference) -> str:
    """What a question's test says of chance, what so few seeds can show, and how many would do."""
    if found.is_decided:
        return "significant"
    if found.is_nothing:
        return "no difference"
    sentence = "chance alone may explain it"
    if not found.can_decide:
        sentence = f"{seeds_text(found)} cannot go below p = {found.least_p:.3g}: train more"
    if found.to_decide is None:
        return sentence
    what = "pairs" if found.paired else "seeds of each"
    return f"{sentence}; about {found.to_decide:,} {what} would decide, if more come out as these"


def selection_text(seeds: int, effect: ConfidenceInterval) -> str:
    """By how much the best seed exceeds the mean of so many, as `selection_effect` has it."""
    known = effect.low == effect.low
    ends = f" (95%: {percents(effect.low, effect.high)})" if known else ""
    return (
        f"on longer strings the best of {seeds:,} seeds exceeds their mean by "
        f"{percent(effect.value)}{ends}, the gain from picking the best seed"
    )
