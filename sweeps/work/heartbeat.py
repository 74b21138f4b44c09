"""A thread that reports, while a worker works, that it is alive."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from seqcls.errors import StoreError
from sweeps.store import writer
from sweeps.store.databases import postgres
from sweeps.store.databases.engine import Store

BEAT_SECONDS = 10.0

SILENT_SECONDS = 60.0
"""Seconds of waiting for a server's answer, after which a worker counts as one that may never go
on."""


@contextmanager
def heartbeat(store: Store, worker_id: int) -> Iterator[None]:
    """Beats for this worker until the block ends, however long one step of training takes.

    It is silent while the worker waits for an answer that does not come: others take its runs over.
    """
    over = threading.Event()

    def beat() -> None:
        while not over.wait(BEAT_SECONDS):
            if postgres.longest_wait() > SILENT_SECONDS:
                continue
            try:
                writer.beat(store, worker_id)
            except StoreError:
                # A missed beat is no harm; a database that stays away is the worker's to report.
                continue

    thread = threading.Thread(target=beat, daemon=True, name="heartbeat")
    thread.start()
    try:
        yield
    finally:
        over.set()
        # Not joined: a beat that waits for a lock would hold up the end of the program.
