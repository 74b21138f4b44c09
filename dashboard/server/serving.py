"""The dashboard's server: its first message, the hosts it answers to, and its end."""

import logging
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import get_option

from dashboard import background
from dashboard.server import visitors
from seqcls.errors import ConfigError, HostError, SeqclsError
from sweeps.access import READ_ONLY_VARIABLE, is_read_only
from sweeps.api import open_reader
from sweeps.serve import NAMES_VARIABLE, THIS_MACHINE, answers_to, configured_names
from sweeps.terminal import say

END_SECONDS = 3.0
"""Seconds for pending answers at the end; a page requests the rest from the next server."""


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """Runs a server that ends soon after it is stopped.

    Uvicorn shuts down the connections that it knows of and then waits for all, without an end. One
    that a browser opens at that moment is not known yet: Ctrl-C seemed to do nothing.
    """
    # Python sets signals in its main thread only.
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            _limit(number)
    yield


def _limit(number: signal.Signals) -> None:
    server_ends: Any = signal.getsignal(number)

    def on_signal(signalled: int, frame: Any) -> None:
        # The status that a shell gives a program that was ended by the signal.
        watch = threading.Timer(END_SECONDS, os._exit, [128 + signalled])
        # A server that ends in time does not wait for it.
        watch.daemon = True
        watch.start()
        server_ends(signalled, frame)

    signal.signal(number, on_signal)


POLICY = (
    "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; "
    "style-src 'self' 'unsafe-inline'; connect-src 'self' ws://{host} wss://{host} data: blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'"
)
"""The policy of pages: Streamlit's own programs, which evaluate charts, and nothing of another
host."""


@asynccontextmanager
async def lifespan(_app: object) -> AsyncIterator[None]:
    """Checks settings, prints the address, and runs the search for causes until the end."""
    _refuse_others()
    _check_settings()
    _say_what_is_shown()
    background.start()
    try:
        async with in_time():
            yield
    finally:
        background.stop()


class NoUploads:
    """Takes no file from visitors of a read-only page, whatever a browser sends.

    Streamlit holds uploads in memory even if no control of the page accepts files.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        # Anywhere in the path, since all pages may be served below a prefix.
        if scope["type"] == "http" and "/_stcore/upload_file" in scope["path"] and is_read_only():
            app = PlainTextResponse("This server is read-only and takes no files.", 403)
        await app(scope, receive, send)


def hide_from_visitors(error: Exception) -> bool:
    """Says that a page broke, and nothing of this machine, where it is for visitors.

    Returns:
        Whether the traceback, which names folders and values, is shown nowhere but in the log.
    """
    if not is_read_only():
        return False
    logging.getLogger(__name__).error("A page broke.", exc_info=error)
    st.error("Something on this page broke. Go back, or load it anew; whoever runs it has a log.")
    return True


class OwnPages:
    """Answers requests for names of this server alone, and of its own pages alone.

    Streamlit itself answers to every name, and the pages of every port of `localhost`. A page of
    another site whose name leads to this machine has the origin that its requests ask for. Its
    `server.allowedHosts` is asked by connections alone, not by requests for files and uploads, and
    lists names, while a server at `0.0.0.0` does not know the addresses that lead to it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] in ("http", "websocket"):
            headers = Headers(scope=scope)
            hosts = headers.getlist("host")
            address = get_option("server.address")
            # Of two Host headers a proxy may believe one and the server the other.
            if len(hosts) == 1 and answers_to(hosts[0], address):
                send = _from_here_alone(send, hosts[0])
                if any(page.partition("://")[2] != hosts[0] for page in headers.getlist("origin")):
                    app = PlainTextResponse("This server only answers its own pages.", 403)
            else:
                app = PlainTextResponse(_not_a_name(", ".join(hosts), address), 403)
        await app(scope, receive, send)


def _from_here_alone(send: Send, host: str) -> Send:
    """Adds the policy by which a page loads nothing from elsewhere, whatever text it shows."""

    async def send_with_policy(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if headers.get("content-type", "").startswith("text/html"):
                headers["Content-Security-Policy"] = POLICY.format(host=host)
        await send(message)

    return send_with_policy


def _not_a_name(host: str, address: str | None) -> str:
    here = address if address in THIS_MACHINE else "ADDRESS"
    here = f"http://{f'[{here}]' if ':' in here else here}:{get_option('server.port')}"
    return (
        # As ASCII and cut off: it is whatever a client sent.
        f"This server does not answer to the name {host[:100]!a}. Open it as {here}, or, if "
        f"the name is yours, start it with --name NAME or {NAMES_VARIABLE}=NAME.\n"
    )


def _refuse_others() -> None:
    """Ends a server that others could reach and write through, however it was started."""
    address = get_option("server.address")
    if address in THIS_MACHINE or is_read_only():
        return
    say(
        f"seqcls: --server.address {address}: others could launch and delete sweeps there, for "
        f"there is no login; set {READ_ONLY_VARIABLE}=1, or leave the address at 127.0.0.1",
        err=True,
    )
    # An exception would be logged with its whole traceback.
    os._exit(2)


def _check_settings() -> None:
    try:
        visitors.limit_seconds()
        configured_names()
    except (ConfigError, HostError) as error:
        say(f"seqcls: {error}", err=True)
        os._exit(2)


def _say_what_is_shown() -> None:
    try:
        message, wrong = f"Showing {open_reader().name}.", False
    except (SeqclsError, OSError) as error:
        # The page reports it too, with what to do; a sweep can be launched from there.
        message, wrong = f"seqcls: {error}", True
    # If the output is closed, or cannot encode the name, the server still runs.
    with suppress(OSError, UnicodeError):
        say(message, err=wrong)
