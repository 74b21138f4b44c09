"""The digests that were stored before the schema 0003: hashes of JSON."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from seqcls.results import Verdict

_RUN = (
    *("epochs", "best_epoch", "best_validation_loss"),
    *("tn", "fp", "fn", "tp", "solved_length"),
)
_ROWS = {
    "epochs": ("epoch", ("epoch", "train_loss", "validation_loss")),
    "lengths": ("length_score", ("length", "tn", "fp", "fn", "tp")),
    "errors": ("string_error", ("string", "length", "label", "logit", "occurrences")),
}


def of_run(
    key: str, run: Mapping[str, Any], rows: Mapping[str, Sequence[tuple[Any, ...]]]
) -> str | None:
    """The digest that these rows had; None if a value cannot be hashed."""
    try:
        content = {
            "config": key,
            "model_seed": run["model_seed"],
            "run": {name: run[name] for name in _RUN},
            **{
                name: [
                    dict(zip(columns, row, strict=True))
                    for row in sorted(rows[table], key=lambda row: row[0])
                ]
                for name, (table, columns) in _ROWS.items()
            },
            "checkpoints": [
                [epoch, hashlib.sha256(weights).hexdigest()]
                for epoch, weights in sorted(rows["checkpoint"], key=lambda row: row[0])
            ],
        }
        return _hash(content)
    except (TypeError, ValueError):
        return None


def of_verdict(key: str, model_seed: int, verdict: Verdict) -> str:
    """The digest that an exhaustive check had."""
    content = {
        "max_length": verdict.max_length,
        "multisets": verdict.inputs,
        "false_positives": verdict.false_positives,
        "false_negatives": verdict.false_negatives,
        "shortest_error": verdict.shortest_error,
    }
    return _hash({"config": key, "model_seed": model_seed, "verdict": content})


def _hash(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
