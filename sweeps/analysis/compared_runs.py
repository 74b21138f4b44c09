"""Two models, compared on the strings that both are tested on."""

from dataclasses import dataclass

import pandas as pd

from seqcls.errors import UnknownRunError
from sweeps.analysis.compared_configurations import fields_apart
from sweeps.statistics.intervals import Interval, Table, mcnemar, newcombe, paired_newcombe
from sweeps.statistics.seed_by_seed import string_differences
from sweeps.store.databases.engine import Store
from sweeps.store.reading import queries
from sweeps.store.reading.selection import View
from sweeps.store.schema.tables import RunState
from sweeps.store.strings import string_queries


@dataclass(frozen=True, eq=False)
class ComparedRuns:
    """Two runs side by side; differences are the first less the second.

    Each string counts once, however often the test has it: a model answers it the same each time.
    One that only one of them has places for does not count.
    """

    run_ids: tuple[int, int]
    fields: dict[str, tuple[object, object]]
    """The fields in which their configurations differ, with both values."""
    table: Table | None
    """In how many strings both are wrong, only the first, only the second, and none; None where
    their test strings are not the same."""
    difference: Interval
    """The difference of the shares that are wrong, by Newcombe: over pairs, else of independent
    samples."""
    p_value: float | None
    """Exact McNemar; None without pairs."""
    strings: pd.DataFrame | None
    """The frame of `sweeps.statistics.seed_by_seed.string_differences`: those that only one gets
    wrong."""


def compare_runs(store: Store, a: int, b: int) -> ComparedRuns:
    """Two finished runs, string by string where they are tested on the same strings.

    Raises:
        UnknownRunError: there is no such run, or it is not finished.
    """
    store = store.reader()
    frame = queries.runs(store, View(run_ids=(a, b)))
    rows = [_row(frame, run_id) for run_id in (a, b)]
    ids = [int(row["config_id"].iloc[0]) for row in rows]
    errors = [string_queries.errors_of(store, [run_id]) for run_id in (a, b)]
    tested = [string_queries.tested_strings(store, config_id) for config_id in ids]
    fields = fields_apart(store, rows)
    if len(queries.test_set_digests(store, ids)) > 1:
        counts = [(len(wrong), len(of)) for wrong, of in zip(errors, tested, strict=True)]
        return ComparedRuns((a, b), fields, None, newcombe(counts[0], counts[1]), None, None)
    both = tested[0] & tested[1]
    errors = [each[each["string"].isin(both)] for each in errors]
    wrong = [set(each["string"]) for each in errors]
    table = Table(
        both=len(wrong[0] & wrong[1]),
        only_first=len(wrong[0] - wrong[1]),
        only_second=len(wrong[1] - wrong[0]),
        none=len(both) - len(wrong[0] | wrong[1]),
    )
    strings = string_differences(errors[0], errors[1])
    return ComparedRuns((a, b), fields, table, paired_newcombe(table), mcnemar(table), strings)


def _row(frame: pd.DataFrame, run_id: int) -> pd.DataFrame:
    row = frame[frame["id"] == run_id]
    if row.empty:
        raise UnknownRunError(f"run {run_id}: there is no such run; `seqcls runs` lists them")
    if row["state"].iloc[0] != RunState.DONE:
        raise UnknownRunError(f"run {run_id} is {row['state'].iloc[0]}; nothing to compare yet")
    return row
