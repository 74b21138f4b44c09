"""What `make bench` runs: speeds, as ratios within one run on one machine."""

import os
import platform

from benchmarks import bookkeeping, fused, pages, plain, report, seeds, steps, tables


def main() -> None:
    """Runs every benchmark and prints its figures."""
    print(f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}\n")
    mains = (
        fused.main,
        tables.main,
        steps.main,
        plain.main,
        report.main,
        seeds.main,
        bookkeeping.main,
        pages.main,
    )
    for benchmark in mains:
        benchmark()
        print()


main()
