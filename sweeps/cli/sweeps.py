"""Commands on sweeps: submit, train, watch, stop, start again."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from sweeps.cli.parameters import (
    AsJson,
    Columns,
    Dask,
    Db,
    Device,
    Engine,
    OptionalSweepNames,
    Precision,
    Spec,
    SweepNames,
    Wide,
    Workers,
)
from sweeps.terminal import say

if TYPE_CHECKING:
    from sweeps.work.options import WorkOptions

PANEL = "Sweeps"

app = typer.Typer()


def _how(
    workers: int | None, engine: str, device: str, dask: str | None, watch: bool = False
) -> "WorkOptions":
    from sweeps.work.options import WorkOptions

    return WorkOptions(_processes(workers), engine, device, dask, watch)


def _processes(wanted: int | None) -> int:
    """So many processes as there are cores, or fewer: more would only wait for each other."""
    cores = os.cpu_count() or 1
    if wanted is not None and wanted > cores:
        has = "1 core" if cores == 1 else f"{cores} cores"
        say(f"seqcls: --workers {wanted}: this machine has {has}; using {cores}", err=True)
    return cores if wanted is None else min(wanted, cores)


@app.command(rich_help_panel=PANEL)
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
    from sweeps.cli.commands.sweeping import run_sweeps

    run_sweeps(spec, db, precision, _how(workers, engine, device, dask))


@app.command(rich_help_panel=PANEL)
def submit(spec: Spec, db: Db = None, precision: Precision = None) -> None:
    """Queue the runs of a specification; `seqcls work` trains them."""
    from sweeps.cli.commands.sweeping import submit_sweeps

    submit_sweeps(spec, db, precision)


@app.command(rich_help_panel=PANEL)
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
    from sweeps.cli.commands.sweeping import work_on

    work_on(db, sweeps or [], _how(workers, engine, device, dask, watch))


@app.command(rich_help_panel=PANEL)
def status(
    sweeps: OptionalSweepNames = None,
    db: Db = None,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until all are done.")] = False,
    as_json: AsJson = False,
    wide: Wide = False,
    columns: Columns = None,
) -> None:
    """Show how far along sweeps are, how fast they go and how long they will take."""
    from sweeps.cli.commands.printing import Look
    from sweeps.cli.commands.sweeping import show_status

    show_status(db, sweeps or [], watch, as_json, Look(wide, columns))


@app.command(rich_help_panel=PANEL)
def stop(sweeps: SweepNames, db: Db = None) -> None:
    """Stop sweeps wherever they are being trained; runs that are nearly done finish."""
    from sweeps.cli.commands.sweeping import stop_sweeps

    stop_sweeps(db, sweeps)


@app.command(rich_help_panel=PANEL)
def resume(sweeps: SweepNames, db: Db = None) -> None:
    """Resume stopped sweeps."""
    from sweeps.cli.commands.sweeping import resume_sweeps

    resume_sweeps(db, sweeps)


@app.command(rich_help_panel=PANEL)
def retry(sweeps: SweepNames, db: Db = None) -> None:
    """Queue failed runs again."""
    from sweeps.cli.commands.sweeping import retry_sweeps

    retry_sweeps(db, sweeps)


@app.command(rich_help_panel=PANEL)
def delete(
    sweep: Annotated[str, typer.Argument(help="The name of a sweep.", show_default=False)],
    db: Db = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask for confirmation.")] = False,
) -> None:
    """Delete a sweep and those of its runs that no other sweep has."""
    from sweeps.cli.commands.sweeping import delete_sweep

    delete_sweep(db, sweep, yes)


@app.command(rich_help_panel=PANEL)
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
    from sweeps.work.timing.process import Stopwatch

    # It starts while this process imports what it needs itself.
    with Stopwatch() as timer:
        from sweeps.cli.commands.sweeping import show_estimate

        how = _how(workers, "auto", "auto", None)
        show_estimate(spec, db, how.workers, as_json, timer, overlap=overlap)
