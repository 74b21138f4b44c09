"""Finding causes in a process of its own, for callers that may not be kept busy, such as a server.

Causes are committed run by run, so that the database shows the progress, and the process may be
ended at any moment.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence

from seqcls.errors import SeqclsError
from sweeps.access import refuse_writes
from sweeps.api.failures import attribute
from sweeps.processes import environment_of, python
from sweeps.store.database import Store
from sweeps.store.opening import open_writer

NICE = 10
"""How far it stands back behind other processes."""


def start_cause_search(store: Store, run_ids: Sequence[int]) -> subprocess.Popen[bytes]:
    """Begins to find the causes of these runs of a database, and to store them there.

    The process ends with its caller, whatever ends that.

    Raises:
        OSError: no process could be started.
        ReadOnlyError: this process only reads.
    """
    refuse_writes("storing causes")
    process = subprocess.Popen(
        python("sweeps.api.cause_search"),
        # Run ids go through the pipe, since a command line has a limited length.
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment_of(store.address),
        # Ctrl-C in a terminal is for the server, which ends it.
        start_new_session=True,
    )
    assert process.stdin is not None
    with process.stdin as given:
        given.write(json.dumps([os.getpid(), *run_ids]).encode())
    return process


def main() -> None:
    """Finds the causes of the runs whose numbers come on standard input, after its caller's."""
    caller, *run_ids = json.load(sys.stdin)
    # Training and pages come first.
    os.nice(NICE)
    for run_id in run_ids:
        # An orphan is adopted by another process: its caller has ended, and so does the search.
        if os.getppid() != caller:
            return
        try:
            attribute(open_writer(), [run_id])
        except SeqclsError:
            # Its weights may be gone; of the others there may be causes.
            continue


if __name__ == "__main__":
    main()
