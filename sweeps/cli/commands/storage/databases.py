"""What commands do with whole databases: merge, export, verify, upgrade, check."""

from collections.abc import Sequence
from pathlib import Path

import typer

from sweeps import api
from sweeps.bars import progress_bar
from sweeps.cli.commands.printing import count, print_json
from sweeps.cli.exit_codes import RUNS_FAILED
from sweeps.terminal import say


def pack_database(db: str | None) -> None:
    """Makes the database one small file."""
    with progress_bar("packing"):
        path = api.pack(db)
    say(f"{path}: {path.stat().st_size:,} bytes")


def merge_databases(others: Sequence[str], db: str | None) -> None:
    """Takes over what other databases hold; says what differs and keeps what was here."""
    from sweeps.store.opening import open_reader

    sources = [open_reader(other) for other in others]
    store = api.open_store(db)
    trouble = False
    for source in sources:
        with progress_bar(f"merging {source.name}") as on_progress:
            merged = api.merge(store, source, on_progress)
        say(
            f"{source.name}: results of {count(merged.results, 'run')} taken over, {merged.same:,} "
            f"were here already, {merged.waiting:,} unfinished; into {store.name}"
        )
        for before, after in merged.renamed.items():
            say(f"its sweep {before!r} asks for other runs than the one here: now {after!r}")
        for conflict in merged.conflicts:
            say(f"kept as it was here: {conflict}", err=True)
        for damaged in merged.damaged:
            say(f"damaged in {source.name} and not taken over: {damaged}", err=True)
        trouble = trouble or bool(merged.conflicts or merged.damaged)
    raise typer.Exit(RUNS_FAILED if trouble else 0)


def export_runs(
    db: str | None,
    folder: Path,
    kind: str,
    sweeps: Sequence[str],
    spreadsheet: bool,
    force: bool,
) -> None:
    """Writes runs, lengths and errors into files."""
    from sweeps.store.opening import open_reader

    store = open_reader(db)
    with progress_bar("exporting") as on_progress:
        written = api.export(
            store, folder, kind, sweeps, on_progress, spreadsheet=spreadsheet, force=force
        )
    for path, rows in written.items():
        say(f"{path}: {count(rows, 'row')}")


def verify_database(db: str | None, as_json: bool) -> None:
    """Names everything in the database that is damaged."""
    from sweeps.store.opening import open_reader

    store = open_reader(db)
    with progress_bar("verifying") as on_progress:
        checked = api.verify(store, on_progress)
    if as_json:
        # Imported where it is used: it takes half a second.
        import pandas as pd

        rows = [{"what": damage.what, "how": damage.how} for damage in checked.damages]
        print_json(pd.DataFrame(rows, columns=["what", "how"]))
    else:
        for damage in checked.damages:
            say(str(damage))
        for each in checked.unchecked:
            say(f"not checked: {each}")
        verdict = "nothing is damaged" if not checked.damages else "damaged as said above"
        say(f"{store.name}: {count(checked.runs, 'run')} checked, {verdict}")
        if checked.imported:
            say(
                f"of {count(checked.imported, 'imported run')}, digests and counts are recomputed "
                "from the stored predictions; none can be trained again"
            )
    raise typer.Exit(RUNS_FAILED if checked.damages else 0)


def upgrade_database(db: str | None) -> None:
    """Brings a database of an older version to this one's schema."""
    from sweeps.store.databases.engine import schema_version

    store, upgraded = api.upgrade(db)
    if upgraded is None:
        say(f"{store.name} is of the newest schema ({schema_version(store)}) already.")
        return
    copy = f"; as it was: {upgraded.backup}" if upgraded.backup else ""
    say(f"{store.name}: upgraded from {upgraded.before} to {upgraded.after}{copy}")


def check_database(db: str | None) -> None:
    """Prints what kind of database this is and whether it can be used."""
    from sweeps.questions.databases import described

    for name, value in described(db):
        say(f"{name:10}{value}")
