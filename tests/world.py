"""One database with tiny models of every kind that there is, and how it is made.

A kind is a sweep of two configurations by two seeds. Everything that goes through kinds (commands,
pages, sections, exports) goes through this table: a further one is a row.
"""

import itertools
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqcls.engines.member import draw_initial
from seqcls.evaluation import evaluate
from seqcls.weights import to_bytes
from sweeps.api import log_results, open_store, submit, work
from sweeps.grid.grouping import PlannedRun
from sweeps.results import RunResult
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from tests.conftest import ASSETS
from tests.databases import rows
from tests.plugins import found_in
from tests.results import record_all
from tests.stock import stock

LARGE = 1e38
"""A weight of which a sum is infinite in single precision."""

LARGEST = float(np.finfo(np.float32).max)

DIVERGED = "the loss is not finite"

TINY: dict[str, Any] = {
    "train_size": 64, "validation_size": 64, "max_num_epochs": 1,
    "min_num_epochs": 1, "hidden_size": 4, "train_max_length": 4, "validation_max_length": 4,
}  # fmt: skip
TESTED: dict[str, Any] = {"test_size": 64, "test_max_length": 8}
SEEDS = (0, 1)
CONFIGURATIONS: tuple[dict[str, Any], ...] = (
    {"learning_rate": 0.01, "weight_decay": 0.01},
    {"learning_rate": 0.03, "weight_decay": 0.02},
)
"""They differ in two fields, as a map needs."""


@dataclass(frozen=True)
class Kind:
    """A sort of models: a sweep of its name.

    Args:
        name: of it.
        task: the fields of the tested strings.
        model: all other fields.
        letters: how its file writes the letters a and b, where it has a file.
        imported: whether its results come from elsewhere.
        fails: whether training fails.
        overflows: whether its weights are so large that its answers are no numbers.
    """

    name: str
    task: Mapping[str, Any]
    model: Mapping[str, Any] = field(default_factory=dict)
    letters: Mapping[str, str] | None = None
    imported: bool = False
    fails: bool = False
    overflows: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def file(self) -> str | None:
        """The name of the file with its strings, which lies beside the database."""
        return None if self.letters is None else f"{self.name}.jsonl"

    def spec(self, folder: Path, name: str) -> dict[str, Any]:
        """A specification of its models, whose file lies in a folder."""
        path = {} if self.file is None else {"path": str(folder / self.file)}
        tested = {} if self.file else TESTED
        return {
            "name": name,
            "model_seeds": list(SEEDS),
            "fixed": {**TINY, **tested, **self.task, **self.model, **path},
            "configurations": [dict(fields) for fields in CONFIGURATIONS],
        }


LSTM: dict[str, Any] = {"architecture": "lstm", "readout": "last"}
DECODER: dict[str, Any] = {"positions": "sinusoidal", "num_attention_heads": 1}
STREAMS: dict[str, Any] = {"architecture": "encoder_decoder"}
BLOCKS: dict[str, Any] = {"num_blocks": 2, "positions": "sinusoidal"}
PICTURES: dict[str, Any] = {
    "task": "paragraph", "line_length": 3, "max_lines": 2, "alphabet": "12",
    "test_min_length": 1, "test_max_length": 4, "test_size": 12,
}  # fmt: skip
SEES: dict[str, Any] = {
    "hidden_size": 8, "picture_channels": 4, "picture_blocks": 1, "train_min_length": 1,
    "validation_min_length": 1,
}  # fmt: skip
READS: dict[str, Any] = {
    **SEES, **BLOCKS, "architecture": "paragraph_reader", "num_attention_heads": 2,
    "attention_head_size": 4, "feed_forward_size": 8,
}  # fmt: skip
LETTERS = {"a": "a", "b": "b"}
NAMES = {"a": "NP", "b": "V'"}
SOUNDS = {"a": "h", "b": "oy"}
BRACKETS = {"a": "(", "b": "]"}
FOREIGN = {"a": "\u0259", "b": "\u0283"}

KINDS = (
    Kind("letters", {"task": "contains_all", "test_batch_size": 64}, {"hidden_size": 2}),
    Kind("counted", {"task": "parity"}),
    Kind("of_order", {"task": "even_pairs"}, LSTM),
    Kind("brackets", {"task": "dyck"}, {"positions": "sinusoidal"}),
    Kind("named_tokens", {"task": "safe_pops"}, LSTM),
    Kind("own_file", {"task": "file"}, LSTM, LETTERS),
    Kind("file_of_names", {"task": "file"}, {"architecture": "gru", "readout": "last"}, NAMES),
    Kind("file_of_brackets", {"task": "file"}, BLOCKS, BRACKETS),
    Kind("pairs", {"task": "pairs"}, DECODER, SOUNDS),
    Kind("pairs_of_names", {"task": "pairs"}, STREAMS, NAMES),
    Kind("foreign_pairs", {"task": "pairs"}, {"architecture": "lstm"}, FOREIGN),
    Kind("transduction", {"task": "reverse"}, DECODER),
    Kind("addition", {"task": "addition"}, DECODER),
    Kind("two_streams", {"task": "copy", "num_tokens": 3}, STREAMS),
    Kind("pictures", PICTURES, {**SEES, "architecture": "recurrent_attention"}),
    Kind("pictures_read", PICTURES, READS),
    Kind("from_outside", {"task": "ones_modulo"}, LSTM),
    Kind("blocks_from_outside", {"task": "ones_modulo"}, {"num_blocks": 2}),
    Kind("tokens_from_outside", {"task": "more_pushes"}),
    Kind("parts_from_outside", {"task": "ends_with_b"}, {"architecture": "bag"}),
    Kind("imported", {"task": "file"}, letters=NAMES, imported=True),
    Kind("imported_outputs", {"task": "pairs"}, letters=FOREIGN, imported=True),
    Kind("failed", {"task": "parity"}, {"hidden_size": 3}, fails=True),
    Kind("not_a_number", {"task": "majority"}, LSTM, overflows=True),
)
BY_NAME = {kind.name: kind for kind in KINDS}

WORDS = ["".join(x) for n in range(1, 6) for x in itertools.product("ab", repeat=n)]
UNKNOWN = "aaaaaaab"
"""A word longer than all rows of the files."""


def spelled(word: str, letters: Mapping[str, str]) -> str:
    """A word over a and b as a file writes it; names with a space between."""
    between = " " if any(len(token) > 1 for token in letters.values()) else ""
    return between.join(letters[letter] for letter in word)


def write_rows(folder: Path, kind: Kind) -> Path:
    """Writes which words have an odd number of a's, or words with their letters backwards."""
    assert kind.letters is not None
    assert kind.file is not None
    made = []
    for number, word in enumerate(WORDS):
        backwards = [kind.letters[x] for x in reversed(word)]
        label = {"label": word.count("a") % 2}
        answer = {"target": backwards} if kind.task["task"] == "pairs" else label
        split = ("train", "test", "validation", "test")[number % 4]
        tokens = [kind.letters[x] for x in word]
        made.append({"tokens": tokens, **answer, "split": split, "id": f"s{number}"})
    path = folder / kind.file
    path.write_text("\n".join(map(json.dumps, made)))
    return path


def make_empty(folder: Path) -> None:
    """Makes `made.db`: its tables, and nothing in them."""
    open_writer(str(folder / "made.db"))


def make_kinds(folder: Path) -> None:
    """Makes `kinds.db`, with the sweeps of all kinds, and the files of their strings beside it."""
    with parts_from_outside():
        store = open_store(folder / "kinds.db")
        for kind in KINDS:
            if kind.file is not None:
                write_rows(folder, kind)
            if kind.imported:
                _import(store, folder, kind)
                continue
            submit(store, kind.spec(folder, kind.name))
            if kind.fails or kind.overflows:
                _record(store, kind)
            else:
                work(store, kind.name, workers=0)


def parts_from_outside() -> AbstractContextManager[None]:
    """A block in which the package of parts from outside is installed."""
    return found_in(ASSETS / "plugin_package")


def _import(store: Store, folder: Path, kind: Kind) -> None:
    """Imports predictions of two models; each further seed is wrong once more."""
    assert kind.file is not None
    with log_results(store, sweep=kind.name, dataset=folder / kind.file) as log:
        right = log.strings.columns[-1]
        for width, seed in itertools.product((1, 2), SEEDS):
            predicted = log.strings[right].tolist()
            for number in range(width + seed):
                predicted[number] = "" if right == "target" else not predicted[number]
            predictions = {"tokens": log.strings["tokens"], "prediction": predicted}
            log.run(
                model="theirs",
                seed=seed,
                config={"d": width, "l": 9 - width},
                predictions=predictions,
                losses=[(2.0, 1.0)],
            )


def _record(store: Store, kind: Kind) -> None:
    """Stores results that training would give only where it goes wrong."""
    diverged = RunResult([], [], 0.0, "strings", failure=DIVERGED)
    (sweep_id,) = [row[0] for row in rows(store, f"SELECT id FROM sweep WHERE name = '{kind}'")]
    record_all(
        store,
        sweep_id,
        lambda claim: [_overflown(x) if kind.overflows else diverged for x in claim.runs],
    )


def _overflown(run: PlannedRun) -> RunResult:
    """The evaluation of a model whose weights are finite but overflow."""
    problem = run.problem
    (drawn,) = draw_initial([(problem, run.model_seed)])
    # What the state gives is infinite, too, and of the other sign.
    weights = {
        name: np.full_like(value, -LARGEST if name.endswith("state_weight") else LARGE)
        for name, value in drawn.items()
    }
    (evaluation,) = evaluate(problem, [weights])
    made = RunResult(
        [1.0], [1.0], 0.0, "strings", best_epoch=1, evaluation=evaluation,
        checkpoints={1: to_bytes(weights)},
    )  # fmt: skip
    return made.seal(run.config.key, run.model_seed)


@pytest.fixture(scope="module")
def kinds() -> Iterator[Path]:
    """The folder of all kinds' database, where the parts from outside are installed."""
    with parts_from_outside():
        yield stock("kinds")
