"""The book-keeping of sweeps: which models, who trains them, what came out."""

import sys

if sys.platform == "win32":
    raise ImportError("seqcls needs Linux or macOS; on Windows, install and run it in WSL")
