"""Charts onto the page, in the colors of its theme."""

import html
import pickle
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st
from altair.utils.schemapi import disable_debug_mode
from streamlit.dataframe_util import convert_anything_to_arrow_bytes
from streamlit.delta_generator import DeltaGenerator

from dashboard import layout
from dashboard.charts.legend import Key, split_panels
from dashboard.charts.parts import TokenDrawing, alone, at_own_size
from dashboard.charts.scales import Drawing
from dashboard.charts.themes import DARK, LIGHT, Ground, apply_theme, describe_chart, title_of
from dashboard.server.opened_models import MODELS
from dashboard.text import verbatim
from seqcls.cancellation import check

MANY_ROWS = 900
"""Rows of a data set: a browser that draws each as an element of its own takes a second for
them."""

FEW_ROWS = 500
"""Rows of a chart that no page need wait for."""

Drawn = Drawing | TokenDrawing | dict[str, Any]
"""What a page shows: a chart, one along tokens, or one as it is sent."""

# Neither is a chart validated piece by piece while it is built, which takes longer than drawing it.
disable_debug_mode()


def ground() -> Ground:
    """What the page of this session is drawn on."""
    return DARK if st.context.theme.type == "dark" else LIGHT


def spec_of(chart: Drawing, says: str = "") -> dict[str, Any]:
    """A chart as it is sent to the browser.

    Args:
        chart: as it is built, for light ground.
        says: its main number in a sentence, for those who cannot see it.
    """
    check()
    return _add_description(_spec(chart, ground()), says)


def build(builder: Callable[..., Drawing], *given: Any) -> dict[str, Any]:
    """A chart as it is sent, which is built of the same data only once, whichever session shows it.

    Args:
        builder: a function of a module, which depends on nothing but what it is given.
        *given: what it is given.
    """
    name, on = f"{builder.__module__}.{builder.__qualname__}", ground()
    # Copies: pandas joins columns of one type in memory when they are first computed with.
    frames = [x.copy() if isinstance(x, pd.DataFrame) else x for x in given]
    data = sha256(pickle.dumps((frames, on), pickle.HIGHEST_PROTOCOL)).digest()
    return MODELS.answer((name, data), lambda: _with_bytes(_spec(builder(*given), on)))


def _with_bytes(spec: dict[str, Any]) -> dict[str, Any]:
    """Rows are turned into what is sent once rather than each time that the chart is shown."""
    rows = spec.get("datasets", {}).items()
    return {**spec, "datasets": {name: convert_anything_to_arrow_bytes(x) for name, x in rows}}


def _spec(chart: Drawing, on: Ground) -> dict[str, Any]:
    # Not validated again, which would take half of the page's time; tests do that.
    return _light(apply_theme(chart.to_dict(validate=False), on))


def _add_description(spec: dict[str, Any], says: str) -> dict[str, Any]:
    if not says:
        return spec
    return {**spec, "description": ". ".join(filter(None, [spec["description"], says]))}


def _light(spec: dict[str, Any]) -> dict[str, Any]:
    """A chart as it is; one of many marks as a picture, in which they are not spelled out."""
    if max(map(len, spec.get("datasets", {}).values()), default=0) <= MANY_ROWS:
        return spec
    config = spec.get("config", {})
    marks = {**config.get("mark", {}), "aria": False}
    return {
        **spec,
        "config": {**config, "mark": marks},
        "usermeta": {**spec.get("usermeta", {}), "embedOptions": {"renderer": "canvas"}},
    }


def show(
    chart: Drawing | dict[str, Any], key: str, *, says: str = "", click: str | None = None
) -> Any:
    """A chart as wide as its container, whose height is that of all of it.

    Args:
        chart: what is drawn, as it is or as `build`.
        key: identifies it among the charts of the page.
        says: its main number in a sentence, for those who cannot see it.
        click: the selection that holds what was clicked, if a click leads anywhere.

    Returns:
        The selections, where there is any to make.
    """
    spec = _add_description(chart if isinstance(chart, dict) else spec_of(chart), says)
    spec = _write_title(spec)
    with _place_of(key, spec.get("height", 0) or _reserved_height(spec)):
        if click is None:
            return st.vega_lite_chart(spec, width="stretch", key=key)
        return st.vega_lite_chart(
            spec, width="stretch", key=key, on_select="rerun", selection_mode=[click]
        )


def _write_title(spec: dict[str, Any]) -> dict[str, Any]:
    """Writes a chart's title above it, where lines break as the window is wide: within the chart
    what is longer than the plot is cut. What is left to draw.
    """
    title, subtitle = title_of(spec)
    if not title:
        return spec
    below = f"<span>{html.escape(subtitle)}</span>" if subtitle else ""
    st.html(f'<div class="title"><b>{html.escape(title)}</b>{below}</div>')
    return {name: value for name, value in spec.items() if name != "title"}


def unfold(rows: int, label: str, key: str, *, is_long: bool = False) -> DeltaGenerator | None:
    """Where a chart below others is drawn; None if it is large, or the page long, and it is folded.

    Args:
        rows: how many it draws.
        label: what is clicked to see it where these are many.
        key: tells it from others of the page.
        is_long: whether the page has much besides.
    """
    if rows <= FEW_ROWS and not is_long:
        return st.container()
    folded = st.expander(label, key=f"unfold {key}", on_change="rerun")
    return folded if folded.open else None


def place(drawn: Drawn, key: str) -> None:
    """A chart at its own size: stretched, its two scales would no longer be equal.

    Panels are side by side as far as the page is wide.
    """
    if isinstance(drawn, TokenDrawing):
        _place(_with_frames(at_own_size(drawn)), key)
        return
    spec = drawn if isinstance(drawn, dict) else place_chart(drawn)
    panels = split_panels(spec)
    if len(panels) == 1:
        _place(spec, key)
        return
    with st.container():
        if title := describe_chart(spec):
            st.markdown(f"**{verbatim(title)}**")
        # Aligned at the top: the first alone may have a legend, which is below it.
        with st.container(horizontal=True, gap="small", vertical_alignment="top"):
            for number, panel in enumerate(panels):
                _place(panel, f"{key} {number}")


def place_chart(chart: Drawing, says: str = "") -> dict[str, Any]:
    """A chart as `place` sends it."""
    return spec_of(chart.properties(autosize="pad"), says)


def _place(spec: dict[str, Any], key: str) -> None:
    width = spec.get("spec", spec).get("width", 0)
    # As many columns of cells as there are take a width that only the browser knows.
    with _place_of(key, _reserved_height(spec), width if isinstance(width, int) else 0):
        st.vega_lite_chart(spec, width="content", key=key)


def _with_frames(spec: dict[str, Any]) -> dict[str, Any]:
    """A part on the page's ground, whose data sets stay frames: Streamlit turns these into what is
    sent more quickly than a list of rows.
    """
    datasets = spec.pop("datasets")
    return {**apply_theme(spec, ground()), "datasets": datasets}


def _reserved_height(spec: dict[str, Any]) -> int:
    """Pixels that a chart states with `reserve_height`; 0 if it states none."""
    return int(spec.get("usermeta", {}).get("height", 0))


def _place_of(key: str, height: int, width: int = 0) -> DeltaGenerator:
    """The place of a chart, kept until it is drawn; as wide as the page where no width is given."""
    place = layout.key_of_place(f"room of {key}", height, width)
    return st.container(key=place, width="content" if width else "stretch")


def stretch(drawn: Drawn, key: str, most: int = 0) -> None:
    """A chart as wide as its place; its height is that of the plot, axes and legend come on top.

    Args:
        drawn: what is drawn.
        key: identifies it among the charts of the page.
        most: pixels that a chart along tokens is wide at most, if there is a limit.
    """
    if isinstance(drawn, TokenDrawing):
        with st.container(width=most or "stretch"):
            stretch(_with_frames(alone(drawn)), key)
        return
    spec = _write_title(drawn if isinstance(drawn, dict) else stretch_chart(drawn))
    with _place_of(key, _reserved_height(spec)):
        st.vega_lite_chart(spec, key=key)


def stretch_chart(chart: Drawing, says: str = "") -> dict[str, Any]:
    """A chart as `stretch` sends it."""
    fitted = alt.AutoSizeParams(type="fit-x", contains="padding")
    return spec_of(chart.properties(autosize=fitted), says)


SYMBOLS = {"triangle-down": "▼", "triangle-up": "▲", "square": "■", "diamond": "◆"}


def show_keys(keys: Sequence[Key]) -> None:
    """What colors and shapes mean, once each, above the charts that it holds for."""
    if keys:
        st.html(f'<div class="keys">{"".join(map(_key, dict.fromkeys(keys)))}</div>')


def _key(key: Key) -> str:
    entries = "".join(
        f'<span><b style="color:{color}" aria-hidden="true">{SYMBOLS.get(shape, "●")}</b> '
        f"{html.escape(name)}</span>"
        for name, color, shape in zip(key.names, key.colors, key.shapes, strict=True)
    )
    return f"<p><em>{html.escape(key.title)}</em>{entries}</p>"
