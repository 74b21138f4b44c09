"""Databases with and without fitted shortcut readers: a part of the stock."""

import shutil
from pathlib import Path
from typing import Any

from sweeps import api
from sweeps.store.opening import open_writer

FIXED: dict[str, Any] = {
    "task": "modular_arithmetic", "architecture": "lstm", "readout": "last", "hidden_size": 4,
    "train_min_length": 1, "train_max_length": 8, "train_size": 256, "validation_min_length": 1,
    "validation_max_length": 8, "validation_size": 32, "test_min_length": 1,
    "test_max_length": 16, "test_size": 300, "max_num_epochs": 2, "min_num_epochs": 2,
}  # fmt: skip
SPEC = {
    "name": "forms",
    "model_seeds": [0],
    "fixed": FIXED,
    "axes": {"negatives": ["mixed", "near"]},
}
DECIDED = {"even_pairs": "first and last letters", "copy": "the input itself"}
"""Tasks that a reader decides, and which."""

PATTERNS = ("(ab)*", "(ab|ba)*", "(ab)*a")


def make(folder: Path) -> None:
    """Makes `forms.db`, two runs with and without near negatives; `read.db`, where all readers were
    fitted to their tests; `decided.db`, models of tasks that a reader decides.
    """
    forms = open_writer(str(folder / "forms.db"))
    api.submit(forms, SPEC)
    api.work(forms)
    shutil.copy(folder / "forms.db", folder / "read.db")
    api.fit_shortcuts(open_writer(str(folder / "read.db")))
    decided = open_writer(str(folder / "decided.db"))
    for task in DECIDED:
        fields = {**FIXED, "task": task}
        if task == "copy":
            del fields["readout"]
        api.submit(decided, {"name": task, "model_seeds": [0], "fixed": fields})
    for pattern in PATTERNS:
        fields = {**FIXED, "task": "regular", "alphabet": "ab", "pattern": pattern}
        api.submit(decided, {"name": f"one {len(pattern)}", "model_seeds": [0], "fixed": fields})
    api.work(decided)
    api.fit_shortcuts(decided)
