"""Reports of all sweeps as a folder that a static host serves: an index and a page a sweep."""

import html
import re
from collections.abc import Sequence
from pathlib import Path

import typer

from dashboard.report.command import written
from seqcls.errors import UnknownRunError
from sweeps.files import refuse_taken, whole_files
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader
from sweeps.store.reading import sweep_queries

INDEX = "index.html"


def write_site(db: str | None, folder: Path, sweeps: Sequence[str], *, force: bool = False) -> None:
    """Writes the pages of sweeps, and says where.

    Args:
        db: the database.
        folder: where they go; it is made where it is missing.
        sweeps: names; all that have a finished run, if none are given.
        force: replace files that this program wrote and nobody changed since.

    Raises:
        UnknownRunError: there is no such sweep, or nothing is trained yet.
        ConfigError: a file may not be written.
    """
    refuse_taken([folder / INDEX], force=force)
    pages = _pages(open_reader(db), sweeps)
    with whole_files(folder, force=force) as new:
        for name, text in pages.items():
            (new / name).write_text(text, encoding="utf-8")
    size = sum(len(text.encode()) for text in pages.values())
    typer.echo(f"{folder}: {len(pages) - 1} sweeps and {INDEX}, {size // 1024:,} KiB.")


def _pages(store: Store, sweeps: Sequence[str]) -> dict[str, str]:
    """The text of each file."""
    pages: dict[str, str] = {}
    entries = []
    for name in sweeps or list(sweep_queries.specifications(store)):
        try:
            text = written(store, name)
        except UnknownRunError:
            if sweeps:
                raise
            continue  # Nothing of it is trained yet.
        file = f"sweep_{len(pages) + 1}_{re.sub(r'[^A-Za-z0-9_-]+', '_', name)[:60]}.html"
        pages[file] = text
        entries.append(f'<li><a href="{file}">{html.escape(name)}</a></li>')
    if not pages:
        raise UnknownRunError(
            f"{store.name!r} has no finished run to show; `seqcls status` says how far they are"
        )
    return {INDEX: _index(entries), **pages}


def _index(entries: Sequence[str]) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Sweeps</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<style>body { font: 16px/1.5 system-ui, sans-serif; max-width: 860px; "
        "margin: 2rem auto; padding: 0 1rem; }</style></head>\n"
        f"<body>\n<h1>Sweeps</h1>\n<ul>\n{chr(10).join(entries)}\n</ul>\n</body></html>\n"
    )
