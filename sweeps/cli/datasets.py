"""Commands on files: of strings, and of predictions."""

from typing import Annotated

import typer

from sweeps.cli.parameters import AsJson, Db

PANEL = "Sweeps"

app = typer.Typer()


@app.command("import", rich_help_panel=PANEL)
def import_(
    file: Annotated[
        str,
        typer.Argument(
            help="CSV, TSV, JSONL or Parquet with the columns model, seed, id or tokens, and "
            "prediction; score, split, config and config.NAME may be there.",
            show_default=False,
        ),
    ],
    sweep: Annotated[
        str, typer.Option("--sweep", help="The name of the sweep that these runs become.")
    ],
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", help="The file of the test strings.", show_default=False),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            help='Instead of a file, a task: parity, or \'{"task": "parity", "test_seed": 5}\'.',
            show_default=False,
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace runs that are already there.")
    ] = False,
    db: Db = None,
) -> None:
    """Import what models trained elsewhere predict for test strings, as runs."""
    from sweeps.cli.commands.storage.datasets import import_file

    import_file(file, sweep, dataset, task, replace, db)


@app.command(rich_help_panel=PANEL)
def data(
    file: Annotated[
        str,
        typer.Argument(
            help="CSV, TSV, JSONL or Parquet with the columns tokens and label or target; a "
            "folder of FLaRe's; or NAME_src.txt beside NAME_tgt.txt.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Say what is in a file of strings, and which lines are refused."""
    from sweeps.cli.commands.storage.datasets import show_data

    show_data(file, as_json)
