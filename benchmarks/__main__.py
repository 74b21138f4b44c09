"""What `make bench` runs: speeds, as ratios within one run on one machine."""

import os
import platform

from benchmarks import fused, pages, report, seeds, steps


def main() -> None:
    """Runs every benchmark and prints its figures."""
    print(f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}\n")
    for benchmark in (fused.main, steps.main, report.main, seeds.main, pages.main):
        benchmark()
        print()


main()
