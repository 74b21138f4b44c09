"""The machine code that the tests need, compiled before several processes of tests need it at once.

python -m tests.machine_code
"""

import os
from concurrent.futures import ProcessPoolExecutor
from itertools import product

from seqcls.engines.compiled.machine_code import (
    FUSED,
    MEAN,
    RECURRENT,
    TABLES,
    TRANSFORMER,
    is_compiled,
)
from seqcls.engines.fused.engine import compile_ahead as compile_fused
from seqcls.engines.lanes.engine import compile_ahead as compile_lanes
from sweeps.processes import collect_seldom


def main() -> None:
    # Those that take the longest first.
    parts = [*product((TABLES, FUSED), ("float32", "float64"))]
    parts += [
        (TRANSFORMER, "float32"),
        (MEAN, "float32"),
        (MEAN, "float64"),
        (RECURRENT, "float32"),
    ]
    missing = [(part, precision) for part, precision in parts if not is_compiled(precision, part)]
    with ProcessPoolExecutor(os.cpu_count(), initializer=collect_seldom) as processes:
        for compiled in [processes.submit(compile_part, *one) for one in missing]:
            compiled.result()


def compile_part(part: str, precision: str) -> None:
    """Compiles a part of one of the engines."""
    if part in (TRANSFORMER, RECURRENT):
        compile_lanes(part)
    else:
        compile_fused(precision, part)


if __name__ == "__main__":
    main()
