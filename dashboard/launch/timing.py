"""What is offered is timed for a moment, beside the page, once nobody changes it any longer."""

from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

import streamlit as st

from sweeps.grid.spec import SweepSpec
from sweeps.questions import sweeping
from sweeps.read_only import is_read_only
from sweeps.store.opening import existing
from sweeps.work.estimate import Estimate
from sweeps.work.timing.process import Stopwatch
from sweeps.work.timing.times import GroupTime, GroupToTime, Times

SECONDS = 1.0
"""After so long without a change it is timed, and so often is looked whether that is done."""

MOST_KEPT = 1_000
"""Groups that were timed, and specifications, that a server keeps."""

Key = tuple[str, ...]
"""Specifications as they were submitted."""


class Timings:
    """What this server has timed."""

    def __init__(self) -> None:
        # Its process is kept: what else is offered is timed without starting one.
        self._watch = Stopwatch()
        self._groups: OrderedDict[GroupToTime, GroupTime | None] = OrderedDict()
        self._start = 0.0
        self._begun: OrderedDict[Key, Future[Estimate]] = OrderedDict()
        self._lock = Lock()
        # One at a time: two would slow each other down, and be timed as slower than they are.
        self._thread = ThreadPoolExecutor(1, "timing")

    def known(self, groups: Sequence[GroupToTime]) -> Times:
        """What is known of these groups, without timing any."""
        with self._lock:
            times_of = {each: self._groups.get(each) for each in groups}
            times = {x.config.group_key: time for x, time in times_of.items() if time is not None}
            return Times(self._start, times) if times else Times()

    def prepare(self) -> None:
        """Has what times loaded before it is needed."""
        self._thread.submit(self._watch.start)

    def is_done(self, key: Key) -> bool:
        """Whether all is known that timing can tell of these specifications."""
        return key in self._begun and self._begun[key].done()

    def begin(self, key: Key, specs: Sequence[SweepSpec], workers: int) -> None:
        """Times what is not known of these specifications, unless that was begun before."""
        with self._lock:
            if key not in self._begun:
                estimate = sweeping.estimate
                self._begun[key] = self._thread.submit(
                    estimate, existing(), list(specs), workers, self._measured
                )
                self._forget()

    def _measured(self, groups: Sequence[GroupToTime]) -> Times:
        new = [each for each in groups if each not in self._groups]
        times = self._watch(new)
        with self._lock:
            self._start = times.start or self._start
            self._groups |= {x: times.groups.get(x.config.group_key) for x in new}
        known = self.known(groups)
        with self._lock:
            self._forget()
        return known

    def _forget(self) -> None:
        """Leaves out what was offered longest ago; the machine remembers what was timed."""
        while len(self._groups) > MOST_KEPT:
            self._groups.popitem(last=False)
        ended = [key for key, begun in self._begun.items() if begun.done()]
        for key in ended[: max(0, len(self._begun) - MOST_KEPT)]:
            del self._begun[key]


@st.cache_resource(show_spinner=False)
def timings() -> Timings:
    """Those of this server."""
    return Timings()


def when_left_alone(specs: Sequence[SweepSpec], workers: int) -> None:
    """Times what is offered once it has been left alone, and has the page drawn again with it."""
    key = key_of(specs)
    if not is_read_only() and not timings().is_done(key):
        timings().prepare()
        # The first drawing is that of the page; those that follow come after a pause.
        st.fragment(_look, run_every=SECONDS)(key, list(specs), workers, [])


def key_of(specs: Sequence[SweepSpec]) -> Key:
    """Specifications as they were submitted."""
    return tuple(spec.submitted for spec in specs)


def _look(key: Key, specs: Sequence[SweepSpec], workers: int, drawn: list[bool]) -> None:
    if timings().is_done(key):
        st.rerun()
    if drawn:
        timings().begin(key, specs, workers)
        st.caption("Timing a few steps to estimate how long this takes.")
    drawn.append(True)
