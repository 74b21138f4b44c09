"""Ending the dashboard's server in time, whatever a browser leaves behind."""

import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

END_SECONDS = 3.0
"""What is being answered may take so long to be; a page asks for the rest from the next server."""


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """The life of a server, which ends soon after it was asked to.

    Uvicorn shuts down the connections that it knows of and then waits for all, without an end. One
    that a browser opens at that moment is not known yet: Ctrl-C seemed to do nothing.
    """
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            _limit(number)
    yield


def _limit(number: signal.Signals) -> None:
    server_ends: Any = signal.getsignal(number)

    def on_signal(signalled: int, frame: Any) -> None:
        # The status that a shell gives a program that was ended by the signal.
        watch = threading.Timer(END_SECONDS, os._exit, [128 + signalled])
        watch.daemon = True
        watch.start()
        server_ends(signalled, frame)

    signal.signal(number, on_signal)
