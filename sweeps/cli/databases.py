"""Commands on whole databases."""

from pathlib import Path
from typing import Annotated

import typer

from sweeps.cli.parameters import AsJson, Db, Force

PANEL = "Databases"

app = typer.Typer()
db_app = typer.Typer(no_args_is_help=True, help="Upgrade or check a database.")
app.add_typer(db_app, name="db", rich_help_panel=PANEL)


@app.command(rich_help_panel=PANEL)
def pack(db: Db = None) -> None:
    """Shrink the database to one small file that you can copy or share."""
    from sweeps.cli.commands.storage.databases import pack_database

    pack_database(db)


@app.command(rich_help_panel=PANEL)
def merge(
    others: Annotated[
        list[str], typer.Argument(help="Databases to import from.", show_default=False)
    ],
    db: Db = None,
) -> None:
    """Import sweeps, with their runs and results, from other databases."""
    from sweeps.cli.commands.storage.databases import merge_databases

    merge_databases(others, db)


@app.command(rich_help_panel=PANEL)
def export(
    folder: Annotated[Path, typer.Argument(help="The folder to write to.", show_default=False)],
    db: Db = None,
    kind: Annotated[
        str, typer.Option("--format", help="csv, parquet or jsonl (one line for each answer).")
    ] = "csv",
    sweep: Annotated[
        list[str] | None, typer.Option("--sweep", help="Only runs of this sweep; repeatable.")
    ] = None,
    spreadsheet: Annotated[
        bool,
        typer.Option(
            "--spreadsheet",
            help="Write ' before texts that a spreadsheet would compute as formulas (csv).",
        ),
    ] = False,
    force: Force = False,
) -> None:
    """Write runs, accuracy by length and misclassified strings to files."""
    from sweeps.cli.commands.storage.databases import export_runs

    export_runs(db, folder, kind, sweep or [], spreadsheet, force)


@app.command(rich_help_panel=PANEL)
def verify(db: Db = None, as_json: AsJson = False) -> None:
    """Check that the database still holds what was written to it, and name what is damaged."""
    from sweeps.cli.commands.storage.databases import verify_database

    verify_database(db, as_json)


@db_app.command()
def upgrade(db: Db = None) -> None:
    """Upgrade a database made by an older version; a copy is kept next to it."""
    from sweeps.cli.commands.storage.databases import upgrade_database

    upgrade_database(db)


@db_app.command()
def check(db: Db = None) -> None:
    """Say what kind of database this is, what is in it and whether it can be written."""
    from sweeps.cli.commands.storage.databases import check_database

    check_database(db)
