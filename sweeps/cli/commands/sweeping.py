"""What commands do with sweeps: submit, train, watch, stop, resume, retry, delete, estimate."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from seqcls.errors import ConfigError
from sweeps import api
from sweeps.bars import progress_bar
from sweeps.cli.commands.printing import Look, count, print_json, print_table, table_of
from sweeps.cli.exit_codes import INTERRUPTED, RUNS_FAILED, RUNS_LEFT
from sweeps.durations import spoken
from sweeps.terminal import say

if TYPE_CHECKING:
    # Imported where frames are made: a sweep begins half a second sooner without.
    import pandas as pd

    from sweeps.grid.spec import SweepSpec
    from sweeps.store.databases.engine import Store
    from sweeps.work.estimate import Timer
    from sweeps.work.options import WorkOptions, WorkSummary
    from sweeps.work.progress import SweepProgress

WEIGHT = [
    *("name", "state", "done", "failed", "queued", "running", "seconds_left", "runs_per_second")
]
"""The columns of a status; on a narrow terminal the last are left out."""

STATUS_SECONDS = 2.0
"""How often a watched status is renewed."""


def submit_sweeps(reference: str, db: str | None, precision: str | None) -> None:
    """Queues the missing runs of the chosen sweeps, and trains nothing."""
    from sweeps.questions import sweeping
    from sweeps.questions.sweeping import runs_by_state
    from sweeps.store.opening import open_writer
    from sweeps.store.schema.tables import RunState

    specs = _specs(reference, precision)
    _warn_of_memory(specs)
    store = open_writer(db)
    queued = runs_by_state(store, sweeping.submit(store, specs)).get(RunState.QUEUED, 0)
    say(
        f"{_named(specs)}: {count(queued, 'run')} queued in {store.name}; `seqcls work` trains "
        "them."
    )


def run_sweeps(reference: str, db: str | None, precision: str | None, how: "WorkOptions") -> None:
    """Trains the missing runs of the chosen sweeps, with a progress bar."""
    from sweeps.questions import sweeping
    from sweeps.questions.sweeping import check_training, sweep_ids
    from sweeps.store.opening import existing, open_writer

    specs = _specs(reference, precision)
    check_training(how, specs)
    # Looked up read-only first: a complete database is not touched at all.
    if (there := existing(db)) is not None and sweeping.missing_runs(there, specs) == 0:
        say(f"{_named(specs)}: all runs are in {there.name}.")
        return
    if how.dask is None:
        _warn_of_memory(specs, max(how.workers, 1))
    store = open_writer(db)
    ids = sweep_ids(store, sweeping.submit(store, specs))
    if told := _trained_on(specs):
        say(told, err=True)
    _work(store, ids, how, _named(specs))


def work_on(db: str | None, sweeps: Sequence[str], how: "WorkOptions") -> None:
    """Trains what is queued of the sweeps named, or of all."""
    from sweeps.questions.sweeping import check_training, sweep_ids
    from sweeps.store.opening import open_reader, open_writer

    check_training(how)
    ids = None
    if sweeps or not how.watch:
        # First to read: a database that is not there holds nothing to work on.
        ids = sweep_ids(open_reader(db), sweeps) or None
    _work(open_writer(db), ids, how, ", ".join(sweeps) or "all sweeps")


def show_status(
    db: str | None, sweeps: Sequence[str], watch: bool, as_json: bool, look: Look
) -> None:
    """Prints how far the sweeps named are, or all; again and again where it is to watch."""
    from rich.console import Console
    from rich.live import Live

    from sweeps.store.opening import open_reader

    if watch and as_json:
        raise ConfigError("--watch cannot be combined with --json: leave one of them out")
    store = open_reader(db)
    progress = api.status(store, sweeps)
    if not watch:
        if as_json:
            print_json(_frame(progress))
        else:
            print_table(_frame(progress)[WEIGHT], _title(store, progress), look)
            _say_orphaned(progress)
        raise typer.Exit(_exit_status(progress))
    with Live(console=Console(), refresh_per_second=4) as live:
        while True:
            live.update(table_of(_frame(progress), _title(store, progress)))
            if all(x.state in ("done", "stopped") and not x.running for x in progress):
                raise typer.Exit(_exit_status(progress))
            time.sleep(STATUS_SECONDS)
            # One that is deleted meanwhile is no longer told of.
            progress = [x for x in api.status(store) if not sweeps or x.name in sweeps]


def stop_sweeps(db: str | None, sweeps: Sequence[str]) -> None:
    """Has every worker leave the rest of these sweeps."""
    from seqcls.spelling import as_argument
    from sweeps.questions import sweeping
    from sweeps.store.opening import open_reader

    store = open_reader(db)
    sweeping.stop(store, sweeps)
    for sweep in api.status(store, sweeps):
        if sweep.state == "done":
            say(f"{sweep.name} was done already.")
        else:
            say(
                f"{sweep.name} is stopped: {sweep.done} of {count(sweep.total, 'run')} done; "
                f"`seqcls resume {as_argument(sweep.name)}` lifts the stop."
            )


def resume_sweeps(db: str | None, sweeps: Sequence[str]) -> None:
    """Takes the stop of these sweeps back."""
    from sweeps.questions import sweeping
    from sweeps.store.opening import open_reader

    store = open_reader(db)
    sweeping.resume(store, sweeps)
    for sweep in api.status(store, sweeps):
        say(f"{sweep.name}: {count(sweep.queued, 'run')} queued; `seqcls work` trains them.")


def retry_sweeps(db: str | None, sweeps: Sequence[str]) -> None:
    """Queues failed runs again."""
    from sweeps.questions import sweeping
    from sweeps.store.opening import open_reader

    again = sweeping.retry(open_reader(db), sweeps)
    say(f"{count(again, 'failed run')} queued again; `seqcls work` trains them.")


def delete_sweep(db: str | None, sweep: str, yes: bool) -> None:
    """Deletes a sweep and the runs that no other sweep has, after asking."""
    from sweeps.questions import sweeping
    from sweeps.store.opening import open_reader

    store = open_reader(db)
    runs = sweeping.runs_of_no_other(store, sweep)
    if not yes:
        typer.confirm(
            f"Delete the sweep {sweep!r} and the {count(runs, 'run')} that no other sweep has, "
            f"with all results, from {store.name}?",
            abort=True,
        )
    say(f"{sweep}: deleted, and {count(sweeping.delete(store, sweep), 'run')}.")


def show_estimate(
    reference: str, db: str | None, workers: int, as_json: bool, timer: "Timer", *, overlap: bool
) -> None:
    """Prints what a sweep will take."""
    from sweeps.questions import sweeping
    from sweeps.store.opening import existing

    specs = _specs(reference, None)
    workers = max(workers, 1)
    with progress_bar("timing a few steps"):
        judged = sweeping.estimate(existing(db), specs, workers, timer)
    _warn_of_memory(specs, workers)
    if overlap:
        with progress_bar("drawing training strings"):
            told = _trained_on(specs, exact=True)
    else:
        told = _trained_on(specs)
    if as_json:
        import pandas as pd

        print_json(pd.DataFrame([{**asdict(judged), "trained_on": told}]))
        return
    takes = ""
    if judged.seconds:
        takes = f", about {spoken(judged.seconds)} for the rest with {workers} at a time"
    say(
        f"{_named(specs)}: {count(judged.runs, 'run')}, {judged.there:,} there already{takes}. "
        f"{judged.basis}"
    )
    if told:
        say(told)


def _trained_on(specs: "Sequence[SweepSpec]", *, exact: bool = False) -> str | None:
    from sweeps.questions.overlaps import trained_on

    return trained_on((config for spec in specs for config in spec.configs()), exact=exact)


def _specs(reference: str, precision: str | None) -> "list[SweepSpec]":
    from sweeps.questions.sweeping import read_specs

    with progress_bar(f"reading {reference}"):
        return read_specs(reference, precision)


def _warn_of_memory(specs: "list[SweepSpec]", workers: int = 1) -> None:
    from sweeps.questions import sweeping

    if said := sweeping.memory_warning(specs, workers):
        say(f"seqcls: {said}", err=True)


def _work(store: "Store", ids: list[int] | None, how: "WorkOptions", what: str) -> None:
    from sweeps.questions import sweeping

    started = time.perf_counter()
    try:
        worked = sweeping.work(store, ids, progress_bar=True, **asdict(how))
    except KeyboardInterrupt:
        say(f"{what}: ended at once; {_what_is_left(store, ids)}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    seconds = time.perf_counter() - started
    say(f"{what}: trained {count(worked.recorded, 'run')} in {spoken(seconds)}, in {store.name}.")
    raise typer.Exit(_say_what_came_of_it(store, ids, worked))


def _say_what_came_of_it(store: "Store", ids: list[int] | None, worked: "WorkSummary") -> int:
    """Tells what else there is to know of these sweeps; the exit status that says the same."""
    from sweeps.questions.sweeping import runs_by_state
    from sweeps.store.schema.tables import RunState

    counts = runs_by_state(store, ids)
    if worked.signal is not None:
        say(f"stopped: {_what_is_left(store, ids)}", err=True)
        return 128 + worked.signal
    if running := counts.get(RunState.RUNNING):
        say(f"{count(running, 'run')} being trained by another worker.", err=True)
    if queued := counts.get(RunState.QUEUED):
        say(f"{count(queued, 'run')} left: the sweep was stopped elsewhere.", err=True)
    if failed := counts.get(RunState.FAILED):
        say(
            f"{count(failed, 'run')} failed; `seqcls runs --json` gives each one's reason, "
            "`seqcls retry SWEEP` queues them again.",
            err=True,
        )
    if running or queued:
        return RUNS_LEFT
    return RUNS_FAILED if failed else 0


def _what_is_left(store: "Store", ids: list[int] | None) -> str:
    from sweeps.questions.sweeping import runs_by_state
    from sweeps.store.schema.tables import RunState

    counts = runs_by_state(store, ids)
    return (
        f"{counts.get(RunState.DONE, 0)} of {count(sum(counts.values()), 'run')} are done and "
        "stored; rerun the command to resume"
    )


def _exit_status(progress: "list[SweepProgress]") -> int:
    return RUNS_FAILED if any(sweep.failed for sweep in progress) else 0


def _frame(progress: "list[SweepProgress]") -> "pd.DataFrame":
    import pandas as pd

    names = ("name", "state", "queued", "running", "orphaned", "done", "failed")
    rows: list[dict[str, Any]] = [
        {
            **{name: getattr(sweep, name) for name in names},
            "runs_per_second": sweep.runs_per_second and round(sweep.runs_per_second, 2),
            "seconds_left": sweep.seconds_left and round(sweep.seconds_left),
        }
        for sweep in progress
    ]
    return pd.DataFrame(rows, columns=[*names, "runs_per_second", "seconds_left"], dtype=object)


def _title(store: "Store", progress: "list[SweepProgress]") -> str:
    return f"{count(len(progress), 'sweep')} in {store.name}"


def _say_orphaned(progress: "list[SweepProgress]") -> None:
    for sweep in progress:
        if sweep.orphaned:
            say(
                f"{sweep.name}: the worker of {count(sweep.orphaned, 'run')} died; `seqcls work` "
                "trains them again.",
                err=True,
            )


def _named(specs: "list[SweepSpec]") -> str:
    return specs[0].name if len(specs) == 1 else f"{len(specs)} sweeps"
