"""How this program starts Python anew: the working directory's files are no part of it."""

import sys


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs an installed module.

    With -P no file such as `array.py` or `sweeps.py` that happens to lie in the working directory
    is taken for the module of that name.
    """
    return [sys.executable, "-P", "-m", module, *arguments]
