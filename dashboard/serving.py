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
    _say_what_is_shown()
    async with ending.in_time():
        yield


def _say_what_is_shown() -> None:
    try:
        said, where = f"Showing {open_reader().name}.", sys.stdout
    except (SeqclsError, OSError) as error:
        # The page says so too, and what to do; a sweep can be launched from there.
        said, where = f"seqcls: {error}", sys.stderr
    # Whose output is closed, or cannot write the name, is told nothing and served.
    with suppress(OSError, UnicodeError):
        print(said, file=where, flush=True)
