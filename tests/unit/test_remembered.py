"""What is kept in memory to be used again: so many bytes of it, whatever it is."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from seqcls.cache import MEMORY, Memory, bytes_of, remembered
from seqcls.config import RunConfig
from seqcls.problem import resolve
from seqcls.sampling.streams import Stream
from seqcls.tasks.regular import Regular


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Memory:
    """The memory of this process, with room for a megabyte."""
    monkeypatch.setattr(MEMORY, "_max_bytes", 1_000_000)
    return MEMORY


def test_what_was_used_longest_ago_makes_room() -> None:
    memory = Memory(2_500)
    for name in ("first", "second"):
        memory.keep(name, np.zeros(125))
    assert memory.get("first") is not None
    memory.keep("third", np.zeros(125))
    assert [name for name in ("first", "second", "third") if memory.get(name) is not None] == [
        "first",
        "third",
    ]


def test_what_is_kept_anew_is_counted_once_and_what_is_too_large_stays_alone() -> None:
    memory = Memory(2_500)
    for _ in range(5):
        memory.keep("again", np.zeros(125))
    memory.keep("other", np.zeros(125))
    assert memory.get("again") is not None
    memory.keep("large", np.zeros(1_000))
    assert memory.get("large") is not None
    assert memory.get("again") is None
    assert memory.get("other") is None


def test_a_function_is_asked_once_for_the_same() -> None:
    asked: list[Any] = []

    @remembered
    def half(number: int, *, by: int = 2) -> float:
        asked.append(number)
        return number / by

    assert [half(3), half(3), half(3, by=4), half(4)] == [1.5, 1.5, 0.75, 2.0]
    assert asked == [3, 3, 4]


def test_bytes_are_those_of_all_that_a_value_holds() -> None:
    drawn = Stream(resolve(RunConfig(task="parity", train_size=1_000)).train).epoch(0)
    assert bytes_of(drawn) > drawn.strings.letters.nbytes + drawn.strings.lengths.nbytes
    part = np.zeros(1_000)
    held: list[Any] = [part, "x" * 1_000]
    assert (once := bytes_of(held)) > 9_000
    # What holds itself, or one part twice, is counted once.
    held += [held, part]
    assert once <= bytes_of(held) < once + part.nbytes


def test_tables_of_many_patterns_take_no_more_than_those_of_a_few(small: Memory) -> None:
    # Each has a table of 0.6 MB for each label.
    tasks = [Regular("ab", f"(a|b)*a(a|b){{{number}}}b(ab)*") for number in (5, 6, 7)]
    for task in tasks:
        task.draw(np.random.default_rng(0), 500, True)
    assert small._bytes <= small._max_bytes or len(small._kept) == 1
    assert [task.automaton.has(500, True) for task in tasks] == [True] * 3
    again = tasks[0].draw(np.random.default_rng(0), 500, True)
    assert (
        again == Regular("ab", tasks[0].pattern).draw(np.random.default_rng(0), 500, True)
    ).all()


def test_a_task_that_is_held_holds_no_table(small: Memory) -> None:
    task = resolve(RunConfig(task="regular", alphabet="ab", pattern="(a|b)*a(a|b){8}")).task
    assert isinstance(task, Regular)
    table = weakref.ref(task.automaton.table)
    small.keep("large", np.zeros(1_000_000))
    gc.collect()
    assert table() is None


def test_epochs_that_make_room_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MEMORY, "_max_bytes", 100_000)
    stream = Stream(resolve(RunConfig(task="parity", train_size=2_000)).train)
    drawn = [stream.epoch(epoch) for epoch in range(4)]
    again = stream.epoch(0)
    assert again is not drawn[0]
    assert (again.strings.letters == drawn[0].strings.letters).all()
    assert (again.labels == drawn[0].labels).all()
    assert stream.epoch(0) is again
