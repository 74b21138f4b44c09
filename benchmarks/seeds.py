"""Many seeds of the default configuration, trained, tested and stored, as a user runs it."""

import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

SPEC = 'name = "seeds"\nmodel_seeds = "0..{last}"\n'
SEEDS = 1000


def main(seeds: int = SEEDS) -> None:
    """Prints the seconds in all and a seed, and the memory of the largest process."""
    with tempfile.TemporaryDirectory() as folder:
        spec, db = Path(folder) / "seeds.toml", Path(folder) / "seeds.db"
        spec.write_text(SPEC.format(last=seeds - 1))
        command = [sys.executable, "-m", "sweeps", "sweep", str(spec), "--db", str(db)]
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds = time.perf_counter() - started
        with closing(sqlite3.connect(db)) as connection:
            (training,) = connection.execute("SELECT sum(train_seconds) FROM run").fetchone()
            (done,) = connection.execute("SELECT count(*) FROM run WHERE state='done'").fetchone()
            (errors,) = connection.execute(
                "SELECT sum(length(numbers)) / 3 FROM error_pack"
            ).fetchone()
        megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"{done} seeds of the default configuration, tested on 9,984 strings and stored")
        print(f"  {seconds:.1f} s, {seconds / seeds * 1e3:.1f} ms a seed")
        print(f"  of these were {training:.1f} s of one core spent on training itself")
        print(f"  {errors:,} misclassified strings; {db.stat().st_size / 1e6:.0f} MB")
        print(f"  the largest process took {megabytes:.0f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS)
