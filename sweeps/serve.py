"""Starting the dashboard, a separate program, on a database.

Modules that the dashboard loads anyway, such as the store, are not loaded here before it.
"""

import errno
import importlib.util
import ipaddress
import os
import re
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from seqcls.errors import HostError
from sweeps.access import DB_VARIABLE, NONE_HERE, READ_ONLY_VARIABLE, is_read_only, to_begin_with
from sweeps.processes import python
from sweeps.terminal import say

ADDRESS = "127.0.0.1"

THIS_MACHINE = (ADDRESS, "localhost", "::1")
"""Addresses that only this machine reaches."""

NAMES_VARIABLE = "SEQCLS_NAMES"
"""The variable of further names of the server, such as a reverse proxy's, separated by commas."""

_PATH = re.compile(r"(?!\.)[\w.-]+(/(?!\.)[\w.-]+)*", re.ASCII)

_NAME = re.compile(r"(?!-)[a-z\d_-]+(\.[a-z\d_-]+)*", re.ASCII)


class PortTakenError(OSError):
    """The error of a port on which another program listens."""


def show_dashboard(
    db: str | None,
    port: int,
    host: str = ADDRESS,
    *,
    read_only: bool = False,
    base_path: str = "",
    names: Sequence[str] = (),
) -> NoReturn:
    """Replaces this process by the dashboard's server, until it is interrupted.

    Args:
        host: the address to listen at; except for those in `THIS_MACHINE`, others can reach it.
        read_only: True to write nothing, as with `SEQCLS_READ_ONLY`.
        base_path: the path below which a reverse proxy serves it.
        names: further names that it answers to, as in `SEQCLS_NAMES`.

    Raises:
        HostError: an invalid name, no address of this machine, or one that others reach while
            writing is possible.
        PortTakenError: another program listens there.
    """
    read_only = read_only or is_read_only()
    path = base_path.strip("/")
    if path and not _PATH.fullmatch(path):
        raise HostError(
            f"--base-path {base_path}: expected names of letters, digits, -, _ and . with slashes "
            "between them, such as /models"
        )
    names = [_checked_name(name, "--name") for name in names] + configured_names()
    if _is_taken(host, port):
        free = next(
            (x for x in range(port + 1, min(port + 21, 65536)) if not _is_taken(host, x)), ""
        )
        raise PortTakenError(
            f"port {port} is taken, perhaps by another dashboard: open http://{host}:{port}, stop "
            f"the program that uses the port, or choose a free one: --port {free}"
        )
    if host not in THIS_MACHINE and not read_only:
        raise HostError(
            f"--host {host}: others could launch and delete sweeps there, for there is no login; "
            f"add --read-only, or leave --host at {ADDRESS} and forward the port over SSH"
        )
    if (copy := to_begin_with(db)) is not None:
        say(NONE_HERE)
        db = str(copy)
    # Streamlit's variables are left out, except colors: they would override the dashboard's own
    # file, even on who may reach the server.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("STREAMLIT_") or name.startswith("STREAMLIT_THEME_")
    }
    environment |= {DB_VARIABLE: db} if db is not None else {}
    environment |= {NAMES_VARIABLE: ",".join(names)} if names else {}
    options = [
        f"--server.address={host}",
        f"--browser.serverAddress={host}",
        f"--server.port={port}",
        f"--server.baseUrlPath={path}",
        # The command itself prints the address.
        "--logger.hideWelcomeMessage=true",
    ]
    if read_only:
        environment[READ_ONLY_VARIABLE] = "1"
        # A traceback would name folders of this machine.
        options.append("--client.showErrorDetails=none")
        say("Read-only: nothing is launched, changed or computed into the database.")
    url = f"http://{host}:{port}/{path}".removesuffix("/")
    say(f"The dashboard is at {url} (Ctrl-C stops it; sweeps keep running).")
    sys.stdout.flush()
    # Located and not imported: this layer must not depend on the dashboard.
    package = importlib.util.find_spec("dashboard")
    assert package is not None
    assert package.origin is not None
    script = Path(package.origin).with_name("app.py")
    # This process is replaced, so that ending it ends the server.
    os.execve(sys.executable, python("streamlit", "run", str(script), *options), environment)


def configured_names() -> list[str]:
    """The further names that the server answers to, from `SEQCLS_NAMES`.

    Raises:
        HostError: one of them is invalid.
    """
    named = re.split(r"[,\s]+", os.environ.get(NAMES_VARIABLE, ""))
    return [_checked_name(name, NAMES_VARIABLE) for name in named if name]


def number_of(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The numeric address in a text; None if it is a name."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def plain_name(name: str) -> str:
    """A name in normal form: `Example.org.` is `example.org`, `[::1]` is `::1`."""
    return name.strip("[]").removesuffix(".").lower()


def _checked_name(name: str, where: str) -> str:
    plain = plain_name(name)
    if number_of(plain) is not None:
        return plain
    try:
        # The form in which browsers send names of other alphabets.
        plain = plain.encode("idna").decode()
    except UnicodeError:
        plain = ""
    if not _NAME.fullmatch(plain):
        raise HostError(
            f"{where} {name[:60]}: expected a host's name as it stands in the address bar, such "
            "as models.example.org, without https:// and port"
        )
    return plain


def _is_taken(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        # As by a server: closed connections do not occupy the port.
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


def answers_to(host: str, address: str | None) -> bool:
    """True if a server answers requests for this host, which prevents DNS rebinding.

    The owner of a foreign name can make it resolve to this machine, so that a browser takes these
    pages for the owner's; a numeric address cannot be redirected.

    Args:
        host: the request's host, perhaps with a port.
        address: the address at which the server listens; None for all.

    Raises:
        HostError: a configured name is invalid.
    """
    name = _without_port(host)
    if name is None:
        return False
    if name in THIS_MACHINE or name == plain_name(address or "") or name in configured_names():
        return True
    number = number_of(name)
    if address in THIS_MACHINE:
        return number is not None and number.is_loopback
    machine = plain_name(socket.gethostname())
    return number is not None or name in (machine, f"{machine.partition('.')[0]}.local")


def _without_port(host: str) -> str | None:
    # An IPv6 address, which contains colons, is in brackets.
    found = re.fullmatch(r"(?:\[([^\[\]]*)\]|([^:]*))(?::\d*)?", host, re.ASCII)
    return plain_name(found[1] or found[2]) or None if found else None
