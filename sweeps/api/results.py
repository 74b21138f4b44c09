"""Questions about many runs: results, causes, remedies, dependence on rounding."""

import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from seqcls.config import default_fields
from seqcls.errors import ConfigError, Parameter, UnknownRunError
from seqcls.interpretability.mechanisms import SAMPLE
from seqcls.interpretability.wording import percent
from seqcls.text import nearest
from seqcls.theory.predictions import theory_of
from sweeps.api import failures
from sweeps.api.failures import attribute, causes_judged, causes_of_run
from sweeps.api.selecting import is_setting, refuse_no_value, selection_of
from sweeps.api.trials import RemedyTrial, mechanisms_of, trials
from sweeps.results import LEARNED_AT, differing_fields
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import explained, frames, misclassified, queries, sweep_queries
from sweeps.store.reads.misclassified import accuracy_by_drawn, with_border
from sweeps.store.reads.selection import Selection, WrittenValue, as_list, is_value
from sweeps.store.shortcuts import with_shortcuts

FIRST = ["id", "sweeps", "model_seed", "state", "outcome", "accuracy", "errors", "solved_length"]

SORTS = ("length", "string", "logit", "occurrences")
"""Columns by which errors are sorted; ties by the next."""


def stored_runs(
    store: Store,
    sweeps: Sequence[str] = (),
    *,
    fields: Mapping[str, Any] | None = None,
    conditions: Sequence[str] = (),
    **chosen: Any,
) -> pd.DataFrame:
    """Returns stored runs with results, configurations, predictions of theory, and the accuracy of
    the best shortcut reader on the same test.

    Args:
        fields: values that columns must have: fields of the configuration, or results.
        conditions: the same as text: `hidden_size=16`, `model_seed=0`.
        chosen: the selection of runs, as for `sweeps.api.selecting.selection_of`.

    Raises:
        UnknownRunError: there is no such sweep.
        ConfigError: there is no such column, or a seed is no seed.
    """
    settings: dict[str, Any] = {}
    of_configs: list[str] = []
    results: list[tuple[str, Any, str | Parameter]] = []
    for name, value in (fields or {}).items():
        if is_setting(name):
            settings[name] = value
        else:
            results.append((name, value, f"{name}={value!r:.60}"))
    for text in conditions:
        name, equals, written = text.partition("=")
        if is_setting(name) or not equals:
            of_configs.append(text)
        else:
            results.append((name, WrittenValue(written), Parameter("conditions", text)))
    selection = selection_of(store, sweeps, conditions=of_configs, **settings, **chosen)
    frame = with_shortcuts(store, _with_predictions(queries.runs(store, selection)))
    frame = with_border(store, frame, selection)
    for name, value, source in results:
        # The mask of an empty frame would have another type.
        frame = frame[_has_value(frame, name, value, source).astype(bool)]
    refuse_no_value(frame, conditions)
    return frame.reset_index(drop=True)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _has_value(
    frame: pd.DataFrame, name: str, value: Any, source: str | Parameter
) -> "pd.Series[bool]":
    """Returns the mask of runs with this value in a column of results."""
    if name not in frame:
        columns = [*frame.columns, *default_fields()]
        raise ConfigError(source, f": {nearest(name, list(dict.fromkeys(map(str, columns))))}")
    if name == "sweeps":
        requested = value.text if isinstance(value, WrittenValue) else value
        named = {requested} if isinstance(requested, str) else set(requested)
        # Several are also accepted as the table writes them.
        return frame[name].map(lambda names: bool(named & {*names, ", ".join(names)})).astype(bool)
    if not isinstance(value, WrittenValue):
        return frame[name].map(lambda cell: is_value(cell, _plain(value))).astype(bool)
    if not pd.api.types.is_numeric_dtype(frame[name]):
        return frame[name].map(lambda cell: not pd.isna(cell) and str(cell) == value.text)
    try:
        number = float(value.text.removesuffix("%"))
        # An integer if possible, since a float rounds seeds beyond 2**53.
        with suppress(ValueError):
            number = int(value.text)
    except ValueError:
        raise ConfigError(source, f": expected a number, such as {name}=0") from None
    if value.text.endswith("%"):
        # As tables round it, with zeros at its end or without.
        return frame[name].map(
            lambda cell: not pd.isna(cell) and float(percent(cell).removesuffix("%")) == number
        )
    return frame[name].map(lambda cell: not pd.isna(cell) and cell == number)


def _with_predictions(frame: pd.DataFrame) -> pd.DataFrame:
    """Adds the predictions of theory for each configuration: `predicted`, and `counting`."""
    # A prediction depends on the configuration alone.
    rows = frame.drop_duplicates("config_id").to_dict("records")
    fields = [{str(name): value for name, value in row.items()} for row in rows]
    predictions = {row["config_id"]: theory_of(row) for row in fields}
    predicted = {x: theory.first.verdict for x, theory in predictions.items()}
    levels = {x: y.name for x, theory in predictions.items() if (y := theory.language.counting)}
    of_runs = frame["config_id"]
    return frame.assign(
        predicted=of_runs.map(predicted).astype(object),
        counting=of_runs.map(levels).astype(object),
    )


def runs(
    store: Store,
    sweep: str | Sequence[str] | None = None,
    model_seeds: int | Sequence[int] | None = (),
    *,
    failing: bool = False,
    outcome: str | Sequence[str] | None = (),
    learned_at: float = LEARNED_AT,
    below: float = 1.0,
    **fields: Any,
) -> pd.DataFrame:
    """Returns a row for each run: its results, `accuracy` in [0, 1] and its configuration.

    `outcome` is not learned, fails beyond, generalizes, at every length (proved right on every
    string) or not known; where a proof is stored, `every_length` is proved, refuted or not decided,
    and `refuted_by` a string that refutes; `accuracy_within` and `accuracy_beyond` are those on
    trained and on longer lengths. `predicted` is the verdict of theory about the language and the
    network: can, cannot or not known; `counting` the level at which the language's state is a
    function of counts, as `level 1`, or `outside`; `num_parameters` the number of the network's
    parameters; `shortcut_within` and `shortcut_beyond` the accuracies of the best shortcut reader
    on the same test, on trained lengths and on others; missing where none was fitted. Where a test
    has border pairs, `random_within`, `border_within`, `random_beyond` and `border_beyond` are the
    accuracies on its random strings and on those of the pairs, of trained and of longer lengths.
    The first columns are the run, its results and the settings that differ. Times are timestamps in
    UTC.

    Args:
        sweep: only this sweep, or these sweeps.
        model_seeds: only this seed, or these; all where it is empty.
        failing: only runs whose accuracy is below `below`.
        outcome: only runs with this outcome, or one of these: `generalizes` (by its test or a
            proof), `at every length`, `fails beyond`, `not learned`, `not known`.
        learned_at: the accuracy on strings of trained lengths from which on a run has learned.
        below: the accuracy below which a run fails on longer ones, or on its whole test.
        fields: values that columns must have, as `hidden_size=16` or `state="failed"`.

    Raises:
        UnknownRunError: there is no such sweep.
        ConfigError: there is no such field, or a seed is no seed.
    """
    chosen: dict[str, Any] = {"model_seeds": model_seeds, "failing": failing, "outcome": outcome}
    chosen |= {"learned_at": learned_at, "below": below, "fields": fields}
    frame = stored_runs(store, [] if sweep is None else as_list(sweep), **chosen)
    # Without a format, pandas takes that of the first row and refuses any other.
    frame["finished_at"] = pd.to_datetime(frame["finished_at"], utc=True, format="ISO8601")
    first = [*FIRST, *differing_fields(frame)]
    return frame[[*first, *(name for name in frame if name not in first)]]


Runs = int | str | Iterable[int | str]
"""A run by its id or as `heads/2`, or several."""


def _run_ids(store: Store, runs: Runs) -> list[int]:
    return [
        int(run)
        # NumPy's whole numbers are Integral too, and so is True, which would be run 1.
        if isinstance(run, numbers.Integral) and not isinstance(run, bool)
        else queries.find_run(store, run)
        for run in as_list(runs)
    ]


def lengths(store: Store, run_ids: Runs) -> pd.DataFrame:
    """Returns results of runs by length: run_id, length, tn, fp, fn, tp, tested, wrong (strings).

    For transductions also right_length_given (strings), edits and target_tokens.
    """
    return queries.length_scores(store, _run_ids(store, run_ids))


def errors(store: Store, run_ids: Runs) -> pd.DataFrame:
    """Returns misclassified test strings: run_id, string, length, label, logit (nats), occurrences.

    For tasks that are no languages also target; for transductions output, first_wrong (tokens),
    log_probability (of the target, in nats) and error_kind. And drawn, where it is known: how the
    string was drawn, one of `seqcls.results.DRAWN`.
    """
    return misclassified.errors_of_runs(store, _run_ids(store, run_ids))


def by_drawn(store: Store, run_ids: Runs) -> pd.DataFrame:
    """Returns accuracy by how strings were drawn: run_id, drawn, tested, wrong (strings), accuracy.

    `drawn` is `positive`, or how a negative string was drawn: `uniform`, `edited` or `near`; or
    `border`, of border pairs. Runs whose test strings were drawn in an unknown way have no row.
    """
    found = accuracy_by_drawn(store, _run_ids(store, run_ids))
    return found.assign(accuracy=1 - found["wrong"] / found["tested"])


def errors_of_run(store: Store, run: int | str, sort: str = "length") -> pd.DataFrame:
    """Returns a finished run's misclassified test strings, with the kind of each error.

    Args:
        run: its id, or its sweep and model seed, as `heads/2`.
        sort: `length`, `string`, `logit` or `occurrences`; the smallest first.

    Returns:
        string, kind, length, label, logit (nats), occurrences (in the test set); and drawn (how the
        string was, such as near), where that is known.

    Raises:
        UnknownRunError: there is no such run, or it was not tested.
        ConfigError: there is no such column to sort by.
    """
    if sort not in SORTS:
        raise ConfigError(Parameter("sort", sort), f": {nearest(sort, list(SORTS))}")
    run_id = queries.find_run(store, run)
    queries.check_done(store, run_id, "was not tested")
    frame = misclassified.string_errors(store, run_id)
    return frame.sort_values([sort, *(name for name in SORTS if name != sort)])


def causes(store: Store, sweep: str, sample: int = SAMPLE, **chosen: Any) -> pd.DataFrame:
    """Returns the causes of the failing runs of a sweep: as stored, or else found and stored.

    Args:
        sweep: its name.
        sample: number of errors of each run that are examined.
        chosen: the selection of its runs, as for `sweeps.api.selecting.selection_of`: `below=0.9`.

    Returns:
        run_id, number, mechanism, head, tokens, share, strings, agreement; in each run the cause of
        most errors has the number 0.

    Raises:
        UnknownRunError: there is no such sweep.
    """
    # Runs that are right on their test have no errors to attribute.
    selection = selection_of(store, (sweep,), **{**chosen, "failing": True})
    ids = [int(run_id) for run_id in queries.runs(store, selection)["id"]]
    if ids:
        attribute(open_writer(store), ids, sample)
    return causes_judged(store, ids, selection.learned_at, sample)


class Remedies(NamedTuple):
    """Remedies for a failing run."""

    mechanisms: list[str]
    """Its causes, the most frequent first; none where it misclassifies no test string."""
    trials: tuple[RemedyTrial, ...]
    """Suggestions, the sweeps that try them, and their results."""


def remedies(store: Store, run: int | str, **chosen: Any) -> Remedies:
    """Suggests changes of fields that may mend a failing run, with results where they were tried.

    The run's errors are attributed first, and the causes stored, if they are not yet.

    Args:
        store: the database.
        run: its id, or its sweep and model seed, as `heads/2`.
        chosen: the selection of runs of its configuration that are compared, as for
            `sweeps.api.selecting.selection_of`: `learned_at=0.95`.

    Raises:
        UnknownRunError: there is no such run, or it has no model.
    """
    run_id = queries.find_run(store, run)
    selection = selection_of(store, **chosen)
    mechanisms = mechanisms_of(causes_of_run(store, run_id, selection.learned_at))
    return Remedies(mechanisms, trials(store, run_id, mechanisms, selection))


def sensitive(store: Store, runs: Runs = (), times: int = failures.TIMES) -> pd.DataFrame:
    """Finds runs that depend on rounding: trains them again with other rounding, unless stored.

    Args:
        runs: runs, or sweeps, of which all finished runs count; by default, all stored results. An
            integer is a run's id, even where a sweep has that name.
        times: trainings of each from initial values moved by one unit in the last place; one in
            double precision is added.

    Returns:
        The frame of `sweeps.store.reads.explained.sensitivity`.

    Raises:
        UnknownRunError: there is neither such a sweep nor such a run, or the run is not finished.
    """
    named = as_list(runs)
    if not named:
        return explained.sensitivity(store)
    ids = list(
        dict.fromkeys(run_id for reference in named for run_id in _finished_runs(store, reference))
    )
    known = explained.sensitivity(store, ids).set_index("run_id")["times"]
    waiting = [
        run_id
        for run_id in ids
        # The number of results where no training diverges.
        if known.get(run_id, 0)
        != times + (queries.run_config(store, run_id).precision != failures.DOUBLE)
    ]
    if waiting:
        failures.perturb(open_writer(store), waiting, times)
    return explained.sensitivity(store, ids)


def _finished_runs(store: Store, reference: int | str) -> Iterator[int]:
    """Yields the finished runs of a sweep, or the run of that reference; an integer is an id."""
    if not isinstance(reference, str):
        yield queries.find_run(store, reference)
        return
    named = sweep_queries.sweeps_that_begin(store, reference)
    sweep = next((name for name in named if reference in (name, f"{name}:")), None)
    if sweep is not None:
        if runs := queries.runs_named(store, reference):
            raise UnknownRunError(
                f"{reference!r} means the sweep of that name or run {runs[0]}; write "
                f"{reference + ':'!r} for the sweep, or name the run as SWEEP/SEED or by its id"
            )
        yield from frames.finished_runs(store, Selection((sweep,)))["run_id"].tolist()
        return
    if "/" not in reference and not reference.isdecimal():
        sweep_queries.find_sweep(store, reference)
    yield queries.find_run(store, reference)
