"""A background process that finds causes, for callers that must not block, such as a server.

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
"""The niceness of the process: training and pages come first."""


def start_cause_search(store: Store, run_ids: Sequence[int]) -> subprocess.Popen[bytes]:
    """Starts a process that finds the causes of these runs and stores them in their database.

    It ends with its caller.

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
    """Finds causes; standard input holds the caller's process id and run ids, as a JSON list."""
    caller, *run_ids = json.load(sys.stdin)
    os.nice(NICE)
    for run_id in run_ids:
        # An orphan is adopted by another process: its caller has ended, and so does the search.
        if os.getppid() != caller:
            return
        try:
            attribute(open_writer(), [run_id])
        except SeqclsError:
            # Its weights may be gone, and those of the others not.
            continue


if __name__ == "__main__":
    main()
