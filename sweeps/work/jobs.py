"""Jobs of training processes: train a group and test it, without a database."""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from seqcls.engines.base import Progress
from seqcls.engines.choice import Choice, choose_engine, engine_named
from seqcls.errors import MachineError, describe_error
from seqcls.results import Verdict, Weights
from seqcls.strings.datasets import dataset_of, is_known, remember, unpack
from seqcls.training import train_group
from seqcls.weights import to_bytes
from sweeps.grid.grouping import RunGroup
from sweeps.results import RunResult
from sweeps.work.machine import parameter_bytes, shortage


@dataclass(frozen=True)
class Job:
    """A group of runs with the engine and device that train it."""

    group: RunGroup
    engine: Choice
    device: str
    initial: list[Weights] | None
    """The members' initial parameters; None if they are drawn where the group is trained."""
    dataset: bytes | None = None
    """The packed content of a dataset, for a process without a database."""
    number: int = field(default_factory=count().__next__)
    """A unique number: the same group may be begun again after it was abandoned."""


class GroupLostError(Exception):
    """A group is lost, with its process or by an error.

    Args:
        reason: the cause.
        of_machine: True if the machine is at fault, so that every group would be lost alike.
    """

    def __init__(self, reason: str, of_machine: bool = False) -> None:
        super().__init__(reason, of_machine)
        self.reason, self.of_machine = reason, of_machine


def make_job(group: RunGroup, engine: str, device: str) -> Job:
    """Makes the job of a group, with initial parameters of small models if the engine needs them.

    Drawing takes PyTorch, which this process loads once so that no worker has to. Models from a
    megabyte on are drawn where they are trained, so that a failed allocation fails only those runs.
    """
    first = group[0]
    choice, initial = choose_engine(first.problem, engine, device), None
    if engine_named(choice.name).is_compiled and parameter_bytes(first.problem) < 1_000_000:
        # Imported where it is used: it loads PyTorch.
        from seqcls.engines.member import draw_initial

        initial = draw_initial([(run.problem, run.model_seed) for run in group])
    digest = first.config.dataset
    dataset = dataset_of(digest).packed if digest else None
    return Job(group, choice, device, initial, dataset)


def try_job(job: Job, report: Progress) -> list[RunResult]:
    """Calls `run_job` and turns every error into GroupLostError."""
    try:
        return run_job(job, report)
    except (Exception, SystemExit) as error:
        # A plug-in may raise SystemExit, which this program does not during a job.
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
        of_machine = full or isinstance(error, MachineError | ImportError)
        raise GroupLostError(describe_error(error), of_machine) from None


def run_job(job: Job, report: Progress) -> list[RunResult]:
    """Trains and tests the runs of one group, in their order, on one thread.

    Raises:
        MemoryError: this machine has less memory than that takes.
    """
    # Imported where they are used: a process that only hands out groups does not test.
    from seqcls.evaluation import evaluate
    from seqcls.interpretability.verdicts import unaffordable, verdicts

    first, how = job.group[0], {"engine": job.engine.name, "device": job.device}
    # A process trains many groups, and unpacks each dataset once.
    if job.dataset is not None and not is_known(first.config.dataset):
        remember(unpack(job.dataset))
    # Checked first: some systems grant any memory, and kill a process that uses too much.
    if too_large := shortage(first.problem, len(job.group)):
        raise MemoryError(too_large)
    with on_one_thread(job.engine.name):
        trained = train_group(
            [(run.problem, run.model_seed) for run in job.group],
            every_epoch=first.every_epoch,
            progress=report,
            initial=job.initial,
            **how,
        )
        learned = [member for member in trained if member.failure is None]
        best_weights = [member.kept_weights for member in learned]
        evaluations = evaluate(first.problem, best_weights, **how) if best_weights else []
        checks: Sequence[Verdict | None] = [None] * len(best_weights)
        if best_weights and first.verdict and unaffordable(first.problem) is None:
            checks = verdicts(first.problem, best_weights, **how)
    tested = dict(zip(map(id, learned), zip(evaluations, checks, strict=True), strict=True))
    # Sealed here, where the results are made, and not where they are stored: damage on the way is
    # detected, and this process has a core to itself.
    return [
        RunResult(
            train_losses=member.train_losses,
            validation_losses=member.validation_losses,
            train_seconds=member.train_seconds,
            engine=name_with_device(job.engine.name, job.device),
            engine_reason=job.engine.reason,
            failure=member.failure,
            best_epoch=member.best_epoch,
            evaluation=evaluation,
            verdict=verdict,
            checkpoints={epoch: to_bytes(weights) for epoch, weights in member.weights.items()},
        ).seal(member.config.key, member.model_seed)
        for member in trained
        for evaluation, verdict in [tested.get(id(member), (None, None))]
    ]


def name_with_device(engine: str, device: str) -> str:
    """The stored name of an engine, with the device if it is no CPU, as in `strings on cuda`."""
    if engine_named(engine).is_compiled:
        return engine
    # PyTorch is loaded already by the training.
    from seqcls.engines.pytorch.training import choose_device

    chosen = choose_device(device).type
    return engine if chosen == "cpu" else f"{engine} on {chosen}"


@contextmanager
def on_one_thread(engine: str) -> Iterator[None]:
    """Has an engine train and test on one thread within the block, whatever PyTorch's settings."""
    # A tiny model's operations are too small to be parallel; processes use the cores instead.
    # PyTorch is not loaded for an engine that has one thread anyway.
    if engine_named(engine).is_compiled:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
