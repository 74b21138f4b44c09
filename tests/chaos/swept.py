"""Sweeps that are disturbed, and the content of a database that nothing has disturbed."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from sweeps.grid.spec import SweepSpec, parse_spec
from sweeps.grid.written_spec import toml_of
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.verification import verify
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.chaos.contents import contents
from tests.conftest import SHORT

SPECS: dict[str, dict[str, Any]] = {
    # 24 runs in 6 groups, each with rows of every table.
    "small": {
        "model_seeds": "0..3",
        "verdict": True,
        "checkpoints": "every_epoch",
        "fixed": {**SHORT, "test_max_length": 40},
        "axes": {"train_seed": [1, 2, 3], "hidden_size": [2, 3]},
    },
    # Groups whose results, a megabyte each, fill every buffer between two processes.
    "sending": {
        "model_seeds": "0..7",
        "checkpoints": "every_epoch",
        "fixed": {
            **SHORT,
            "max_num_epochs": 6,
            "min_num_epochs": 6,
            "hidden_size": 32,
            "feed_forward_size": 64,
        },
        "axes": {"train_seed": list(range(4))},
    },
    # 48 runs in 12 groups.
    "many": {
        "model_seeds": "0..3",
        "fixed": {**SHORT, "train_size": 8192},
        "axes": {"train_seed": list(range(1, 13))},
    },
}


def spec(name: str) -> SweepSpec:
    return parse_spec({"name": name, **SPECS[name]})


def written(name: str, folder: Path) -> Path:
    """A specification as a file."""
    path = folder / f"{name}.toml"
    path.write_text(toml_of(spec(name).submitted))
    return path


def sweep(database: Path | str, name: str) -> int:
    """Submits or resumes a sweep, and trains the remaining runs here; returns their number."""
    store = open_writer(str(database))
    sweep_id = writer.submit(store, spec(name))
    # Others may have stopped it, or ended its runs' processes three times, which makes them fail.
    writer.resume(store, [sweep_id])
    writer.retry(store, [sweep_id])
    return work(store, [sweep_id], WorkOptions(0)).recorded


@cache
def undisturbed(name: str) -> dict[str, str]:
    """The content of its database."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.db"
        sweep(path, name)
        return contents(open_reader(str(path)))


def assert_whole(database: Path | str, name: str) -> None:
    """Nothing is lost, doubled or half done."""
    store = open_reader(str(database))
    assert verify(store).damages == []
    assert contents(store) == undisturbed(name)
