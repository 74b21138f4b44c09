"""What a group's training and testing take here, from a moment of each.

Parts of an epoch and of the test are timed, warm, and the whole is extrapolated from them.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from seqcls.config import PARTS, RunConfig
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.evaluation import distinct_test_strings, evaluate
from seqcls.interpretability.multisets import num_multisets
from seqcls.interpretability.verdicts.by_counts import unaffordable, verdicts
from seqcls.kinds import Examples
from seqcls.problem import Problem, resolve
from seqcls.results import Weights
from seqcls.sampling import Sampler
from seqcls.tasks import Task
from seqcls.training import train_group

ENOUGH_SECONDS = 0.08
"""What took so long is extrapolated from; what took less is tried with more strings."""

SLOW_SECONDS = 0.5
"""What took so long is not repeated to be timed warm."""

TOO_LONG_SECONDS = 2.0
"""A batch that may take so long is not tried whole."""

FEW = 4
"""Strings of the first call."""

SOME = 500
"""Strings whose drawing is timed."""

STEPS = 4
"""How many times as many strings the next try has."""


@dataclass(frozen=True)
class Asked:
    """A group to time."""

    config: RunConfig
    members: int
    verdict: bool = False
    """Whether its models are checked exhaustively too."""


@dataclass(frozen=True)
class GroupTime:
    """What a group takes, in seconds."""

    epoch: float
    """A member's epoch, with its validation."""
    epoch_once: float
    """An epoch's preparation, once for all members of a group."""
    test: float
    """Testing a member, with the exhaustive check where it is asked for."""
    test_once: float
    """The preparation of a test."""
    draw_epoch: float
    """Drawing an epoch's strings, once for all groups that train on them."""
    draw_tests: float
    """Likewise the strings of validation and test."""

    def seconds(self, members: int, epochs: float) -> float:
        """A group's training and testing, the drawing of strings left out."""
        once = epochs * self.epoch_once + self.test_once
        return once + members * (epochs * self.epoch + self.test)


@dataclass(frozen=True)
class _FirstOf:
    """The first strings of each epoch of a sampler whose size no setting gives."""

    sampler: Sampler
    size: int
    reads: ClassVar[frozenset[str]] = frozenset()
    reads_of_part: ClassVar[Mapping[str, frozenset[str]]] = {}

    @property
    def task(self) -> Task:
        return self.sampler.task

    @property
    def batch_size(self) -> int:
        return self.sampler.batch_size

    @property
    def lengths(self) -> range:
        return self.sampler.lengths

    @property
    def epoch_size(self) -> int:
        return min(self.size, self.sampler.epoch_size)

    @property
    def repeats(self) -> bool:
        return self.sampler.repeats

    @classmethod
    def obstacle(cls, task: Task) -> str | None:
        del task
        return None

    def epochs(self) -> Iterator[Examples]:
        for epoch in self.sampler.epochs():
            yield epoch.take(slice(0, self.epoch_size))


def time_group(asked: Asked) -> GroupTime | None:
    """Times a group on one thread; None where training it diverges at once.

    Raises:
        SeqclsError, MemoryError, RuntimeError: it cannot be trained here.
    """
    whole = resolve(asked.config)
    engine = choose_engine(whole, ready=True).name
    chosen = choose_engine(whole).name
    faster = _times_as_fast(chosen, engine, whole.network.hidden_size)
    members = asked.members if _trains_side_by_side(engine) else 1
    weights: list[Weights] = []

    def train(problem: Problem) -> None:
        trained = train_group([(problem, seed) for seed in range(members)], engine=engine)
        weights[:] = [x.kept_weights for x in trained if x.failure is None]

    def test(problem: Problem) -> None:
        evaluate(problem, weights, engine=engine)

    epoch, epoch_once = _extrapolated(whole, "train", train)
    if not weights:
        return None
    tested, _ = _extrapolated(whole, "test", test)
    check = _check_seconds(whole, weights[0], engine) if asked.verdict else 0.0
    draw = {part: _part_seconds(whole, part, partial(_draw, part)) for part in PARTS}
    return GroupTime(
        epoch / members / faster,
        # PyTorch prepares the strings of every step anew.
        epoch_once if engine_named(engine).one_thread else 0.0,
        (tested / members + check) / faster,
        _part_seconds(whole, "test", lambda few: distinct_test_strings(few.test)),
        draw["train"],
        draw["validation"] + draw["test"],
    )


def _times_as_fast(chosen: str, ready: str, hidden_size: int) -> float:
    """About how many times as fast an engine is, once compiled, as one that is ready.

    Measured with the report's models and those of `benchmarks.outputs`.
    """
    if chosen == ready:
        return 1.0
    if chosen == "fused":
        return 60.0 if engine_named(ready).by_counts else 140.0
    return max(1.0, 150.0 / hidden_size)


def _trains_side_by_side(engine: str) -> bool:
    """Whether a step is one of all members, which costs less than one of each."""
    return engine_named(engine).by_counts and not engine_named(engine).one_thread


def _extrapolated(whole: Problem, part: str, do: Callable[[Problem], None]) -> tuple[float, float]:
    """Seconds that doing it with all strings of a part takes: again, and the first time besides."""
    size = whole.sampler(part).epoch_size
    strings = min(size, whole.sampler(part).batch_size)
    few = _shortened(whole, part, min(FEW, strings))
    # The first call loads what later ones find loaded.
    do(few)
    if strings > FEW and _seconds(partial(do, few)) * strings / FEW > TOO_LONG_SECONDS:
        strings = FEW
    before = (0, 0.0)
    while True:
        problem = _shortened(whole, part, strings)
        first = again = _seconds(partial(do, problem))
        if first < SLOW_SECONDS:
            again = min(first, _seconds(partial(do, problem)))
        if again >= ENOUGH_SECONDS or strings == size:
            break
        before, strings = (strings, again), min(size, strings * STEPS)
    # What every call takes, however many strings it has, is not counted once for each string.
    slope = (again - before[1]) / (strings - before[0])
    per_string = min(max(slope, again / strings / STEPS), again / strings)
    return again + per_string * (size - strings), (first - again) * size / strings


def _shortened(whole: Problem, part: str, strings: int) -> Problem:
    """The same problem with fewer strings, and one epoch."""
    config = whole.config
    share = strings / whole.sampler(part).epoch_size
    sizes = {part: strings}
    if part == "train":
        sizes["validation"] = max(1, round(share * whole.validation.epoch_size))
    update: dict[str, Any] = {f"{name}_size": size for name, size in sizes.items()}
    update |= {f"{x}_batch_size": min(n, whole.sampler(x).batch_size) for x, n in sizes.items()}
    update |= {"max_num_epochs": 1, "min_num_epochs": 1, "disjoint": False}
    problem = resolve(config.model_copy(update=update))
    # The network is that of all lengths, also where the strings of a file say them.
    longer = {x: size for x, size in sizes.items() if problem.sampler(x).epoch_size > size}
    samplers: dict[str, Any] = {x: _FirstOf(problem.sampler(x), n) for x, n in longer.items()}
    return replace(problem, network=whole.network, **samplers)


def _draw(part: str, problem: Problem) -> None:
    next(problem.sampler(part).epochs())


def _part_seconds(whole: Problem, part: str, do: Callable[[Problem], object]) -> float:
    """What takes as long for each string of a part, judged by some of them."""
    size = whole.sampler(part).epoch_size
    few = min(size, SOME)
    return _seconds(partial(do, _shortened(whole, part, few))) * size / few


def _check_seconds(whole: Problem, weights: Weights, engine: str) -> float:
    """The exhaustive check of a member, judged by half the length."""
    if unaffordable(whole) is not None:
        return 0.0
    letters, longest = len(whole.task.alphabet), whole.test.lengths[-1]
    least = max(whole.test.lengths[0], min(longest, whole.config.test_min_length))
    half = max(longest // 2, least)
    short = resolve(whole.config.model_copy(update={"test_max_length": half}))
    short = replace(short, network=whole.network)
    share = num_multisets(letters, longest) / num_multisets(letters, half)
    verdicts(short, [weights], engine=engine)
    return share * _seconds(lambda: verdicts(short, [weights], engine=engine))


def _seconds(do: Callable[[], object]) -> float:
    # Of this process alone, so that what else the machine does now is not taken for its own.
    started = time.process_time()
    do()
    return time.process_time() - started
