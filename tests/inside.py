"""Small models of strings, outputs and answers at every position, for questions about them."""

from pathlib import Path
from typing import Any

import pytest

from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work

TINY: dict[str, Any] = {
    "train_size": 64, "train_batch_size": 32, "validation_size": 32, "max_num_epochs": 1,
    "min_num_epochs": 1, "hidden_size": 4, "train_max_length": 4, "validation_max_length": 4,
}  # fmt: skip
HEADS: dict[str, Any] = {"num_attention_heads": 2, "attention_head_size": 4}
COPY: dict[str, Any] = {
    **TINY, "task": "copy", "num_tokens": 4, "train_size": 256, "hidden_size": 8, "test_size": 60,
    "test_max_length": 7,
}  # fmt: skip
AT_POSITIONS: dict[str, Any] = {
    **TINY, "task": "regular", "alphabet": "ab", "pattern": "(ab|b)*", "train_size": 128,
    "test_size": 200, "test_max_length": 8,
}  # fmt: skip
SUMS: dict[str, Any] = {
    **TINY, "task": "addition", "base": 10, "train_min_length": 4, "train_max_length": 5,
    "validation_min_length": 4, "validation_max_length": 5, "test_min_length": 5,
    "test_max_length": 7, "test_size": 200,
}  # fmt: skip

SWEEPS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "any": (
        {
            **TINY, "task": "even_pairs", "train_max_length": 8, "validation_max_length": 8,
            "test_size": 200, "test_max_length": 16, "readout": "last",
        },
        [
            {"num_blocks": 2, "positions": "sinusoidal", "attention_mask": "causal"},
            {"architecture": "lstm"},
        ],
    ),
    "copying": (
        COPY,
        [
            {"num_blocks": 2, **HEADS, "positions": "alibi"},
            {"architecture": "lstm"},
            {"architecture": "encoder_decoder", "num_blocks": 2, **HEADS, "positions": "learned"},
            {"architecture": "recurrent_attention"},
            {"architecture": "recurrent_attention", "attention": "none"},
        ],
    ),
    "places": (AT_POSITIONS, [{"answers": x} for x in ("prefixes", "next_symbols", "states")]),
    "sums": (SUMS, [{"positions": "learned"}, {"positions": "sinusoidal"}]),
}  # fmt: skip
"""The fields that all configurations of a sweep have, and those of each; runs are numbered from 1
in this order.
"""

BLOCKS, LSTM = "1", "2"
WRITING, WRITING_LSTM, STREAMS, ADDITIVE, NO_ATTENTION = "3", "4", "5", "6", "7"
PREFIXES, NEXT_SYMBOLS, STATES = "8", "9", "10"
SOME_POSITIONS, ALL_POSITIONS = "11", "12"
"""Adding: one has places for some of its test strings, the other for all."""


def make_inside(folder: Path) -> None:
    """Makes `inside.db`, with a model of each configuration."""
    store = open_writer(str(folder / "inside.db"))
    for name, (fixed, configurations) in SWEEPS.items():
        spec = {"name": name, "model_seeds": [0], "fixed": fixed, "configurations": configurations}
        sweep_id = writer.submit(store, parse_spec(spec))
        # PyTorch needs no compiling.
        work(store, [sweep_id], WorkOptions(workers=0, engine="torch"))


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of `inside.db` for a file of tests, since questions may store findings."""
    from tests.stock import copy_of

    return copy_of("inside", "inside.db", tmp_path_factory.mktemp("inside"))
