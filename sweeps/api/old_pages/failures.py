"""Finding causes in a process of its own, for callers that may not be kept busy, such as a server.

Causes are committed run by run, so that the database shows the progress.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from seqcls.errors import SeqclsError
from sweeps.access import refuse_writes
from sweeps.api.failures import attribute
from sweeps.processes import environment_of, python
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.terminal import say


@dataclass(frozen=True)
class CauseSearch:
    """A process that finds the causes of some runs."""

    run_ids: tuple[int, ...]
    process: subprocess.Popen[bytes]
    said: IO[bytes]

    @property
    def goes_on(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    @property
    def problem(self) -> str | None:
        """Why it failed, in a line; None where it has not."""
        if not self.process.poll():
            return None
        self.said.seek(0)
        lines = self.said.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"it ended with status {self.process.returncode}"


def start_cause_search(store: Store, run_ids: Sequence[int]) -> CauseSearch:
    """Begins to find the causes of these runs of a database, and to store them there.

    Raises:
        OSError: no process could be started.
        ReadOnlyError: this process only reads.
    """
    refuse_writes("storing causes")
    said = tempfile.TemporaryFile()  # noqa: SIM115 - it is read when the process has ended
    process = subprocess.Popen(
        python("sweeps.api.old_pages.failures"),
        stdin=subprocess.PIPE,
        stdout=said,
        stderr=said,
        env=environment_of(store.address),
        start_new_session=True,
    )
    assert process.stdin is not None
    with process.stdin as given:
        given.write(json.dumps(list(run_ids)).encode())
    return CauseSearch(tuple(run_ids), process, said)


def main() -> int:
    """Finds the causes of the runs whose numbers come on standard input, as JSON."""
    try:
        attribute(open_writer(), json.load(sys.stdin))
    except (SeqclsError, OSError) as error:
        say(str(error), err=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
