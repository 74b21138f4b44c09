"""The bookkeeping of sweeps: which models, who trains them, and their results."""

import sys

if sys.platform == "win32":
    raise ImportError("seqcls needs Linux or macOS; on Windows, install and run it in WSL")
