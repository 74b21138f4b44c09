"""How fast a sweep goes on: a pause is no time in which anything was trained."""

from datetime import UTC, datetime, timedelta

from sweeps.work.progress import busy_seconds

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).isoformat()


def test_a_pause_is_not_counted_and_what_runs_at_once_is_counted_once() -> None:
    together = [(ago(200), ago(180)), (ago(195), ago(170))]
    after_a_pause = [(ago(10), None)]
    assert busy_seconds([*together, *after_a_pause], NOW) == 30 + 10
    assert busy_seconds([], NOW) == 0
