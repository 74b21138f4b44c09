"""What this machine has timed, kept beside what else it would make again."""

import hashlib
import json
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from seqcls import __version__
from sweeps.work.timing.times import GroupTime, GroupToTime, Times

MOST = 1_000
"""So many are kept; those timed longest ago go first."""


class Remembered:
    """Times of groups by what they depend on; a damaged file is an empty one."""

    def __init__(self) -> None:
        from seqcls.caching.cache import cache_folder

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
        from seqcls.caching.cache import keep

        if not times.groups:
            return
        for each in groups:
            if (time := times.groups.get(each.config.group_key)) is not None:
                self._kept[_key(each)] = {"start": times.start, "time": asdict(time)}
        content = json.dumps(dict(list(self._kept.items())[-MOST:]))
        keep(self._file, content.encode())


def _key(group: GroupToTime) -> str:
    """What a group's time depends on: the machine, what trains it here, and the group."""
    from seqcls.engines.choice import choose_engine
    from seqcls.problem import resolve

    problem = resolve(group.config)
    engines = [choose_engine(problem, ready=ready).name for ready in (False, True)]
    versions = [__version__, version("torch"), version("numba")]
    told = [socket.gethostname(), *versions, *engines, group.config.group_key]
    return hashlib.sha256(repr([*told, group.members, group.verdict]).encode()).hexdigest()[:32]
