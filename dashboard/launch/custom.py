"""A sweep of one's own: settings in groups, and what is wrong beside the field that it is of."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import streamlit as st

from dashboard import elements
from dashboard.launch import fields, language, starting_point, variants
from dashboard.launch.fields import meanings
from dashboard.launch.language import show_language
from dashboard.launch.starting_point import Start, format_values, seeds_of, written_seeds
from dashboard.launch.variants import Variant
from dashboard.server import visitors
from dashboard.text import verbatim
from seqcls.errors import ConfigError, SeqclsError
from seqcls.tasks import TASKS
from sweeps.grid.spec import SweepSpec, parse_spec, spec_as_written
from sweeps.grid.written_spec import CHECKPOINTS

SUCH_AS = {
    "alphabet": "such as ab",
    "pattern": "such as (ab)*",
    "formula": "such as a % 2 == 0",
    "replacement": r"such as b or \1; nothing deletes",
    "layers": "such as gga",
    "train_lengths": "such as [[8, 0.2], [40, 1.0]]",
    "freeze": 'such as [["embeddings", 0.2]]',
}
MEANING = {
    "alphabet": "The letters of strings, one character each; in counting and rewrite "
    "also names, with a space between: push pop a. In automaton, tokens that its file lacks.",
    "pattern": "A regular expression: letters, * + ? | and parentheses. It matches whole strings; "
    "in rewrite, what is replaced. Several are a language each: (ab)\\*; (ba)\\*.",
    "formula": "A letter stands for how often it occurs: a > b, a % 2 == 0, a == b and c <= 3. "
    "Several are a language each: a > b; a < b.",
    "replacement": r"What replaces each match; \1 is what the pattern's first "
    "parentheses hold.",
}
FIRST_ALPHABET = "ab"
FOLLOWED = (
    "hidden_size", "num_attention_heads", "architecture", "train_min_length", "train_max_length",
    "max_num_epochs",
)  # fmt: skip
"""Fields that others of a base are made of."""
NO_VARIANT = Variant("", {})
"""What is trained where no variant is chosen."""


def box(
    field: str, key: str, values: fields.Values, unchosen: fields.Values, begun: fields.Values
) -> Any:
    """Draws it, and returns what it holds.

    Args:
        field: the setting.
        key: of the box.
        values: what each field is as things stand.
        unchosen: what a field is while nothing is chosen for it.
        begun: its values in what the sweep starts from.
    """
    if field in fields.TYPED:
        is_needed = field not in fields.optional_fields(values("task")[0])
        return _text_box(field, key, "; ".join(map(str, begun(field))), is_needed)
    return _axis(field, key, values, unchosen(field))


def _text_box(field: str, key: str, begun: Any, is_needed: bool) -> str:
    first = FIRST_ALPHABET if field == "alphabet" and is_needed and not begun else ""
    placeholder = str(begun) or SUCH_AS.get(field, "")
    return st.text_input(field, first, key=key, placeholder=placeholder, help=MEANING.get(field))


def _axis(field: str, key: str, values: fields.Values, unchosen: Sequence[Any]) -> Any:
    placeholder, offered = format_values(unchosen), fields.options(field, values)
    if field == "task":
        return st.selectbox(field, offered, index=None, key=key, placeholder=placeholder)
    is_open = fields.is_open_ended(field)
    more = ", or type your own: 2, 4, 8." if is_open else "."
    return elements.choose_several(
        field,
        offered,
        key=key,
        placeholder=placeholder,
        accept_new_options=is_open,
        help=f"Choose several values to vary it{more}",
    )


SEARCH = "launch_search"
OTHER_TASKS = "launch_more tasks"
"""Tasks that the sweep has beside the first."""

_GROUPS = {group: names for group, names in fields.GROUPS.items() if group != "Task"}
"""What variants may differ in."""

_NAMED = re.compile(r"\b([a-z_]+)=")


def show() -> list[SweepSpec]:
    """Draws the form.

    Returns:
        What it asks for; nothing where something is wrong or missing, which is then said.
    """
    form = _Form(variants.begun_with(starting_point.choose(variants.unpack)))
    form.head()
    form.variants()
    form.search()
    left, right = st.columns(2, gap="large")
    for column, groups in ((left, ("Task", "Strings")), (right, ("Network", "Training"))):
        with column:
            for group in groups:
                form.group(group)
    form.left_out()
    return form.specs()


class _Form:
    def __init__(self, begin: Start) -> None:
        self.begin = begin
        self.chosen: dict[str, list[Any]] = {}
        self.recommended: dict[str, list[Any]] = {}
        self.slots: dict[str, Any] = {}
        self.is_wrong = False
        self.several: list[Variant] = []
        for field in (name for names in fields.GROUPS.values() for name in names):
            # What was chosen is known before it is drawn, as what is offered depends on it.
            self._take(field, self._read(field))
        self.tasks = self.values("task")
        self.task = self.tasks[0]
        each = [fields.offered_fields(self._values_for(task)) for task in self.tasks]
        self.offered = {
            group: [x for x in names if any(x in one[group] for one in each)]
            for group, names in fields.GROUPS.items()
        }
        self.read = {name for names in self.offered.values() for name in names}
        self.recommends = {task: self._recommend(task) for task in self.tasks}
        # Nobody typed the first alphabet.
        self.unread = {
            x: y for x, y in self.chosen.items() if x not in self.read and y != [FIRST_ALPHABET]
        }
        chosen, self.chosen = self.chosen, {}
        self.recommended = dict(self.recommends[self.task])
        self.read_first = {name for names in each[0].values() for name in names}
        self.needed = self._needed_values(chosen)
        self.recommended |= {name: [value] for name, value in self.needed.items()}
        first = {x: chosen.get(x, self.values(x))[0] for x in self.read_first}
        self.recommended |= self.begin.follow(first, chosen | self.recommended)

    def _read(self, field: str) -> Any:
        """What the session has for a field; several tasks stand in two boxes."""
        value = st.session_state.get(_key(field))
        if field == "task" and (others := st.session_state.get(OTHER_TASKS)):
            return list(dict.fromkeys([value or self.begin.values(field)[0], *others]))
        return value

    def _values_for(self, task: str) -> fields.Values:
        """What each field is as things stand, with one of the tasks."""
        return lambda field: [task] if field == "task" else self.values(field)

    def _recommend(self, task: str) -> dict[str, list[Any]]:
        has_near = "negatives" in self.read and language.has_near_negatives(
            task, self._values_for(task)
        )
        return self.begin.recommend(self.read, task, has_near=has_near)

    def _needed_values(self, chosen: dict[str, list[Any]]) -> dict[str, Any]:
        """What is set beside what is chosen, so that it can be trained."""
        made = self.recommended | chosen | ({"task": [self.task]} if "task" in chosen else {})
        made = {x: y for x, y in made.items() if x in self.read_first}
        spec = self.begin.with_changes(made, self.read_first)
        needed: dict[str, Any] = {}
        networks = product(*(spec["axes"].get(x, [None]) for x in ("architecture", "positions")))
        for architecture, positions in networks:
            network = {"architecture": architecture, "positions": positions}
            first = variants.first_of(spec) | {x: y for x, y in network.items() if y is not None}
            needed |= fields.settings_needed(first | needed, made)
        return {x: y for x, y in needed.items() if x in self.read}

    def values(self, field: str) -> list[Any]:
        """What a field is as things stand."""
        if field in self.chosen:
            return self.chosen[field]
        if field in self.recommended:
            return self.recommended[field]
        if not self.begin.names_field(field):
            of = [
                self.values(x)[0] for x in ("task", "answers") if field not in ("task", "answers")
            ]
            return [fields.default_value(field, *(of or [None]))]
        return self.begin.values(field)

    def head(self) -> None:
        left, right = st.columns(2)
        starting_point.begin_name()
        self.name = left.text_input("Name", key="launch_name")
        self.slots["name"] = st.container()
        self.seeds = right.text_input(
            "Model seeds",
            written_seeds(self.begin.spec.get("model_seeds", "0..7")),
            key="launch_seeds",
            help="How many, such as 5; a range such as 0..31; or a list such as 1, 5, 7.",
        )
        if self.seeds.strip().isdecimal() and isinstance(seeds := seeds_of(self.seeds), str):
            right.caption(f"Seeds {seeds}")
        self.slots["model_seeds"] = st.container()
        self.until = right.text_input(
            "As many seeds as it takes, until",
            self.begin.spec.get("until", ""),
            key="launch_until",
            placeholder="share ± 10 %",
            help="Trains more seeds after these until the share that generalizes, of seeds that "
            "learned, is known this precisely, to either side, for each configuration. `learned ± "
            "10 %` does the same for the share that learned; `share apart` ends once the shares of "
            "two configurations differ, by pairs where the same seed starts both from the same "
            "weights. The interval holds however often you look. Empty: only these "
            "seeds.",
        )
        self.slots["until"] = st.container()

    def variants(self) -> None:
        """The variants, each with what it has of its own."""
        self.several = [variants.add_typed(each) for each in variants.choose(self._task_settings())]
        entered = self._enter_values()
        self.unread |= {x: y for x, y in entered.items() if self._named_by_variants(x)}
        for each in self.several:
            _, needed, read = self._settings_of(each, self.task, entered)
            groups = {group: [x for x in names if x in read] for group, names in _GROUPS.items()}
            left_out = {x: y for x, y in entered.items() if x in self.read_first - read}
            reason = variants.show(each, groups, needed, left_out, self._box)
            self.is_wrong |= reason is not None
        if self.several:
            st.caption("Settings that all variants share:")

    def _task_settings(self) -> dict[str, Any]:
        reads = TASKS[self.task].reads if self.task in TASKS else ()
        return {"task": self.task, **{field: self.values(field)[0] for field in reads}}

    def _enter_values(self) -> dict[str, list[Any]]:
        """What is chosen for all variants, before its boxes are drawn."""
        before = self.chosen
        self.chosen = {}
        for field in self.read:
            self._take(field, self._read(field))
        entered, self.chosen = self.chosen, before
        return entered

    def _settings_of(
        self,
        variant: Variant,
        task: str,
        entered: dict[str, list[Any]],
        begin: Start | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any], set[str]]:
        """What a variant is made of on one of the tasks, as `variants.settings_of` gives it; from a
        part of what the sweep starts from, where one is given.
        """
        named = {"task": task} if len(self.tasks) > 1 else {}
        start = begin or self.begin

        def values(field: str) -> list[Any]:
            if field in entered or start.names_field(field):
                return entered.get(field) or start.values(field)
            return [fields.default_value(field, task if field != "task" else None)]

        return variants.settings_of(
            start,
            Variant(variant.name, {**variant.named_for, **named}, variant.typed),
            self.recommends[task] | entered,
            values,
        )

    def left_out(self) -> None:
        """What was entered and is not read by what is chosen now: said, and kept."""
        for field in self.unread:
            st.session_state[_key(field)] = st.session_state[_key(field)]
        if self.unread:
            told = "; ".join(
                f"{x} = {starting_point.format_values(y)}" for x, y in self.unread.items()
            )
            st.caption(verbatim(f"Kept, but not used with these settings: {told}."))

    def group(self, group: str) -> None:
        """A group's usual settings, and a box that adds others."""
        st.markdown(f"**{group}**")
        offered = self.offered[group]
        offered = [x for x in offered if not self._named_by_variants(x)]
        usual = [x for x in fields.usual(group, self.task) if x in offered]
        for field in usual:
            self._field(field)
        if group == "Task":
            self._language()
        for field in self._more(group, [x for x in offered if x not in usual]):
            self._field(field)
        self.slots[group] = st.container()

    def _named_by_variants(self, field: str) -> bool:
        """Whether every variant has its own value of a field, so that none can share one."""
        return bool(self.several) and all(field in each.chosen for each in self.several)

    def search(self) -> None:
        """A box that finds a setting by its name or its line, and adds it to its group."""
        groups = {
            name: group
            for group, names in self.offered.items()
            for name in names
            if not self._named_by_variants(name)
        }
        st.selectbox(
            "Find a setting",
            list(groups),
            index=None,
            key=SEARCH,
            format_func=_describe,
            placeholder="Find a setting by its name or by what it does, such as layers",
            label_visibility="collapsed",
            on_change=_add_found,
            args=(groups,),
        )

    def _more(self, group: str, others: list[str]) -> list[str]:
        """The settings that are added to a group's usual ones."""
        if not others:
            return []
        key = f"launch_more {group}"
        st.session_state[key] = [x for x in st.session_state.get(key, []) if x in others]
        return elements.choose_several(
            f"More settings: {group.lower()}",
            others,
            key=key,
            placeholder=f"More settings: {group.lower()}",
            label_visibility="collapsed",
        )

    def _field(self, field: str) -> None:
        if field == "dataset":
            value = language.choose_strings(self.task, _key(field))
        else:
            value = self._box(field, _key(field))
        if field == "task":
            alike = [x for x in TASKS if fields.writes(x) == fields.writes(self.task)]
            more = "More transductions" if fields.writes(self.task) else "More languages"
            elements.choose_several(
                more,
                [x for x in alike if x != self.task],
                key=OTHER_TASKS,
                placeholder=f"{more}, each with the same networks",
                label_visibility="collapsed",
            )
            value = self._read(field)
        if line := meanings().get(field):
            st.caption(line)
        self.slots[field] = st.container()
        if (reason := self._take(field, value)) is not None:
            self._say(reason)

    def _box(self, field: str, key: str) -> Any:
        """The box of a field under a key."""
        return box(field, key, self.values, self.begin_values, self.begin.values)

    def _take(self, field: str, value: Any) -> str | None:
        """Keeps what is chosen for a field; where that is none of its values, only says why."""
        values, reasons = fields.held_values(field, value)
        if values and not reasons:
            self.chosen[field] = list(dict.fromkeys(values))
        return reasons[0] if reasons else None

    def begin_values(self, field: str) -> list[Any]:
        """What a field is while nothing is chosen for it."""
        chosen = self.chosen.pop(field, None)
        values = self.values(field)
        if chosen is not None:
            self.chosen[field] = chosen
        return values

    def _language(self) -> None:
        """What the language accepts, at once."""
        entered = self._enter_values()
        for task in self.tasks:
            networks = {
                each.name: Start(self._settings_of(each, task, entered)[0]).values
                for each in self.several or [NO_VARIANT]
            }
            try:
                missing = show_language(task, self._values_for(task), networks)
            except ConfigError as error:
                self._say(str(error))
                return
            if missing is not None:
                self.is_wrong = True
                if missing != "dataset":
                    self.slots[missing].caption(f"Type the {missing} of the language.")

    def specs(self) -> list[SweepSpec]:
        """The specification that the form asks for."""
        every_epoch = st.checkbox(
            "Keep the weights of every epoch",
            key="launch_every_epoch",
            help="The Model page can then show how the model learned. Otherwise only the best "
            "epoch's weights are kept.",
        )
        verdict = self._verdict()
        if self.is_wrong:
            return []
        made = self.recommended | self.chosen
        try:
            written = {
                "name": self.name,
                "model_seeds": seeds_of(self.seeds),
                "checkpoints": CHECKPOINTS[every_epoch],
                **({"verdict": True} if verdict else {}),
                **({"until": until} if (until := self.until.strip()) else {}),
                **self._configurations(),
            }
            visitors.refuse_many(spec_as_written(written).num_runs())
            spec = parse_spec(written)
            if parents := self.begin.parents(spec):
                spec = parse_spec({**written, "parents": parents})
        except SeqclsError as error:
            self._say(str(error))
            return []
        changes = self.begin.changes(made, self.read)
        label = st.session_state[starting_point.KEY]
        differs = "; ".join(changes) if changes else "nothing"
        st.caption(f"Changes from {verbatim(label)}: {verbatim(differs)}.")
        if self.needed and not self.several:
            told = "; ".join(f"{x} = {y}" for x, y in self.needed.items())
            st.caption(verbatim(f"Set so that training works: {told}."))
        return [spec]

    def _configurations(self) -> dict[str, Any]:
        """What the specification says of fields: of every task, and of all variants if any."""
        own = self.several or "base" in self.begin.spec
        needed = {} if own else {x: [y] for x, y in self.needed.items()}
        made = [
            self._settings_of(one, task, needed | self.chosen | values, part)[0]
            for task in self.tasks
            for part in self.begin.parts(None if "task" in self.chosen else task)
            for variant in self.several or [NO_VARIANT]
            for one, values in self._apart(variant)
        ]
        return variants.union(made)

    def _apart(self, variant: Variant) -> Iterator[tuple[Variant, dict[str, list[Any]]]]:
        """A variant with one value each of what others follow, and these values for all."""
        chosen = self.chosen | variant.typed
        names = [x for x in FOLLOWED if x in chosen and "base" in self.begin.spec]
        for values in product(*(chosen[x] for x in names)):
            one = {x: [y] for x, y in zip(names, values, strict=True)}
            own = {x: y for x, y in one.items() if x in variant.typed}
            yield Variant(variant.name, variant.named_for, variant.typed | own), one

    def _verdict(self) -> bool:
        if fields.writes(self.task):
            return False
        return st.checkbox(
            "Try every string up to the longest test length",
            key="launch_verdict",
            help="Only where the answer depends on letter counts alone and there are few enough; "
            "other models are only tested.",
        )

    def _say(self, message: str) -> None:
        """What is wrong, beside the field that the message names."""
        self.is_wrong = True
        for name in _NAMED.findall(message):
            slot = self.slots.get(name) or self.slots.get(_group_of(name))
            if slot is not None:
                slot.error(verbatim(_without_sweep(message)))
                return
        st.error(verbatim(message))


def take(values: Mapping[str, Any]) -> None:
    """Chooses these values on the form, for all variants and for those with values of their own."""
    state = st.session_state
    for field, value in values.items():
        group = _group_of(field)
        state[_key(field)] = [value]
        if field not in fields.USUAL[group]:
            key = f"launch_more {group}"
            state[key] = list(dict.fromkeys([*state.get(key, []), field]))
        for variant in state.get(variants.KEY, []):
            if (own := variants.key(variant, field)) in state:
                state[own] = [value]


def _add_found(groups: Mapping[str, str]) -> None:
    """Adds the setting that was found to those of its group that are shown."""
    if (name := st.session_state[SEARCH]) is not None:
        st.toast(f"`{name}` is in the group {groups[name]}.")
        key = f"launch_more {groups[name]}"
        st.session_state[key] = list(dict.fromkeys([*st.session_state.get(key, []), name]))
        st.session_state[SEARCH] = None


def _describe(field: str) -> str:
    """A field with the words by which people look for it."""
    words = [field.replace("_", " ")] if "_" in field else []
    words += filter(None, [fields.ALSO_CALLED.get(field)])
    called = f" ({', '.join(words)})" if words else ""
    return f"{field}{called}: {meanings().get(field, '')}"


def _key(field: str) -> str:
    return f"launch {field}"


def _group_of(field: str) -> str:
    return next((group for group, names in fields.GROUPS.items() if field in names), "")


def _without_sweep(message: str) -> str:
    return re.sub(r"^sweep '.*?': ", "", message)
