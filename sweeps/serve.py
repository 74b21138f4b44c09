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
from collections.abc import Sequence
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
    # Streamlit's own options but for colors are left out: they would count before what the
    # dashboard's own file says, on who may reach the server too.
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
        # Where the dashboard is, the command says itself.
        "--logger.hideWelcomeMessage=true",
    ]
    if read_only:
        environment[READ_ONLY_VARIABLE] = "1"
        # A traceback names folders of this machine.
        options.append("--client.showErrorDetails=none")
        say("Read-only: nothing is launched, changed or computed into the database.")
    url = f"http://{host}:{port}/{path}".removesuffix("/")
    say(f"The dashboard is at {url} (Ctrl-C stops it; sweeps keep running).")
    sys.stdout.flush()
    # Found and not imported: this layer knows no screen.
    package = importlib.util.find_spec("dashboard")
    assert package is not None
    assert package.origin is not None
    script = Path(package.origin).with_name("app.py")
    # In place of this process, so that ending it ends the server.
    os.execve(sys.executable, python("streamlit", "run", str(script), *options), environment)


def configured_names() -> list[str]:
    """The further names that the server answers to, of `SEQCLS_NAMES`.

    Raises:
        HostError: one of them is no name.
    """
    named = re.split(r"[,\s]+", os.environ.get(NAMES_VARIABLE, ""))
    return [_checked_name(name, NAMES_VARIABLE) for name in named if name]


def number_of(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a text is in numbers; None where it is a name."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def plain_name(name: str) -> str:
    """A name as it is compared: `Example.org.` is `example.org`, `[::1]` is `::1`."""
    return name.strip("[]").removesuffix(".").lower()


def _checked_name(name: str, where: str) -> str:
    plain = plain_name(name)
    if number_of(plain) is not None:
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
    if name in THIS_MACHINE or name == plain_name(address or "") or name in configured_names():
        return True
    number = number_of(name)
    if address in THIS_MACHINE:
        return number is not None and number.is_loopback
    machine = plain_name(socket.gethostname())
    return number is not None or name in (machine, f"{machine.partition('.')[0]}.local")


def _without_port(host: str) -> str | None:
    # An IPv6 address stands in brackets, since it has colons of its own.
    found = re.fullmatch(r"(?:\[([^\[\]]*)\]|([^:]*))(?::\d*)?", host, re.ASCII)
    return plain_name(found[1] or found[2]) or None if found else None
