"""Drawings along a string's tokens; pointing at a token marks it in each one of a page.

How a part looks does not depend on which string of a length is drawn: it is built once and then
filled with other data, by the browser too.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import altair as alt
import pandas as pd

from dashboard.charts.pointing import add_frame
from dashboard.charts.scales import TITLE, reserve_height

WIDTH = 640
LEAST_STEP, STEP = 14, 28
NARROW_STEP = 9
"""The least where two models share the page."""

TOKENS = "tokens"
"""The data set of the tokens along the axis: letter (its number) and name."""

_NAME = f"data('{TOKENS}')[datum.value].name"

LONG_NAME_OFFSET = 7
"""Pixels from the middle of the narrowest place to its end."""

Names = Sequence[str]
"""What each place along the axis is called, that of letter 0 first."""


Limits = tuple[float, float]

Layers = alt.LayerChart | alt.FacetChart
"""What layers are to their type checker, once they have a size."""


@dataclass(frozen=True, eq=False)
class TokenDrawing:
    """How a drawing looks, and what is drawn."""

    looks: Callable[..., Layers]
    """Builds it of data sets that have names and no values."""
    shape: tuple[Hashable, ...]
    """What it is built for, such as the number of tokens."""
    data: Mapping[str, pd.DataFrame]
    """The data sets by their names."""
    is_picture: bool = False
    """Whether it has cells and a scale of colors: drawn as a picture, not as elements of the page.

    As elements, the scale would be found by the page's address, which fails on brackets in it.
    """

    @property
    def chart(self) -> Layers:
        """The part alone, with its data."""
        rows = {name: frame.to_dict("records") for name, frame in self.data.items()}
        drawn = self.looks(*self.shape)
        return drawn.properties(datasets=rows, **self.reserve_height(drawn.height))

    def reserve_height(self, height: float) -> dict[str, Any]:
        """What is kept for plots of this height; what is no picture has no title."""
        return reserve_height(height if self.is_picture else height - TITLE)


def at_own_size(part: TokenDrawing) -> dict[str, Any]:
    """A part as a specification with its own width, whose data sets are frames."""
    spec = _at_own_size(part.looks, part.shape)
    return {**spec, "datasets": {**spec.get("datasets", {}), **part.data}}


def alone(part: TokenDrawing) -> dict[str, Any]:
    """A part as a specification that is as wide as its place, whose data sets are frames."""
    spec = _alone(part.looks, part.shape)
    shown = part.reserve_height(spec["height"])
    if part.is_picture:
        shown["usermeta"]["embedOptions"] = {"renderer": "canvas"}
    return {**spec, **shown, "datasets": {**spec.get("datasets", {}), **part.data}}


@lru_cache(maxsize=256)
def _alone(look: Callable[..., Layers], shape: tuple[Hashable, ...]) -> dict[str, Any]:
    spec: dict[str, Any] = look(*shape).to_dict(validate=False)
    del spec["width"]
    return spec | {"autosize": {"type": "fit-x", "contains": "padding"}}


@lru_cache(maxsize=256)
def _at_own_size(look: Callable[..., Layers], shape: tuple[Hashable, ...]) -> dict[str, Any]:
    chart = look(*shape)
    whole = alt.vconcat(chart, spacing=14).resolve_scale(color="independent")
    spec: dict[str, Any] = whole.to_dict(validate=False)
    return spec | reserve_height(chart.height)


def tokens_frame(names: Names) -> pd.DataFrame:
    """The data set of the tokens."""
    return pd.DataFrame({"letter": range(len(names)), "name": list(names)})


def reached_by(field: str, limits: Limits | None) -> pd.DataFrame:
    """The data set of what an axis reaches at least, zero if nothing is given.

    As data, for which nothing is built anew and the browser keeps the drawing that it has.
    """
    return pd.DataFrame({field: limits or (0.0, 0.0)})


def unseen(name: str) -> alt.Chart:
    """Marks of the data set with this name that only its axis knows of."""
    return chart_of(name).mark_rule(opacity=0, aria=False)


def chart_of(name: str) -> alt.Chart:
    """A chart of the data set with this name."""
    return alt.Chart(alt.NamedData(name=name))


def column_frame() -> alt.Chart:
    """A frame around the column of the token that is pointed at."""
    return add_frame(chart_of(TOKENS).encode(x="letter:O"))


class TokenAxis(NamedTuple):
    """What an axis of tokens is built for."""

    number: int
    upright: bool
    """Whether names of letters are long, and so written from below."""


def places_of(names: Names) -> TokenAxis:
    """The places of a string's tokens, a special one at either end, and `SEP` where it has two."""
    return TokenAxis(len(names), any(len(name) > 1 for name in names[1:-1] if name != "SEP"))


def token_axis(places: TokenAxis, title: str | None = None) -> alt.X:
    """The tokens along the horizontal axis, all of them, drawn or not."""
    axis, count = letter_axis(title), places.number
    if places.upright:
        axis.labelAngle = -90
    else:
        # The name of a special token is longer than a narrow place: it goes on away from letters.
        axis.labelAlign = _at_ends(count, "right", "left", "center")
        axis.labelOffset = _at_ends(count, LONG_NAME_OFFSET, -LONG_NAME_OFFSET, 0)
    return alt.X("letter:O", title=title, scale=alt.Scale(domain=list(range(count))), axis=axis)


def place_axis(places: TokenAxis) -> alt.X:
    """The axis of so long a string that its tokens are counted, not named."""
    every = next(x for x in (10, 20, 50, 100, 200) if places.number <= 12 * x or x == 200)
    axis = alt.Axis(values=list(range(0, places.number, every)), labelAngle=0, title="Tokens read")
    return alt.X("letter:O", scale=alt.Scale(domain=list(range(places.number))), axis=axis)


def _at_ends(count: int, first: Any, last: Any, otherwise: Any) -> dict[str, Any]:
    """A property of an axis's labels: others for long names at its ends."""
    long = f"length({_NAME}) > 1"
    return {
        "condition": [
            {"test": f"{long} && datum.value === 0", "value": first},
            {"test": f"{long} && datum.value === {count - 1}", "value": last},
        ],
        "value": otherwise,
    }


def letter_axis(title: str | None, *, every: bool = False) -> alt.Axis:
    """An axis of letters' numbers that are written as tokens, every one or as many as fit."""
    return alt.Axis(
        labelExpr=_NAME,
        labelAngle=0,
        labelOverlap=False if every else "greedy",
        title=title,
    )


def width_of(count: int, width: int = WIDTH) -> int:
    """Pixels of so many tokens."""
    least = LEAST_STEP if width == WIDTH else NARROW_STEP
    return count * min(max(width // max(count, 1), least), STEP)


def title_of(text: str) -> alt.TitleParams:
    """A part's title."""
    return alt.TitleParams(text, anchor="start", fontSize=12)
