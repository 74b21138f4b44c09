"""Databases that are compared with SQL: of many imported models, and of every result of a proof."""

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from seqcls.results import EpochLosses
from sweeps import api
from sweeps.api.importing import prediction_rows
from sweeps.grid.grouping import make_groups
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from sweeps.store.reads.workers import queued_runs
from tests.databases import load_parity


def make_compared(folder: Path) -> None:
    """Makes `imported.db` and `proved.db`, small ones."""
    fill_imported(open_writer(str(folder / "imported.db")), folder)
    fill_proved(open_writer(str(folder / "proved.db")), folder)


STRINGS = ["".join(x) for n in range(1, 6) for x in product("ab", repeat=n)]


def fill_imported(store: Store, folder: Path, seeds: Sequence[int] = (7, 6)) -> None:
    """Models trained elsewhere that err at random, unfinished runs, and a sweep that is archived.

    Args:
        store: where to.
        folder: where the files of their strings are written.
        seeds: how many of each configuration. The second gives no scores.
    """
    labels, pairs = folder / "labels.csv", folder / "outputs.jsonl"
    truth = [word.count("a") % 2 for word in STRINGS]
    lines = [f"{word},{label}" for word, label in zip(STRINGS, truth, strict=True)]
    labels.write_text("\n".join(["tokens,label", *lines]))
    rows = [{"tokens": word, "target": word[::-1]} for word in STRINGS]
    pairs.write_text("\n".join(map(json.dumps, rows)))
    generator = np.random.default_rng(0)

    def wrong() -> list[bool]:
        # Some of them make no error, and so have other outcomes than a median of them all.
        return list(generator.random(len(STRINGS)) < generator.choice([0, 0.02, 0.1]))

    with api.log_results(store, sweep="labels", dataset=labels) as log:
        for width, number in enumerate(seeds, 1):
            made = []
            for seed in range(number):
                predicted = [x ^ int(y) for x, y in zip(truth, wrong(), strict=True)]
                given: dict[str, Any] = {"tokens": STRINGS, "prediction": predicted}
                if width == 1:
                    given["score"] = [
                        (1 if x else -1) * 0.1 * (n + 1) for n, x in enumerate(predicted)
                    ]
                read = prediction_rows(given)
                made.append(log.prepare("m", seed, read, config={"width": width}))
            log.store(made)
    for sweep in ("outputs", "put_away"):
        with api.log_results(store, sweep=sweep, dataset=pairs) as log:
            for seed in range(3):
                ends = [x[::-1] + "a" * int(y) for x, y in zip(STRINGS, wrong(), strict=True)]
                predictions = {"tokens": STRINGS, "prediction": ends}
                log.run(model=sweep, seed=seed, config={"d": 1}, predictions=predictions)
    put_unfinished(store)


RECURRENT = {
    "task": "parity", "architecture": "rnn", "hidden_size": 8, "readout": "last",
    "learning_rate": 0.01, "train_size": 500, "train_max_length": 8, "validation_max_length": 8,
    "validation_size": 100, "test_max_length": 16, "test_size": 300, "max_num_epochs": 20,
}  # fmt: skip
"""Training in which some seeds learn, and others do not."""


def fill_proved(store: Store, folder: Path) -> None:
    """Models of every result of a proof: written down by hand, and trained for a little.

    Args:
        store: where to.
        folder: where the weights of those by hand are written.
    """
    api.submit(store, {"name": "short", "model_seeds": "0..3", "fixed": RECURRENT})
    api.work(store, "short", workers=0)
    for sweep, sharpness in (("exact", 8.0), ("soft", 2.1), ("open", 6.0)):
        load_parity(folder / "hand.db", sharpness, sweep, 8)
    api.merge(store, folder / "hand.db")
    for run in ("exact/0", "soft/0", "short/0", "short/1"):
        api.prove(store, run, seconds=2)
    api.prove(store, "open/0", regions=1)


def put_unfinished(store: Store) -> None:
    """Runs that are queued, one in training with its first loss, and an archived sweep."""
    api.submit(store, {"name": "waiting", "model_seeds": "0..3", "fixed": {"max_num_epochs": 3}})
    names = {name: sweep_id for sweep_id, name in sweep_queries.sweep_names(store).items()}
    (group,) = make_groups(queued_runs(store, [names["waiting"]]))
    claim = writer.claim(store, writer.register_worker(store), group[:2])
    assert claim is not None
    writer.record_losses(store, [(claim, [EpochLosses(0, 1, 700.0, 69.0)])])
    if "put_away" in names:
        writer.archive(store, names["put_away"], archived=True)
