"""Sections of two models as one: the same pictures beside each other, on one scale."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from dashboard.section import Panel, Section

Named = tuple[str, Section | None]
"""A model's name, and its section."""


def beside(sections: Sequence[Named]) -> Section | None:
    """One section of the pictures of several models, each titled by its model, in turn.

    Args:
        sections: of one question; None where it does not apply to a model.

    Returns:
        None if it applies to none.
    """
    known = [(name, section) for name, section in sections if section is not None]
    if not known:
        return None
    _, first = known[0]
    if len(sections) == 1:
        return first
    titled = [[_add_title(name, panel) for panel in section.panels] for name, section in known]
    panels = [x for row in zip_longest(*titled) for x in row if x is not None]
    legend = dict.fromkeys(x for _, section in known for x in section.legend)
    return replace(
        first,
        says=tuple(f"{name}: {x}" for name, section in known for x in section.says),
        # One table of several models would not show which row is whose.
        table=None,
        panels=_on_one_scale(panels),
        legend=tuple(legend),
    )


def _add_title(name: str, panel: Panel) -> Panel:
    title = f"{name}: {panel.title[:1].lower()}{panel.title[1:]}" if panel.title else name
    return replace(panel, title=title)


def _on_one_scale(panels: Sequence[Panel]) -> tuple[Panel, ...]:
    """Panels each of which reaches as far as any other (`token_marks.with_span`)."""
    span = [x for panel in panels for x in panel.spec.get("datasets", {}).get("span", ())]
    return tuple(
        replace(panel, spec=panel.spec | {"datasets": panel.spec["datasets"] | {"span": span}})
        if "span" in panel.spec.get("datasets", {})
        else panel
        for panel in panels
    )
