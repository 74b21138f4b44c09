"""What models came to, in words: whether they learned, and whether they generalize.

A model is judged on the lengths that it was trained on first. Of one that has not learned these,
nothing is said of longer strings.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from dashboard import data
from seqcls.config import RunConfig
from seqcls.interpretability.wording import percent, percents
from seqcls.kinds import MISCLASSIFIED, Words
from seqcls.problem import obstacle_of, resolve
from sweeps.api.old_pages.reading import Selection
from sweeps.api.presentation import describe_proofs
from sweeps.results import (
    LEARNED_AT,
    Outcome,
    OutcomeCounts,
    describe_counts,
    of_these,
    why_not_known,
)
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
        f"learned, but does not generalize. Not known: there are no such {strings} to judge by. "
        "At every length: proved right on every string."
    )


# How many of several.


def headline(counts: OutcomeCounts, words: Words = MISCLASSIFIED) -> str:
    """The answer to whether models generalize, in a sentence: of those that learned, how many."""
    strings = words.plural("")
    if counts.models <= 1:
        said = describe_counts(counts)
        return f"{said[0].upper()}{said[1:]}."
    if not counts.judged:
        return f"Whether these {counts.models:,} models learned the trained lengths is not known."
    models = "model" if counts.judged == 1 else "models"
    said = f"{counts.learned:,} of {counts.judged:,} {models} learned the trained lengths"
    if not counts.learned:
        return f"{said}, so nothing is known about longer {strings}."
    if not counts.judged_beyond:
        return f"{said}; whether they generalize to longer {strings} is not known."
    return f"{said}; {of_these(counts, f'on longer {strings}')} to longer {strings}."


def details(counts: OutcomeCounts, words: Words = MISCLASSIFIED) -> str:
    """The shares with their intervals, and what became of the other models; nothing of none."""
    if not counts.judged or counts.models == 1:
        return ""
    said = [f"Learned: {_share(counts.learned, counts.judged, '95% interval ')}."]
    if counts.judged_beyond:
        share = _share(counts.generalize, counts.judged_beyond)
        said.append(f"Generalize, of those that learned: {share}.")
    failing = counts.judged_beyond - counts.generalize
    if failing:
        said.append(f"{failing:,} learned and {'fails' if failing == 1 else 'fail'} beyond.")
    if short := counts.judged - counts.learned:
        has, their = ("has", "its") if short == 1 else ("have", "their")
        least = f"{short:,} {has} not learned"
        why = f": {their} errors on longer {words.plural('')} say nothing about length"
        # Where of those that learned it is not known either, no test has longer strings.
        said.append(f"{least}{why * (counts.judged_beyond > 0)}.")
    if more := counts.models - counts.judged:
        said.append(f"For {more:,} more it is not known.")
    return " ".join(said)


def _share(count: int, of: int, named: str = "") -> str:
    share = wilson(count, of)
    return f"{percent(count / of, 0)} ({named}{percents(share.low, share.high, 0)})"


def describe_outcomes(outcomes: Iterable[str]) -> str:
    """How many models came to what, as a clause: `14 fail beyond, 2 have not learned`."""
    counts = Counter(outcomes)
    said = {
        Outcome.AT_EVERY_LENGTH: ("is right at every length", "are right at every length"),
        Outcome.GENERALIZES: ("generalizes", "generalize"),
        Outcome.FAILS_BEYOND: ("learned and fails beyond", "learned and fail beyond"),
        Outcome.NOT_LEARNED: ("has not learned", "have not learned"),
        Outcome.NOT_KNOWN: ("has no known outcome", "have no known outcome"),
    }
    parts = [f"{counts[x]:,} {said[x][counts[x] != 1]}" for x in said if counts[x]]
    return ", ".join(parts)


# One model.


def describe_outcome(run_id: int, config: RunConfig, view: Selection | None = None) -> str:
    """What a model came to, as `describe_model` says it; nothing where it is not tested.

    Args:
        run_id: the model.
        config: its configuration.
        view: says what fails and what has learned, if not as is usual.
    """
    view = view or Selection()
    rows = data.model(run_id, view)
    if rows.empty:
        return ""
    model = rows.astype(object).iloc[0]
    # Nothing can be made of a configuration that is damaged, or of a package that is missing.
    problem = resolve(config) if obstacle_of(config) is None else None
    trained = (
        problem.trained_lengths if problem is not None and problem.knows_trained_lengths else None
    )
    said = describe_model(
        {str(name): value for name, value in model.items()},
        trained,
        MISCLASSIFIED if problem is None else problem.kind.words,
        knows_trained_lengths=config.knows_trained_lengths,
        learned_at=view.learned_at,
        below=view.below,
    )
    (proved,) = describe_proofs(rows, {int(model["config_id"]): config})
    return f"{said} It is {proved}." if proved.startswith("refuted") else said


def describe_model(
    model: Mapping[str, Any],
    trained: range | None,
    words: Words = MISCLASSIFIED,
    *,
    knows_trained_lengths: bool = True,
    learned_at: float = LEARNED_AT,
    below: float = 1,
) -> str:
    """What a tested model came to and the counts that say so, in a sentence or two.

    Of one that has not learned nothing is said about length.

    Args:
        model: its row, as `sweeps.api.old_pages.reading.model` has it.
        trained: the lengths that it was trained on; None where that is not known.
        words: of its task.
        knows_trained_lengths: whether it is known what lengths it was trained on.
        learned_at: the accuracy on trained lengths from which on a model has learned.
        below: the accuracy on longer lengths below which it fails.
    """
    outcome = model["outcome"]
    if outcome == Outcome.AT_EVERY_LENGTH:
        return "Right at every length: it is proved right on every string."
    within = None if pd.isna(model["tested_within"]) else int(model["tested_within"])
    why = why_not_known(within, knows_trained_lengths=knows_trained_lengths)
    if not within:
        return f"Whether it learned is not known: {why}."
    strings = words.plural(str(model["within_from"]))
    known = f" {strings} of {_trained_lengths(trained)}"
    right = f"it is right on {_right_of(within, int(model['wrong_within']), known)}"
    if outcome == Outcome.NOT_KNOWN:
        said = f"Learned; whether it generalizes is not known: {right}, and {why}."
        return f"{said}{_first_wrong(model, trained)}"
    beyond = int(model["tested_beyond"])
    longer = _right_of(beyond, int(model["wrong_beyond"]), f" longer {words.plural('')}")
    if outcome == Outcome.NOT_LEARNED:
        least = f"a model has learned from {percent(learned_at, 1)} on"
        also = f" That it is right on {longer} says nothing about length." if beyond else ""
        return f"Not learned: {right}; {least}.{also}"
    fails = outcome == Outcome.FAILS_BEYOND
    told = "Learned, but fails beyond" if fails else "Learned and generalizes"
    least = "" if below >= 1 else f"; a model generalizes from {percent(below, 1)} on"
    return f"{told}: {right}, and on {longer}{least}.{_first_wrong(model, trained)}"


def _first_wrong(model: Mapping[str, Any], trained: range | None) -> str:
    """Where the shortest errors of a model are, beside the lengths that it was trained on."""
    if pd.isna(length := model["first_wrong_length"]):
        return ""
    known = "" if trained is None else f" (trained to {trained[-1]})"
    return f" In the test it is wrong first at length {int(length)}{known}."


def _right_of(tested: int, wrong: int, what: str) -> str:
    """Such as `all 508 test strings`, or `433 of 508 test strings (85.24%)`."""
    if not wrong:
        return f"all {tested:,}{what}"
    return f"{tested - wrong:,} of {tested:,}{what} ({percent((tested - wrong) / tested)})"


def _trained_lengths(trained: range | None) -> str:
    if trained is None:
        return "trained lengths"
    first, last = trained[0], trained[-1]
    return f"trained length {first}" if first == last else f"trained lengths {first} to {last}"
