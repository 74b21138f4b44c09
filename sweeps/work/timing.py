"""Timing groups for a moment, so that what their training will take is known before it begins.

Groups are timed in this process, one after another, and what was timed is remembered as long as it
lives. What trains them is imported only once something is timed.
"""

import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock

from seqcls.cancellation import check_each
from seqcls.errors import SeqclsError
from sweeps.work.estimate import GroupTime, GroupToTime, Times

MOST_SECONDS = 1.0
"""Once so much is spent on a question, no further group is timed."""

MOST_KNOWN = 1_000
"""So many groups are remembered; those timed longest ago go first."""


START_SECONDS = 1.5
"""What importing PyTorch or Numba takes of a processor."""

_known: OrderedDict[GroupToTime, GroupTime | None] = OrderedDict()
"""What was timed; None where that came to nothing."""

_alone = Lock()
"""Two at once would slow each other down."""


def known_times(groups: Sequence[GroupToTime]) -> Times:
    """What is known of these groups, without timing any."""
    times_of = {each.config.group_key: _known.get(each) for each in groups}
    times = {key: time for key, time in times_of.items() if time is not None}
    return Times(START_SECONDS, times) if times else Times()


def time_groups(groups: Sequence[GroupToTime]) -> Times:
    """Times groups, those named first first, while there is time.

    Raises:
        Cancelled: whoever waits has left.
    """
    spent = 0.0
    with _alone:
        for group in check_each(groups):
            if group in _known:
                continue
            if spent > MOST_SECONDS:
                break
            from sweeps.work.trial import GroupTrial

            timed = None
            # One that cannot be trained is said to be so where it is launched.
            with suppress(SeqclsError, MemoryError, RuntimeError):
                trial = GroupTrial(group)
                trial.load()
                began = time.thread_time()
                timed = trial.time()
                spent += time.thread_time() - began
            _known[group] = timed
        while len(_known) > MOST_KNOWN:
            _known.popitem(last=False)
    return known_times(groups)
