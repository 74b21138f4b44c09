"""What colors and shapes mean, shown once above several charts instead of a legend in each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CHANNELS = ("color", "shape")
DISC = "circle"
"""What a mark looks like that has no shape of its own."""


@dataclass(frozen=True)
class Key:
    """What one legend says."""

    title: str
    names: tuple[str, ...]
    colors: tuple[str, ...]
    shapes: tuple[str, ...]
    """By the names of Vega; both are as many as the names."""


def told_once(spec: dict[str, Any]) -> tuple[dict[str, Any], list[Key]]:
    """A chart without those of its legends that name each color or shape, and what they say.

    Args:
        spec: a Vega-Lite specification with the colors that are shown; it is not changed.
    """
    legends: dict[tuple[str, tuple[str, ...]], dict[str, tuple[str, ...]]] = {}

    def told(name: str, channel: Any) -> Any:
        if name not in CHANNELS or channel.get("legend") is None:
            return channel
        scale = channel.get("scale") or {}
        names, values = scale.get("domain"), scale.get("range")
        if not (isinstance(names, list) and isinstance(values, list) and len(names) == len(values)):
            return channel
        key = (channel.get("title") or "", tuple(map(str, names)))
        legends.setdefault(key, {})[name] = tuple(map(str, values))
        return channel | {"legend": None}

    bare = with_channels(spec, told)
    return bare, [_key(title, names, channels) for (title, names), channels in legends.items()]


def _key(title: str, names: tuple[str, ...], channels: dict[str, tuple[str, ...]]) -> Key:
    colors = channels.get("color", ("currentColor",) * len(names))
    return Key(title, names, colors, channels.get("shape", (DISC,) * len(names)))


def with_channels(spec: dict[str, Any], change: Callable[[str, Any], Any]) -> dict[str, Any]:
    """A chart with each channel of its layers changed, which is given by its name."""
    changed = dict(spec)
    if "encoding" in spec:
        changed["encoding"] = {x: change(x, channel) for x, channel in spec["encoding"].items()}
    if "layer" in spec:
        changed["layer"] = [with_channels(layer, change) for layer in spec["layer"]]
    if "spec" in spec:
        changed["spec"] = with_channels(spec["spec"], change)
    return changed
