"""A hash over a run's results, by which a damaged file can be found out."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from seqcls.config import canonical_json
from seqcls.results import Verdict

Rows = Iterable[Mapping[str, Any]]

RESULT_COLUMNS = (
    "epochs",
    "best_epoch",
    "best_validation_loss",
    "tn",
    "fp",
    "fn",
    "tp",
    "solved_length",
)
"""The columns of `run` that the digest covers; times it does not."""


def run_digest(
    config_key: str,
    model_seed: int,
    run: Mapping[str, Any],
    *,
    epochs: Rows,
    lengths: Rows,
    errors: Rows,
    checkpoints: Rows,
) -> str:
    """The SHA-256 of one run's results, as 64 hexadecimal digits.

    Rows may come in any order and with any `run_id`, which differs between databases.
    """
    content = {
        "config": config_key,
        "model_seed": model_seed,
        "run": {name: run[name] for name in RESULT_COLUMNS},
        "epochs": _sorted(epochs, "epoch"),
        "lengths": _sorted(lengths, "length"),
        "errors": _sorted(errors, "string"),
        "checkpoints": [
            [row["epoch"], hashlib.sha256(row["weights"]).hexdigest()]
            for row in sorted(checkpoints, key=lambda row: int(row["epoch"]))
        ],
    }
    return _hash(content)


def verdict_digest(config_key: str, model_seed: int, verdict: Verdict) -> str:
    """The SHA-256 of what an exhaustive check has found, as 64 hexadecimal digits."""
    return _hash({"config": config_key, "model_seed": model_seed, "verdict": asdict(verdict)})


def _hash(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def _sorted(rows: Rows, key: str) -> list[dict[str, Any]]:
    plain = [{name: row[name] for name in row if name != "run_id"} for row in rows]
    return sorted(plain, key=lambda row: row[key])
