"""The work of a worker process: train a group and test it. It touches no database."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from seqcls.weights import to_bytes
from sweeps.grouping import RunGroup
from sweeps.outcome import Outcome

ENGINE = "torch"

Report = Callable[[int, int], None]
"""Told the epoch that ended and how many members are left to train."""


def run_group(group: RunGroup, device: str, report: Report) -> list[Outcome]:
    """Trains and tests the runs of one group, in their order, on one thread."""
    with _one_thread():
        return _run_group(group, device, report)


def _run_group(group: RunGroup, device: str, report: Report) -> list[Outcome]:
    # Imported where it is used: the process that only hands out groups needs no PyTorch.
    from seqcls.evaluation import evaluate
    from seqcls.training import choose_device, train_group

    trained = train_group(
        [(run.config, run.model_seed) for run in group],
        device=device,
        every_epoch=group[0].every_epoch,
        progress=report,
    )
    complete = [member for member in trained if member.failure is None]
    evaluations = {}
    if complete:
        results = evaluate(
            [member.config for member in complete],
            [member.kept_weights for member in complete],
            choose_device(device).type,
        )
        evaluations = {id(member): result for member, result in zip(complete, results, strict=True)}
    return [
        Outcome(
            train_losses=member.train_losses,
            validation_losses=member.validation_losses,
            train_seconds=member.train_seconds,
            engine=ENGINE,
            failure=member.failure,
            best_epoch=member.best_epoch,
            evaluation=evaluations.get(id(member)),
            checkpoints={epoch: to_bytes(own) for epoch, own in member.weights.items()},
        )
        for member in trained
    ]


@contextmanager
def _one_thread() -> Iterator[None]:
    # A tiny model's operations are too small to share out; processes use the cores instead.
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
