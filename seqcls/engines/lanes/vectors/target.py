"""What the machine that is compiled for can do: lanes of a vector, and registers.

Numba reads its target from `NUMBA_CPU_FEATURES`, or asks the machine; so does this.
"""

import platform
from functools import lru_cache

from numba.core import config
from numba.core.codegen import get_host_cpu_features


@lru_cache(maxsize=1)
def lanes() -> int:
    """Single-precision numbers in a register: 16 with AVX-512, 8 with AVX, 4 with SSE and NEON."""
    features = _features()
    if "+avx512f" in features:
        return 16
    return 8 if "+avx" in features else 4


def block_rows() -> int:
    """Rows of a block of 4 columns whose sums stay in registers: 32 registers hold 16 sums and what
    they are made of, 16 registers hold 8.
    """
    return 4 if lanes() == 16 or platform.machine() in ("aarch64", "arm64") else 2


def _features() -> frozenset[str]:
    given: str | None = vars(config)["CPU_FEATURES"]
    return frozenset((get_host_cpu_features() if given is None else given).split(","))
