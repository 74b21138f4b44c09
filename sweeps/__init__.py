"""The bookkeeping of sweeps: their models, the training, and the results."""

import sys

if sys.platform == "win32":
    raise ImportError("seqcls needs Linux or macOS; on Windows, install and run it in WSL")
