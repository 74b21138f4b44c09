"""What `make bench` runs: speeds, as ratios within one run on one machine."""

import os
import platform

from benchmarks import report, steps


def main() -> None:
    """Runs every benchmark and prints its figures."""
    print(f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}\n")
    steps.main()
    print()
    report.main()


main()
