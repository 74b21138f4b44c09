"""Starting the dashboard, a program of its own, on a database."""

import errno
import importlib.util
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import typer

from seqcls.errors import SeqclsError
from sweeps.python import python
from sweeps.store.engine import DB_VARIABLE, open_reader

ADDRESS = "127.0.0.1"


class PortTakenError(OSError):
    """Another program listens there."""


def show_dashboard(db: str | None, port: int) -> NoReturn:
    """Becomes the dashboard's server on this machine, until it is interrupted."""
    _check_port(port)
    environment = _without_options(os.environ)
    if db is not None:
        os.environ[DB_VARIABLE] = environment[DB_VARIABLE] = db
    _say_what_is_shown()
    typer.echo(f"The dashboard is at http://{ADDRESS}:{port} (Ctrl-C ends it; sweeps go on).")
    sys.stdout.flush()
    options = [
        f"--server.address={ADDRESS}",
        f"--server.port={port}",
        "--logger.hideWelcomeMessage=true",
    ]
    # In place of this process, so that whoever ends this one ends the server.
    command = python("streamlit", "run", str(_script()), *options)
    os.execve(sys.executable, command, environment)


def _check_port(port: int) -> None:
    with socket.socket() as probe:
        # As a server does: connections that are over do not keep the port taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise PortTakenError(
                f"port {port} is taken, perhaps by a dashboard that is open already: look at "
                f"http://{ADDRESS}:{port}, end what runs there, or choose another --port"
            ) from None


def _without_options(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without Streamlit's options but for colors.

    They would count before what the dashboard's own file says, on who may reach the server too.
    """
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("STREAMLIT_") or name.startswith("STREAMLIT_THEME_")
    }


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
