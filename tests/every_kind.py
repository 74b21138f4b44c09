"""A small database with a model of every kind that there can be, to open pages and commands on."""

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sweeps import api
from tests.conftest import ASSETS, SHORT
from tests.plugins import forget_parts

WORDS = ["".join(x) for n in range(1, 6) for x in itertools.product("ab", repeat=n)]
NAMES = {"a": "NP", "b": "V'"}
BRACKETS = {"a": "(", "b": "]"}
FOREIGN = {"a": "ə", "b": "ʃ"}

TINY: dict[str, Any] = {
    **SHORT, "max_num_epochs": 1, "hidden_size": 4, "train_size": 64, "validation_size": 64,
    "test_size": 100, "test_batch_size": 100, "train_batch_size": 32,
}  # fmt: skip
SHORT_STRINGS = {f"{part}_max_length": 5 for part in ("train", "validation")}
SHORT_STRINGS |= {"test_max_length": 8}
ROWS = {name: TINY[name] for name in ("max_num_epochs", "min_num_epochs", "hidden_size")}
ROWS |= {"train_batch_size": 32}
LAST = {"readout": "last"}
PAGES_OF_TEXT = {
    "task": "paragraph", "line_length": 3, "max_lines": 2, "hidden_size": 8, "picture_channels": 4,
    "train_max_length": 5, "validation_max_length": 5, "test_max_length": 7,
    **{f"{part}_min_length": 1 for part in ("train", "validation", "test")},
    "architecture": "paragraph_reader", "num_attention_heads": 2, "attention_head_size": 4,
    "feed_forward_size": 8, "num_blocks": 2, "positions": "sinusoidal",
}  # fmt: skip

TRAINED: dict[str, dict[str, Any]] = {
    "report": {**TINY, **SHORT_STRINGS},
    "counted": {**TINY, **SHORT_STRINGS, "task": "parity"},
    "of order": {**TINY, **SHORT_STRINGS, "task": "even_pairs", "architecture": "lstm", **LAST},
    "brackets": {**TINY, **SHORT_STRINGS, "task": "dyck", "positions": "sinusoidal", **LAST},
    "writing": {**TINY, **SHORT_STRINGS, "task": "reverse", "positions": "sinusoidal"},
    "two streams": {
        **TINY, **SHORT_STRINGS, "task": "copy", "num_tokens": 3, "architecture": "encoder_decoder",
    },
    "pictures": {**TINY, **PAGES_OF_TEXT},
    "file": {**ROWS, "task": "file"},
    "file of names": {**ROWS, "task": "file", "architecture": "gru", **LAST},
    "file of brackets": {**ROWS, "task": "file", "num_blocks": 2, "positions": "sinusoidal"},
    "pairs": {**ROWS, "task": "pairs", "positions": "sinusoidal"},
    "pairs of names": {**ROWS, "task": "pairs", "architecture": "encoder_decoder"},
    "foreign pairs": {**ROWS, "task": "pairs", "architecture": "lstm"},
    "class from outside": {**TINY, **SHORT_STRINGS, "task": "ones_modulo", "num_blocks": 2},
    "tokens from outside": {**TINY, **SHORT_STRINGS, "task": "more_pushes"},
    "parts from outside": {
        **TINY, **SHORT_STRINGS, "task": "ends_with_b", "architecture": "bag",
    },
}  # fmt: skip
"""The configurations that are trained here, by the name of their sweep."""

WRITTEN: dict[str, dict[str, str]] = {
    "file": {}, "file of names": NAMES, "file of brackets": BRACKETS,
    "pairs": {}, "pairs of names": NAMES, "foreign pairs": FOREIGN,
}  # fmt: skip
"""How the files of rows write the letters a and b; those of names with spaces between."""

IMPORTED = {"imported": "file of names", "imported outputs": "foreign pairs"}
"""Sweeps of models trained elsewhere, and the file on whose rows they were tested."""

SWEEPS = (*TRAINED, *IMPORTED)
"""A sweep each, of one model each, whose runs are numbered in this order from 1."""


def spelled(word: str, letters: Mapping[str, str]) -> str:
    """A word over a and b as a file writes it; names with a space between."""
    between = " " if any(len(token) > 1 for token in letters.values()) else ""
    return between.join(letters.get(letter, letter) for letter in word)


def write_rows(folder: Path, name: str) -> Path:
    """A file without an empty row: which words have an odd number of a's, or words backwards."""
    path = folder / f"{name}.jsonl"
    pairs = "pairs" in name
    by_word = {word: spelled(word, WRITTEN[name]) for word in WORDS}
    rows = [
        {
            "tokens": text,
            **({"target": by_word[word[::-1]]} if pairs else {"label": word.count("a") % 2}),
            "split": ("train", "train", "test", "validation")[number % 4],
        }
        for number, (word, text) in enumerate(by_word.items())
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def _import(store: Any, sweep: str, path: Path) -> None:
    """A model that is wrong of every third test string."""
    with api.log_results(store, sweep=sweep, dataset=path) as log:
        strings = log.strings
        right = strings["target" if "target" in strings else "label"].tolist()
        other = (lambda x: x + x[:1]) if "target" in strings else (lambda x: not x)
        said = [other(x) if number % 3 == 0 else x for number, x in enumerate(right)]
        log.run(
            model="theirs",
            seed=0,
            config={"width": 8},
            predictions={"tokens": strings["tokens"], "prediction": said},
            losses=[(2.0, 1.0)],
        )


@pytest.fixture(scope="session")
def every_kind_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database, made once; who asks models from outside needs `every_kind`."""
    folder = tmp_path_factory.mktemp("every_kind")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SEQCLS_CACHE", str(folder / "cache"))
        patched.syspath_prepend(str(ASSETS / "plugin_package"))
        forget_parts()
        store = api.open_store(folder / "every_kind.db")
        files = {name: write_rows(folder, name) for name in WRITTEN}
        for name, fields in TRAINED.items():
            path = {"path": str(files[name])} if name in files else {}
            spec = {"name": name, "model_seeds": [0], "fixed": {**fields, **path}}
            api.submit(store, spec)
        api.work(store, workers=0, engine="torch")
        for name, of in IMPORTED.items():
            _import(store, name, files[of])
    forget_parts()
    return folder / "every_kind.db"


@pytest.fixture(scope="module")
def every_kind(every_kind_file: Path) -> Iterator[Path]:
    """The database, where the parts from outside are installed."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(ASSETS / "plugin_package"))
        forget_parts()
        yield every_kind_file
    forget_parts()
