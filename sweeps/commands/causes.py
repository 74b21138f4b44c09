"""What `seqcls causes` does, and how it shows it."""

from typing import Any

import pandas as pd
import typer

from sweeps import causes
from sweeps.commands.show import count, print_table
from sweeps.commands.asking import show
from sweeps.store import explained
from sweeps.store.engine import open_reader, open_writer
from sweeps.summaries import differing_fields


def show_causes(db: str | None, sweep: str, sample: int, as_json: bool) -> None:
    """Attributes what is not attributed yet, stores it, and prints the causes."""
    reader = open_reader(db)
    runs = causes.failing_runs(reader, sweep)
    ids = [int(own) for own in runs["id"]]
    if ids:
        causes.attribute(open_writer(db), ids, sample)
    found = explained.causes(reader, ids)
    table = causes.table(runs, found)
    if as_json:
        show(True, [], _record(sweep, runs, found, table))
        return
    if runs.empty:
        typer.echo(f"no finished run of sweep {sweep!r} misclassifies a test string")
        return
    print_table(_shown_table(runs, table), f"{count(len(ids), 'failing run')} of {sweep}")
    print_table(_shown_causes(runs, found), "by run, of the errors that were looked at")


def _shown_table(runs: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Configurations by the fields in which they differ, with mechanisms and their shares."""
    shown = table[["mechanism", "seeds", "failing"]].copy()
    shown["share (95%)"] = [
        f"{row['share']:.0%} ({row['low']:.0%} to {row['high']:.0%})"
        for row in table.to_dict("records")
    ]
    settings = runs.drop_duplicates("config_id").set_index("config_id")
    for place, name in enumerate(differing_fields(runs)):
        shown.insert(place, name, table["config_id"].map(settings[name]))
    return shown


def _shown_causes(runs: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    shown = found.drop(columns="number")
    shown.insert(1, "seed", shown["run_id"].map(runs.set_index("id")["model_seed"]))
    shown["head"] = shown["head"].astype("Int64")
    for name in ("share", "agreement"):
        shown[name] = ["" if pd.isna(x) else f"{x:.1%}" for x in shown[name]]
    return shown


def _record(
    sweep: str, runs: pd.DataFrame, found: pd.DataFrame, table: pd.DataFrame
) -> dict[str, Any]:
    return {
        "sweep": sweep,
        "failing": len(runs),
        "causes": _rows(found),
        "by_configuration": _rows(table),
    }


def _rows(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    return frame.astype(object).where(frame.notna(), None).to_dict("records")
