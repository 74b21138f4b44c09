"""Durations as people say them."""

from datetime import timedelta

import humanize

SECONDS_UP_TO = 90


def spoken(seconds: float) -> str:
    """A duration to the second where it is short, else to the minute: 1 hour and 30 minutes."""
    if seconds < 1:
        return "under a second"
    unit = "seconds" if seconds < SECONDS_UP_TO else "minutes"
    return humanize.precisedelta(timedelta(seconds=round(seconds)), unit, format="%.0f")
