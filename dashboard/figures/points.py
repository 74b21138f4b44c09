"""Vectors of a model as points: on number lines, or as arrows in a plane with equal scales."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import altair as alt
import pandas as pd

from dashboard import marks
from dashboard.figures.projection import Limits, Projection

SIDE, SMALL_SIDE = 330, 210
"""Pixels of a plane's side; of one of several."""

LINE, ROW = 420, 36
"""Pixels of a number line, and of the room that it has above and below."""

CHARACTER, LETTERS, GAP = 6.8, 14, 9
"""Pixels of a letter, of a line of text of size 12, and from a point to its name."""

PANELS_IN_ROW = 3

SHAPES = ("triangle-down", "triangle-up", "triangle-down", "triangle-up")
"""Strings in the language point up, the others down."""

OWN_SIZE: dict[str, Any] = {"autosize": {"type": "pad"}}
"""Properties of a chart with a square plot, which is not as wide as its place."""

Place = tuple[float, float]
Candidates = Callable[[Place, float], list[Place]]


def of_tokens(points: pd.DataFrame, projection: Projection, tokens: Sequence[str]) -> Any:
    """States of tokens, colored by token.

    Args:
        points: one row a point: token, name (what is written beside it), row (its number line), x,
            y where it is a plane, and values (the vector, as text). Planes with different `panel`,
            where there is such a column, are drawn side by side. What is a `query` has its name
            below its point on a number line, where others have it above.
        projection: whose coordinates they are.
        tokens: the vocabulary in order.
    """
    color = marks.token_color(tokens, legend=marks.TOP, title="Token", sort=list(tokens))
    return _states(points, projection, color, None, ())


def of_strings(points: pd.DataFrame, projection: Projection, below: Sequence[Any] = ()) -> Any:
    """States of strings, in the color and shape of what the model makes of them.

    Args:
        points: as for `of_tokens`, with outcome in place of token, and logit.
        projection: whose coordinates they are.
        below: layers to draw below the points, on the same axes.
    """
    legend = alt.Legend(orient="top", columns=2, symbolOpacity=1)
    color = marks.color("outcome", marks.ANSWERS, legend=legend, title="String")
    shapes = alt.Scale(domain=list(marks.ANSWERS), range=list(SHAPES))
    shape = alt.Shape("outcome:N", title="String", scale=shapes, legend=legend)
    return _states(points, projection, color, shape, below)


def axis(projection: Projection, number: int) -> Any:
    """The x (0) or y (1) axis of a projection, on its limits."""
    channel = (alt.X, alt.Y)[number]
    scale = alt.Scale(domain=projection.domains[number], nice=False, zero=False)
    drawn = alt.Axis(tickCount=6)
    return channel(f"{'xy'[number]}:Q", title=projection.titles[number], scale=scale, axis=drawn)


def _states(
    points: pd.DataFrame, projection: Projection, color: Any, shape: Any, below: Sequence[Any]
) -> Any:
    answer = {} if shape is None else {"outcome": "Outcome", "logit": "Logit:.4f"}
    tooltip = marks.tips(name="Of", values="Exact value", **answer)
    base = alt.Chart().encode(axis(projection, 0), tooltip=tooltip)
    if len(projection.domains) == 1:
        rows = list(dict.fromkeys(points["row"]))
        drawn = alt.layer(
            *below, *_number_lines(base, points, color, shape), data=_with_room(points, projection)
        )
        # One line alone would leave no room for the names above and below it.
        return drawn.properties(width=LINE, height=ROW * max(len(rows), 2), **OWN_SIZE)
    side = SMALL_SIDE if "panel" in points else SIDE
    layers = _arrows(base.encode(axis(projection, 1)), color, shape)
    drawn = alt.layer(*below, *layers, data=with_places(points, projection, side))
    drawn = drawn.properties(width=side, height=side)
    if "panel" not in points:
        return drawn.properties(**OWN_SIZE)
    header = alt.Header(labelFontSize=13, labelLimit=SMALL_SIDE)
    names = list(dict.fromkeys(points["panel"]))
    facet = alt.Facet("panel:N", title=None, sort=names, header=header)
    return drawn.facet(facet, columns=PANELS_IN_ROW, spacing=16).properties(**OWN_SIZE)


def _number_lines(base: Any, points: pd.DataFrame, color: Any, shape: Any) -> list[Any]:
    rows = list(dict.fromkeys(points["row"]))
    base = base.encode(alt.Y("row:N", title=None, sort=rows, axis=alt.Axis(labelLimit=160)))
    dots = base.mark_point(size=90, filled=True, opacity=1).encode(color)
    dots = dots if shape is None else dots.encode(shape)
    # Where every row has one point, the row's name is the point's.
    if not points["name"].ne(points["row"]).any():
        return [marks.rule("x", strokeWidth=0.5), dots]
    texts = [
        base.transform_filter(f"datum.free && {'' if below else '!'}datum.query")
        .mark_text(dy=11 if below else -10, fontSize=12, fontWeight="bold", color="~ink")
        .encode(text="name:N")
        for below in (False, True)
    ]
    return [marks.rule("x", strokeWidth=0.5), dots, *texts]


def _arrows(base: Any, color: Any, shape: Any) -> list[Any]:
    colored = base.encode(color)
    shafts = colored.mark_rule(strokeWidth=1.5).encode(x2=alt.datum(0), y2=alt.datum(0))
    if shape is None:
        heads = point_away(colored.mark_point(filled=True, opacity=1, size=60, shape="triangle"))
    else:
        heads = colored.mark_point(filled=True, opacity=1, size=90).encode(shape)
    lines = [marks.rule("x", strokeWidth=0.5), marks.rule("y", strokeWidth=0.5)]
    return [*lines, shafts, heads, names_of(base)]


def point_away(heads: Any) -> Any:
    """Arrow heads that point away from the origin: the scales are equal, and so is the angle."""
    return heads.transform_calculate(angle="atan2(datum.x, datum.y) * 180 / PI").encode(
        angle=alt.Angle("angle:Q", scale=None)
    )


def names_of(base: Any) -> Any:
    """Names where `with_places` has found room; the others are in the tooltip alone."""
    texts = base.mark_text(fontSize=12, color="~ink").transform_filter("isValid(datum.name_x)")
    return texts.encode(x="name_x:Q", y="name_y:Q", text="name:N")


# Names beside points: none lies on another one, on a point, or beyond the edge if it can be helped.


def with_places(points: pd.DataFrame, projection: Projection, side: int) -> pd.DataFrame:
    """The points of a plane with the middle of each name, in the plane's coordinates.

    Args:
        points: x, y, name; panel, where there are several planes.
        projection: whose coordinates they are.
        side: pixels of both sides.

    Returns:
        The same with name_x and name_y, missing where there is no room.
    """
    placed = points.assign(name_x=float("nan"), name_y=float("nan"))
    (left, right), (bottom, top) = projection.domains
    origin = _pixels((0, 0), projection.domains, side)
    around = partial(_around, origin=origin, side=side)
    for _, panel in points.groupby("panel", sort=False) if "panel" in points else [("", points)]:
        at = [
            _pixels(place, projection.domains, side)
            for place in zip(panel["x"], panel["y"], strict=True)
        ]
        for row, place in zip(
            panel.index, _find_room(at, panel["name"].tolist(), around), strict=True
        ):
            if place is not None:
                x, y = (coordinate / side for coordinate in place)
                # Pixels are counted from the top, and the axis from below.
                middle = [left + x * (right - left), top - y * (top - bottom)]
                placed.loc[row, ["name_x", "name_y"]] = middle
    return placed


def _with_room(points: pd.DataFrame, projection: Projection) -> pd.DataFrame:
    """The points of number lines, with query, and free: whether there is room for their names."""
    (low, high), rows = projection.domains[0], list(dict.fromkeys(points["row"]))
    query = points["query"] if "query" in points else [False] * len(points)
    at = [
        ((x - low) / (high - low) * LINE, rows.index(row) * ROW + (11 if below else -10))
        for x, row, below in zip(points["x"], points["row"], query, strict=True)
    ]
    # Names are above or below the lines, and so on no point.
    places = _find_room(at, points["name"].tolist(), lambda place, _: [place], are_points=False)
    return points.assign(query=query, free=[place is not None for place in places])


def _find_room(
    at: Sequence[Place], names: Sequence[Any], candidates: Candidates, *, are_points: bool = True
) -> list[Place | None]:
    """The middle of each name, in pixels; None where there is no room.

    The last point chooses first: it is drawn above the others.

    Args:
        at: where the points are.
        names: what they are called.
        candidates: middles of a name of some width beside a point, the best first.
        are_points: whether names keep off the places, too.
    """
    # The mark of a point is about 8 pixels wide and high.
    points = [(place, 8.0, 8.0) for place in at] if are_points else []
    taken = list[tuple[Place, float, float]]()
    found: list[Place | None] = [None] * len(at)
    for number, (place, name) in reversed(list(enumerate(zip(at, names, strict=True)))):
        width = CHARACTER * len(str(name))
        # A name may touch its own point, and no other one.
        others = [*taken, *points[:number], *points[number + 1 :]]
        for middle in candidates(place, width):
            if not any(
                abs(middle[0] - x) < (width + wide) / 2
                and abs(middle[1] - y) < (LETTERS + high) / 2
                for (x, y), wide, high in others
            ):
                taken.append((middle, width, LETTERS))
                found[number] = middle
                break
    return found


def _around(place: Place, width: float, origin: Place, side: int) -> list[Place]:
    """Middles of a name beside a point: within the plane and off the lines through zero first."""

    def hardly_read(middle: Place) -> tuple[bool, bool]:
        x, y = middle
        left, right, top, bottom = x - width / 2, x + width / 2, y - LETTERS / 2, y + LETTERS / 2
        # Beyond the edge it may be cut off.
        leaves = min(left, top) < 0 or max(right, bottom) > side
        return leaves, left < origin[0] < right or top < origin[1] < bottom

    # Sorted stably: what reads alike stays in its order, the best first.
    return sorted(_beside(place, width, side), key=hardly_read)


def _beside(place: Place, width: float, side: int) -> Iterator[Place]:
    """The same, the best first: away from the origin, so that it is off the arrow."""
    x, y = place
    sideways = (width / 2 + GAP) * (1 if x >= side / 2 else -1)
    below = (GAP + LETTERS / 2) * (1 if y >= side / 2 else -1)
    yield x + sideways, y
    yield x, y + below
    yield x, y - below
    yield x - sideways, y
    yield x + sideways, y + LETTERS
    yield x + sideways, y - LETTERS


def _pixels(place: Place, domains: Sequence[Limits], side: int) -> Place:
    (left, right), (bottom, top) = domains
    return (place[0] - left) / (right - left) * side, (top - place[1]) / (top - bottom) * side
