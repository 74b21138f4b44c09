"""Training of a configuration of each shipped specification, and of the stored test models."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from seqcls.evaluation import distinct_test_strings, evaluate
from seqcls.problem import resolve
from seqcls.results import EpochLosses
from seqcls.sampling.streams import stream
from seqcls.training import train_group
from sweeps.grid.spec import load_specs, shipped_names
from sweeps.store.opening import open_reader
from sweeps.store.reads import queries
from tests.chaos.conftest import long_alone
from tests.commands import printed
from tests.conftest import LONG, ROOT, SHORT
from tests.science.trained import TRAINED, train, trained


@pytest.mark.parametrize("name", TRAINED)
def test_stored_models_of_tests_equal_newly_trained_ones(name: str) -> None:
    stored, anew = trained(name), train(name)
    strings = distinct_test_strings(stored.problem.test).strings
    alike = stored.ask(strings).predicted == anew.ask(strings).predicted
    assert np.mean(alike) > 0.98, "another machine rounds otherwise"


NAMES = [name for name in shipped_names() if "/" in name]
REDUCED = {
    **SHORT,
    "max_num_epochs": 1,
    "min_num_epochs": 0,
    "test_size": 64,
    "test_batch_size": 64,
}

PUBLISHED = "known/paragraphs_published"
ONE_STEP = {
    **dict.fromkeys(("train_size", "train_batch_size", "validation_size", "test_size"), 1),
    **{f"{part}_max_length": 3 for part in ("train", "validation", "test")},
}
"""One step of training: pictures of 576 x 640 pixels take seconds each."""


@pytest.mark.parametrize("name", NAMES if LONG else NAMES[::6])
def test_a_shipped_specification_trains(name: str) -> None:
    for spec in load_specs(name):
        reduced = {**REDUCED, **(ONE_STEP if name == PUBLISHED else {})}
        config = next(spec.configs()).model_copy(update=reduced)
        (trained,) = train_group([(resolve(config), 0)])
        assert trained.failure is None
        (evaluation,) = evaluate(resolve(config), [trained.kept_weights])
        assert evaluation.tested == resolve(config).test.epoch_size


CHAOTIC = "lower_magnitude_initializations/5"
"""A run that rounding decides."""

CELLS = ["tn", "fp", "fn", "tp"]


def matrices(db: Path, engine: str) -> dict[tuple[str, int], list[int]]:
    """The confusion matrix of every run, by its configuration and seed."""
    store = open_reader(str(db))
    runs = queries.runs(store)
    runs = runs[runs["id"] != queries.find_run(store, CHAOTIC)]
    assert set(runs["engine"]) == {engine}
    keys = [queries.run_config(store, int(run_id)).key for run_id in runs["id"]]
    found = zip(keys, runs["model_seed"].tolist(), runs[CELLS].to_numpy().tolist(), strict=True)
    return {(key, seed): cells for key, seed, cells in found}


@long_alone
def test_both_engines_give_equal_confusion_matrices(tmp_path: Path) -> None:
    db = tmp_path / "stacked.db"
    printed("sweep", "report", "--db", str(db), "--engine", "torch")
    assert matrices(db, "counts") == matrices(ROOT / "runs.db", "fused")


MAX_TRAIN_LOSS = 2.5
"""Nats a token; one of 26 letters drawn at random has 3.26."""

ONE_BATCH = {
    "train_set": "fixed", "train_size": 16, "train_batch_size": 16, "train_max_length": 80,
    "validation_size": 1, "validation_max_length": 1, "max_num_epochs": 100, "patience": 100,
    "warm_up_steps": 10, "dropout_rate": 0.0,
}  # fmt: skip
"""Without dropout, which would prevent memorizing."""


class _MemorizedError(Exception):
    """Training has reached the loss that ends the test."""


@pytest.mark.timeout(4 * 3600)
@pytest.mark.skipif(not LONG, reason="it takes up to an hour; run `make chaos`")
def test_a_batch_of_16_is_memorized() -> None:
    (spec,) = load_specs("known/paragraphs_published")
    (config,) = spec.configs()
    problem = resolve(config.model_copy(update=ONE_BATCH))
    tokens = int((stream(problem.train).epoch(0).strings.lengths + 1).sum())

    def stop_when_memorized(_done: float, ended: Sequence[EpochLosses]) -> None:
        for epoch in ended:
            print(f"epoch {epoch.epoch}: {epoch.train_loss / tokens:.3f} nats a token", flush=True)
            if epoch.train_loss / tokens <= MAX_TRAIN_LOSS:
                raise _MemorizedError

    with pytest.raises(_MemorizedError):
        train_group([(problem, 0)], progress=stop_when_memorized)
