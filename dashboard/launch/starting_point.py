"""What a sweep of one's own starts from, and what is changed against it."""

import json
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import streamlit as st

from dashboard import data
from dashboard.launch.fields import default_value, writes
from dashboard.text import format_value
from dashboard.words import names
from seqcls.config import ANY_SAMPLER, PARTS, RunConfig
from seqcls.errors import ConfigError
from seqcls.problem import configuration
from seqcls.strings.datasets import dataset_of
from seqcls.text import canonical_json
from sweeps.api import open_reader
from sweeps.api.old_pages import reading
from sweeps.api.old_pages.database import why_unreadable
from sweeps.grid.bases import on_base
from sweeps.grid.spec import SweepSpec, spec_as_written
from sweeps.grid.written_spec import MAX_NAME

_DASHED = re.compile(r"(\d{1,19})\s*(?:-|\u2013|\.{2,})\s*(\d{1,19})")


def seeds_of(text: str) -> str | list[int]:
    """Model seeds as a specification has them: `0-9` means `0..9`, `5` the first five."""
    if (number := text.strip()).isdecimal() and 0 < len(number) < 20 and int(number) > 0:
        return f"0..{int(number) - 1}"
    if dashed := _DASHED.fullmatch(text.strip()):
        return f"{dashed[1]}..{dashed[2]}"
    parts = [part.strip() for part in text.split(",")]
    if all(part.isdecimal() and len(part) < 20 for part in parts):
        return [int(part) for part in parts]
    return text.strip()


def written_seeds(seeds: str | Sequence[int]) -> str:
    """Model seeds of a specification as they are typed."""
    if isinstance(seeds, str):
        return seeds
    # A single number that is typed says how many.
    return f"{seeds[0]}..{seeds[0]}" if len(seeds) == 1 else ", ".join(map(str, seeds))


SMALL = "A small Transformer"
REPORT = "The report's model"
DEFAULTS = "All defaults"
MOST_CONFIGURATIONS = 5

KEY = "launch_start"
FIRST_NAME = "my_sweep"
GIVEN = "launch_given_name"
"""The name that was given by choosing what to start from."""

TO_WRITE: Mapping[str, Any] = {
    "hidden_size": 32,
    "attention_head_size": 16,
    "num_blocks": 2,
    "positions": "alibi",
    "learning_rate": 0.002,
    "validation_max_length": 10,
    "test_max_length": 40,
}
"""What a model begins with that is to write outputs. Two dimensions without positions, as of the
report's models, cannot; on inputs of 50 tokens, its validation, the first epoch would be the best;
and outputs for inputs of 200 tokens take long to write."""


@dataclass(frozen=True)
class Start:
    """A specification to begin with; its name is not taken over."""

    spec: Mapping[str, Any]
    is_base: bool = False
    """Whether its values are nobody's choice, so that one that is not read is nothing to say."""

    def values(self, field: str) -> list[Any]:
        """The values that it gives a field; the field's own where it names none."""
        axes, fixed = self.spec.get("axes", {}), self.spec.get("fixed", {})
        if field in axes:
            return list(axes[field])
        if field in fixed:
            return [fixed[field]]
        of_each = [x[field] for x in self.spec.get("configurations", []) if field in x]
        if of_each:
            return list({canonical_json(value): value for value in of_each}.values())
        of = [self.values(x)[0] for x in ("task", "answers") if field not in ("task", "answers")]
        return [default_value(field, *(of or [None]))]

    def parts(self, task: str | None) -> list["Start"]:
        """It with one of its configurations each; of a task alone where one is named."""
        return [
            replace(self, spec={**self.spec, "configurations": [entry]})
            for entry in self.spec.get("configurations", [{}])
            if task is None or entry.get("task", task) == task
        ]

    def follow(self, first: Mapping[str, Any], chosen: Container[str]) -> dict[str, list[Any]]:
        """Values of its base that are made of others, such as a feed-forward four times the width.

        Args:
            first: a configuration.
            chosen: fields that stay as they are.
        """
        if "base" not in self.spec:
            return {}
        own = {x: y for x, y in first.items() if x in chosen or x not in self.spec["fixed"]}
        try:
            made = on_base(self.spec["base"], own)
        except ConfigError:
            # Something is still to be typed.
            return {}
        return {x: [y] for x, y in made.items() if x not in chosen and first.get(x, y) != y}

    def parents(self, spec: SweepSpec) -> dict[str, str]:
        """From which configuration, by its key, the only one of a specification was made."""
        configs = list(spec.configs())
        if self.spec.keys() != {"fixed"} or len(configs) > 1:
            return {}
        return {configs[0].key: configuration(self.spec["fixed"]).key}

    def names_field(self, field: str) -> bool:
        """Whether it says anything of a field."""
        tables = (self.spec.get("fixed", {}), self.spec.get("axes", {}))
        return any(field in x for x in (*tables, *self.spec.get("configurations", [])))

    def recommend(
        self, read: set[str], task: str, *, has_near: bool = False
    ) -> dict[str, list[Any]]:
        """Values other than the defaults, for what is new to a sweep that starts here.

        What starts from strings of `balanced_strings` keeps drawing them as they were drawn. A
        transduction that starts from a language begins with `TO_WRITE`.

        Args:
            read: the fields that mean anything now.
            task: that is chosen.
            has_near: whether it has near negatives.
        """
        if writes(task) and not writes(self.values("task")[0]):
            return {name: [value] for name, value in TO_WRITE.items() if name in read}
        samplers = [x for part in PARTS for x in self.values(f"{part}_sampler")]
        is_new = "negative_lengths" in read and ANY_SAMPLER not in samplers
        if not is_new:
            return {}
        near = {"negatives": ["near"]} if has_near and "negatives" in read else {}
        return {"negative_lengths": ["uniform"], **near}

    def with_changes(
        self, chosen: Mapping[str, Sequence[Any]], read: set[str], **keys: Any
    ) -> dict[str, Any]:
        """The specification with other values of these fields.

        Args:
            chosen: values by field; several make an axis.
            read: the fields that mean anything now; what it says of others is left out.
            **keys: of the specification, such as its name.
        """
        fixed, axes = dict(self.spec.get("fixed", {})), dict(self.spec.get("axes", {}))
        configurations = [dict(x) for x in self.spec.get("configurations", [])]
        for table in (fixed, axes, *configurations):
            for field in [x for x in table if x in chosen or x not in read]:
                del table[field]
        for field, values in chosen.items():
            if len(values) == 1:
                fixed[field] = values[0]
            else:
                axes[field] = list(values)
        kept = {key: keys[key] for key in keys if keys[key] is not None}
        distinct = {canonical_json(x): x for x in configurations}
        several = {"configurations": list(distinct.values())} if configurations else {}
        return {**kept, "fixed": fixed, "axes": axes, **several}

    def changes(self, chosen: Mapping[str, Sequence[Any]], read: set[str]) -> list[str]:
        """What is changed, such as `hidden_size 2 → 4, 8`."""
        told = [
            f"{f'{field} {_say(field, self.values(field))}'.strip()} → {_say(field, values)}"
            for field, values in chosen.items()
            if list(values) != self.values(field)
        ]
        named = [] if self.is_base else filter(self.names_field, RunConfig.model_fields)
        return [*told, *(f"without {field}" for field in named if field not in read)]


def _say(field: str, values: Sequence[Any]) -> str:
    """Values as they are written; a dataset by its name."""
    is_named = field == "dataset" and all(values)
    return format_values([dataset_of(x).name for x in values] if is_named else values)


def format_values(values: Sequence[Any]) -> str:
    """Values as they are written in TOML, separated by commas; a digest is cut short."""
    return ", ".join(map(format_value, values))


def choose(taken: Callable[[Start], None]) -> Start:
    """A box with all that can be started from.

    Args:
        taken: called with another start once it is chosen.
    """
    offered = _offer()
    if st.session_state.get(KEY) not in offered:
        st.session_state[KEY] = SMALL
    label = st.selectbox(
        "Start from",
        list(offered),
        key=KEY,
        on_change=take_over,
        args=(taken,),
        help="Settings that you don't change keep these values, so you can compare results.",
    )
    return Start(offered[label], label in (SMALL, REPORT, DEFAULTS))


def take_over(taken: Callable[[Start], None]) -> None:
    """The seeds of what is started from, and a name that no sweep has.

    Args:
        taken: takes the rest over.
    """
    label = st.session_state[KEY]
    spec = _offer().get(label, {})
    taken(Start(spec))
    if "model_seeds" in spec:
        st.session_state["launch_seeds"] = written_seeds(spec["model_seeds"])
    st.session_state["launch_until"] = spec.get("until", "")
    if st.session_state.get("launch_name", FIRST_NAME) == st.session_state.get(GIVEN, FIRST_NAME):
        # Nobody typed it.
        name = free_name(spec.get("name", FIRST_NAME))
        st.session_state["launch_name"] = st.session_state[GIVEN] = name


def begin_name() -> None:
    """Gives the form a name that no sweep has: launched under a taken one it would replace it."""
    state = st.session_state
    if "launch_name" not in state:
        state["launch_name"] = state[GIVEN] = free_name(FIRST_NAME)


def free_name(name: str) -> str:
    """A name that no sweep has: with the next number, where it is taken."""
    # What is wrong with the database is said elsewhere.
    stored = set() if why_unreadable() is not None else {*data.sweep_names().values()}
    if name not in stored:
        return name
    stem, _, number = name.rpartition("_")
    stem = stem if stem and number.isdecimal() else name
    # Cut, where it would be longer than names may be.
    return next(
        free
        for n in count(2)
        if (free := f"{stem[: MAX_NAME - len(str(n)) - 1]}_{n}") not in stored
    )


def of_sweep(name: str) -> str:
    """What a sweep is called among what can be started from."""
    return f"Sweep {name}"


def _offer() -> dict[str, Mapping[str, Any]]:
    # The values of a base for any language: what a task does not read is left out later.
    small = on_base("small_transformer", {"train_sampler": ANY_SAMPLER})
    del small["train_sampler"]
    offered: dict[str, Mapping[str, Any]] = {
        SMALL: {"base": "small_transformer", "fixed": small},
        REPORT: {"fixed": on_base("report", {})},
        DEFAULTS: {},
    }
    # The page itself says what is wrong with the database.
    if why_unreadable() is not None:
        return offered
    stored = reading.specifications(open_reader())
    offered |= _starts_of_link()
    return offered | {of_sweep(name): _with_seeds_of_all(text) for name, text in stored.items()}


def _with_seeds_of_all(submitted: str) -> Mapping[str, Any]:
    """A stored specification whose every configuration has all of its seeds: the form asks once."""
    spec: dict[str, Any] = json.loads(submitted)
    entries = spec.get("configurations", [])
    if not any("model_seeds" in entry for entry in entries):
        return spec
    parsed = spec_as_written(spec)
    seeds = {seed for entry in parsed.configurations for seed in parsed.seeds_of(entry)}
    without = [{x: y for x, y in entry.items() if x != "model_seeds"} for entry in entries]
    return {**spec, "configurations": without, "model_seeds": sorted(seeds)}


def _starts_of_link() -> dict[str, Mapping[str, Any]]:
    """The model and the configurations that the page is about."""
    offered: dict[str, Mapping[str, Any]] = {}
    # A link may name a run that is not here, or several.
    run_ids = reading.runs_named(open_reader(), st.query_params.get("run", ""))
    for run_id in run_ids if len(run_ids) == 1 else ():
        for config_id in data.model(run_id)["config_id"]:
            offered[f"Model {run_id}"] = _fixed_settings(int(config_id))
    ids = [int(x) for x in st.query_params.get_all("config") if x.isdecimal() and len(x) < 19]
    known = [x for x in ids if x in data.settings().index][:MOST_CONFIGURATIONS]
    for config_id, name in names.configuration_names(known).items():
        offered[f"Configuration {name}"] = _fixed_settings(config_id)
    return offered


def _fixed_settings(config_id: int) -> Mapping[str, Any]:
    changed = data.some_configs((config_id,))[config_id].changed
    return {"fixed": {name: value for name, value in changed.items() if name != "plugins"}}
