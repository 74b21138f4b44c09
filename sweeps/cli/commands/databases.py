"""What commands do with whole databases: merge, export, verify, upgrade, check."""

import os
from collections.abc import Sequence
from pathlib import Path

import typer

from seqcls.errors import StoreDamagedError
from sweeps.cli.commands.bars import progress_bar
from sweeps.cli.commands.printing import count, print_json
from sweeps.cli.exit_codes import RUNS_FAILED
from sweeps.store import writer
from sweeps.store.databases import sqlite
from sweeps.store.databases.engine import schema_version
from sweeps.store.integrity import trust
from sweeps.store.migrate import upgrade_with_backup
from sweeps.store.opening import open_reader, open_writer, pack
from sweeps.store.reading import sweep_queries
from sweeps.store.reading.selection import View
from sweeps.store.verification import verify


def pack_database(db: str | None) -> None:
    """Makes the database one small file."""
    with progress_bar("packing"):
        path = pack(db)
    typer.echo(f"{path}: {path.stat().st_size:,} bytes")


def merge_databases(others: Sequence[str], db: str | None) -> None:
    """Takes over what other databases hold; says what differs and keeps what was here."""
    sources = [open_reader(other) for other in others]
    store = open_writer(db)
    trouble = False
    for source in sources:
        with progress_bar(f"merging {source.name}") as on_progress:
            merged = writer.merge(store, source, on_progress)
        typer.echo(
            f"{source.name}: results of {count(merged.results, 'run')} taken over, {merged.same:,} "
            f"were here already, {merged.waiting:,} unfinished; into {store.name}"
        )
        for before, after in merged.renamed.items():
            typer.echo(f"its sweep {before!r} asks for other runs than the one here: now {after!r}")
        for conflict in merged.conflicts:
            typer.echo(f"kept as it was here: {conflict}", err=True)
        for damaged in merged.damaged:
            typer.echo(f"damaged in {source.name} and not taken over: {damaged}", err=True)
        trouble = trouble or bool(merged.conflicts or merged.damaged)
    raise typer.Exit(RUNS_FAILED if trouble else 0)


def export_runs(
    db: str | None, folder: Path, kind: str, sweeps: Sequence[str], force: bool
) -> None:
    """Writes runs, lengths and errors into files."""
    # Imported where it is used, as pandas below: together they take half a second.
    from sweeps.analysis.export import export

    store = open_reader(db)
    for name in sweeps:
        sweep_queries.find_sweep(store, name)
    wanted = View(sweeps=tuple(sweeps))
    with progress_bar("exporting") as on_progress:
        written = export(store, folder, kind, wanted, on_progress, force=force)
    for path, rows in written.items():
        typer.echo(f"{path}: {count(rows, 'row')}")


def verify_database(db: str | None, as_json: bool) -> None:
    """Names everything in the database that is damaged."""
    store = open_reader(db)
    with progress_bar("verifying") as on_progress:
        found = verify(store, on_progress, os.cpu_count() or 1)
    if as_json:
        import pandas as pd

        rows = [{"what": damage.what, "how": damage.how} for damage in found.damages]
        print_json(pd.DataFrame(rows, columns=["what", "how"]))
    else:
        for damage in found.damages:
            typer.echo(damage)
        verdict = "nothing is damaged" if not found.damages else "damaged as said above"
        typer.echo(f"{store.name}: {count(found.runs, 'run')} checked, {verdict}")
    raise typer.Exit(RUNS_FAILED if found.damages else 0)


def upgrade_database(db: str | None) -> None:
    """Brings a database of an older version to this one's schema."""
    # First to read: a database that is not there is not made.
    open_reader(db, any_version=True)
    store = open_writer(db, any_version=True)
    upgraded = upgrade_with_backup(store)
    if upgraded is None:
        typer.echo(f"{store.name} is of the newest schema ({schema_version(store)}) already.")
        return
    copy = f"; as it was: {upgraded.backup}" if upgraded.backup else ""
    typer.echo(f"{store.name}: upgraded from {upgraded.before} to {upgraded.after}{copy}")
    for what in upgraded.damaged:
        typer.echo(f"{what}: did not fit its digest before; kept as damaged", err=True)
    raise typer.Exit(RUNS_FAILED if upgraded.damaged else 0)


def check_database(db: str | None) -> None:
    """Prints what kind of database this is and whether it can be used."""
    store = open_reader(db, any_version=True)
    typer.echo(f"database  {store.name}")
    typer.echo(f"schema    {schema_version(store)}")
    if store.path is not None:
        typer.echo(f"size      {store.path.stat().st_size:,} bytes")
        kind = sqlite.network_file_system(store.path)
        typer.echo(f"disk      {f'on a network file system ({kind})' if kind else 'local'}")
    store = open_reader(db)
    counts = sweep_queries.counts_by_state(store)
    states = ", ".join(f"{number:,} {state}" for state, number in sorted(counts.items()))
    typer.echo(f"runs      {states or 'none'}")
    if store.path is not None:
        try:
            trust.refuse_to_write(store.path, store.name)
            obstacle = sqlite.why_not_writable(store.path)
        except StoreDamagedError as error:
            obstacle = str(error)
        typer.echo(f"writable  {f'no: {obstacle}' if obstacle else 'yes'}")
