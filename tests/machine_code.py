"""The machine code that the tests need, compiled before several processes of tests need it at once.

python -m tests.machine_code
"""

import os
from concurrent.futures import ProcessPoolExecutor

from seqcls.engines.choice import ENGINES
from seqcls.engines.compiled.engine import CompiledEngine
from seqcls.engines.compiled.machine_code import is_compiled
from sweeps.processes import collect_seldom


def main() -> None:
    missing = [
        (engine, precision)
        for engine in ENGINES
        if isinstance(engine, CompiledEngine)
        for precision in engine.precisions
        if not is_compiled(precision, engine.part)
    ]
    with ProcessPoolExecutor(os.cpu_count(), initializer=collect_seldom) as processes:
        for compiled in [processes.submit(e.compile_ahead, precision) for e, precision in missing]:
            compiled.result()


if __name__ == "__main__":
    main()
