"""A small database with every kind of row."""

from pathlib import Path
from typing import Any

import numpy as np

from seqcls.proofs.checker import digest
from seqcls.results import Cause, Confusion
from seqcls.strings.datasets import Dataset
from seqcls.strings.token_strings import TokenStrings
from seqcls.weights import from_bytes
from sweeps.grid.spec import parse_spec
from sweeps.results import ProofRecord
from sweeps.store import writer
from sweeps.store.opening import open_writer, pack
from sweeps.store.reads import checkpoints
from sweeps.store.test_sets import store_dataset
from sweeps.work.machine import WorkOptions
from sweeps.work.readers import fit_readers
from sweeps.work.worker import work
from tests.conftest import SHORT
from tests.databases import put_failure, rows

SPEC: dict[str, Any] = {
    "name": "small",
    "description": "Two sizes.",
    "model_seeds": [0, 1],
    "verdict": True,
    "checkpoints": "every_epoch",
    "fixed": {**SHORT, "test_max_length": 20, "test_size": 256, "max_num_epochs": 2},
    "axes": {"hidden_size": [2, 3]},
}

OTHER = {**SPEC, "name": "other", "axes": {}, "fixed": {**SPEC["fixed"], "test_seed": 5}}
"""A sweep whose runs share no row with those of the first."""

COPIES: dict[str, Any] = {
    "name": "copies",
    "model_seeds": [0, 1],
    "checkpoints": "every_epoch",
    "fixed": {
        **SHORT, "task": "copy", "num_tokens": 2, "architecture": "recurrent_attention",
        "hidden_size": 4, "train_max_length": 3, "validation_max_length": 3, "test_max_length": 5,
        "test_size": 64, "max_num_epochs": 2,
    },
}  # fmt: skip
"""A sweep of a transduction whose models have not learned it."""


def make(folder: Path) -> None:
    """Three sweeps whose runs are done, and one of which one failed and one waits."""
    path = folder / "rows.db"
    store = open_writer(str(path))
    work(store, [writer.submit(store, parse_spec(SPEC))], WorkOptions(0))
    work(store, [writer.submit(store, parse_spec(COPIES))], WorkOptions(0))
    work(store, [writer.submit(store, parse_spec(OTHER))], WorkOptions(0))
    writer.submit(store, parse_spec({**SPEC, "name": "waiting", "model_seeds": [7]}))
    fit_readers(store)
    weights = digest(from_bytes(checkpoints.weights(store, 1)))
    found = ("refuted", 2, 0, 1.5, "ab", 1, '{"budget": {}, "attempts": []}', weights, "0.3", None)
    writer.record_findings(store, 1, "proof", [ProofRecord(1, *found)])
    strings = TokenStrings.of_lists(2, [[0, 1], [1]])
    dataset = Dataset("mine.csv", "ab", strings, labels=np.array([True, False])).in_order()
    with store.write(quiet=True) as connection:
        connection.exec_driver_sql("UPDATE test_string SET drawn = 'positive' WHERE label = 1")
        store_dataset(connection, dataset)
        first = "(SELECT min(id) FROM run WHERE model_seed = 7)"
        connection.exec_driver_sql(
            "UPDATE run SET state = 'failed', attempt = 1, failures = 1, error = 'it diverged', "
            f"finished_at = '2026-01-01T00:00:00+00:00' WHERE id = {first}"
        )
    writer.record_findings(store, 1, "cause", [Cause("constant answer", None, "", 1.0, 5, 0.5)])
    writer.record_findings(store, 1, "perturbation", [Confusion(111, 0, 145, 0)])
    ((run_id,),) = rows(store, "SELECT min(id) FROM run WHERE model_seed = 7")
    put_failure(store, [run_id], "it diverged")
    pack(str(path))
