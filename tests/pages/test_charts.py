"""Charts show the rows of their frames: which marks, in which colors, and what is pointed at."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from dashboard.charts.colors import FALSE_NEGATIVE, FALSE_POSITIVE
from dashboard.views.error_places import feature_plane
from dashboard.views.output_errors import errors_by_length

COLORS = {"b": "#0072B2", "a": "#009E73"}

Spec = dict[str, Any]


def marks(spec: Spec, kind: str) -> Iterator[Spec]:
    """Every mark of a kind, wherever it is in a chart."""
    mark = spec.get("mark")
    if mark is not None and kind == (mark if isinstance(mark, str) else mark["type"]):
        yield spec
    for name in ("layer", "vconcat", "hconcat", "spec"):
        inner = spec.get(name, [])
        for part in inner if isinstance(inner, list) else [inner]:
            yield from marks(part, kind)


def shown(spec: Spec, layer: Spec) -> list[Spec]:
    """The rows that a mark shows."""
    data: Any = layer.get("data", spec.get("data"))
    found: list[Spec] = spec["datasets"][data["name"]]
    return found


def of_column(spec: Spec, kind: str, column: str) -> list[Spec]:
    """Marks of a kind whose rows have such a column."""
    return [x for x in marks(spec, kind) if column in {*shown(spec, x)[0]}]


def colors_of(layer: Spec) -> dict[str, str]:
    scale = layer["encoding"]["color"]["scale"]
    return dict(zip(scale["domain"], scale["range"], strict=True))


def titles(layer: Spec) -> list[str]:
    return [tip["title"] for tip in layer["encoding"].get("tooltip", [])]


def test_errors_have_the_colors_of_their_kinds_and_lie_where_their_letters_say() -> None:
    errors = pd.DataFrame(
        {"first_length": 1, "last_length": 5, "lengths": "1 to 5", "strings": [2, 3],
         "kind": ["false positive", "false negative"], "tested": [10, 12], "rate": [0.2, 0.25]}
    )  # fmt: skip
    spec = errors_by_length(errors).to_dict()
    assert spec["encoding"]["y"]["stack"] is True
    kinds = {"false positive": FALSE_POSITIVE, "false negative": FALSE_NEGATIVE}
    assert colors_of(spec) == kinds
    places = pd.DataFrame(
        {"string": ["b", "b{2}"], "kind": "false positive", "length": [1, 2], "logit": 1.0,
         "occurrences": 1, "first": [0, 0], "second": [1, 2]}
    )  # fmt: skip
    spec = feature_plane(places, "a's", "nesting depth").to_dict()
    axes = [(spec["encoding"][x]["title"], spec["encoding"][x]["scale"]["domain"]) for x in "xy"]
    assert axes == [("a's", [0, 1]), ("Nesting depth", [0, 2])]
    assert "String" in titles(spec)
    assert [*colors_of(spec)] == [*kinds]
    spec = feature_plane(places.assign(kind="no answer"), "a's", "nesting depth").to_dict()
    assert [*colors_of(spec)] == [*kinds, "no answer"]
    assert len({*colors_of(spec).values()}) == 3
