"""Timing groups for a moment, so that what their training will take is known before it begins.

Groups are timed in a process of their own, which shows too how long one takes to start. A command
starts it first, and imports what it needs itself while that process does the same: little is
imported here.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from seqcls import __version__
from sweeps.processes import python

if TYPE_CHECKING:
    from seqcls.config import RunConfig


# Groups to time, and what they take.


@dataclass(frozen=True)
class GroupToTime:
    """A group to time."""

    config: "RunConfig"
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
    """Seconds for the strings of validation and test."""

    def seconds(self, members: int, epochs: float) -> float:
        """A group's training and testing, the drawing of strings left out."""
        once = epochs * self.epoch_once + self.test_once
        return once + members * (epochs * self.epoch + self.test)


@dataclass(frozen=True)
class Times:
    """What was timed."""

    start: float = 0.0
    """Seconds until a process is ready to train."""
    groups: Mapping[str, GroupTime] = field(default_factory=dict)
    """By `RunConfig.group_key`; those that were not reached, or cannot be timed, are missing."""


# What this machine has timed, kept beside what else it would make again.

MOST = 1_000
"""So many are kept; those timed longest ago go first."""


class TimingCache:
    """Times of groups by what they depend on; a damaged file is an empty one."""

    def __init__(self) -> None:
        from seqcls.cache import cache_folder

        self._file = cache_folder() / "timings" / "groups.json"
        self._kept: dict[str, dict[str, Any]] = {}
        with suppress(OSError, ValueError):
            self._kept = dict(json.loads(self._file.read_text()))

    def of(self, group: GroupToTime) -> GroupTime | None:
        """What a group takes; None where that is not known."""
        with suppress(KeyError, TypeError):
            return GroupTime(**self._kept[_key(group)]["time"])
        return None

    def times(self, groups: Sequence[GroupToTime]) -> Times:
        """What is known of these groups."""
        known = {each: time for each in groups if (time := self.of(each)) is not None}
        start = max((self._kept[_key(each)]["start"] for each in known), default=0.0)
        return Times(start, {each.config.group_key: time for each, time in known.items()})

    def add(self, groups: Sequence[GroupToTime], times: Times) -> None:
        """Remembers what was timed."""
        from seqcls.cache import keep

        if not times.groups:
            return
        for each in groups:
            if (time := times.groups.get(each.config.group_key)) is not None:
                self._kept[_key(each)] = {"start": times.start, "time": asdict(time)}
        content = json.dumps(dict(list(self._kept.items())[-MOST:]))
        keep(self._file, content.encode())


def _key(group: GroupToTime) -> str:
    """What a group's time depends on: the machine, what trains it here, and the group."""
    import hashlib
    import socket
    from importlib.metadata import version

    from seqcls.engines.choice import choose_engine
    from seqcls.problem import resolve

    problem = resolve(group.config)
    engines = [choose_engine(problem, ready=ready).name for ready in (False, True)]
    versions = [__version__, version("torch"), version("numba")]
    told = [socket.gethostname(), *versions, *engines, group.config.group_key]
    return hashlib.sha256(repr([*told, group.members, group.verdict]).encode()).hexdigest()[:32]


CHUNK_BYTES = 1 << 16


class Stopwatch:
    """Times groups, in one process for as long as it is open; one that has ended is started anew.

    What this machine has timed before it looks up.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, groups: Sequence[GroupToTime]) -> Times:
        """Times groups, one after another while there is time; those named first come first."""
        known = TimingCache()
        new = [each for each in groups if known.of(each) is None]
        if new:
            known.add(new, self._answered(new))
        return known.times(groups)

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            with suppress(OSError), self._process:
                pass
            self._process = None

    def start(self) -> "subprocess.Popen[bytes] | None":
        """Has the process import what it needs before it is asked; None where there can be none."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            with suppress(OSError):
                self._process = subprocess.Popen(
                    python("sweeps.work.time_here"),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
        return self._process

    def _answered(self, groups: Sequence[GroupToTime]) -> Times:
        from seqcls.strings.datasets import dataset_of
        from sweeps.work.executors.messages import Inbox, packed

        if (process := self.start()) is None:
            return Times()
        assert process.stdin is not None
        assert process.stdout is not None
        digests = sorted({each.config.dataset for each in groups} - {""})
        contents = [dataset_of(digest).to_bytes() for digest in digests]
        with suppress(OSError):
            process.stdin.write(packed((list(groups), contents)))
            process.stdin.flush()
        inbox = Inbox()
        times: dict[str, GroupTime] = {}
        while piece := os.read(process.stdout.fileno(), CHUNK_BYTES):
            inbox.add(piece)
            while (said := inbox.next()) is not None:
                if isinstance(said, float):
                    return Times(said, times)
                times |= {key: time for key, time in said.items() if time is not None}
        # It died of the last group.
        self.close()
        return Times(0.0, times)


def time_groups(groups: Sequence[GroupToTime]) -> Times:
    """Times groups, in a process for this question alone."""
    watch = Stopwatch()
    try:
        return watch(groups)
    finally:
        watch.close()
