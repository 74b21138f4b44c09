"""Speed of a sweep: pauses count for no training time."""

from datetime import UTC, datetime, timedelta

from sweeps.work.progress import busy_seconds

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).isoformat()


def test_busy_seconds_exclude_pauses_and_count_overlaps_once() -> None:
    together = [(ago(200), ago(180)), (ago(195), ago(170))]
    after_a_pause = [(ago(10), None)]
    assert busy_seconds([*together, *after_a_pause], NOW) == 30 + 10
    assert busy_seconds([], NOW) == 0
