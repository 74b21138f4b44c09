"""Durations as people say them."""

from datetime import timedelta

SECONDS_UP_TO = 90
CENTURY_SECONDS = 100 * 365 * 24 * 3600
"""Nobody waits for that; a database may say it of a run all the same."""


def spoken(seconds: float) -> str:
    """A duration to the second where it is short, else to the minute: 1 hour and 30 minutes."""
    import humanize

    if seconds < 1:
        return "under a second"
    if seconds >= CENTURY_SECONDS:
        return "over a century"
    unit = "seconds" if seconds < SECONDS_UP_TO else "minutes"
    return humanize.precisedelta(timedelta(seconds=round(seconds)), unit, format="%.0f")
