"""The paragraph reader of the published sizes memorizes a batch; that takes up to an hour."""

from collections.abc import Sequence

import pytest

from seqcls.problem import resolve
from seqcls.results import EpochLosses
from seqcls.sampling.streams import stream
from seqcls.training import train_group
from sweeps.grid.spec import load_specs
from tests.conftest import LONG

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
