# It builds on classes of Numba, which has no annotations.
# mypy: allow-untyped-calls
"""Compilation of functions, and the cache of their machine code."""

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core.caching import IndexDataCacheFile

from seqcls.engines.compiled.machine_code import is_whole, machine_code_folder

# Files of machine code end with a hash of their content.
#
# Damaged code would end the process that runs it, or compute something else. So a damaged file is
# ignored, and its function compiled again. These files are pickles, which end before the hash.


class CheckedFiles(IndexDataCacheFile):
    """Numba's index and data files of one compiled function, with the hash appended."""

    def _load_index(self) -> Any:
        return super()._load_index() if is_whole(Path(self._index_path)) else {}

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        if not is_whole(Path(path)):
            # As for a missing file: Numba then compiles the function and writes it anew.
            raise OSError(f"{path} is damaged")
        return super()._load_data(name)

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[Any]:
        Path(filepath).parent.mkdir(parents=True, exist_ok=True)
        with super()._open_for_write(filepath) as file:
            yield file
            file.flush()
            file.write(hashlib.sha256(Path(file.name).read_bytes()).digest())


@contextmanager
def _hide(module: str) -> Iterator[None]:
    """Makes imports of a module fail as if it were not installed, unless it is loaded already."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment] # which is how Python is told so
    try:
        yield
    finally:
        del sys.modules[module]


# Numba loads this before it compiles or loads anything, and with it SciPy's linear algebra if
# present: 0.2 s of each process that trains, although nothing here uses it.
with suppress(ImportError), _hide("scipy.linalg.cython_blas"):
    import numba.np.arraymath

# Sums may be regrouped, so that they become vector code. NaN and infinity keep their meaning: a
# diverging training must show.
OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}

# Inlined by force, so that an entry is one piece of machine code, the same whether it was compiled
# just now or loaded from the cache; it is also twice as fast.
INLINED: dict[str, Any] = {
    **OPTIONS,
    "forceinline": True,
    # No counting of references to the arrays that are handed on: they all belong to the entry, and
    # counting took three quarters of a small network's step.
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
inlined = njit(**INLINED)
# Functions that return new arrays or views have to count references.
allocating = njit(**{**INLINED, "_nrt": True})


def entry(part: str) -> Callable[[Any], Any]:
    """Compiles a function that Python calls; its machine code is cached for the next process.

    Args:
        part: the part that it belongs to, one of `machine_code.BEGINNINGS`.
    """

    def compiled(function: Any) -> Any:
        config: Any = numba.config
        before = config.CACHE_DIR
        config.CACHE_DIR = str(machine_code_folder(part))
        try:
            compiled = njit(**OPTIONS, cache=True, nogil=True)(function)
        finally:
            config.CACHE_DIR = before
        cache = compiled._cache
        cache._cache_file = CheckedFiles(
            # Numba would look in a folder named by this checkout's path, for files as old as the
            # source: in another checkout, or back on an earlier branch, it would compile the same
            # again. Here the folder is named by the content of all that is compiled.
            cache_path=str(machine_code_folder(part) / function.__module__),
            filename_base=cache._impl.filename_base,
            source_stamp="by content",
        )
        return compiled

    return compiled
