"""Times and durations as people say them."""

from datetime import UTC, datetime


def spoken(seconds: float) -> str:
    """A duration in its largest sensible unit: 40 s, 12 min, 3.5 h."""
    if seconds < 1:
        return "under a second"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def clock(time: str | None) -> str:
    """A stored time to the second, in UTC; words where there is none."""
    if time is None:
        return "not yet"
    return f"{datetime.fromisoformat(time).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
