"""Progress bars for long work, on a terminal's stderr and nowhere else."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sweeps.on_progress import OnProgress
from sweeps.terminal import visible

if TYPE_CHECKING:
    from rich.progress import ProgressColumn


def columns(doing: str) -> "tuple[ProgressColumn, ...]":
    """What a bar shows of work on runs: what it is, how far it is, how long it took and takes."""
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return (
        TextColumn(escape(visible(doing))),
        BarColumn(),
        TaskProgressColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )


@contextmanager
def progress_bar(doing: str) -> Iterator[OnProgress]:
    """A bar that disappears when the work is done; called with the runs done, and of all runs.

    Until the first call it shows that the work goes on, and for how long.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    waiting = (TextColumn(escape(visible(doing))), BarColumn(), TimeElapsedColumn())
    bar = Progress(*waiting, console=console, transient=True, disable=not console.is_terminal)
    with bar:
        task = bar.add_task(doing, total=None)

        def update(done: float, total: int) -> None:
            bar.columns = columns(doing)
            bar.update(task, completed=done, total=total)

        yield update


@contextmanager
def training_bar() -> Iterator[OnProgress]:
    """A bar of training, which stays when that is done, whatever stderr is."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(*columns("training"), console=Console(stderr=True)) as bar:
        task = bar.add_task("training", total=None)

        def update(done: float, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield update
