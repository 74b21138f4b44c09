"""Commands on sweeps: submit, train, watch, stop, resume, retry, delete, estimate."""

import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqcls.errors import ConfigError
from sweeps import api
from sweeps.cli.parameters import (
    INTERRUPTED,
    LEARNED_AT,
    RUNS_FAILED,
    RUNS_LEFT,
    AsJson,
    Below,
    Columns,
    Commands,
    Dask,
    Db,
    Device,
    Engine,
    LearnedAt,
    OptionalSweepNames,
    Precision,
    Spec,
    SweepName,
    SweepNames,
    Wide,
    Workers,
)
from sweeps.cli.printing import (
    TableOptions,
    count,
    open_database,
    print_json,
    print_table,
    table_of,
)
from sweeps.processes import retry_lost
from sweeps.terminal import format_duration, output, progress_bar, say

if TYPE_CHECKING:
    import pandas as pd

    from sweeps.api import Store
    from sweeps.grid.spec import SweepSpec
    from sweeps.work.machine import WorkOptions, WorkSummary
    from sweeps.work.progress import SweepProgress


PANEL = "Sweeps"

app = Commands()


def _how(
    workers: int | None, engine: str, device: str, dask: str | None, watch: bool = False
) -> "WorkOptions":
    from sweeps.work.machine import WorkOptions

    return WorkOptions(_processes(workers), engine, device, dask, watch)


def _processes(wanted: int | None) -> int:
    """So many processes as there are cores, or fewer: more would only wait for each other."""
    cores = os.cpu_count() or 1
    if wanted is not None and wanted > cores:
        has = "1 core" if cores == 1 else f"{cores} cores"
        say(f"seqcls: --workers {wanted}: this machine has {has}; using {cores}", err=True)
    return cores if wanted is None else min(wanted, cores)


Submit = Annotated[
    bool, typer.Option("--submit", help="Only queue the runs; `seqcls work` trains them.")
]


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls sweep report -w 4")
def sweep(
    spec: Spec,
    db: Db = None,
    workers: Workers = None,
    engine: Engine = "auto",
    device: Device = "auto",
    dask: Dask = None,
    precision: Precision = None,
) -> None:
    """Train the runs of a specification that the database doesn't have yet."""
    _train(_specs(spec, precision), db, _how(workers, engine, device, dask))


def _train(specs: "list[SweepSpec]", db: str | None, how: "WorkOptions") -> None:
    from sweeps.api.sweeping import check_training, missing_runs, sweep_ids

    check_training(how, specs)
    # Looked up read-only first: a complete database is not touched at all.
    grow = any(spec.until for spec in specs)
    if not grow and (there := api.existing(db)) and missing_runs(there, specs) == 0:
        say(f"{_name_sweeps(specs)}: all runs are in {there.name}.")
        _say_outcomes(there, [spec.name for spec in specs])
        return
    if how.dask is None:
        _warn_of_memory(specs, max(how.workers, 1))
    store = api.open_writer(db)
    ids = sweep_ids(store, api.submit(store, specs))
    for told in filter(None, (_trained_on(specs), _without_near(specs))):
        say(told, err=True)
    _work(store, ids, how, _name_sweeps(specs))


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls submit heads.toml")
def submit(spec: Spec, db: Db = None, precision: Precision = None) -> None:
    """Queue the runs of a specification; `seqcls work` trains them."""
    _queue(_specs(spec, precision), db)


def _queue(specs: "list[SweepSpec]", db: str | None) -> None:
    from sweeps.api.overlaps import contradictions, majority
    from sweeps.api.sweeping import runs_by_state

    _warn_of_memory(specs)
    store = api.open_writer(db)
    names = api.submit(store, specs)
    configs = [config for spec in specs for config in spec.configs()]
    for told in filter(None, (majority(configs), contradictions(configs), _without_near(specs))):
        say(told, err=True)
    # Asked again by itself: what is queued is queued.
    queued = retry_lost(partial(runs_by_state, store, names)).get(api.RunState.QUEUED, 0)
    say(
        f"{_name_sweeps(specs)}: {count(queued, 'run')} queued in {store.name}; `seqcls work` "
        "trains them."
    )


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls work heads --watch")
def work(
    sweeps: OptionalSweepNames = None,
    db: Db = None,
    workers: Workers = None,
    engine: Engine = "auto",
    device: Device = "auto",
    dask: Dask = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="When all runs are done, wait for more.")
    ] = False,
) -> None:
    """Train queued runs until none are left; any number of workers can do so at once."""
    from sweeps.api.sweeping import check_training, sweep_ids

    sweeps = sweeps or []
    how = _how(workers, engine, device, dask, watch)
    check_training(how)
    ids = None
    if sweeps or not how.watch:
        # First to read: a database that is not there holds nothing to work on.
        ids = sweep_ids(open_database(db), sweeps) or None
    _work(api.open_writer(db), ids, how, ", ".join(sweeps) or "all sweeps")


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls status heads --watch")
def status(
    sweeps: OptionalSweepNames = None,
    db: Db = None,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until all are done.")] = False,
    learned_at: LearnedAt = LEARNED_AT,
    below: Below = 1.0,
    as_json: AsJson = False,
    wide: Wide = False,
    columns: Columns = None,
) -> None:
    """Show how far along sweeps are, how fast they go and how long they will take."""
    from rich.console import Console
    from rich.live import Live

    sweeps, at = sweeps or [], {"learned_at": learned_at, "below": below}
    look = TableOptions(wide, columns)
    if watch and as_json:
        raise ConfigError("--watch cannot be combined with --json: leave one of them out")
    store = open_database(db)
    progress = api.status(store, sweeps)
    if not watch:
        if as_json:
            print_json(_frame(progress))
        else:
            print_table(_frame(progress)[WEIGHT], _title(store, progress), look)
            _say_outcomes(
                store, [sweep.name for sweep in progress], learned_at=learned_at, below=below
            )
            _say_orphaned(progress)
        raise typer.Exit(_exit_status(progress))
    with Live(console=Console(file=output()), refresh_per_second=4) as live:
        while True:
            live.update(table_of(_frame(progress), _title(store, progress)))
            if all(x.state in ("done", "stopped") and not x.running for x in progress):
                break
            time.sleep(STATUS_SECONDS)
            # One that is deleted meanwhile is no longer told of.
            every = retry_lost(partial(api.status, store))
            progress = [x for x in every if not sweeps or x.name in sweeps]
    _say_outcomes(store, [sweep.name for sweep in progress], **at)
    raise typer.Exit(_exit_status(progress))


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls stop heads")
def stop(sweeps: SweepNames, db: Db = None) -> None:
    """Stop sweeps wherever they are being trained; what is in training stays queued."""
    from seqcls.text import as_argument

    store = open_database(db)
    api.stop(store, sweeps)
    for sweep in retry_lost(partial(api.status, store, sweeps)):
        if sweep.state == "done":
            say(f"{sweep.name} was done already.")
        else:
            say(
                f"{sweep.name} is stopped: {sweep.done} of {count(sweep.total, 'run')} done; "
                f"`seqcls resume {as_argument(sweep.name)}` lifts the stop."
            )


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls resume heads")
def resume(sweeps: SweepNames, db: Db = None) -> None:
    """Resume stopped sweeps."""
    store = open_database(db)
    api.resume(store, sweeps)
    for sweep in retry_lost(partial(api.status, store, sweeps)):
        say(f"{sweep.name}: {count(sweep.queued, 'run')} queued; `seqcls work` trains them.")


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls retry heads")
def retry(sweeps: SweepNames, db: Db = None) -> None:
    """Queue failed runs again."""
    again = api.retry(open_database(db), sweeps)
    say(f"{count(again, 'failed run')} queued again; `seqcls work` trains them.")


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls more heads --budget 4x")
def more(
    sweep: SweepName,
    budget: Annotated[
        str,
        typer.Option(
            help="How many times the epochs that they had, as 4x, or how many epochs, as 192.",
            show_default=False,
        ),
    ],
    learned_at: LearnedAt = LEARNED_AT,
    name: Annotated[
        str | None, typer.Option(help="The new sweep's name.", show_default="SWEEP-BUDGET")
    ] = None,
    submit: Submit = False,
    db: Db = None,
    workers: Workers = None,
    engine: Engine = "auto",
    device: Device = "auto",
    dask: Dask = None,
) -> None:
    """Train those seeds of a sweep that have not learned with a larger budget, as a new sweep."""
    from sweeps.api.budgets import more_training

    how = _how(workers, engine, device, dask)
    asked = more_training(open_database(db), sweep, budget, learned_at=learned_at, name=name)
    if asked.spec is not None:
        # What may not be written is said before what would be done.
        api.open_writer(db)
    for sentence in asked.sentences(sweep):
        say(sentence)
    if asked.spec is None:
        return
    if submit:
        _queue([asked.spec], db)
    else:
        _train([asked.spec], db, how)


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls seeds heads --until 'share ± 10 %'")
def seeds(
    sweep: SweepName,
    until: Annotated[
        str,
        typer.Option(
            help="How well the share that generalizes, of seeds that learned, is to be known of "
            "each configuration, as 'share ± 10 %', to either side; 'learned ± 10 %' for the share "
            "that learned; 'share apart' until those of two configurations differ, by pairs where "
            "the same seed starts both from the same weights.",
            show_default=False,
        ),
    ],
    most: Annotated[
        int | None, typer.Option(help="No more seeds of a configuration.", show_default="500")
    ] = None,
    submit: Submit = False,
    db: Db = None,
    workers: Workers = None,
    engine: Engine = "auto",
    device: Device = "auto",
    dask: Dask = None,
) -> None:
    """Train as many seeds of a sweep as it takes, until what is asked of them is known."""
    from seqcls.text import as_argument
    from sweeps.api.budgets import seeds as grow
    from sweeps.api.sweeping import sweep_ids

    how = _how(workers, engine, device, dask)
    open_database(db)
    store = api.open_writer(db)
    spec = grow(store, sweep, until, most=most)
    say(f"{sweep}: gets seeds until {spec.until!r}, and at most {spec.most_seeds:,}.")
    if submit:
        say(f"`seqcls work {as_argument(sweep)}` trains them.")
    else:
        _work(store, sweep_ids(store, sweep), how, sweep)


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls delete heads --yes")
def delete(
    sweep: SweepName,
    db: Db = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask for confirmation.")] = False,
) -> None:
    """Delete a sweep and those of its runs that no other sweep has."""
    from sweeps.api.sweeping import runs_of_no_other

    store = open_database(db)
    runs = runs_of_no_other(store, sweep)
    if not yes:
        typer.confirm(
            f"Delete the sweep {sweep!r} and the {count(runs, 'run')} that no other sweep has, "
            f"with all results, from {store.name}?",
            abort=True,
        )
    say(f"{sweep}: deleted, and {count(api.delete(store, sweep), 'run')}.")


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls estimate heads.toml -w 8")
def estimate(
    spec: Spec,
    db: Db = None,
    workers: Workers = None,
    overlap: Annotated[
        bool,
        typer.Option(
            "--overlap",
            help="Draw all training strings to say how many test strings are among them.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say how many runs a specification has and how long they will take on this machine."""
    from sweeps.api.sweeping import growth_sentence

    processes = max(_processes(workers), 1)
    specs = _specs(spec, None)
    with progress_bar("timing a few steps"):
        judged = api.estimate(api.existing(db), specs, processes)
    _warn_of_memory(specs, processes)
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
        takes = f", about {format_duration(judged.seconds)} for the rest with {processes} at a time"
    say(
        f"{_name_sweeps(specs)}: {count(judged.runs, 'run')}, {judged.there:,} there "
        f"already{takes}. {judged.basis}"
    )
    for each in specs:
        if each.until:
            say(growth_sentence(each))
    if told:
        say(told)


WEIGHT = [
    *("name", "state", "done", "failed", "queued", "running", "seconds_left", "runs_per_second")
]
"""The columns of a status; on a narrow terminal the last are left out."""

STATUS_SECONDS = 2.0
"""How often a watched status is renewed."""


def _trained_on(specs: "Sequence[SweepSpec]", *, exact: bool = False) -> str | None:
    from sweeps.api.overlaps import trained_on

    return trained_on((config for spec in specs for config in spec.configs()), exact=exact)


def _without_near(specs: "Sequence[SweepSpec]") -> str:
    from sweeps.api.overlaps import without_near

    return without_near(config for spec in specs for config in spec.configs())


def _specs(reference: str, precision: str | None) -> "list[SweepSpec]":
    from sweeps.api.sweeping import read_specs

    with progress_bar(f"reading {reference}"):
        return read_specs(reference, precision)


def _warn_of_memory(specs: "list[SweepSpec]", workers: int = 1) -> None:
    from sweeps.api.sweeping import memory_warning

    if said := memory_warning(specs, workers):
        say(f"seqcls: {said}", err=True)


def _work(store: "Store", ids: list[int] | None, how: "WorkOptions", what: str) -> None:
    from sweeps.api.sweeping import describe_trained, fit_after_training

    goes_on = True
    while goes_on:
        started = time.perf_counter()
        try:
            # While it waits for runs it fits readers, else once it has said what it trained.
            worked = api.work(store, ids, progress_bar=True, shortcuts=how.watch, **asdict(how))
        except KeyboardInterrupt:
            say(f"{what}: ended at once; {_what_is_left(store, ids)}", err=True)
            raise typer.Exit(INTERRUPTED) from None
        seconds = time.perf_counter() - started
        came_to = retry_lost(partial(describe_trained, store, worked))
        say(
            f"{what}: trained {count(worked.recorded, 'run')} in {format_duration(seconds)}, in "
            f"{store.name}{': ' if came_to else ''}{came_to}."
        )
        status = _say_what_came_of_it(store, ids, worked)
        goes_on = worked.signal is None and fit_after_training(store, ids, progress_bar=True)
    raise typer.Exit(status)


def _say_what_came_of_it(store: "Store", ids: list[int] | None, worked: "WorkSummary") -> int:
    """Tells what else there is to know of these sweeps; the exit status that says the same."""
    from sweeps.api.budgets import seed_sentences
    from sweeps.api.sweeping import runs_by_state

    for sentence in seed_sentences(store, ids):
        say(sentence)
    counts = runs_by_state(store, ids)
    if worked.signal is not None:
        say(f"stopped: {_what_is_left(store, ids)}", err=True)
        return 128 + worked.signal
    if running := counts.get(api.RunState.RUNNING):
        say(f"{count(running, 'run')} being trained by another worker.", err=True)
    if queued := counts.get(api.RunState.QUEUED):
        why = "stopped elsewhere, or in need of a package that is not installed here"
        say(f"{count(queued, 'run')} left: {why}.", err=True)
    if failed := counts.get(api.RunState.FAILED):
        say(
            f"{count(failed, 'run')} failed; `seqcls runs --json` gives each one's reason, "
            "`seqcls retry SWEEP` queues them again.",
            err=True,
        )
    if running or queued:
        return RUNS_LEFT
    return RUNS_FAILED if failed else 0


def _what_is_left(store: "Store", ids: list[int] | None) -> str:
    from sweeps.api.sweeping import runs_by_state

    counts = runs_by_state(store, ids)
    return (
        f"{counts.get(api.RunState.DONE, 0)} of {count(sum(counts.values()), 'run')} are done and "
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


def _say_outcomes(store: "Store", sweeps: "Sequence[str]", **chosen: Any) -> None:
    """Tells what the finished runs of these sweeps came to."""
    from sweeps.api.sweeping import describe_outcomes

    if sweeps and (came_to := retry_lost(partial(describe_outcomes, store, sweeps, **chosen))):
        say(f"{came_to[0].upper()}{came_to[1:]}.")


def _say_orphaned(progress: "list[SweepProgress]") -> None:
    for sweep in progress:
        if sweep.orphaned:
            say(
                f"{sweep.name}: the worker of {count(sweep.orphaned, 'run')} died; `seqcls work` "
                "trains them again.",
                err=True,
            )


def _name_sweeps(specs: "list[SweepSpec]") -> str:
    return specs[0].name if len(specs) == 1 else f"{len(specs)} sweeps"
