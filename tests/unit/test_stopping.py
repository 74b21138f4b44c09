"""When training ends and which epoch is kept."""

import pytest

from seqcls.config import RunConfig
from seqcls.engines.member import EarlyStopping
from seqcls.problem import resolve
from tests.conftest import asset


def epochs_and_best(losses: list[float], config: RunConfig) -> tuple[int, int]:
    stopping = EarlyStopping(resolve(config))
    for epoch, loss in enumerate(losses, start=1):
        if stopping.stops_after(loss):
            return epoch, stopping.best_epoch
    raise AssertionError("training did not end")


@pytest.mark.parametrize("model", asset("models.json"), ids=lambda m: m["experiment"])
def test_the_published_losses_stop_at_the_published_epoch(model: dict[str, object]) -> None:
    losses = model["validation_losses"]
    assert isinstance(losses, list)
    found = epochs_and_best([*losses, 1e9], RunConfig())
    assert found == (model["epochs"], model["best_epoch"])


@pytest.mark.parametrize(
    ("losses", "ends"),
    [
        # Below the threshold it stops, but not before the fifth epoch.
        ([0.01] * 5, (5, 1)),
        ([1, 1, 1, 1, 0.04], (5, 5)),
        ([1, 1, 1, 1, 0.05, 0.05, 0.05, 0.05], (8, 5)),
        # Patience looks only at the losses since epoch 5, however low earlier ones were.
        ([0.1, 9, 9, 9, 9, 8, 7, 6, 6, 6, 6], (11, 1)),
        # An equal loss is no improvement; a lower one gives all patience back.
        ([5, 5, 5, 5, 5, 5, 5, 4, 4, 4, 4], (11, 8)),
        # The last epoch ends it in any case; of equal epochs the first is kept.
        ([40 - epoch for epoch in range(30)], (30, 30)),
        ([5, 4, 4, *range(100, 73, -1)], (30, 2)),
    ],
)
def test_patience_and_ties(losses: list[float], ends: tuple[int, int]) -> None:
    assert epochs_and_best(losses, RunConfig()) == ends
