"""Outcome of a model in words: whether it learned, and whether it generalizes.

It is judged on the trained lengths first. If it has not learned these, nothing is reported for
longer strings.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dashboard import data
from seqcls.config import RunConfig
from seqcls.interpretability.wording import percent
from seqcls.kinds import MISCLASSIFIED, Words
from seqcls.problem import obstacle_of, resolve
from sweeps.api.presentation import describe_proofs
from sweeps.api.reading import Selection
from sweeps.results import LEARNED_AT, Outcome, why_not_known


def describe_outcome(run_id: int, config: RunConfig, view: Selection | None = None) -> str:
    """The outcome of a run, as of `describe_model`; empty if it is not tested.

    Args:
        run_id: the model.
        config: its configuration.
        view: with thresholds other than the default ones.
    """
    view = view or Selection()
    rows = data.model(run_id, view)
    if rows.empty:
        return ""
    model = rows.astype(object).iloc[0]
    # Nothing can be made of a configuration that is damaged, or of a package that is missing.
    problem = resolve(config) if obstacle_of(config) is None else None
    knows = problem is not None and problem.config.knows_trained_lengths
    trained = problem.trained_lengths if problem and knows else None
    sentence = describe_model(
        {str(name): value for name, value in model.items()},
        trained,
        MISCLASSIFIED if problem is None else problem.kind.words,
        knows_trained_lengths=config.knows_trained_lengths,
        learned_at=view.learned_at,
        below=view.below,
    )
    # That it is proved right is its outcome already.
    (proved,) = describe_proofs(rows, {int(model["config_id"]): config})
    return f"{sentence} It is {proved}." if proved.startswith("refuted") else sentence


def describe_model(
    model: Mapping[str, Any],
    trained: range | None,
    words: Words = MISCLASSIFIED,
    *,
    knows_trained_lengths: bool = True,
    learned_at: float = LEARNED_AT,
    below: float = 1,
) -> str:
    """Describes the outcome of a tested model, with its counts, in a sentence or two.

    If it has not learned, nothing is reported about length.

    Args:
        model: its row, as `sweeps.api.reading.model` has it.
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
        sentence = f"Learned; whether it generalizes is not known: {right}, and {why}."
        return f"{sentence}{_first_wrong(model, trained)}"
    beyond = int(model["tested_beyond"])
    longer = _right_of(beyond, int(model["wrong_beyond"]), f" longer {words.plural('')}")
    if outcome == Outcome.NOT_LEARNED:
        least = f"a model has learned from {percent(learned_at, 1)} on"
        also = f" That it is right on {longer} says nothing about length." if beyond else ""
        return f"Not learned: {right}; {least}.{also}"
    fails = outcome == Outcome.FAILS_BEYOND
    verdict = "Learned, but fails beyond" if fails else "Learned and generalizes"
    least = "" if below >= 1 else f"; a model generalizes from {percent(below, 1)} on"
    return f"{verdict}: {right}, and on {longer}{least}.{_first_wrong(model, trained)}"


def _first_wrong(model: Mapping[str, Any], trained: range | None) -> str:
    """Describes the shortest errors of a model against its trained lengths."""
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
