"""Starting the dashboard, a program of its own, on a database."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import NoReturn

import typer

from seqcls.errors import SeqclsError
from sweeps.store.engine import DB_VARIABLE, open_reader

ADDRESS = "127.0.0.1"


def show_dashboard(db: str | None, port: int) -> NoReturn:
    """Becomes the dashboard's server on this machine, until it is interrupted."""
    if db is not None:
        os.environ[DB_VARIABLE] = db
    _say_what_is_shown()
    typer.echo(f"The dashboard is at http://{ADDRESS}:{port} (Ctrl-C ends it; sweeps go on).")
    sys.stdout.flush()
    options = [
        f"--server.port={port}",
        "--server.headless=true",
        "--logger.hideWelcomeMessage=true",
    ]
    # In place of this process, so that whoever ends this one ends the server.
    os.execv(sys.executable, [sys.executable, "-m", "streamlit", "run", str(_script()), *options])


def _say_what_is_shown() -> None:
    try:
        typer.echo(f"Showing {open_reader().name}.")
    except SeqclsError as error:
        # The page says so too, and what to do; a sweep can be launched from there.
        typer.echo(f"seqcls: {error}", err=True)


def _script() -> Path:
    # Found and not imported: this layer knows no screen.
    found = importlib.util.find_spec("dashboard")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).with_name("app.py")
