"""Where the names of points are written, so that none covers another or a point."""

from collections.abc import Iterator, Sequence

import pandas as pd

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
            for middle_x, middle_y in _tried(x, y, width, origin, side):
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


def _tried(
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
