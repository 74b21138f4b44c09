"""How the fused engine is compiled, and where its machine code is kept."""

from typing import Any

import numba
from numba import njit

from seqcls.engines.fused.checked_files import CheckedFiles
from seqcls.engines.fused.machine_code import machine_code_folder

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
    """Compiles a function that Python calls; its machine code is kept for the next process."""
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(machine_code_folder())
    try:
        compiled = njit(**OPTIONS, cache=True, nogil=True)(function)
    finally:
        config.CACHE_DIR = before
    _check_files(compiled._cache)
    return compiled


def _check_files(cache: Any) -> None:
    cache._cache_file = CheckedFiles(
        cache_path=cache.cache_path,
        filename_base=cache._impl.filename_base,
        source_stamp=cache._impl.locator.get_source_stamp(),
    )
