"""What a group's training and testing take here, from a moment of each."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np

from seqcls.cancellation import check
from seqcls.config import PARTS
from seqcls.engines.base import Engine
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.evaluation import distinct_test_strings, evaluate
from seqcls.interpretability.domains import num_multisets
from seqcls.interpretability.verdicts import unaffordable, verdicts
from seqcls.problem import Problem, resolve
from seqcls.results import EpochLosses, Weights
from seqcls.sampling.streams import OfLengths, stream
from seqcls.training import train_group
from sweeps.work.estimate import GroupTime, GroupToTime
from sweeps.work.jobs import on_one_thread


def shorten(whole: Problem, part: str, strings: int, epochs: int = 1) -> Problem:
    """The same problem with fewer strings of a part, and fewer epochs."""
    config = whole.config
    share = strings / whole.sampler(part).epoch_size
    sizes = {part: strings}
    if part == "train":
        sizes["validation"] = max(1, round(share * whole.validation.epoch_size))
    update: dict[str, Any] = {f"{name}_size": size for name, size in sizes.items()}
    update |= {f"{x}_batch_size": min(n, whole.sampler(x).batch_size) for x, n in sizes.items()}
    update |= {"max_num_epochs": epochs, "min_num_epochs": epochs, "disjoint": False}
    # Few strings may all be right by chance, or none of them of trained lengths.
    update |= {"stop_when_right": False, "check_every": 0}
    problem = resolve(config.model_copy(update=update))
    # The network is that of all lengths, also where the strings of a file say them.
    drawn = {part: (problem.sampler(part), size) for part, size in sizes.items()}
    # Of some samplers no setting gives the size.
    samplers: dict[str, Any] = {
        part: OfLengths(sampler, sampler.lengths, size)
        for part, (sampler, size) in drawn.items()
        if sampler.epoch_size > size
    }
    return replace(problem, network=whole.network, **samplers)


# Parts of an epoch and of the test are timed, warm, and the whole is extrapolated from them.

ENOUGH_SECONDS = 0.01
"""What took so long is extrapolated from; what took less is tried with more strings."""

ENOUGH_OF_A_BATCH = 0.15
"""What took so long is extrapolated from, if it is less than a batch: its strings take longer."""

REPEATED_SECONDS = 0.4
"""What may take longer is not repeated to be timed without what the first time needs besides."""

QUICK_SECONDS = 0.05
"""A test that took longer is not repeated either: it needs little besides."""

TOO_LONG_SECONDS = 0.8
"""A batch that may take so long is not tried at once."""

FEW = 4
"""Strings of the first call."""

SOME = 500
"""Strings whose drawing is timed."""

STEPS = 4
"""A string takes at least its share in the last try by so much; the next try has at most so many
times as many strings, twice."""

SOME_DEVIATION = 0.1
"""The deviation of the parameters that a trial begins with."""

Spent = tuple[float, float]
"""Seconds of the first round and of the last."""

Spend = Callable[[int, int], Spent]
"""Tries so many strings, in so many rounds."""


class GroupTrial:
    """A group's training and testing with some of its strings, by an engine that is compiled."""

    def __init__(self, group: GroupToTime) -> None:
        whole = resolve(group.config)
        self.engine = engine_named(choose_engine(whole, ready=True).name)
        side_by_side = self.engine.by_counts and not self.engine.one_thread
        self.members = group.members if side_by_side else 1
        """The members that a step moves together, which costs less than a step of each."""
        self.weights: list[Weights] = []
        """The weights of those that were trained last."""
        self._whole, self._verdict = whole, group.verdict

    def load(self) -> None:
        """Has all loaded that training and testing load as they begin."""
        self._train(FEW, 1)
        if self.weights:
            self._test(FEW, 1)

    def time(self) -> GroupTime | None:
        """Times the group on one thread; None where training it diverges at once.

        Raises:
            SeqclsError, MemoryError, RuntimeError: it cannot be trained here.
            Cancelled: whoever waits has left.
        """
        whole = self._whole
        epoch, epoch_once = _extrapolate(whole, "train", self._train)
        if not self.weights:
            return None
        tested, _ = _extrapolate(whole, "test", self._test)
        checking = 0.0
        if self._verdict:
            checking = _check_seconds(whole, self.weights[0], self.engine.name)
        draw = {part: _part_seconds(whole, part, partial(_draw, part)) for part in PARTS}
        faster = _times_as_fast(choose_engine(whole).name, self.engine, whole.network.hidden_size)
        return GroupTime(
            epoch / self.members / faster,
            # PyTorch prepares the strings of every step anew.
            epoch_once if self.engine.one_thread else 0.0,
            (tested / len(self.weights) + checking) / faster,
            _part_seconds(whole, "test", lambda few: distinct_test_strings(few.test)),
            draw["train"],
            draw["validation"] + draw["test"],
        )

    def _train(self, strings: int, rounds: int) -> Spent:
        """The seconds of the first round and of the last: epochs, or members where one is trained
        after another, since these have the same strings.
        """
        alone = self.engine.one_thread
        epochs = 1 if alone else rounds
        problem = shorten(self._whole, "train", strings, epochs)
        # Drawing has a time of its own.
        for index in range(epochs):
            stream(problem.train).epoch(index)
        stream(problem.validation).epoch(0)
        members = [(problem, seed) for seed in range(rounds if alone else self.members)]
        ended = [time.thread_time()]

        def report(_done: float, epochs: Sequence[EpochLosses]) -> None:
            check()
            if epochs:
                ended.append(time.thread_time())

        initial = _some_parameters(self.engine, problem, len(members))
        name = self.engine.name
        with on_one_thread(name):
            trained = train_group(members, engine=name, progress=report, initial=initial)
        self.weights = [x.kept_weights for x in trained if x.failure is None][: self.members]
        spent = [end - start for start, end in pairwise([*ended, time.thread_time()])]
        return spent[0], spent[max(0, len(spent) - 2)]

    def _test(self, strings: int, rounds: int) -> Spent:
        """The seconds of testing once, and again."""
        problem = shorten(self._whole, "test", strings)
        # As what is made once for all members.
        distinct_test_strings(problem.test)
        test = partial(evaluate, problem, self.weights, engine=self.engine.name)
        with on_one_thread(self.engine.name):
            first = _seconds(test)
            return first, _seconds(test) if rounds > 1 and first < QUICK_SECONDS else first


def _some_parameters(engine: Engine, problem: Problem, members: int) -> list[Weights] | None:
    """Parameters to begin with, where drawing the right ones would load PyTorch for nothing else;
    None where the engine draws them.
    """
    shapes = engine.parameter_shapes(problem.network) if engine.wants_initial else None
    if shapes is None:
        return None
    drawn = np.random.default_rng(0)
    some = {
        name: drawn.normal(0.0, SOME_DEVIATION, shape).astype(problem.network.precision)
        for name, shape in shapes.items()
    }
    return [some] * members


def _times_as_fast(chosen: str, ready: Engine, hidden_size: int) -> float:
    """About how many times as fast an engine is, once compiled, as one that is ready.

    Measured with the report's models and those of `benchmarks.outputs`.
    """
    if chosen == ready.name:
        return 1.0
    if chosen == "fused":
        return 60.0 if ready.by_counts else 140.0
    return max(1.0, 150.0 / hidden_size)


def _extrapolate(whole: Problem, part: str, spend: Spend) -> tuple[float, float]:
    """Seconds that all strings of a part take: again, and the first time besides."""
    size = whole.sampler(part).epoch_size
    batch = min(size, whole.sampler(part).batch_size)
    strings = min(FEW, batch)
    first, again = spend(strings, 2)
    before = (0, 0.0)
    while True:
        # Where strings are few, what every call takes may be most of it.
        slope = (again - before[1]) / (strings - before[0])
        slope = min(max(slope, again / strings / STEPS), again / strings)
        more = _next(strings, again, slope, batch, size)
        if more == strings:
            return again + slope * (size - strings), max(0.0, first - again) * size / strings
        expected = again + slope * (more - strings)
        # Of less than a batch a string takes longer, unless a batch takes too long.
        is_measure = strings >= batch or more < batch
        before = (strings, again) if is_measure else (0, 0.0)
        first, again = spend(more, 2 if expected < REPEATED_SECONDS else 1)
        strings = more


def _next(strings: int, seconds: float, slope: float, batch: int, size: int) -> int:
    """How many strings to try after so many took so long; as many where that was enough."""
    if strings < batch:
        if seconds + slope * (batch - strings) <= TOO_LONG_SECONDS:
            return batch
        if seconds >= ENOUGH_OF_A_BATCH:
            return strings
        return min(batch, strings + max(strings, int(ENOUGH_OF_A_BATCH / max(slope, 1e-9))))
    if seconds >= ENOUGH_SECONDS:
        return strings
    # A clock may not have moved meanwhile.
    missing = ceil((1.5 * ENOUGH_SECONDS - seconds) / max(slope, 1e-9))
    return min(size, strings + max(strings, missing), STEPS**2 * strings)


def _draw(part: str, problem: Problem) -> None:
    next(problem.sampler(part).epochs())


def _part_seconds(whole: Problem, part: str, do: Callable[[Problem], object]) -> float:
    """What takes as long for each string of a part, judged by some of them."""
    size = whole.sampler(part).epoch_size
    few = min(size, SOME)
    return _seconds(partial(do, shorten(whole, part, few))) * size / few


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
    # Of this thread alone, so that what else the machine does now is not taken for its own. A limit
    # on a process's seconds makes its own clock move by milliseconds only.
    check()
    started = time.thread_time()
    do()
    return time.thread_time() - started
