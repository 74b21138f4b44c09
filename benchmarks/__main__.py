"""The benchmarks of `make bench`: speeds, as ratios within one run on one machine."""

import os
import platform
import tempfile
from pathlib import Path

from benchmarks import (
    bookkeeping,
    fused,
    memories,
    negatives,
    outputs,
    pages,
    pictures,
    plain,
    report,
    seeds,
    steps,
    streams,
    visitors,
)


def main() -> None:
    """Runs every benchmark and prints its figures."""
    print(f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}\n")
    mains = (
        fused.main,
        steps.main,
        plain.main,
        outputs.main,
        streams.main,
        memories.main,
        pictures.main,
        negatives.main,
        report.main,
        seeds.main,
        bookkeeping.main,
    )
    for benchmark in mains:
        benchmark()
        print()
    with tempfile.TemporaryDirectory() as folder:
        db = str(Path(folder) / "large.db")
        pages.main(db)
        visitors.main(db)


main()
