"""What models came to, in words: whether they learned, and whether they generalize.

A model is judged on the lengths that it was trained on first. Of one that has not learned these,
nothing is said of longer strings.
"""

from dataclasses import dataclass
from typing import Self

import pandas as pd

from seqcls.interpretability.wording import percent, percents
from seqcls.kinds import MISCLASSIFIED, Words
from sweeps.results import LEARNED_AT
from sweeps.statistics.intervals import wilson


def meaning(words: Words = MISCLASSIFIED, learned_at: float = LEARNED_AT, below: float = 1) -> str:
    """What the outcomes are, at these thresholds in [0, 1].

    Args:
        words: of the models' tasks.
        learned_at: the accuracy on trained lengths from which on a model has learned.
        below: the accuracy on longer lengths below which it fails.
    """
    strings = words.plural("")
    longer = "all" if below >= 1 else f"at least {percent(below, 1)} of"
    return (
        f"Not learned: right on less than {percent(learned_at, 1)} of {strings} of trained "
        f"lengths. Generalizes: learned, and right on {longer} longer {strings}. Fails beyond: "
        f"learned, but does not generalize. Not known: there are no such {strings} to judge by."
    )


# How many of several.


@dataclass(frozen=True)
class OutcomeCounts:
    """How many models learned, and how many of those generalize."""

    models: int
    """That are tested."""
    judged: int
    """Those of them of which it is known whether they learned."""
    learned: int
    judged_beyond: int
    """Those that learned and are tested on longer strings."""
    generalize: int

    @classmethod
    def of(cls, configurations: pd.DataFrame) -> Self:
        """The sums over configurations.

        Args:
            configurations: seeds, judged, learned, judged_beyond and generalize of each.
        """
        names = ("seeds", "judged", "learned", "judged_beyond", "generalize")
        return cls(*(int(configurations[name].sum()) for name in names))


def describe_counts(counts: OutcomeCounts, which: str = " models") -> str:
    """How many learned and generalize, as a clause: `3 of 5 models learned; of these 2 generalize`.

    Args:
        counts: of the models.
        which: what they are, after their number; nothing where that is clear.
    """
    if not counts.judged:
        return f"whether {counts.models:,}{which} learned is not known"
    said = f"{counts.learned:,} of {counts.judged:,}{which} learned"
    if not counts.learned:
        return said
    if not counts.judged_beyond:
        return f"{said}; whether they generalize is not known"
    return f"{said}; {_of_these(counts, 'beyond')}"


def _of_these(counts: OutcomeCounts, tested: str) -> str:
    generalize = "generalizes" if counts.generalize == 1 else "generalize"
    if counts.judged_beyond == counts.learned:
        return f"of these {counts.generalize:,} {generalize}"
    of = f"the {counts.judged_beyond:,} that are tested {tested}"
    return f"{counts.generalize:,} of {of} {generalize}"


def headline(counts: OutcomeCounts, words: Words = MISCLASSIFIED) -> str:
    """The answer to whether models generalize, in a sentence: of those that learned, how many."""
    strings = words.plural("")
    if not counts.judged:
        return f"Whether these {counts.models:,} models learned the trained lengths is not known."
    said = f"{counts.learned:,} of {counts.judged:,} models learned the trained lengths"
    if not counts.learned:
        return f"{said}, so nothing is known about longer {strings}."
    if not counts.judged_beyond:
        return f"{said}; whether they generalize to longer {strings} is not known."
    return f"{said}; {_of_these(counts, f'on longer {strings}')} to longer {strings}."


def details(counts: OutcomeCounts, words: Words = MISCLASSIFIED) -> str:
    """The shares with their intervals, and what became of the other models; nothing of none."""
    if not counts.judged:
        return ""
    said = [f"Learned: {_share(counts.learned, counts.judged, '95% interval ')}."]
    if counts.judged_beyond:
        share = _share(counts.generalize, counts.judged_beyond)
        said.append(f"Of those that learned, generalize: {share}.")
    failing = counts.judged_beyond - counts.generalize
    if failing:
        said.append(f"{failing:,} learned and {'fails' if failing == 1 else 'fail'} beyond.")
    if short := counts.judged - counts.learned:
        has, their = ("has", "its") if short == 1 else ("have", "their")
        said.append(
            f"{short:,} {has} not learned: {their} errors on longer {words.plural('')} say nothing "
            "about length."
        )
    if more := counts.models - counts.judged:
        said.append(f"Of {more:,} more it is not known.")
    return " ".join(said)


def _share(count: int, of: int, named: str = "") -> str:
    share = wilson(count, of)
    return f"{percent(count / of, 0)} ({named}{percents(share.low, share.high, 0)})"
