"""A thread that reports, while a worker works, that it is alive."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from seqcls.errors import StoreError
from sweeps.store import writer
from sweeps.store.databases.engine import Store

BEAT_SECONDS = 10.0


@contextmanager
def heartbeat(store: Store, worker_id: int) -> Iterator[None]:
    """Beats for this worker until the block ends, however long one step of training takes."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(BEAT_SECONDS):
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
