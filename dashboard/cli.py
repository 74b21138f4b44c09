"""The `seqcls` command with what needs the charts: the outermost layer, and so its entry point.

`sweeps.cli.app` has all other commands and may not import from here.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from seqcls.errors import ConfigError
from sweeps.api import open_reader
from sweeps.cli.app import app, main
from sweeps.cli.model import model
from sweeps.cli.parameters import Db, OpenedModel
from sweeps.cli.printing import Answer
from sweeps.cli.results import results

__all__ = ["app", "main"]


@model.add("model figures all_initializations/2 aac baac -o figures")
def figures(
    opened: OpenedModel,
    strings: list[str],
    out: Annotated[Path, typer.Option()],
    force: bool = False,
) -> None:
    """Write the figures of a model as PNG and SVG, as the page Model draws them.

    Args:
        out: the folder to write to.
    """
    # Imported where it is used: charts and PyTorch take seconds to load.
    from dashboard.model.files import write_all

    write_all(opened.store, opened.run, strings, out, opened.epoch, force=force)


# In the order of the panels; the last command selects runs as well.
model.registered_commands.insert(-1, model.registered_commands.pop())


@results.add("report all_initializations -o heads.html")
def report(
    chosen: dict[str, Any],
    names: Annotated[list[str] | None, typer.Argument(metavar="SWEEPS")] = None,
    out: Path | None = None,
    site: Path | None = None,
    db: Db = None,
    force: bool = False,
) -> Answer:
    """Summarize sweeps, or write an HTML report with charts and strings.

    In strings, b{3} is bbb, <ab>{2} is abab, and "" is the empty string.

    Args:
        names: Names of sweeps; by default, all.
        out: write the report to this file, such as heads.html; by default, print a summary.
        site: write a folder instead: an index page that compares sweeps, and a report for each.
    """
    from dashboard.report.command import answer, write_report, write_site

    # Sweeps may be named as arguments and by the option that commands of results share.
    sweeps = [*(names or ()), *chosen.pop("sweeps", ())]
    if site is not None and out is None:
        message = write_site(db, site, sweeps, chosen, force=force)
        return Answer({"folder": str(site)}, [message])
    if site is not None:
        raise ConfigError("expected either --out heads.html or --site FOLDER")
    if out is None:
        return answer(open_reader(db), sweeps, chosen)
    return Answer({"file": str(out)}, [write_report(db, sweeps, out, chosen, force=force)])
