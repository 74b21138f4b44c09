"""Which names a dashboard's server answers to."""

import re
import socket

from sweeps.serve import THIS_MACHINE, configured_names, number_of, plain_name


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
    found = re.fullmatch(r"(?:\[([^\[\]]*)\]|([^:]*))(?::\d*)?", host, re.ASCII)
    return plain_name(found[1] or found[2]) or None if found else None
