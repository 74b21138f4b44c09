"""A chart on its ground: what is built for light ground is turned into what dark ground needs."""

from dataclasses import dataclass
from typing import Any

from dashboard.charts.colors import INK, ON_DARK
from dashboard.charts.scales import LOW_TO_HIGH


@dataclass(frozen=True)
class Ground:
    """What a chart is drawn on."""

    background: str
    colors: dict[str, str]
    """Shades that stand for those of light ground."""
    amounts: tuple[float, float]
    """The part of the scheme of amounts that can be seen on this ground."""
    grid: str


LIGHT = Ground("#FFFFFF", {}, (0.0, 0.58), "#E4E4E4")
DARK = Ground("#171614", ON_DARK, (0.36, 1.0), "#383734")


def apply_theme(spec: dict[str, Any], ground: Ground) -> dict[str, Any]:
    """A Vega-Lite specification with the colors of a ground, and a text alternative.

    Args:
        spec: as `Chart.to_dict` gives it; it is not changed.
        ground: what it is drawn on.
    """
    turned: dict[str, Any] = _apply_ground(spec, ground)
    config = dict(turned.get("config", {}))
    for part, settings in _text(ground).items():
        config[part] = settings | config.get(part, {})
    turned["config"] = config
    turned.setdefault("description", describe_chart(spec))
    return turned


def describe_chart(spec: dict[str, Any]) -> str:
    """What a chart shows, from its title; for those who cannot see it."""
    return ". ".join(part.rstrip(".") for part in title_of(spec) if part)


def title_of(spec: dict[str, Any]) -> tuple[str, str]:
    """A chart's title, and what is said below it."""
    title = spec.get("title") or ""
    if not isinstance(title, dict):
        return _one_line(title), ""
    return _one_line(title.get("text", "")), _one_line(title.get("subtitle", ""))


def _one_line(text: str | list[str]) -> str:
    return text if isinstance(text, str) else " ".join(text)


def _apply_ground(value: Any, ground: Ground) -> Any:
    if isinstance(value, dict):
        turned = {
            key: inner if key == "datasets" else _apply_ground(inner, ground)
            for key, inner in value.items()
        }
        if turned.get("scheme") == LOW_TO_HIGH:
            turned["scheme"] = {"name": LOW_TO_HIGH, "extent": list(ground.amounts)}
        return turned
    if isinstance(value, list):
        return [_apply_ground(item, ground) for item in value]
    return ground.colors.get(value, value) if isinstance(value, str) else value


def _text(ground: Ground) -> dict[str, Any]:
    ink = ground.colors.get(INK, INK)
    return {
        "axis": {
            "labelColor": ink,
            "titleColor": ink,
            "gridColor": ground.grid,
            "domainColor": ground.grid,
            "titlePadding": 8,
            "labelPadding": 6,
        },
        "legend": {
            "labelColor": ink,
            "titleColor": ink,
            # Of a scale of opacity the symbols would be black.
            "symbolBaseFillColor": ink,
            "symbolBaseStrokeColor": ink,
        },
        "header": {"labelColor": ink, "titleColor": ink},
        "title": {"subtitleColor": ink, "offset": 12},
        "text": {"color": ink},
        "view": {"stroke": None},
    }
