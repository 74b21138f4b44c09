"""How the fused engine is compiled, and where its machine code is kept."""

import hashlib
from pathlib import Path
from typing import Any

import numba
from numba import njit

from seqcls.cache import cache_folder

# What the compiler may do to sums, so that they become vectors. Not assumed: that no number is NaN
# or infinite, for a diverging training must show.
OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}

# Inlined by force, so that an entry is one piece of machine code, the same whether it was compiled
# just now or loaded from the cache; it is also twice as fast.
INLINED: dict[str, Any] = {
    **OPTIONS,
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
inlined = njit(**INLINED)


def entry(function: Any) -> Any:
    """Compiles a function that Python calls; its machine code is kept for the next process.

    Numba would notice a change of the file that the entry stands in, not of those that it calls,
    so the folder is named by the source of all.
    """
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder() / "compiled" / digest[:16])
    try:
        return njit(**OPTIONS, cache=True, nogil=True)(function)
    finally:
        config.CACHE_DIR = before
