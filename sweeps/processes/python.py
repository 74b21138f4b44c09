"""How this program starts Python anew: the working directory's files are no part of it."""

import os
import sys
from typing import TYPE_CHECKING

from sweeps.store.databases.default import DB_VARIABLE

if TYPE_CHECKING:
    # The dashboard's start loads no store before the dashboard does.
    from sweeps.store.databases.engine import Store


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs an installed module.

    With -P no file such as `array.py` or `sweeps.py` that happens to lie in the working directory
    is taken for the module of that name.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def environment_of(store: "Store") -> dict[str, str]:
    """The environment of a process that works on a database, and says at once what it has to say.

    The database goes by it: a command line, which all may read, shows no password.
    """
    return {**os.environ, DB_VARIABLE: store.address, "PYTHONUNBUFFERED": "1"}
