"""Starting the dashboard, a program of its own, on a database.

What the dashboard loads anyway, such as the store, is not loaded here before it.
"""

import errno
import importlib.util
import ipaddress
import os
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from seqcls.errors import HostError
from sweeps.access import DB_VARIABLE, NONE_HERE, READ_ONLY_VARIABLE, is_read_only, to_begin_with
from sweeps.processes import python
from sweeps.terminal import say

ADDRESS = "127.0.0.1"


THIS_MACHINE = (ADDRESS, "localhost", "::1")
"""Addresses that nobody but this machine reaches."""

NAMES_VARIABLE = "SEQCLS_NAMES"
"""Further names that the server answers to, such as a reverse proxy's, with commas between."""

_PATH = re.compile(r"(?!\.)[\w.-]+(/(?!\.)[\w.-]+)*", re.ASCII)

_NAME = re.compile(r"(?!-)[a-z\d_-]+(\.[a-z\d_-]+)*", re.ASCII)

TRIED = 20
"""Ports after a taken one that are looked at."""


class PortTakenError(OSError):
    """Another program listens there."""


def show_dashboard(
    db: str | None,
    port: int,
    host: str = ADDRESS,
    *,
    read_only: bool = False,
    base_path: str = "",
    names: Sequence[str] = (),
) -> NoReturn:
    """Becomes the dashboard's server on this machine, until it is interrupted.

    Args:
        host: the address that it is served at; others than this machine's let others in.
        read_only: write nothing, as where `SEQCLS_READ_ONLY` is set.
        base_path: the path below which a reverse proxy serves it.
        names: further names that it answers to, as `SEQCLS_NAMES` has them.

    Raises:
        HostError: no name, no address of this machine, or one that others reach while writing is
            possible.
        PortTakenError: another program listens there.
    """
    read_only = read_only or is_read_only()
    base_path = _checked_path(base_path)
    names = [_checked_name(name, "--name") for name in names] + configured_names()
    _check_port(host, port)
    if host not in THIS_MACHINE and not read_only:
        raise HostError(
            f"--host {host}: others could launch and delete sweeps there, for there is no login; "
            f"add --read-only, or leave --host at {ADDRESS} and forward the port over SSH"
        )
    environment = _without_options(os.environ)
    if (copy := to_begin_with(db)) is not None:
        say(NONE_HERE)
        db = str(copy)
    if db is not None:
        os.environ[DB_VARIABLE] = environment[DB_VARIABLE] = db
    if names:
        environment[NAMES_VARIABLE] = ",".join(names)
    options: list[str] = []
    if read_only:
        os.environ[READ_ONLY_VARIABLE] = environment[READ_ONLY_VARIABLE] = "1"
        # A traceback names folders of this machine.
        options = ["--client.showErrorDetails=none"]
        say("Read-only: nothing is launched, changed or computed into the database.")
    url = f"http://{host}:{port}{base_path}"
    say(f"The dashboard is at {url} (Ctrl-C stops it; sweeps keep running).")
    sys.stdout.flush()
    options += [
        f"--server.address={host}",
        f"--browser.serverAddress={host}",
        f"--server.port={port}",
        f"--server.baseUrlPath={base_path.strip('/')}",
        "--logger.hideWelcomeMessage=true",
    ]
    # In place of this process, so that ending it ends the server.
    command = python("streamlit", "run", str(_script()), *options)
    os.execve(sys.executable, command, environment)


def configured_names() -> list[str]:
    """The further names that the server answers to, of `SEQCLS_NAMES`.

    Raises:
        HostError: one of them is no name.
    """
    named = re.split(r"[,\s]+", os.environ.get(NAMES_VARIABLE, ""))
    return [_checked_name(name, NAMES_VARIABLE) for name in named if name]


def answers_to(host: str, address: str | None) -> bool:
    """Whether a server answers a request for that host.

    Whoever owns a name can have it lead to this machine, so that the browser takes the pages here
    for theirs. An address in numbers leads where it says.

    Args:
        host: what the request says, perhaps with a port.
        address: where the server listens; None: at all addresses.

    Raises:
        HostError: a configured name is none.
    """
    name = _without_port(host)
    if name is None:
        return False
    if name in THIS_MACHINE or name == _plain(address or "") or name in configured_names():
        return True
    number = _number(name)
    if address in THIS_MACHINE:
        return number is not None and number.is_loopback
    machine = _plain(socket.gethostname())
    return number is not None or name in (machine, f"{machine.partition('.')[0]}.local")


def _without_port(host: str) -> str | None:
    found = re.fullmatch(r"(?:\[([^\[\]]*)\]|([^:]*))(?::\d*)?", host, re.ASCII)
    return _plain(found[1] or found[2]) or None if found else None


def _number(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _plain(name: str) -> str:
    """A name as it is compared: `Example.org.` is `example.org`, `[::1]` is `::1`."""
    return name.strip("[]").removesuffix(".").lower()


def _checked_name(name: str, where: str) -> str:
    plain = _plain(name)
    if _number(plain) is not None:
        return plain
    try:
        # Browsers send names of other alphabets in this form.
        plain = plain.encode("idna").decode()
    except UnicodeError:
        plain = ""
    if not _NAME.fullmatch(plain):
        raise HostError(
            f"{where} {name[:60]}: expected a host's name as it stands in the address bar, such "
            "as models.example.org, without https:// and port"
        )
    return plain


def _checked_path(path: str) -> str:
    """A base path with the slash that it begins with; nothing where it is served at the top."""
    names = path.strip("/")
    if names and not _PATH.fullmatch(names):
        raise HostError(
            f"--base-path {path}: expected names of letters, digits, -, _ and . with slashes "
            "between them, such as /models"
        )
    return f"/{names}" if names else ""


def _check_port(host: str, port: int) -> None:
    if not _is_taken(host, port):
        return
    nearby = range(port + 1, min(port + 1 + TRIED, 65536))
    free = next((other for other in nearby if not _is_taken(host, other)), None)
    offer = "choose another --port" if free is None else f"use the next free one: --port {free}"
    raise PortTakenError(
        f"port {port} is taken, perhaps by another dashboard: open http://{host}:{port}, "
        f"stop the program that uses the port, or {offer}"
    )


def _is_taken(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        # As a server does: connections that are over do not keep the port taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
                raise HostError(
                    f"--host {host}: expected an address of this machine, such as {ADDRESS} or "
                    "0.0.0.0"
                ) from None
            if error.errno != errno.EADDRINUSE:
                raise
            return True
    return False


def _without_options(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without Streamlit's options but for colors.

    They would count before what the dashboard's own file says, on who may reach the server too.
    """
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("STREAMLIT_") or name.startswith("STREAMLIT_THEME_")
    }


def _script() -> Path:
    # Found and not imported: this layer knows no screen.
    package = importlib.util.find_spec("dashboard")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).with_name("app.py")
