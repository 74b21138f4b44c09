"""Measures by which the seeds of two configurations are compared, and their wording."""

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from seqcls.config import RunConfig
from seqcls.errors import ConfigError
from seqcls.interpretability.wording import p_value_text, percent, percents
from seqcls.pairing import differing_starts
from sweeps.results import GENERALIZING, JUDGED_BEYOND, Outcome
from sweeps.statistics.chance import Difference, compare_shares, compare_values
from sweeps.statistics.differences import SIDES, Outcomes
from sweeps.statistics.intervals import ConfidenceInterval

QUESTIONS = {
    "learned": "share that learned",
    "generalizes": "share that generalizes, of seeds that learned",
    "beyond": "accuracy on longer strings, of seeds that learned",
    "within": "accuracy on trained lengths",
    "accuracy": "accuracy on all test strings",
    "fails": "share that fails",
}
"""Measures of a comparison, with their wording."""

SHARES = ("learned", "generalizes", "fails")
"""Those that are shares of seeds; all others are mean accuracies."""

MEASURES = ("learned", "generalizes", "beyond")
"""The most informative ones: of baselines, maps and the importance of settings."""

FEWEST_LEARNED = 2
"""Minimum number of seeds of each that learned, for accuracies on longer strings."""


def why_unpaired(a: RunConfig, b: RunConfig) -> str | None:
    """Returns why seeds of two configurations share only their number, as a clause; None where
    they are pairs.
    """
    if a.imported or b.imported:
        return "what a seed determines is not known of models that were trained elsewhere"
    try:
        apart = differing_starts(a, b)
    # A missing plug-in must not hide the rest of the comparison.
    except ConfigError as error:
        return f"what a seed determines is not known here: {error}"
    if not apart:
        return None
    named = f"{', '.join(apart[:3])}{', …' * (len(apart) > 3)} differ{'s' * (len(apart) == 1)}"
    if apart == ["train_seed"]:
        return f"{named}, so the two are trained on strings of different seeds"
    return f"{named}, so the same seed starts the two from different weights"


def ask(
    first: Mapping[str, Outcomes],
    second: Mapping[str, Outcomes],
    *,
    paired: bool,
    only: Collection[str] = tuple(QUESTIONS),
    plan: bool = True,
) -> dict[str, Difference]:
    """Compares two configurations by those of `QUESTIONS` that have values for both.

    Args:
        first: values of the first by question and seed, as in `outcomes_of`.
        second: the same of the second.
        only: the questions to answer.
        plan: simulate how many seeds would decide.
    """
    seeds = {name: (len(first[name]), len(second[name])) for name in first}
    # Without known trained lengths only the whole test can be compared.
    names = ["accuracy", "fails"]
    if all(seeds["learned"]):
        # Longer strings are compared only where seeds learned and are tested on some.
        longer = {
            "generalizes": any(seeds["generalizes"]),
            "beyond": min(seeds["beyond"]) >= FEWEST_LEARNED,
        }
        names = ["learned", *(x for x, is_answerable in longer.items() if is_answerable), "within"]
    return {
        name: (compare_shares if name in SHARES else compare_values)(
            first[name], second[name], paired=paired, plan=plan
        )
        for name in names
        if name in only
    }


def measured(runs: pd.DataFrame, below: float) -> pd.DataFrame:
    """Returns the values of `QUESTIONS` for runs, a column each; missing where a run has none, as
    on longer strings where it has not learned.

    Args:
        runs: finished ones: outcome, and accuracies.
        below: the accuracy below which a run fails.
    """
    outcome, within = runs["outcome"], runs["accuracy_within"]
    beyond, known = outcome.isin(JUDGED_BEYOND), outcome != Outcome.NOT_KNOWN
    columns = {
        "learned": (outcome != Outcome.NOT_LEARNED).where(known | within.notna()),
        "generalizes": outcome.isin(GENERALIZING).where(beyond),
        "beyond": runs["accuracy_beyond"].where(beyond),
        "within": within,
        "accuracy": runs["accuracy"],
        "fails": runs["accuracy"] < below,
    }
    return pd.DataFrame({name: column.astype("Float64") for name, column in columns.items()})


def outcomes_of(runs: pd.DataFrame, below: float) -> dict[int, dict[str, dict[int, float]]]:
    """Returns the values of `QUESTIONS` by configuration, question and seed.

    Args:
        runs: as for `measured`, of any number of configurations: config_id and model_seed besides.
        below: the accuracy below which a run fails.
    """
    keys = ["config_id", "model_seed"]
    once = runs.drop_duplicates(keys).sort_values(keys, ignore_index=True)
    values = measured(once, below)
    columns = [values[name].to_numpy(float, na_value=np.nan).tolist() for name in QUESTIONS]
    found: dict[int, dict[str, dict[int, float]]] = {}
    for config_id, seed, *own in zip(*(once[x].tolist() for x in keys), *columns, strict=True):
        of_config = found.setdefault(config_id, {name: {} for name in QUESTIONS})
        for name, value in zip(QUESTIONS, own, strict=True):
            # NaN, which does not equal itself, is no value.
            if value == value:
                of_config[name][seed] = value
    return found


def sentence_of(name: str, found: Difference) -> str:
    """Describes a difference in a line: values, interval, number of seeds, test and conclusion.

    Args:
        name: a question of `QUESTIONS`.
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
    """Formats both values: mean accuracies, or counts of seeds."""
    if found.counts is not None:
        first, second = (f"{count:,} of {n:,}" for count, n in found.counts)
    else:
        first, second = ("not known" if x != x else percent(x) for x in found.values)
    return first, second


def seeds_text(found: Difference) -> str:
    """Formats the number of seeds: `5 pairs`, `5 and 3 seeds`."""
    n, m = found.seeds
    if found.paired:
        return "1 pair" if n == 1 else f"{n:,} pairs"
    return f"{n:,} and {m:,} seeds"


def chance_of(found: Difference) -> str:
    """Describes the conclusion of a test, and how many seeds would decide."""
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
    """Describes the excess of the best seed over the mean, as computed by `selection_effect`."""
    known = effect.low == effect.low
    ends = f" (95%: {percents(effect.low, effect.high)})" if known else ""
    return (
        f"on longer strings the best of {seeds:,} seeds exceeds their mean by "
        f"{percent(effect.value)}{ends}, the gain from picking the best seed"
    )
