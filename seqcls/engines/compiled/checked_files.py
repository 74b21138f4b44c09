"""Machine code in files that end with a hash of what stands before it.

Damaged code would end the process that runs it, or compute something else. A damaged file is as
good as none: what was in it is compiled again. Pickles, which these files are, end before the hash.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numba.core.caching import IndexDataCacheFile

from seqcls.engines.compiled.machine_code import is_whole


class CheckedFiles(IndexDataCacheFile):
    """The index and the data of one compiled function, as Numba keeps them, with the hash."""

    def _load_index(self) -> Any:
        return super()._load_index() if is_whole(Path(self._index_path)) else {}

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        if not is_whole(Path(path)):
            # As of a file that is not there; Numba then compiles, and writes it anew.
            raise OSError(f"{path} is damaged")
        return super()._load_data(name)

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[Any]:
        Path(filepath).parent.mkdir(parents=True, exist_ok=True)
        with super()._open_for_write(filepath) as file:
            yield file
            file.flush()
            file.write(hashlib.sha256(Path(file.name).read_bytes()).digest())
