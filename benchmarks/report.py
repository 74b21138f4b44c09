"""The report from nothing to a stored database, as a user runs it."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

ORIGINAL_SECONDS = 38 * 60
"""The original program on two cores of this kind of machine."""


def main() -> None:
    """Prints the seconds of the first and of the second `seqcls sweep report`."""
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "bench.db"
        command = [sys.executable, "-m", "sweeps", "sweep", "report", "--db", str(db)]
        # What is timed is training: readers of the test are fitted after it, and once.
        environment = {**os.environ, "SEQCLS_SHORTCUTS": "off"}
        seconds = []
        for _ in range(2):
            started = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=environment)
            seconds.append(time.perf_counter() - started)
        with closing(sqlite3.connect(db)) as connection:
            (training,) = connection.execute("SELECT sum(train_seconds) FROM run").fetchone()
    cold, warm = seconds
    print("the report, 43 models, process start and storing included")
    print(f"  trained       {cold:6.1f} s   {ORIGINAL_SECONDS / cold:5.0f} x the original program")
    print(
        f"  of that, training itself took {training:.1f} s of one of the cores; the rest is loading"
    )
    print("  PyTorch and Numba, the exhaustive verdicts of 43 models, testing and storing")
    print(f"  already there {warm:6.1f} s")
