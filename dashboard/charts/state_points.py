"""Vectors of a model as points: on number lines, or as arrows in a plane with equal scales."""

from collections.abc import Iterator, Sequence

import altair as alt
import pandas as pd

from dashboard.charts.colors import GREY, INK, colors_of
from dashboard.charts.pointing import STRING, TOKEN, add_ring, pointer
from dashboard.charts.scales import (
    SIDE,
    SMALL_SIDE,
    ChartAxes,
    Drawing,
    axis,
    by_panel,
    outcome_colors,
    outcome_shapes,
    reserve_height,
    title_params,
    token_colors,
)

CHARACTER = 6.8
LINE = 14
"""Pixels of a letter and of a line of text of size 12."""

GAP = 9
"""Pixels from the middle of a point to its name."""

Box = tuple[float, float, float, float]
"""Left, top, right, bottom, in pixels."""


def with_places(
    points: pd.DataFrame, domains: Sequence[tuple[float, float]], side: int
) -> pd.DataFrame:
    """The points of a plane with the middle of each name, in the plane's coordinates.

    The last point chooses first: it is drawn above the others. A name for which there is no room
    gives way and has none.

    Args:
        points: x, y, name; panel, where there are several planes.
        domains: limits of x and of y.
        side: pixels of both sides.

    Returns:
        The same with name_x and name_y, missing where there is no room.
    """
    placed = points.assign(name_x=float("nan"), name_y=float("nan"))
    panels = points.groupby("panel", sort=False) if "panel" in points else [("", points)]
    origin = _pixels(0, 0, domains, side)
    for _, panel in panels:
        at = [_pixels(x, y, domains, side) for x, y in zip(panel["x"], panel["y"], strict=True)]
        boxes = [_box(x, y, 8, 8) for x, y in at]
        for place in reversed(range(len(panel))):
            x, y = at[place]
            width = CHARACTER * len(str(panel["name"].iloc[place]))
            for middle_x, middle_y in _candidates(x, y, width, origin, side):
                box = _box(middle_x, middle_y, width, LINE)
                others = boxes[:place] + boxes[place + 1 :]
                if not any(_overlap(box, other) for other in others):
                    boxes.append(box)
                    middle = _coordinates(middle_x, middle_y, domains, side)
                    placed.loc[panel.index[place], ["name_x", "name_y"]] = middle
                    break
    return placed


def with_room(points: pd.DataFrame, domain: tuple[float, float], width: int) -> pd.DataFrame:
    """The points of number lines, and whether there is room for each name beside its row's others.

    Args:
        points: x, row, name; query (whose names stand below the line) where there are queries.
        domain: limits of x.
        width: pixels of the line.

    Returns:
        The same with `free`. As in a plane, the last point chooses first.
    """
    taken: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    free: list[bool] = []
    query = points["query"] if "query" in points else pd.Series(False, index=points.index)
    for row, x, name, below in zip(
        *(column.iloc[::-1] for column in (points["row"], points["x"], points["name"], query)),
        strict=True,
    ):
        middle = (x - domain[0]) / (domain[1] - domain[0]) * width
        half = CHARACTER * len(str(name)) / 2
        spans = taken.setdefault((str(row), bool(below)), [])
        free.append(all(middle + half < left or right < middle - half for left, right in spans))
        if free[-1]:
            spans.append((middle - half, middle + half))
    return points.assign(free=free[::-1])


def _candidates(
    x: float, y: float, width: float, origin: tuple[float, float], side: int
) -> list[tuple[float, float]]:
    """Middles of a name: those within the plane and off its lines through zero first."""

    def hardly_read(middle: tuple[float, float]) -> tuple[bool, bool]:
        left, top, right, bottom = box = _box(*middle, width, LINE)
        # Beyond the edge it may be cut off.
        leaves = min(box) < 0 or max(box) > side
        return leaves, left < origin[0] < right or top < origin[1] < bottom

    return sorted(_around(x, y, width, side), key=hardly_read)


def _around(x: float, y: float, width: float, side: int) -> Iterator[tuple[float, float]]:
    """Middles of a name, the best first: away from the origin, so that it is off the arrow."""
    sideways = width / 2 + GAP
    outward = 1 if x >= side / 2 else -1
    below = 1 if y >= side / 2 else -1
    yield x + outward * sideways, y
    yield x, y + below * (GAP + LINE / 2)
    yield x, y - below * (GAP + LINE / 2)
    yield x - outward * sideways, y
    for lines in (1, -1):
        yield x + outward * sideways, y + lines * LINE


def _box(x: float, y: float, width: float, height: float) -> Box:
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _overlap(box: Box, other: Box) -> bool:
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]


def _pixels(
    x: float, y: float, domains: Sequence[tuple[float, float]], side: int
) -> tuple[float, float]:
    (left, right), (bottom, top) = domains[0], domains[1]
    return (x - left) / (right - left) * side, (top - y) / (top - bottom) * side


def _coordinates(
    x: float, y: float, domains: Sequence[tuple[float, float]], side: int
) -> list[float]:
    (left, right), (bottom, top) = domains[0], domains[1]
    return [left + x / side * (right - left), top - y / side * (top - bottom)]


ROW = 30
"""Pixels of one row of a number line."""

PANELS_IN_ROW = 3

TITLE_LETTERS = 20
"""In a line: number lines of two heads stand beside each other in a narrow window, too."""


def token_states(
    points: pd.DataFrame, view: ChartAxes, tokens: Sequence[str], title: str
) -> Drawing:
    """States of tokens, colored by token.

    Args:
        points: one row a point: token, name (what is written beside it), row (its number line),
            x, y where the view is a plane, and values (the exact vector, as text). Planes with
            different `panel`, where there is such a column, are drawn side by side. What is a
            `query` has its name below its point on a number line, where keys have it above.
        view: the axes.
        tokens: the vocabulary in order, for the legend.
        title: above the drawing.
    """
    return _states(points, view, title, TOKEN, token_colors(tokens), None, ())


def string_states(
    points: pd.DataFrame, view: ChartAxes, title: str, *, extra: Sequence[alt.Chart] = ()
) -> Drawing:
    """States of strings, colored by what the model makes of them.

    Args:
        points: as for `token_states`, with outcome in place of token, and logit.
        view: the axes.
        title: above the drawing.
        extra: layers to draw below the points, in the same axes.
    """
    return _states(points, view, title, STRING, outcome_colors(), outcome_shapes(), extra)


def _states(
    points: pd.DataFrame,
    view: ChartAxes,
    title: str,
    what: str,
    color: alt.Color,
    shape: alt.Shape | None,
    extra: Sequence[alt.Chart],
) -> Drawing:
    tooltip = [alt.Tooltip("name:N", title="Of"), alt.Tooltip("values:N", title="Exact value")]
    if shape is not None:
        tooltip.append(alt.Tooltip("outcome:N", title="Outcome"))
        tooltip.append(alt.Tooltip("logit:Q", title="Logit", format=".4f"))
    base = alt.Chart().encode(axis(view, 0, alt.X), tooltip=tooltip)
    if len(view.domains) == 1:
        layers, size = _number_lines(points, base, what, color, shape)
        points = with_room(points, view.domains[0], size["width"])
    else:
        side = SMALL_SIDE if "panel" in points else SIDE
        layers = _arrows(base.encode(axis(view, 1, alt.Y)), what, color, shape)
        points = with_places(points, view.domains, side)
        size = {"width": side, "height": side}
    drawing = alt.layer(*extra, *layers, data=points)
    if "panel" in points and len(view.domains) == 2:
        facet = alt.Facet(**by_panel(points, "panel", SMALL_SIDE))
        drawn = drawing.properties(**size).facet(facet, columns=PANELS_IN_ROW, spacing=16)
        return drawn.properties(title=title, **reserve_height(SMALL_SIDE))
    # What is one of several panels has its name behind a colon.
    broken = title_params(title, letters=TITLE_LETTERS) if ": " in title else title_params(title)
    return drawing.properties(title=broken, **size, **reserve_height(size["height"]))


def _number_lines(
    points: pd.DataFrame, base: alt.Chart, what: str, color: alt.Color, shape: alt.Shape | None
) -> tuple[list[alt.Chart], dict[str, int]]:
    rows = list(dict.fromkeys(points["row"]))
    limit = 160
    base = base.encode(alt.Y("row:N", title=None, sort=rows, axis=alt.Axis(labelLimit=limit)))
    marks = base.mark_point(size=90, filled=True, opacity=1).encode(color)
    marks = marks.add_params(pointer(what))
    if shape is not None:
        marks = marks.encode(shape)
    # Where every row has one point, the row's name is the point's.
    named = points["name"].ne(points["row"]).any()
    texts = [
        base.transform_filter(f"datum.free && {'' if dy > 0 else '!'}datum.query")
        .mark_text(dy=dy, fontSize=12, fontWeight="bold")
        .encode(text="name:N", color=alt.value(INK))
        for dy in (-11, 12)
        if named
    ]
    size = {"width": 2 * SIDE - limit, "height": ROW * max(len(rows), 2) + 10}
    return [_zero("x"), add_ring(base, what), marks, *texts], size


def _arrows(
    base: alt.Chart, what: str, color: alt.Color, shape: alt.Shape | None
) -> list[alt.Chart]:
    ring = add_ring(base, what)
    base = base.encode(color)
    shafts = base.mark_rule(strokeWidth=1.5, opacity=1).encode(x2=alt.datum(0), y2=alt.datum(0))
    if shape is None:
        heads = _turn_heads(base.mark_point(filled=True, opacity=1, size=60, shape="triangle"))
    else:
        heads = base.mark_point(filled=True, opacity=1, size=90).encode(shape)
    return [_zero("x"), _zero("y"), ring, shafts, heads.add_params(pointer(what)), _names(base)]


def _names(base: alt.Chart) -> alt.Chart:
    """Names where `with_places` has found room; the others are in the tooltip alone."""
    return (
        base.mark_text(fontSize=12, color=INK)
        .encode(x="name_x:Q", y="name_y:Q", text="name:N", color=alt.value(INK))
        .transform_filter("isValid(datum.name_x)")
    )


def _turn_heads(heads: alt.Chart) -> alt.Chart:
    """Arrow heads that point away from the origin: the scales are equal, and so is the angle."""
    return heads.transform_calculate(angle="atan2(datum.x, datum.y) * 180 / PI").encode(
        angle=alt.Angle("angle:Q", scale=None)
    )


def _zero(channel: str) -> alt.Chart:
    zero = {"x": alt.datum(0)} if channel == "x" else {"y": alt.datum(0)}
    return alt.Chart().mark_rule(color=GREY, strokeWidth=0.5).encode(**zero)


def boundary(view: ChartAxes, direction: tuple[float, float]) -> list[alt.Chart]:
    """Where the classifier's logit is zero in a plane, and the direction in which it grows.

    Args:
        view: the plane's axes.
        direction: the classifier's weights along them.
    """
    norm = (direction[0] ** 2 + direction[1] ** 2) ** 0.5
    if norm == 0:
        return []
    x, y = (part / norm for part in direction)
    reach = max(abs(end) for domain in view.domains for end in domain)
    line = [{"x": -y * 3 * reach, "y": x * 3 * reach, "x2": y * 3 * reach, "y2": -x * 3 * reach}]
    arrow = pd.DataFrame([{"x": 0.35 * reach * x, "y": 0.35 * reach * y, "name": "classifier"}])
    axes = [axis(view, 0, alt.X), axis(view, 1, alt.Y)]
    drawn = alt.Chart(with_places(arrow, view.domains, SIDE)).encode(*axes)
    return [
        alt.Chart(pd.DataFrame(line))
        .mark_rule(color=GREY, strokeDash=[6, 4], strokeWidth=2, clip=True)
        .encode(*axes, x2="x2:Q", y2="y2:Q"),
        drawn.mark_rule(color=GREY, strokeWidth=2).encode(x2=alt.datum(0), y2=alt.datum(0)),
        _turn_heads(
            drawn.mark_point(filled=True, opacity=1, size=60, shape="triangle", color=GREY)
        ),
        _names(drawn),
    ]


def threshold(direction: float) -> list[alt.Chart]:
    """The same on a number line: zero, and the side on which the logit is positive."""
    if direction == 0:
        return []
    mark = pd.DataFrame([{"name": "logit > 0 →" if direction > 0 else "← logit > 0"}])
    base = alt.Chart(mark)
    if direction > 0:
        text = base.mark_text(align="left", dx=5, color=INK)
    else:
        text = base.mark_text(align="right", dx=-5, color=INK)
    return [
        alt.Chart(mark).mark_rule(color=GREY, strokeDash=[6, 4]).encode(x=alt.datum(0)),
        text.encode(x=alt.datum(0), y=alt.value(8), text="name:N"),
    ]


def landmarks(points: pd.DataFrame, view: ChartAxes) -> list[alt.Chart]:
    """Where the tokens' own values lie, below the points of strings: rules, or small circles.

    Args:
        points: token, x, and y in a plane.
        view: the axes.
    """
    # Stroke and fill, not color: the scale and the legend of color are those of the strings.
    tokens = points["token"].tolist()
    colors = alt.Scale(domain=tokens, range=colors_of(tokens))
    base = alt.Chart(points).encode(axis(view, 0, alt.X))
    if len(view.domains) == 1:
        wide = alt.when(pointer(TOKEN)).then(alt.value(5)).otherwise(alt.value(2))
        rules = base.mark_rule(opacity=1).encode(strokeWidth=wide).add_params(pointer(TOKEN))
        texts = base.mark_text(fontWeight="bold", fontSize=13)
        return [
            rules.encode(stroke=alt.Stroke("token:N", scale=colors, legend=None)),
            texts.encode(y=alt.value(-8), text="token:N", color=alt.value(INK)),
        ]
    fill = alt.Fill("token:N", scale=colors, legend=None)
    placed = base.encode(axis(view, 1, alt.Y), fill)
    texts = placed.mark_text(dy=-10, fontWeight="bold", fontSize=13).encode(
        text="token:N", color=alt.value(INK)
    )
    circles = placed.mark_circle(size=50, opacity=0.8).add_params(pointer(TOKEN))
    return [add_ring(base.encode(axis(view, 1, alt.Y)), TOKEN), circles, texts]
