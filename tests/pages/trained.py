"""Databases for pages of results: models that are trained for these tests, in the stock."""

import shutil
from pathlib import Path
from typing import Any

from sweeps.api import failures, submit, work
from sweeps.api.reading import Selection
from sweeps.api.trials import remedies_tried, trials
from sweeps.store.opening import open_writer
from sweeps.store.reads import queries
from tests.conftest import ROOT
from tests.databases import forget_causes

TINY: dict[str, Any] = {
    "attention_head_size": 2, "train_size": 128, "train_max_length": 8, "validation_size": 64,
    "validation_max_length": 8, "test_size": 200, "test_max_length": 20, "max_num_epochs": 1,
    "min_num_epochs": 1,
}  # fmt: skip
LSTM: dict[str, Any] = {"architecture": "lstm", "readout": "last"}

LANGUAGES: list[dict[str, Any]] = [
    {
        "name": "parity", "fixed": {"task": "parity"},
        "axes": {"positions": ["none", "rotary"], "num_attention_heads": [1, 2]},
    },
    {"name": "recurrent", "fixed": {"task": "parity", **LSTM}, "axes": {"num_blocks": [1, 2]}},
    {
        "name": "first", "fixed": {"task": "first", "hidden_size": 8},
        "axes": {"positions": ["none", "rotary"]},
    },
    {
        "name": "ab", "fixed": {"task": "regular", "alphabet": "ab", "pattern": "(ab)*"},
        "axes": {"disjoint": [False, True], "negatives": ["edits", "mixed"]},
    },
    {
        "name": "larger", "model_seeds": [0],
        "fixed": {"task": "first", "test_size": 2000, "feed_forward_size": 4},
    },
]  # fmt: skip
"""Three languages in five sweeps, 73 models."""

RANDOM: dict[str, Any] = {
    "name": "random", "model_seeds": [0],
    "fixed": {**TINY, "task": "subregular", "architecture": "rnn", "readout": "last"},
    "axes": {
        "language_class": ["SL", "SP"], "width": [2, 3], "hidden_size": [2, 3], "biases": [True],
    },
}  # fmt: skip
"""Languages that are drawn from two classes."""

SHORT: dict[str, Any] = {
    "name": "short", "model_seeds": [0, 1],
    "fixed": {
        **LSTM, "task": "first", "hidden_size": 8, "train_size": 256, "train_max_length": 8,
        "validation_max_length": 8, "validation_size": 256, "test_size": 400,
        "test_max_length": 24, "max_num_epochs": 2, "learning_rate": 0.03,
    },
}  # fmt: skip
"""Models that are trained for too short."""

PAIRS: dict[str, Any] = {
    "name": "pairs", "model_seeds": [0],
    "fixed": {
        **LSTM, "task": "regular", "pattern": "(ab|ba)*", "alphabet": "ab", "hidden_size": 4,
        "train_max_length": 8, "train_size": 256, "validation_max_length": 8,
        "validation_size": 32, "test_max_length": 16, "test_size": 200,
        "test_strings": "random_and_border", "max_num_epochs": 2, "min_num_epochs": 2,
    },
    "axes": {"negatives": ["mixed", "border"]},
}  # fmt: skip
"""Two models, one of them trained on border pairs; tested on border pairs, too."""

EXPLAINED = "all_initializations/2"


def make_trained(folder: Path) -> None:
    """Makes `languages`, `random`, `short`, `pairs`, `explained` and `mended`."""
    wide = {**PAIRS, "name": "wide", "fixed": {**PAIRS["fixed"], "hidden_size": 5}}
    for name, specs in (
        ("languages", [{"model_seeds": "0..5", **x, "fixed": {**TINY, **x["fixed"]}}
                       for x in LANGUAGES]),
        ("random", [RANDOM]),
        ("short", [SHORT]),
        ("pairs", [PAIRS, wide]),
    ):  # fmt: skip
        store = open_writer(str(folder / f"{name}.db"))
        for spec in specs:
            submit(store, spec)
            work(store)
    store = open_writer(str(folder / "short.db"))
    failures.attribute(store, [1, 2], 20)
    (longer, *_) = trials(store, 1, ["not learned"])
    submit(store, [longer.spec])
    work(store)
    _mend(folder)


def _mend(folder: Path) -> None:
    """The causes of the errors of the shipped `all_initializations`, and one remedy trained."""
    copied = Path(shutil.copy(ROOT / "runs.db", folder / "explained.db"))
    store = open_writer(str(forget_causes(copied)))
    runs = queries.runs(store)
    config_id = runs.set_index("id").loc[queries.find_run(store, EXPLAINED), "config_id"]
    failures.attribute(store, runs[runs["config_id"] == config_id]["id"].tolist(), 10)
    store = open_writer(str(shutil.copy(folder / "explained.db", folder / "mended.db")))
    failing = next(x for x in remedies_tried(store, Selection()) if x.config_id == config_id)
    (first, *_) = trials(store, failing.run_ids[0], [failing.mechanism])
    submit(store, [first.spec])
    work(store)
