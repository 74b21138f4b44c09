"""Two stored configurations compared, and two models on the strings that both are tested on."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd

from seqcls.errors import UnknownRunError
from seqcls.imported import fields_known, in_columns
from seqcls.interpretability.wording import percent
from seqcls.text import with_nulls
from sweeps.api.configurations import checked_threshold, config_named
from sweeps.results import BORDER_SHARES, LEARNED_AT, Outcome, differing_fields, rows_of
from sweeps.statistics import differences
from sweeps.statistics.differences import (
    FEWEST_OF_A_MEAN,
    ComparedShares,
    Comparison,
    Outcomes,
    by_length,
    compare_shares,
    string_differences,
)
from sweeps.statistics.intervals import (
    ConfidenceInterval,
    PairTable,
    mcnemar,
    newcombe,
    paired_newcombe,
)
from sweeps.store.databases.engine import Store
from sweeps.store.reads import queries, string_queries
from sweeps.store.reads.errors import border_accuracies
from sweeps.store.reads.selection import View
from sweeps.store.reads.shortcuts import best_shortcut, shortcut_scores, shortcut_shares
from sweeps.store.reads.test_sets import dataset_names
from sweeps.store.tables import RunState


@dataclass(frozen=True, eq=False)
class Compared:
    """Two configurations side by side; differences are the first less the second."""

    names: tuple[str, str]
    config_ids: tuple[int, int]
    fields: dict[str, tuple[object, object]]
    """The fields in which they differ, with both values."""
    comparison: Comparison
    lengths: pd.DataFrame
    """The frame of `sweeps.statistics.differences.by_length`."""
    strings: pd.DataFrame | None
    """The frame of `sweeps.statistics.differences.string_differences`; None where their test
    strings are
    not the same."""
    learning: ComparedShares
    """Seeds that have learned, of those that are judged on trained lengths."""
    generalizing: ComparedShares
    """Seeds that generalize, of those that have learned and are tested on longer strings."""
    shortcuts: pd.DataFrame
    """What the best shortcut reader of each test reaches, as `shortcut_shares` gives it."""
    border: dict[str, tuple[float, float]]
    """Medians over seeds of the accuracies of `BORDER_SHARES`; none where no test has pairs."""

    def __repr__(self) -> str:
        a, b = (
            f"{percent(share.value, 0)} of {runs}"
            for share, runs in zip(self.comparison.failing, self.comparison.runs, strict=True)
        )
        return f"<Compared {self.names[0]}: {a} fail; {self.names[1]}: {b} fail>"

    def shortcut_of(self, config_id: int) -> pd.DataFrame:
        """What the best reader of a configuration's test reaches; no row where none was asked."""
        return self.shortcuts[self.shortcuts["config_id"] == config_id].drop(columns="config_id")

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        comparison = self.comparison
        return {
            "a": self.names[0],
            "b": self.names[1],
            "fields": {name: list(values) for name, values in self.fields.items()},
            "runs": list(comparison.runs),
            "failing": [asdict(share) for share in comparison.failing],
            "pairs": asdict(comparison.table),
            "p_value": comparison.p_value,
            "difference": asdict(comparison.difference),
            "medians": list(comparison.medians),
            "median_difference": with_nulls(asdict(comparison.median_difference)),
            "learning": _record(self.learning),
            "generalizing": _record(self.generalizing),
            "lengths_interval": (
                "95% interval of the mean difference over seeds (Student's t, within -1 and 1); "
                f"null where fewer than {FEWEST_OF_A_MEAN} seeds are compared"
            ),
            "lengths": rows_of(self.lengths),
            "strings": None if self.strings is None else rows_of(self.strings),
            "border": with_nulls(self.border),
            "shortcuts": [
                next(iter(rows_of(self.shortcut_of(config_id))), None)
                for config_id in self.config_ids
            ],
        }


def _record(shares: ComparedShares) -> dict[str, Any]:
    return {
        "counts": [list(each) for each in shares.counts],
        "shares": [with_nulls(asdict(each)) for each in shares.shares],
        "pairs": asdict(shares.table),
        "p_value": shares.p_value,
        "difference": None if shares.difference is None else asdict(shares.difference),
    }


def compare(
    store: Store,
    a: int | str,
    b: int | str,
    *,
    learned_at: float = LEARNED_AT,
    below: float = 1.0,
) -> Compared:
    """Two configurations, seed by seed where seeds agree; differences are the first less the other.

    Args:
        store: the database.
        a: a sweep of one configuration, `heads:hidden_size=16`, or a run, as `seqcls compare` does;
            a whole number is a run's id, whatever sweeps are called.
        b: likewise.
        learned_at: the accuracy on strings of trained lengths from which on a run has learned.
        below: the accuracy below which a run fails, on longer strings or on the whole test.

    Raises:
        UnknownRunError: there is no such configuration, or no run of it is finished.
        ConfigError: a field or a value that there is not.
    """
    view = View(
        below=checked_threshold("below", below),
        learned_at=checked_threshold("learned_at", learned_at),
    )
    store, names = store.reader(), (str(a), str(b))
    first, second = (
        config_named(store, each)
        if isinstance(each, str)
        else queries.config_id_of(store, queries.find_run(store, str(each)))
        for each in (a, b)
    )
    return compare_configs(store, (first, second), names, view)


def compare_configs(
    store: Store, ids: tuple[int, int], names: tuple[str, str], thresholds: View | None = None
) -> Compared:
    """Compares configurations by their ids, like `compare`.

    Args:
        store: the database.
        ids: of the two configurations.
        names: what they are called.
        thresholds: from which accuracies on runs have learned, and fail; else the usual ones.

    Raises:
        UnknownRunError: no run of one is finished.
    """
    view = replace(thresholds or View(), config_ids=ids)
    frame = queries.runs(store, view)
    frame = frame[frame["state"] == RunState.DONE]
    sides = [
        _finished_runs(frame, config_id, name) for config_id, name in zip(ids, names, strict=True)
    ]
    first, second = sides
    learned, generalize = zip(*map(learning_of, sides), strict=True)
    lengths = [_with_seeds(queries.length_scores(store, _ids(runs)), runs) for runs in sides]
    same_strings = len(queries.test_set_digests(store, ids)) == 1
    strings = None
    if same_strings:
        # What only one of them has places for, the other was never asked.
        both = set.intersection(*(string_queries.tested_strings(store, each) for each in ids))
        errors = [string_queries.errors_of(store, _ids(runs)) for runs in sides]
        strings = string_differences(*(each[each["string"].isin(both)] for each in errors))
    return Compared(
        names=names,
        config_ids=ids,
        fields=fields_apart(store, [runs.head(1) for runs in sides]),
        comparison=differences.compare(outcomes_of(first), outcomes_of(second), view.below),
        learning=compare_shares(*learned),
        generalizing=compare_shares(*generalize),
        lengths=by_length(*lengths),
        strings=strings,
        shortcuts=shortcut_shares(best_shortcut(shortcut_scores(store, ids))),
        border=_border(store, view, "config_id", ids),
    )


def _border(
    store: Store, view: View, by: str, ids: tuple[int, int]
) -> dict[str, tuple[float, float]]:
    """Medians of accuracies of `BORDER_SHARES` of the first and the second."""
    found = border_accuracies(store, view)
    medians = found.groupby(by)[list(BORDER_SHARES)].median().reindex(ids)
    return {
        name: (float(medians[name].iloc[0]), float(medians[name].iloc[1]))
        for name in BORDER_SHARES
        if medians[name].notna().any()
    }


def fields_apart(store: Store, runs: Sequence[pd.DataFrame]) -> dict[str, tuple[object, object]]:
    """The fields in which the configurations of two runs differ, with both values.

    Args:
        store: the database.
        runs: the row of each, as `queries.runs` has it.
    """
    ids = [int(row["config_id"].iloc[0]) for row in runs]
    known = queries.configs(store, ids)
    each = in_columns(fields_known(known[config_id]) for config_id in ids)
    with store.begin() as connection:
        names = dataset_names(connection)
    for fields in each:
        fields["dataset"] = names.get(fields["dataset"], fields["dataset"])
    return {x: (each[0].get(x), each[1].get(x)) for x in differing_fields(pd.concat(runs))}


def _finished_runs(frame: pd.DataFrame, config_id: int, name: str) -> pd.DataFrame:
    runs = frame[frame["config_id"] == config_id]
    if runs.empty:
        raise UnknownRunError(f"{name!r}: none of its runs is finished; nothing to compare yet")
    return runs


def outcomes_of(runs: pd.DataFrame) -> pd.DataFrame:
    """The outcome of each seed that is done: model_seed, accuracy, errors."""
    once = runs[runs["state"] == RunState.DONE].drop_duplicates("model_seed")
    return once[["model_seed", "accuracy", "errors"]].astype({"accuracy": float, "errors": int})


def learning_of(runs: pd.DataFrame) -> tuple[Outcomes, Outcomes]:
    """Which seeds have learned, of those judged, and which of those with longer tests generalize.

    Args:
        runs: finished ones of a configuration: model_seed, accuracy_within and outcome.
    """
    once = runs.drop_duplicates("model_seed")
    judged = once[once["accuracy_within"].notna()]
    beyond = once[once["outcome"].isin([Outcome.GENERALIZES, Outcome.FAILS_BEYOND])]
    return (
        Outcomes.of(judged.assign(learned=judged["outcome"] != Outcome.NOT_LEARNED), "learned"),
        Outcomes.of(beyond.assign(right=beyond["outcome"] == Outcome.GENERALIZES), "right"),
    )


def _ids(runs: pd.DataFrame) -> list[int]:
    return [int(run_id) for run_id in runs["id"]]


def _with_seeds(scores: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    seeds = runs.set_index("id")["model_seed"]
    return scores.assign(model_seed=scores["run_id"].map(seeds))


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
    samples."""
    p_value: float | None
    """Exact McNemar; None without pairs."""
    strings: pd.DataFrame | None
    """The frame of `sweeps.statistics.differences.string_differences`: those that only one gets
    wrong."""
    outcomes: tuple[Outcome, Outcome]
    """What each has come to."""
    border: dict[str, tuple[float, float]]
    """Accuracies of `BORDER_SHARES`; none where neither test has border pairs."""


def compare_runs(store: Store, a: int, b: int, thresholds: View | None = None) -> ComparedRuns:
    """Two finished runs, string by string where they are tested on the same strings.

    Args:
        store: the database.
        a: the first run.
        b: the second.
        thresholds: from which accuracies on a run has learned, and fails; else the usual ones.

    Raises:
        UnknownRunError: there is no such run, or it is not finished.
    """
    store = store.reader()
    frame = queries.runs(store, replace(thresholds or View(), run_ids=(a, b)))
    rows = [_row(frame, run_id) for run_id in (a, b)]
    ids = [int(row["config_id"].iloc[0]) for row in rows]
    errors = [string_queries.errors_of(store, [run_id]) for run_id in (a, b)]
    tested = [string_queries.tested_strings(store, config_id) for config_id in ids]
    fields = fields_apart(store, rows)
    first, second = (Outcome(row["outcome"].iloc[0]) for row in rows)
    outcomes = (first, second)
    border = _border(store, View(run_ids=(a, b)), "run_id", (a, b))
    if len(queries.test_set_digests(store, ids)) > 1:
        counts = [(len(wrong), len(of)) for wrong, of in zip(errors, tested, strict=True)]
        return ComparedRuns(
            (a, b), fields, None, newcombe(counts[0], counts[1]), None, None, outcomes, border
        )
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
    difference = paired_newcombe(table)
    chance = mcnemar(table)
    return ComparedRuns((a, b), fields, table, difference, chance, strings, outcomes, border)


def _row(frame: pd.DataFrame, run_id: int) -> pd.DataFrame:
    row = frame[frame["id"] == run_id]
    if row.empty:
        raise UnknownRunError(f"run {run_id}: there is no such run; `seqcls runs` lists them")
    if row["state"].iloc[0] != RunState.DONE:
        raise UnknownRunError(f"run {run_id} is {row['state'].iloc[0]}; nothing to compare yet")
    return row
