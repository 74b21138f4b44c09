"""Where this machine keeps what it would otherwise make again: machine code and drawn strings."""

import os
from pathlib import Path

from platformdirs import user_cache_path

CACHE_VARIABLE = "SEQCLS_CACHE"


def cache_folder() -> Path:
    """The folder named by `SEQCLS_CACHE`, else the user's cache folder. It may be deleted."""
    return Path(os.environ.get(CACHE_VARIABLE) or user_cache_path("seqcls"))
