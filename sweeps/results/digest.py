"""A versioned hash over a run's results, which reveals a damaged file.

The training process computes it, and every check of the database compares it with what is stored.
It covers named columns, so a column added later changes no digest.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from seqcls.canonical import canonical_json
from seqcls.results import Verdict

VERSION = "v2"
OTHER_KINDS = "v3"
"""The version of runs whose answers are no single bit, and so have no confusion."""

RESULT_COLUMNS = (
    *("epochs", "best_epoch", "best_validation_loss"),
    *("tn", "fp", "fn", "tp", "solved_length"),
)
"""The columns of `run` that the digest covers; times it does not."""

COLUMNS = {
    "epoch": {"epoch": "<i8", "train_loss": "<f8", "validation_loss": "<f8"},
    "length_score": dict.fromkeys(("length", "tn", "fp", "fn", "tp"), "<i8"),
    "string_error": {"number": "<i8", "logit": "<f8"},
}
"""What it covers of the tables of results, rows sorted by their first column, packed as named."""

_CELLS = ("tn", "fp", "fn", "tp")
_COUNTED = ("tested", "wrong")
"""What takes the place of these, where there are none."""

OUTPUT_COUNTS = ("right_length_given", "edits", "target_tokens")
"""What is counted at each length of transductions besides."""

Output = tuple[str, int, str]
"""A misclassified string of a transduction: the output as text, where it and the target part,
and the kind of the error.
"""

Columns = Mapping[str, np.ndarray]
"""The columns of one run's rows in a table, by name."""


def run_digest(
    config_key: str,
    model_seed: int,
    run: Mapping[str, Any],
    tables: Mapping[str, Columns],
    checkpoints: Mapping[int, bytes],
    test_set: str,
    outputs: Sequence[Output] | None = None,
) -> str:
    """The digest of one run's results: the version and 64 hexadecimal digits.

    Args:
        config_key: of the run's configuration.
        model_seed: the run's.
        run: at least `RESULT_COLUMNS`.
        tables: at least `COLUMNS`, rows in ascending order of each table's first column.
        checkpoints: weights by epoch.
        test_set: the digest of the test set that errors refer to.
        outputs: of a transduction, one for each error; `tables` then have its `OUTPUT_COUNTS`.
    """
    has_cells = all(run[name] is not None for name in _CELLS)
    weights = sorted((epoch, _sha256(blob)) for epoch, blob in checkpoints.items())
    head = {
        "config": config_key,
        "model_seed": model_seed,
        "run": {name: run[name] for name in _covered(RESULT_COLUMNS, has_cells)},
        "checkpoints": weights,
        "test_set": test_set,
    }
    hasher = hashlib.sha256(canonical_json(head).encode())
    for table, columns in COLUMNS.items():
        for name in _covered(columns, has_cells):
            hasher.update(_packed(table, name, tables[table][name], columns.get(name, "<i8")))
    if outputs is not None:
        for name in OUTPUT_COUNTS:
            hasher.update(_packed("length_score", name, tables["length_score"][name], "<i8"))
        hasher.update(f"output_pack {canonical_json(outputs)}\n".encode())
    return f"{VERSION if has_cells else OTHER_KINDS}:{hasher.hexdigest()}"


def _packed(table: str, name: str, values: np.ndarray, kind: str) -> bytes:
    """A column of a table, with its name and length."""
    # Adding zero makes -0.0 what it equals: databases do not keep its sign.
    return f"{table}.{name} {len(values)}\n".encode() + (values.astype(kind) + 0).tobytes()


def _covered(columns: Iterable[str], has_cells: bool) -> list[str]:
    """Columns, those of the confusion only where there is one."""
    if has_cells:
        return list(columns)
    kept = [name for name in columns if name not in _CELLS]
    return [*kept, *_COUNTED] if len(kept) < len(list(columns)) else kept


def verdict_digest(config_key: str, model_seed: int, verdict: Verdict) -> str:
    """The digest of an exhaustive check's result."""
    content = {"config": config_key, "model_seed": model_seed, "verdict": asdict(verdict)}
    return f"{VERSION}:{_sha256(canonical_json(content).encode())}"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
