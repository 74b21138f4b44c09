"""The work of a worker process: train a group and test it. It touches no database."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from seqcls.engines.base import Progress
from seqcls.engines.choice import Choice, choose_engine, engine_named
from seqcls.errors import describe_error
from seqcls.results import Evaluation, TrainedMember, Verdict, Weights
from seqcls.strings.datasets import dataset_of, is_known, remember, unpack
from seqcls.training import train_group
from seqcls.weights import to_bytes
from sweeps.grid.grouping import RunGroup
from sweeps.results import RunResult
from sweeps.work.machine import parameter_bytes, shortage

_numbers = itertools.count()

MAX_DRAWN_BYTES = 1_000_000
"""Models up to this size cost nothing worth mentioning to draw here and to hand over."""


@dataclass(frozen=True)
class Job:
    """A group and how to train it."""

    number: int
    """Which of its worker's jobs it is: the same group may be begun again after it was left."""
    group: RunGroup
    engine: Choice
    device: str
    initial: list[Weights] | None
    """The members' initial parameters; None where they are drawn where the group is trained."""
    dataset: bytes | None = None
    """What was in a file, packed, for a process that has no database."""


def make_job(group: RunGroup, engine: str, device: str) -> Job:
    """Chooses the engine. For one that wants them it draws the initial parameters of small models.

    That takes PyTorch, which this process loads once so that no worker has to. Large ones are drawn
    where they are trained, so that a failed allocation fails those runs only.
    """
    choice = choose_engine(group[0].problem, engine, device)
    small = parameter_bytes(group[0].problem) <= MAX_DRAWN_BYTES
    initial = _draw_initial(group) if engine_named(choice.name).wants_initial and small else None
    digest = group[0].config.dataset
    dataset = dataset_of(digest).to_bytes() if digest else None
    return Job(next(_numbers), group, choice, device, initial, dataset)


def _draw_initial(group: RunGroup) -> list[Weights] | None:
    # Imported where it is used: it loads PyTorch.
    from seqcls.engines.member import draw_initial

    try:
        return draw_initial([(run.problem, run.model_seed) for run in group])
    except (MemoryError, RuntimeError):
        # PyTorch raises RuntimeError when it gets no memory. The training process may get some
        # later.
        return None


def run_job(job: Job, report: Progress) -> list[RunResult]:
    """Trains and tests the runs of one group, in their order, on one thread.

    Raises:
        MemoryError: this machine has less memory than that takes.
    """
    digest = job.group[0].config.dataset
    if job.dataset is not None and not is_known(digest):
        remember(unpack(job.dataset))
    try:
        return _run_job(job, report)
    except SystemExit as error:
        # Raised by a plug-in; nothing of this program's ends a process in a group's training.
        raise RuntimeError(describe_error(error)) from None


def _run_job(job: Job, report: Progress) -> list[RunResult]:
    # Checked first: some systems promise any memory, and kill a process that uses too much.
    if too_large := shortage(job.group[0].problem, len(job.group)):
        raise MemoryError(too_large)
    with on_one_thread(job.engine.name):
        trained = train_group(
            [(run.problem, run.model_seed) for run in job.group],
            engine=job.engine.name,
            device=job.device,
            every_epoch=job.group[0].every_epoch,
            progress=report,
            initial=job.initial,
        )
        results = _evaluate_members(job, [member for member in trained if member.failure is None])
    return [_outcome(job, member, *results.get(id(member), (None, None))) for member in trained]


def _evaluate_members(
    job: Job, complete: list[TrainedMember]
) -> dict[int, tuple[Evaluation, Verdict | None]]:
    if not complete:
        return {}
    # Imported where it is used: a process that only hands out groups tests nothing.
    from seqcls.evaluation import evaluate
    from seqcls.interpretability.verdicts import unaffordable, verdicts

    problem = job.group[0].problem
    kept = [member.kept_weights for member in complete]
    evaluations = evaluate(problem, kept, engine=job.engine.name, device=job.device)
    checks: list[Verdict] | list[None] = [None] * len(complete)
    if job.group[0].verdict and unaffordable(problem) is None:
        checks = verdicts(problem, kept, engine=job.engine.name, device=job.device)
    pairs = zip(evaluations, checks, strict=True)
    return {id(member): pair for member, pair in zip(complete, pairs, strict=True)}


def _outcome(
    job: Job, member: TrainedMember, evaluation: Evaluation | None, verdict: Verdict | None
) -> RunResult:
    outcome = RunResult(
        train_losses=member.train_losses,
        validation_losses=member.validation_losses,
        train_seconds=member.train_seconds,
        engine=job.engine.name,
        engine_reason=job.engine.reason,
        failure=member.failure,
        best_epoch=member.best_epoch,
        evaluation=evaluation,
        verdict=verdict,
        checkpoints={epoch: to_bytes(weights) for epoch, weights in member.weights.items()},
    )
    # Here, where the results are made, and not where they are stored: nothing that happens to them
    # on the way goes unnoticed, and this process has a core to itself.
    return outcome.seal(member.config.key, member.model_seed)


_alone = Lock()
_before: list[int] = []
"""PyTorch's threads before any group of this process was trained on one; none where none is."""
_training: list[None] = []
"""An entry for each group that is."""


@contextmanager
def on_one_thread(engine: str) -> Iterator[None]:
    """A block in which an engine trains and tests on one thread, whatever PyTorch's settings."""
    # A tiny model's operations are too small to share out; processes use the cores instead. PyTorch
    # is not loaded for an engine that has one thread anyway.
    if engine_named(engine).one_thread:
        yield
        return
    import torch

    # A Dask worker trains in several threads, which share the number: the last one puts it back.
    with _alone:
        if not _before:
            _before.append(torch.get_num_threads())
            torch.set_num_threads(1)
        _training.append(None)
    try:
        yield
    finally:
        with _alone:
            _training.pop()
            if not _training:
                torch.set_num_threads(_before.pop())
