"""The process that times groups: `python -m sweeps.work.time_here`.

It is asked on its standard input, as often as one likes, and answers on its standard output, one
message a group and then one of the seconds that a process takes to be ready. It counts its own
seconds only, so that what else the machine does now is not taken for its own. It ends with its
input, or once nobody has asked for a while.
"""

import os
import resource
import select
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

from seqcls.engines.choice import choose_engine, engine_named
from seqcls.errors import SeqclsError
from seqcls.problem import resolve
from seqcls.strings.datasets import Dataset, remember
from sweeps.work.executors.messages import Inbox, packed
from sweeps.work.timing import GroupToTime
from sweeps.work.trial import GroupTrial, time_group

IDLE_SECONDS = 300.0
"""After so long without a question it ends: it holds some hundred megabytes."""

MOST_SECONDS = 1.0
"""Once so much is spent on a question, no further group is timed."""

PATIENCE_SECONDS = 60
"""Processor seconds for a question; what takes more is given up, and nobody waits for it
forever."""

CHUNK_BYTES = 1 << 16


class _Starting:
    """What starting a process takes that trains such groups as were asked about."""

    def __init__(self) -> None:
        self._seconds = time.process_time()
        self._ready: set[str] = set()

    def load(self, group: GroupToTime) -> None:
        """Loads what training and testing such a group takes, unless a group before needed it."""
        problem = resolve(group.config)
        engine = engine_named(choose_engine(problem).name)
        if engine.name in self._ready:
            return
        began = time.process_time()
        if problem.network.head != "string" or not engine.one_thread:
            import torch

            torch.set_num_threads(1)
        engine.load()
        GroupTrial(group).load()
        self._ready.add(engine.name)
        self._seconds += time.process_time() - began

    @property
    def seconds(self) -> float:
        """Seconds of all that was loaded."""
        # Else whoever hands out the groups loads PyTorch to draw their parameters, which takes
        # about as long as all that is loaded here.
        return self._seconds * (1 if "torch" in sys.modules else 2)


def main() -> None:
    """Answers until there is nothing more to answer."""
    starting = _Starting()
    for groups, datasets in _questions():
        spent = int(time.process_time())
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (spent + PATIENCE_SECONDS, hard))
        for content in datasets:
            remember(Dataset.from_bytes(content))
        timed = 0.0
        for each in groups:
            # One that cannot be trained is said to be so where it is launched.
            with suppress(SeqclsError, MemoryError, RuntimeError):
                starting.load(each)
                began = time.process_time()
                _say({each.config.group_key: time_group(each)})
                timed += time.process_time() - began
            if timed > MOST_SECONDS:
                break
        _say(starting.seconds)


def _questions() -> Iterator[tuple[list[GroupToTime], list[bytes]]]:
    inbox, given = Inbox(), sys.stdin.fileno()
    while select.select([given], [], [], IDLE_SECONDS)[0] and (
        piece := os.read(given, CHUNK_BYTES)
    ):
        inbox.add(piece)
        while (question := inbox.next()) is not None:
            yield question


def _say(message: object) -> None:
    sys.stdout.buffer.write(packed(message))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
