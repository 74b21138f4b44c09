"""The machine code that the tests need, compiled before several processes of tests need it at once.

python -m tests.machine_code
"""

import os
from concurrent.futures import ProcessPoolExecutor
from itertools import product

from seqcls.engines.fused.ahead import compile_ahead
from seqcls.engines.fused.machine_code import MEAN, TABLES, is_compiled
from sweeps.processes.garbage import collect_seldom


def main() -> None:
    missing = [
        (precision, part)
        # Those that take the longest first.
        for part, precision in product((TABLES, "", MEAN), ("float32", "float64"))
        if not is_compiled(precision, part)
    ]
    with ProcessPoolExecutor(os.cpu_count(), initializer=collect_seldom) as processes:
        for compiled in [processes.submit(compile_ahead, *one) for one in missing]:
            compiled.result()


if __name__ == "__main__":
    main()
