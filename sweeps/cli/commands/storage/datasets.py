"""How the command on files of strings shows what is in them."""

import json
from typing import TYPE_CHECKING, Any

import typer

from seqcls.errors import ConfigError
from sweeps import api
from sweeps.cli.commands.printing import count, print_record, print_table
from sweeps.cli.exit_codes import BAD_INPUT
from sweeps.terminal import say

if TYPE_CHECKING:
    from sweeps.datasets.summary import Summary


def show_data(path: str, as_json: bool) -> None:
    """Prints what is in a file; ends with status 2 where it is refused."""
    described = api.data(path)
    if as_json:
        print_record(described.record())
    else:
        _print(described)
    if described.refused:
        raise typer.Exit(BAD_INPUT)


def import_file(
    path: str, sweep: str, dataset: str | None, task: str | None, replace: bool, db: str | None
) -> None:
    """Stores the predictions of a file and says how many runs these are."""
    from sweeps.store.opening import open_reader

    fields: Any = task
    if task is not None and task.lstrip().startswith("{"):
        try:
            fields = json.loads(task)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"--task is no JSON: {str(error)[:100]}") from None
    settings = {"dataset": dataset, "task": fields, "replace": replace}
    ids = api.import_predictions(db, path, sweep=sweep, **settings)
    store = open_reader(db)
    say(f"{path}: {count(len(ids), 'run')} imported into {store.name}, sweep {sweep!r}")


def _print(summary: "Summary") -> None:
    import pandas as pd

    for problem in summary.refused:
        say(f"refused: {problem}", err=True)
    if summary.refused:
        return
    frame = pd.DataFrame(summary.parts).rename(columns={"mean_length": "mean"})
    frame["mean"] = frame["mean"].map("{:.1f}".format)
    print_table(frame, f"{summary.path}: {summary.rows:,} rows, task = {summary.task!r}")
    for sentence in summary.sentences:
        say(sentence)
    say(f"digest {summary.digest}")
