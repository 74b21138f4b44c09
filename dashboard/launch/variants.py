"""Variants of a sweep: what each has of its own, on top of the settings that all share."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import streamlit as st

from dashboard import elements
from dashboard.launch import fields
from dashboard.launch.starting_point import Start, format_values
from dashboard.text import verbatim
from seqcls.models import IN_SCORES, MODELS
from seqcls.models.positions import POSITIONS
from seqcls.problem import obstacle_of
from seqcls.tasks import TASKS
from seqcls.text import canonical_json

KEY = "launch_variants"
ADDED = "launch_added_variants"
UNPACKED = "launch unpacked variants"
"""Those that were made of a stored sweep's configurations."""

FREE = "Variant {}"
MOST_UNPACKED = 12
"""A sweep of more configurations keeps them as a list."""

Chosen = dict[str, list[Any]]


@dataclass(frozen=True)
class Variant:
    """One of a sweep's variants."""

    name: str
    named_for: Mapping[str, Any]
    typed: Chosen = field(default_factory=dict)
    """Settings that are chosen for it alone."""

    @property
    def chosen(self) -> Chosen:
        return {name: [value] for name, value in self.named_for.items()} | self.typed


def offered_variants(task: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The variants that can be chosen by name: every architecture with every position scheme.

    Args:
        task: its name and its settings; architectures that cannot answer it are left out.
    """
    variants: dict[str, Mapping[str, Any]] = {}
    for architecture in MODELS.usable(list(MODELS)):
        given = {**task, "architecture": architecture}
        reason = obstacle_of(given | fields.settings_needed(given, task))
        if reason is not None and "architecture=" in reason:
            continue
        if "positions" not in MODELS[architecture].reads:
            variants[architecture] = {"architecture": architecture}
            continue
        known = IN_SCORES if architecture == "hybrid" else POSITIONS.usable(list(POSITIONS))
        for positions in known:
            name = f"{architecture}, positions {positions}"
            variants[name] = {"architecture": architecture, "positions": positions}
    return variants


def choose(task: Mapping[str, Any]) -> list[Variant]:
    """The box with all variants, and the button that adds one.

    Args:
        task: its name and its settings.
    """
    named = offered_variants(task)
    free = [FREE.format(number + 1) for number in range(st.session_state.get(ADDED, 0))]
    names = elements.choose_several(
        "Variants",
        [*named, *free],
        key=KEY,
        placeholder="None: one network with the settings below",
        help="Each variant is trained with every seed. The settings below apply to all variants "
        "that use them; each variant can also have settings of its own.",
    )
    st.button("Add a variant", key="launch_add_variant", icon=":material/add:", on_click=_add)
    return [Variant(name, named.get(name, {})) for name in names]


def _add() -> None:
    """Adds a variant that is named for nothing: all of its settings are chosen one by one."""
    st.session_state[ADDED] = number = st.session_state.get(ADDED, 0) + 1
    st.session_state[KEY] = [*st.session_state.get(KEY, []), FREE.format(number)]


def key(variant: str, setting: str) -> str:
    """Where a variant's value of a setting is kept."""
    return f"launch variant {variant} {setting}"


def add_typed(variant: Variant) -> Variant:
    """The variant with what was chosen for it, before its form is drawn."""
    typed: Chosen = {}
    state = st.session_state
    for name in (*state.get(key(variant.name, ""), []), *state.get(_kept_key(variant.name), [])):
        values, _ = fields.held_values(name, st.session_state.get(key(variant.name, name)))
        if values:
            typed[name] = list(dict.fromkeys(values))
    return Variant(variant.name, variant.named_for, typed)


def settings_of(
    begin: Start, variant: Variant, shared: Chosen, values: fields.Values
) -> tuple[dict[str, Any], dict[str, Any], set[str]]:
    """What a variant is made of.

    Args:
        begin: what the sweep starts from.
        variant: with what was chosen for it.
        shared: what is chosen for all variants.
        values: what each field is without the variant.

    Returns:
        The variant's part of the specification; what was set so that it can be trained; the
        fields that it reads.
    """
    chosen = variant.chosen
    groups = fields.offered_fields(lambda name: chosen[name] if name in chosen else values(name))
    read = {name for names in groups.values() for name in names}
    made = {name: value for name, value in (shared | chosen).items() if name in read}
    spec = begin.with_changes(made, read)
    made |= begin.follow(first_of(spec), shared | chosen)
    spec = begin.with_changes(made, read)
    needed = fields.settings_needed(first_of(spec), made)
    made |= {name: [value] for name, value in needed.items()}
    return begin.with_changes(made, read), needed, read


def first_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a specification's first configuration."""
    first = {name: values[0] for name, values in spec["axes"].items()}
    return {**spec["fixed"], **spec.get("configurations", [{}])[0], **first}


def union(specs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One specification of several: what all share stays fixed or an axis, all else is listed."""
    axes = {
        name: values
        for name, values in specs[0]["axes"].items()
        if all(spec["axes"].get(name) == values for spec in specs)
    }
    rows = [row for spec in specs for row in _rows(spec, set(axes))]
    fixed = {
        name: value
        for name, value in rows[0].items()
        if all(name in row and row[name] == value for row in rows)
    }
    listed = [{x: value for x, value in row.items() if x not in fixed} for row in rows]
    distinct = list({canonical_json(row): row for row in listed}.values())
    several = {"configurations": distinct} if len(rows) > 1 else {}
    return {"fixed": fixed, "axes": axes, **several}


def _rows(spec: Mapping[str, Any], shared: set[str]) -> list[dict[str, Any]]:
    axes = {name: values for name, values in spec["axes"].items() if name not in shared}
    return [
        {**spec["fixed"], **entry, **dict(zip(axes, values, strict=True))}
        for entry in spec.get("configurations", [{}])
        for values in product(*axes.values())
    ]


def show(
    variant: Variant,
    groups: Mapping[str, list[str]],
    needed: Mapping[str, Any],
    left_out: Chosen,
    box: Callable[[str, str], Any],
) -> str | None:
    """Draws the settings that a variant has of its own.

    Args:
        variant: what is chosen for it.
        groups: the fields that it reads, by group.
        needed: what was set so that it can be trained.
        left_out: what is chosen for all variants and not read by this one.
        box: draws a field's box under a key.

    Returns:
        Why a value is refused; None where all are valid.
    """
    reason = None
    with st.container(border=True):
        st.markdown(f"**{verbatim(variant.name)}**")
        if needed:
            st.caption(verbatim(f"Set so that training works: {_format_settings(needed)}."))
        if left_out:
            names = _format_settings(
                {name: format_values(values) for name, values in left_out.items()}
            )
            st.caption(verbatim(f"Doesn't use {names}."))
        settings = [x for names in groups.values() for x in names if x not in variant.named_for]
        place = key(variant.name, "")
        if kept := _sort_out(variant, settings):
            st.caption(verbatim(f"Kept, but not used by this variant: {_format_settings(kept)}."))
        added = elements.choose_several(
            f"Settings of {verbatim(variant.name)}",
            settings,
            key=place,
            placeholder="Settings for this variant only",
            label_visibility="collapsed",
        )
        for name in added:
            _, reasons = fields.held_values(name, box(name, key(variant.name, name)))
            reason = reasons[-1] if reasons else reason
        if reason is not None:
            st.error(verbatim(reason))
    return reason


def _kept_key(variant: str) -> str:
    """Where the settings of a variant stand that it does not read now."""
    return f"launch variant kept {variant}"


def _sort_out(variant: Variant, settings: Container[str]) -> dict[str, str]:
    """Puts what a variant does not read aside, and back what it reads again.

    Args:
        variant: with all that is chosen for it.
        settings: the settings that it may have of its own now.

    Returns:
        What is put aside, with its values as they are shown.
    """
    state, place = st.session_state, key(variant.name, "")
    chosen = list(dict.fromkeys([*state.get(place, []), *state.get(_kept_key(variant.name), [])]))
    state[place] = [name for name in chosen if name in settings]
    state[_kept_key(variant.name)] = aside = [
        name for name in chosen if name not in settings and name not in variant.named_for
    ]
    for name in aside:
        # Streamlit forgets what has no box.
        if (value_key := key(variant.name, name)) in state:
            state[value_key] = state[value_key]
    return {name: format_values(variant.typed[name]) for name in aside if name in variant.typed}


def unpack(begun: Start) -> None:
    """Makes a variant of each configuration that a stored sweep lists, in place of those before.

    Args:
        begun: what is started from.
    """
    state, names = st.session_state, list[str]()
    configurations = begun.spec.get("configurations", [])
    if state.get(KEY) == state.pop(UNPACKED, None):
        # Those of what was started from before.
        state[KEY] = []
    of_task = fields.GROUPS["Task"]
    if not 1 < len(configurations) <= MOST_UNPACKED or any(
        name in entry for entry in configurations for name in of_task
    ):
        return
    task = begun.values("task")[0]
    reads = TASKS[task].reads if task in TASKS else ()
    named = offered_variants({"task": task, **{name: begun.values(name)[0] for name in reads}})
    for number, entry in enumerate(configurations):
        name = _find_name(entry, named, names) or FREE.format(number + 1)
        names.append(name)
        typed = [x for x in entry if x not in named.get(name, {})]
        state[key(name, "")] = typed
        for setting in typed:
            state[key(name, setting)] = _as_typed(setting, entry[setting])
    state[ADDED] = len(names)
    state[KEY] = state[UNPACKED] = names


def begun_with(begun: Start) -> Start:
    """What variants are made from: what their configurations were made of counts no more."""
    if not st.session_state.get(UNPACKED):
        return begun
    return Start({x: y for x, y in begun.spec.items() if x != "configurations"})


def _find_name(
    entry: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]], taken: Container[str]
) -> str | None:
    """The variant with a name of its own that a configuration is."""
    network = {x: y for x, y in entry.items() if x in ("architecture", "positions")}
    return next((x for x, value in named.items() if value == network and x not in taken), None)


def _as_typed(field: str, value: Any) -> Any:
    """A value as its box holds it: what is not offered is typed."""
    if field in fields.TYPED:
        return value
    known = fields.options(field, lambda name: [fields.default_value(name, None)])
    return [value if value in known else str(value)]


def _format_settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())
