"""Digests of results: those that are stored stay as they are, whatever is covered besides."""

from typing import Any

import numpy as np

from sweeps.results import OUTPUT_COUNTS, Output, run_digest

CELLS = {"tn": [3, 4], "fp": [0, 1], "fn": [0, 0], "tp": [3, 5]}
RUN: dict[str, Any] = {
    "epochs": 2,
    "best_epoch": 1,
    "best_validation_loss": 0.5,
    "solved_length": 1,
    **{name: sum(cells) for name, cells in CELLS.items()},
    "tested": 16,
    "wrong": 1,
}
TABLES: dict[str, Any] = {
    "epoch": {"epoch": [1, 2], "train_loss": [1.5, 0.7], "validation_loss": [0.5, 0.6]},
    "length_score": {"length": [1, 2], **CELLS, "tested": [6, 10], "wrong": [0, 1]},
    "string_error": {"number": [7], "logit": [-0.25]},
}
V2 = "v2:8f8d4d2d658cdf4d0623aacf6472d56c9c4f784009d5a0eba00a8154b5de15c6"
V3 = "v3:1ab2baa792507faaaea99d2dd987574dbd21bda303a027e2f051e0899af70830"
JUDGED: dict[str, Any] = {
    "tested_within": 12,
    "wrong_within": 1,
    "within_from": "validation",
    "tested_beyond": 10,
    "wrong_beyond": 0,
}
V4 = "v4:7b8c1ff42c9ec3dc346b914566a4ecd3990802a6f6b4eb6fa53fc8570fd0d896"
V5 = "v5:7aba9c263ad2c8179f6616f4b19c554af50e222c577ed8498472762874e88e0a"
OUTPUTS: list[Output] = [("01", 1, "stopped early"), ("1", 0, "wrong token")]
COUNTED: dict[str, Any] = {"right_length_given": [6, 9], "edits": [0, 2], "target_tokens": [6, 20]}


def digest(
    *,
    has_cells: bool,
    outputs: list[Output] | None = None,
    ranges: dict[str, Any] | None = None,
    **counted: list[int],
) -> str:
    run = {name: value if has_cells or name not in CELLS else None for name, value in RUN.items()}
    run |= ranges or {}
    tables = {
        table: {name: np.array(values) for name, values in columns.items()}
        for table, columns in TABLES.items()
    }
    tables["length_score"] |= {name: np.array(values) for name, values in counted.items()}
    return run_digest("key", 3, run, tables, {1: b"weights"}, "set", outputs)


def test_digests_that_are_stored_stay_as_they_are() -> None:
    of_outputs: Any = {key: [None, None] for key in OUTPUT_COUNTS}
    for ranges in (None, dict.fromkeys(JUDGED), {**JUDGED, "within_from": "test"}):
        assert digest(has_cells=True, ranges=ranges) == V2
        assert digest(has_cells=False, ranges=ranges, **of_outputs) == V3
    # Of a run that validation judges its counts are covered, too.
    whole = [digest(has_cells=cells, ranges=JUDGED) for cells in (True, False)]
    assert whole == [V4, V5]


def test_a_digest_covers_every_value() -> None:
    first, second = OUTPUTS
    whole: dict[str, Any] = {"has_cells": False, "ranges": JUDGED, "outputs": OUTPUTS, **COUNTED}
    changes: list[dict[str, Any]] = [
        {},
        *({"outputs": x} for x in ([], [("0", *first[1:]), second], [second, first])),
        {"outputs": [(first[0], 2, first[2]), second]},
        {"outputs": [(*first[:2], "went on"), second]},
        *({"ranges": {**JUDGED, x: y + 1}} for x, y in JUDGED.items() if isinstance(y, int)),
        *({name: [x, y + 1]} for name, (x, y) in COUNTED.items()),
    ]
    assert len({digest(**{**whole, **change}) for change in changes}) == len(changes) == 13
