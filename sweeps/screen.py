"""Starting the dashboard, a program of its own, on a database."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import typer

from seqcls.errors import SeqclsError
from sweeps.store.engine import DB_VARIABLE, open_reader

ADDRESS = "127.0.0.1"


def show_dashboard(db: str | None, port: int) -> None:
    """Serves the dashboard on this machine until it is interrupted.

    Raises:
        typer.Exit: it ended; with the status that it ended with.
    """
    if db is not None:
        os.environ[DB_VARIABLE] = db
    _say_what_is_shown()
    command = [sys.executable, "-m", "streamlit", "run", str(_script())]
    options = [f"--server.port={port}", "--server.headless=true"]
    typer.echo(f"The dashboard is at http://{ADDRESS}:{port} (Ctrl-C ends it; sweeps go on).")
    with subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL) as process:
        try:
            status = process.wait()
        except BaseException:
            process.terminate()
            raise
    raise typer.Exit(status)


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
