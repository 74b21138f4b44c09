"""What colors and shapes mean, shown once above several charts instead of a legend in each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

CHANNELS = ("color", "fill", "stroke", "shape")
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
    found: dict[tuple[str, tuple[str, ...]], dict[str, tuple[str, ...]]] = {}
    bare = _bare(spec, found)
    return bare, [_key(title, names, channels) for (title, names), channels in found.items()]


def _key(title: str, names: tuple[str, ...], channels: dict[str, tuple[str, ...]]) -> Key:
    colors = channels.get("color") or channels.get("fill") or channels.get("stroke")
    plain = ("currentColor",) * len(names)
    return Key(title, names, colors or plain, channels.get("shape") or (DISC,) * len(names))


def _bare(
    spec: dict[str, Any], found: dict[tuple[str, tuple[str, ...]], dict[str, tuple[str, ...]]]
) -> dict[str, Any]:
    bare = dict(spec)
    if "encoding" in spec:
        bare["encoding"] = {
            name: _without_legend(name, definition, found) if name in CHANNELS else definition
            for name, definition in spec["encoding"].items()
        }
    for part in ("layer", "vconcat", "hconcat"):
        if part in spec:
            bare[part] = [_bare(inner, found) for inner in spec[part]]
    if "spec" in spec:
        bare["spec"] = _bare(spec["spec"], found)
    return bare


def _without_legend(
    name: str,
    channel: dict[str, Any],
    found: dict[tuple[str, tuple[str, ...]], dict[str, tuple[str, ...]]],
) -> dict[str, Any]:
    scale = channel.get("scale") or {}
    names, values = scale.get("domain"), scale.get("range")
    if not isinstance(names, list) or not isinstance(values, list):
        return channel
    if channel.get("legend") is None or len(names) != len(values):
        return channel
    key = (channel.get("title") or "", tuple(map(str, names)))
    found.setdefault(key, {})[name] = tuple(map(str, values))
    return channel | {"legend": None}


def united(keys: Iterable[Key]) -> list[Key]:
    """Each key once; what only colors names by shape, too, where another chart does."""
    best: dict[tuple[str, tuple[str, ...]], Key] = {}
    for key in keys:
        legend = (key.title, key.names)
        if legend not in best or set(best[legend].shapes) == {DISC}:
            best[legend] = key
    return list(best.values())
