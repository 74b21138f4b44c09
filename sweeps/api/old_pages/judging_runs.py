"""Two models on the strings that both are tested on."""

from dataclasses import dataclass, replace

import pandas as pd

from seqcls.errors import UnknownRunError
from sweeps.api.comparisons import border_medians, fields_apart
from sweeps.results import Outcome
from sweeps.statistics.chance import agreeing
from sweeps.statistics.differences import string_differences
from sweeps.statistics.intervals import (
    ConfidenceInterval,
    PairTable,
    fisher,
    mcnemar,
    newcombe,
    paired_newcombe,
)
from sweeps.store.database import Store
from sweeps.store.reads import misclassified, queries
from sweeps.store.reads.overview import judge_on, longer_lengths
from sweeps.store.reads.selection import Selection
from sweeps.store.tables import RunState


@dataclass(frozen=True, eq=False)
class ComparedRuns:
    """Two runs side by side; differences are the first less the second.

    Each string counts once, however often the test has it: a model answers it the same each time.
    One that only one of them has places for does not count.
    """

    run_ids: tuple[int, int]
    fields: dict[str, tuple[object, object]]
    """The fields in which their configurations differ, with both values."""
    table: PairTable | None
    """In how many strings both are wrong, only the first, only the second, and none; None where
    their test strings are not the same."""
    difference: ConfidenceInterval
    """The difference of the shares that are wrong, by Newcombe: over pairs, else of independent
    samples; 0 is in it unless the test rules it out."""
    p_value: float
    """Exact McNemar of pairs, else Fisher's exact test."""
    strings: pd.DataFrame | None
    """The frame of `sweeps.statistics.differences.string_differences`: those that only one gets
    wrong."""
    outcomes: tuple[Outcome, Outcome]
    """What each has come to, on `longer` strings."""
    border: dict[str, tuple[float, float]]
    """Accuracies of `BORDER_SHARES`; none where neither test has border pairs."""
    longer: range | None = None
    """As of `Compared`."""


def compare_runs(store: Store, a: int, b: int, thresholds: Selection | None = None) -> ComparedRuns:
    """Two finished runs, string by string where they are tested on the same strings.

    Args:
        thresholds: from which accuracies on a run has learned, and fails; else the usual ones.

    Raises:
        UnknownRunError: there is no such run, or it is not finished.
    """
    selection = replace(thresholds or Selection(), run_ids=(a, b))
    frame = queries.runs(store, selection)
    longer = longer_lengths(store, set(frame["config_id"].tolist()))
    frame = judge_on(store, frame, longer, selection.below, "id")
    rows = [_row(frame, run_id) for run_id in (a, b)]
    first_id, second_id = (int(row["config_id"].iloc[0]) for row in rows)
    ids = (first_id, second_id)
    errors = [misclassified.errors_of(store, [run_id]) for run_id in (a, b)]
    tested = [misclassified.tested_strings(store, config_id) for config_id in ids]
    fields = fields_apart(store, ids)
    first, second = (Outcome(row["outcome"].iloc[0]) for row in rows)
    outcomes = (first, second)
    border = border_medians(store, Selection(run_ids=(a, b)), "run_id", (a, b), frame, longer)
    if len(queries.test_set_digests(store, ids)) > 1:
        counts = [(len(wrong), len(of)) for wrong, of in zip(errors, tested, strict=True)]
        p_value = fisher(counts[0], counts[1])
        interval = agreeing(newcombe(counts[0], counts[1]), p_value)
        return ComparedRuns((a, b), fields, None, interval, p_value, None, outcomes, border, longer)
    both = tested[0] & tested[1]
    errors = [each[each["string"].isin(both)] for each in errors]
    wrong = [set(each["string"]) for each in errors]
    table = PairTable(
        both=len(wrong[0] & wrong[1]),
        only_first=len(wrong[0] - wrong[1]),
        only_second=len(wrong[1] - wrong[0]),
        none=len(both) - len(wrong[0] | wrong[1]),
    )
    strings = string_differences(errors[0], errors[1])
    p_value = mcnemar(table)
    difference = agreeing(paired_newcombe(table), p_value)
    found = (difference, p_value, strings, outcomes, border, longer)
    return ComparedRuns((a, b), fields, table, *found)


def _row(frame: pd.DataFrame, run_id: int) -> pd.DataFrame:
    row = frame[frame["id"] == run_id]
    if row.empty:
        raise UnknownRunError(f"run {run_id}: there is no such run; `seqcls runs` lists them")
    if row["state"].iloc[0] != RunState.DONE:
        raise UnknownRunError(f"run {run_id} is {row['state'].iloc[0]}; nothing to compare yet")
    return row
