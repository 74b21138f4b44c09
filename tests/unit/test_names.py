"""Names of imported configurations, durations and times."""

import json
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from dashboard.text import clock
from seqcls.config import RunConfig
from seqcls.errors import ConfigError
from seqcls.imported import fields_known, imported_config, in_columns, same_settings
from seqcls.text import canonical_json
from sweeps.naming import name_configurations
from sweeps.terminal import format_duration

NAMES = st.sampled_from(["d", "model", "a.b", "a", "config", "b", "config.model", "'"])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([0.5, 1.0, 2.0**70, 2**70, -0.0, 1e300]),
    st.sampled_from(["null", "1", "1.0", "true", "[1]", '"', '"1"', "", "a, b=1", "a\nb", "{}"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)


def _configured(settings: dict[str, Any]) -> RunConfig:
    try:
        return imported_config({"task": "parity"}, "net", settings)
    except ConfigError as error:
        assume("two settings are called" not in str(error))
        raise


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=3), min_size=2, max_size=6))
def test_imported_configurations_have_distinct_names(several: list[dict[str, Any]]) -> None:
    configs = {config.key: config for config in map(_configured, several)}.values()
    shown = in_columns(map(fields_known, configs))
    columns = [{k: v for k, v in row.items() if k.startswith("config.")} for row in shown]
    named = name_configurations(dict(enumerate(configs, 1)))
    assert len(set(named.values())) == len(configs)
    # What is another value is written otherwise, so that names have numbers for equal ones alone:
    # those of equal numbers, and None beside what is not set.
    distinct = {same_settings(config) for config in configs}
    seen = {tuple(sorted((k, v) for k, v in row.items() if v is not None)) for row in columns}
    without_none = {
        canonical_json({k: v for k, v in json.loads(x)["imported"].items() if v is not None})
        for x in distinct
    }
    assert len(seen) == len(without_none)
    for settings in several:
        again = _configured(json.loads(json.dumps(settings), parse_int=float))
        same = abs(max(_numbers(settings), key=abs, default=0)) < 2**53
        assert not same or same_settings(again) == same_settings(_configured(settings))


def _numbers(value: Any) -> list[int]:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [x for item in inner for x in _numbers(item)]
    return [value] if isinstance(value, int) else []


def test_duration_uses_its_largest_sensible_unit() -> None:
    expected = ["under a second", "1 second", "40 seconds", "2 minutes", "1 hour and 30 minutes"]
    assert [format_duration(x) for x in (0.2, 1, 40, 120, 5400)] == expected
    # A damaged database may name any number.
    assert [format_duration(x) for x in (2.0**63, float("inf"))] == ["over a century"] * 2


def test_times_are_shown_in_utc() -> None:
    assert clock("2026-11-21T10:00:00.123+02:00") == "2026-11-21 08:00:00 UTC"
    assert clock(None) == "not yet"
