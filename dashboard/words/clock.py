"""Times as people say them."""

from datetime import UTC, datetime


def clock(time: str | None) -> str:
    """A stored time to the second, in UTC; words where there is none."""
    if time is None:
        return "not yet"
    return f"{datetime.fromisoformat(time).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
