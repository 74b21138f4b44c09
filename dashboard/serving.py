"""The life of the dashboard's server: what it says when it begins, and how it ends."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from dashboard import ending
from seqcls.errors import SeqclsError
from sweeps.store.opening import open_reader


@asynccontextmanager
async def lifespan(_app: object) -> AsyncIterator[None]:
    """From what is shown being said to the server's end."""
    # Who has closed the server's output is told nothing, and served.
    with suppress(OSError):
        _say_what_is_shown()
    async with ending.in_time():
        yield


def _say_what_is_shown() -> None:
    try:
        print(f"Showing {open_reader().name}.", flush=True)
    except SeqclsError as error:
        # The page says so too, and what to do; a sweep can be launched from there.
        print(f"seqcls: {error}", file=sys.stderr, flush=True)
