"""What commands do with sweeps: submit, train, watch, stop, resume, retry, delete, estimate."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.progress import Progress

from seqcls.engines.choice import choose_engine
from seqcls.errors import ConfigError, StoreMissingError
from seqcls.problem import Problem, resolve
from sweeps.cli.commands.bars import columns, progress_bar
from sweeps.cli.commands.printing import Look, count, print_json, print_table, table_of
from sweeps.cli.exit_codes import INTERRUPTED, RUNS_FAILED, RUNS_LEFT
from sweeps.durations import spoken
from sweeps.grid.spec import SweepSpec, at_precision, load_specs
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reading import sweep_queries
from sweeps.store.schema.tables import RunState
from sweeps.work import memory
from sweeps.work.estimate import estimate
from sweeps.work.executors.dask_cluster import check_address
from sweeps.work.options import WorkOptions, WorkSummary
from sweeps.work.progress import SweepProgress, progress
from sweeps.work.warm_up import check_device
from sweeps.work.worker import work

if TYPE_CHECKING:
    # Imported where frames are made: a sweep begins half a second sooner without.
    import pandas as pd

WEIGHT = [
    *("name", "state", "done", "failed", "queued", "running", "seconds_left", "runs_per_second")
]
"""The columns of a status; on a narrow terminal the last are left out."""

STATUS_SECONDS = 2.0
"""How often a watched status is renewed."""


def submit_sweeps(reference: str, db: str | None, precision: str | None) -> None:
    """Queues what is missing of the sweeps meant, and trains nothing."""
    specs = _specs(reference, precision)
    _warn_of_memory(specs)
    store = open_writer(db)
    sweep_ids = [writer.submit(store, spec) for spec in specs]
    queued = sweep_queries.counts_by_state(store, sweep_ids).get(RunState.QUEUED, 0)
    typer.echo(
        f"{_named(specs)}: {count(queued, 'run')} queued in {store.name}; `seqcls work` trains "
        "them."
    )


def run_sweeps(reference: str, db: str | None, precision: str | None, how: WorkOptions) -> None:
    """Trains what is missing of the sweeps meant, with a progress bar."""
    specs = _specs(reference, precision)
    _check(specs, how)
    # Looked up read-only first: a complete database is not touched at all.
    if (complete := _complete(specs, db)) is not None:
        typer.echo(f"{_named(specs)}: all runs are in {complete.name}.")
        return
    if how.dask is None:
        _warn_of_memory(specs, max(how.workers, 1))
    store = open_writer(db)
    sweep_ids = [writer.submit(store, spec) for spec in specs]
    _work(store, sweep_ids, how, _named(specs))


def work_on(db: str | None, sweeps: Sequence[str], how: WorkOptions) -> None:
    """Trains what is queued of the sweeps named, or of all."""
    _check([], how)
    sweep_ids = None
    if sweeps or not how.watch:
        # First to read: a database that is not there holds nothing to work on.
        reader = open_reader(db)
        sweep_ids = [sweep_queries.find_sweep(reader, name) for name in sweeps] or None
    store = open_writer(db)
    _work(store, sweep_ids, how, ", ".join(sweeps) or "all sweeps")


def show_status(
    db: str | None, sweeps: Sequence[str], watch: bool, as_json: bool, look: Look
) -> None:
    """Prints how far the sweeps named are, or all; again and again where it is to watch."""
    store = open_reader(db)
    for name in sweeps:
        sweep_queries.find_sweep(store, name)
    if watch and as_json:
        raise ConfigError("--watch cannot be combined with --json: leave one of them out")
    if not watch:
        found = _progress(store, sweeps)
        if as_json:
            print_json(_frame(found))
        else:
            print_table(_frame(found)[WEIGHT], _title(store, found), look)
            _say_orphaned(found)
        raise typer.Exit(RUNS_FAILED if any(one.failed for one in found) else 0)
    with Live(console=Console(), refresh_per_second=4) as live:
        while True:
            found = _progress(store, sweeps)
            live.update(table_of(_frame(found), _title(store, found)))
            if all(one.state in ("done", "stopped") and not one.running for one in found):
                raise typer.Exit(RUNS_FAILED if any(one.failed for one in found) else 0)
            time.sleep(STATUS_SECONDS)


def stop_sweeps(db: str | None, sweeps: Sequence[str]) -> None:
    """Has every worker leave the rest of these sweeps."""
    store, sweep_ids = _existing(db, sweeps)
    writer.stop(store, sweep_ids)
    for one in _progress(store, sweeps):
        if one.state == "done":
            typer.echo(f"{one.name} was done already.")
        else:
            typer.echo(
                f"{one.name} is stopped: {one.done} of {count(one.total, 'run')} done; "
                f"`seqcls resume {one.name}` lifts the stop."
            )


def resume_sweeps(db: str | None, sweeps: Sequence[str]) -> None:
    """Takes the stop of these sweeps back."""
    store, sweep_ids = _existing(db, sweeps)
    writer.resume(store, sweep_ids)
    _say_queued(_progress(store, sweeps))


def retry_sweeps(db: str | None, sweeps: Sequence[str]) -> None:
    """Queues failed runs again."""
    store, sweep_ids = _existing(db, sweeps)
    again = writer.retry(store, sweep_ids)
    typer.echo(f"{count(again, 'failed run')} queued again; `seqcls work` trains them.")


def delete_sweep(db: str | None, sweep: str, yes: bool) -> None:
    """Deletes a sweep and the runs that no other sweep has, after asking."""
    store, (sweep_id,) = _existing(db, [sweep])
    own = sweep_queries.runs_of_one_sweep_only(store, sweep_id)
    if not yes:
        typer.confirm(
            f"Delete the sweep {sweep!r} and the {count(own, 'run')} that no other sweep has, with "
            f"all results, from {store.name}?",
            abort=True,
        )
    typer.echo(f"{sweep}: deleted, and {count(writer.delete(store, sweep_id), 'run')}.")


def show_estimate(reference: str, db: str | None, workers: int, as_json: bool) -> None:
    """Prints what a sweep will take."""
    import pandas as pd

    specs = _specs(reference, None)
    workers = max(workers, 1)
    try:
        store = open_reader(db)
    except StoreMissingError:
        store = None
    found = estimate(store, specs, workers)
    _warn_of_memory(specs, workers)
    if as_json:
        values = {name: getattr(found, name) for name in ("runs", "there", "seconds", "basis")}
        print_json(pd.DataFrame([values]))
        return
    takes = ""
    if found.seconds:
        takes = f", about {spoken(found.seconds)} for the rest with {workers} at a time"
    typer.echo(
        f"{_named(specs)}: {count(found.runs, 'run')}, {found.there:,} there already{takes}. "
        f"{found.basis}"
    )


def _specs(reference: str, precision: str | None) -> list[SweepSpec]:
    with progress_bar(f"reading {reference}"):
        specs = load_specs(reference)
    return specs if precision is None else [at_precision(spec, precision) for spec in specs]


def _warn_of_memory(specs: list[SweepSpec], workers: int = 1) -> None:
    if said := memory.warning(_problems(specs), workers):
        typer.echo(f"seqcls: {said}", err=True)


def _check(specs: list[SweepSpec], how: WorkOptions) -> None:
    """Refuses what cannot be trained like this before anything is written."""
    check_device(how.device)
    if how.dask is not None:
        check_address(how.dask)
    for problem in _problems(specs):
        choose_engine(problem, how.engine, how.device)


def _problems(specs: list[SweepSpec]) -> Iterator[Problem]:
    return (resolve(config) for spec in specs for config in spec.configs())


def _complete(specs: list[SweepSpec], db: str | None) -> Store | None:
    """The database, where it has all runs."""
    try:
        store = open_reader(db)
    except StoreMissingError:
        return None
    return store if sweep_queries.missing_runs(store, specs) == 0 else None


def _work(store: Store, sweep_ids: list[int] | None, how: WorkOptions, what: str) -> None:
    started = time.perf_counter()
    try:
        worked = with_progress_bar(store, sweep_ids, how)
    except KeyboardInterrupt:
        typer.echo(f"{what}: ended at once; {_what_is_left(store, sweep_ids)}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    seconds = time.perf_counter() - started
    typer.echo(
        f"{what}: trained {count(worked.recorded, 'run')} in {spoken(seconds)}, in {store.name}."
    )
    raise typer.Exit(_say_what_came_of_it(store, sweep_ids, worked))


def with_progress_bar(store: Store, sweep_ids: list[int] | None, how: WorkOptions) -> WorkSummary:
    with Progress(*columns("training"), console=Console(stderr=True)) as bar:
        task = bar.add_task("training", total=None)

        def update(done: float, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return work(store, sweep_ids, how, update)


def _say_what_came_of_it(store: Store, sweep_ids: list[int] | None, worked: WorkSummary) -> int:
    """Tells what else there is to know of these sweeps; the exit status that says the same."""
    counts = sweep_queries.counts_by_state(store.reader(), sweep_ids)
    if worked.signal is not None:
        typer.echo(f"stopped: {_what_is_left(store, sweep_ids)}", err=True)
        return 128 + worked.signal
    if running := counts.get(RunState.RUNNING):
        typer.echo(f"{count(running, 'run')} being trained by another worker.", err=True)
    if queued := counts.get(RunState.QUEUED):
        typer.echo(f"{count(queued, 'run')} left: the sweep was stopped elsewhere.", err=True)
    if failed := counts.get(RunState.FAILED):
        typer.echo(
            f"{count(failed, 'run')} failed; `seqcls runs --json` gives each one's reason, "
            "`seqcls retry SWEEP` queues them again.",
            err=True,
        )
    if running or queued:
        return RUNS_LEFT
    return RUNS_FAILED if failed else 0


def _what_is_left(store: Store, sweep_ids: list[int] | None) -> str:
    counts = sweep_queries.counts_by_state(store.reader(), sweep_ids)
    return (
        f"{counts.get(RunState.DONE, 0)} of {count(sum(counts.values()), 'run')} are done and "
        "stored; the same command continues with the rest"
    )


def _existing(db: str | None, sweeps: Sequence[str]) -> tuple[Store, list[int]]:
    """The database, which must exist, open for writing, and the ids of the sweeps named."""
    reader = open_reader(db)
    sweep_ids = [sweep_queries.find_sweep(reader, name) for name in sweeps]
    return open_writer(db), sweep_ids


def _progress(store: Store, sweeps: Sequence[str]) -> list[SweepProgress]:
    return [one for one in progress(store.reader()) if not sweeps or one.name in sweeps]


def _frame(found: list[SweepProgress]) -> "pd.DataFrame":
    import pandas as pd

    names = ("name", "state", "queued", "running", "orphaned", "done", "failed")
    rows: list[dict[str, Any]] = [
        {
            **{name: getattr(one, name) for name in names},
            "runs_per_second": one.runs_per_second and round(one.runs_per_second, 2),
            "seconds_left": one.seconds_left and round(one.seconds_left),
        }
        for one in found
    ]
    return pd.DataFrame(rows, columns=[*names, "runs_per_second", "seconds_left"], dtype=object)


def _title(store: Store, found: list[SweepProgress]) -> str:
    return f"{count(len(found), 'sweep')} in {store.name}"


def _say_orphaned(found: list[SweepProgress]) -> None:
    for one in found:
        if one.orphaned:
            typer.echo(
                f"{one.name}: the worker of {count(one.orphaned, 'run')} died; `seqcls work` "
                "trains them again.",
                err=True,
            )


def _say_queued(found: list[SweepProgress]) -> None:
    for one in found:
        typer.echo(f"{one.name}: {count(one.queued, 'run')} queued; `seqcls work` trains them.")


def _named(specs: list[SweepSpec]) -> str:
    return specs[0].name if len(specs) == 1 else f"{len(specs)} sweeps"
