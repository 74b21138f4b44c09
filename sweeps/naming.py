"""The names that configurations are given when they are submitted, and keep.

A name says what tells a configuration from the others that it is submitted with and is read by its
model, the most telling first. It goes down a tree: all are told apart by their language, those of
one language by their architecture, those that are still alike by what comes next, and so on. So the
first thing in which two configurations differ stands in both names, and what tells nothing apart in
none. A model that was trained elsewhere is called what it is called there.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from itertools import chain, count
from typing import Any

from seqcls.config import ABOUT, IMPORTED, RunConfig, default_fields
from seqcls.declarations import About
from seqcls.errors import SeqclsError
from seqcls.fields import fields_unread, readers
from seqcls.imported import MODEL, PREFIX, fields_known, in_columns
from seqcls.strings.datasets import dataset_of
from sweeps.grid.budgets import BUDGET, EARLIEST

MOST_CHARACTERS = 46
"""Characters from which on a name leaves out defaults that it can do without."""

LONGEST_NAME = 400
"""Characters of a name that is stored: PostgreSQL keeps no index of very long texts."""

MOST_OF_VALUE = 40
"""Characters of a value in a name."""

FIRST = ("architecture", MODEL, "positions")
"""What comes next to the language; a name keeps these."""

_ORDER = ("Task", "Network", "Training", "Strings", None)

WORDS: Mapping[str, Any] = {
    "task": {"file": "own strings", "pairs": "own pairs"},
    "architecture": {
        "transformer": "Transformer", "encoder_decoder": "encoder-decoder", "rnn": "RNN",
        "gru": "GRU", "lstm": "LSTM", "slstm": "sLSTM", "deltanet": "DeltaNet", "mamba": "Mamba",
        "gated_deltanet": "Gated DeltaNet", "deltaproduct": "DeltaProduct", "hybrid": "hybrid",
        "recurrent_attention": "recurrent encoder-decoder",
    },
    "positions": {
        "none": "no positions", "alibi": "ALiBi", "fire": "FIRE", "learned": "learned positions",
        "": "{}",
    },
    "hidden_size": {"": "width {}"},
    "num_attention_heads": {0: "no attention", 1: "1 head", "": "{} heads"},
    "attention_head_size": {"": "heads of {}"},
    "num_blocks": {1: "1 block", "": "{} blocks"},
    "feed_forward_size": {0: "no feed-forward", "": "feed-forward {}"},
    "layer_norm": {"rms": "RMS norm", "nn": "LayerNorm"},
    "layer_norm_eps": {0.0: "no norms", "": "norms with eps {}"},
    "no_attend_cls": {True: "CLS unattended", False: "CLS attended"},
    "attention_mask": {"full": "no mask", "causal": "causal"},
    "attention": {"none": "no attention", "": "{} attention"},
    "readout": {"": "read at {}", "mean": "read as mean"},
    "language_class": {"": "{}"}, "width": {"": "k={}"}, "language_seed": {"": "language {}"},
    "dataset": {"": "{}"}, "pattern": {"": "{}"},
    "formula": {"": "{}"}, "group": {"": "{}"}, MODEL: {"": "{}"},
    "num_letters": {"": "{} letters"},
    "required_letters": {"": "all of {}"},
    "data_tokens": {"": "{} data tokens"}, "ignore_share": {"": "{} ignored"},
    "test_ignore_share": {1.0: "tested as trained", "": "{} ignored in tests"},
    "neighbor": {"": "{} neighbor"}, "occurrence": {"": "{} occurrence"},
    "bracket_types": {1: "1 bracket type", "": "{} bracket types"},
    "max_num_epochs": {1: "1 epoch", "": "{} epochs"}, "learning_rate": {"": "lr {}"},
    "train_max_length": {"": "trained up to {}"},
    "test_max_length": {"": "tested up to {}"},
    "train_sampler": {
        "balanced_strings": "balanced strings", "uniform_inputs": "uniform inputs",
        "dataset_rows": "rows of a file", "": "{} strings",
    },
}  # fmt: skip
"""What values are called, by field; under "" any other value."""


RECURRENT = ("rnn", "gru", "lstm", "recurrent_attention")
"""Networks whose width is said in units, and whose blocks are layers."""


def say_setting(field: str, value: Any, architecture: str = "") -> str:
    """A setting in words, as `32 units`; one of a model trained elsewhere as `d_model=64`."""
    if field.startswith(PREFIX) and field != MODEL:
        return f"{field.removeprefix(PREFIX)}={_shorten(value)}"
    known = WORDS.get(field, {})
    words, shown = field.replace("_strategy", "").replace("_", " "), _shorten(value)
    if isinstance(value, bool) and value not in known:
        return words if value else f"no {words}"
    if isinstance(value, str) and field not in ("dataset", "pattern", "formula", MODEL):
        shown = shown.replace("_", " ")
    named = field in ("task", "architecture")
    form = str(known.get(value, known.get("", "{}" if named else f"{words} {{}}")))
    text = form.replace("{}", shown)
    if architecture not in RECURRENT:
        return text
    return f"{shown} units" if field == "hidden_size" else text.replace(" block", " layer")


def _shorten(value: Any) -> str:
    # The short form only where it loses no digit.
    text = f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
    return text if len(text) <= MOST_OF_VALUE else text[: MOST_OF_VALUE - 1] + "…"


def settings_read(
    shown: Mapping[int, RunConfig], datasets: Mapping[str, str] | None = None
) -> dict[int, dict[str, Any]]:
    """The settings that each configuration reads, the most telling first.

    Args:
        shown: configurations by their ids.
        datasets: what datasets are called, by their digests.

    Returns:
        Values by field, and by `config.d_model` the settings of models trained elsewhere.
    """
    rows = in_columns(map(fields_known, shown.values()))
    # Neither is a setting: one is unfolded into others, and one follows from them.
    order = sorted({x for row in rows for x in row} - {"imported", "plugins"}, key=place_of)
    found = {}
    for (config_id, config), row in zip(shown.items(), rows, strict=True):
        unread = frozenset[str]()
        with suppress(SeqclsError):  # Of a part that is not here nobody knows what it reads.
            unread = fields_unread(config)
        row["dataset"] = (datasets or {}).get(row["dataset"], row["dataset"])
        read = (x for x in order if x not in unread and row.get(x) is not None)
        found[config_id] = {x: row[x] for x in read}
    return found


def place_of(field: str) -> tuple[Any, ...]:
    """How telling a field is: language, architecture, positions, sizes, all others."""
    if field in FIRST:
        return 1, FIRST.index(field), field
    if field.startswith(PREFIX):
        return 2, 0, field
    about = ABOUT.get(field, About(None))
    if about.group == "Task" and "kind" not in readers().get(field, ()):
        return 0, about.place, field
    # What reads other settings comes before these.
    return 2 + _ORDER.index(about.group), not field.endswith("_sampler"), about.place


def name_configurations(
    shown: Mapping[int, RunConfig], datasets: Mapping[str, str] | None = None
) -> dict[int, str]:
    """What each configuration is called beside the others: no two the same.

    Args:
        shown: all that are, by their ids.
        datasets: what datasets are called, by their digests.

    Returns:
        Names such as `parity, LSTM, 32 units`, in the order of the configurations. What no setting
        that is read tells apart has its number besides.
    """
    known = settings_read(shown, datasets)
    parts: dict[int, list[str]] = {config_id: [] for config_id in known}
    # Groups that no field has told apart so far; each field splits them further.
    alike = [list(known)]
    for field in sorted({x for settings in known.values() for x in settings}, key=place_of):
        split = []
        for some in alike:
            values: dict[Any, list[int]] = {}
            for config_id in some:
                values.setdefault(known[config_id].get(field), []).append(config_id)
            for config_id in some if len(values) > 1 else ():
                parts[config_id] += [field] * (field in known[config_id])
            split += [x for x in values.values() if len(x) > 1]
        alike = split
    # What stands alone, or differs from others only in what they have, is called by what it is.
    names = {x: _join(parts[x] or _telling(settings), settings) for x, settings in known.items()}
    # What was trained elsewhere keeps the name that it was given; more is said where two have one.
    given = {x: _shorten(settings[MODEL]) for x, settings in known.items() if MODEL in settings}
    shared = Counter(given.values())
    for config_id, own in given.items():
        if shared[own] == 1:
            names[config_id] = own
        elif own not in names[config_id]:
            names[config_id] = f"{own}, {names[config_id]}"
    called: dict[str, list[int]] = {}
    for config_id, name in names.items():
        called.setdefault(name, []).append(config_id)
    for name, ids in called.items():
        if len(ids) > 1:
            names |= {x: f"{name}, configuration {x}" for x in ids}
    return names


def names_by_key(configs: Iterable[RunConfig], first: int = 1) -> dict[str, str]:
    """What configurations that are submitted together are called, by their keys.

    Args:
        configs: all of them, some perhaps twice.
        first: the number of the first, for those that nothing else tells apart.

    Raises:
        ConfigError: one names strings that are in no place that is known.
    """
    distinct = {config.key: config for config in configs}
    digests = sorted({config.dataset for config in distinct.values()} - {""})
    datasets = call_datasets({digest: dataset_of(digest).name for digest in digests})
    numbered = name_configurations(dict(enumerate(distinct.values(), first)), datasets)
    return dict(zip(distinct, numbered.values(), strict=True))


def call_datasets(names: Mapping[str, str]) -> dict[str, str]:
    """What datasets are called, by their digests: no two the same.

    Args:
        names: those of their files, by their digests.
    """
    often = Counter(names.values())
    return {x: name if often[name] == 1 else f"{name} ({x[:12]})" for x, name in names.items()}


def name_with_change(name: str, before: RunConfig, after: RunConfig) -> str:
    """The name of a configuration that was made from another, as a remedy or a larger budget is:
    that one's with what is changed, `LSTM, with learning_rate=0.009`.
    """
    old, new = settings_read({0: before, 1: after}).values()
    changed = [x for x in new if new[x] != old.get(x, default_fields().get(x))]
    if BUDGET in changed:
        # They grow with it.
        changed = [x for x in changed if x not in EARLIEST]
    changes = ", ".join(f"{x}={_shorten(new[x])}" for x in changed)
    return f"{name}, with {changes}" if changes else name


def name_apart(name: str, sweep: str, taken: Collection[str]) -> str:
    """A configuration's name beside those of others: where one has it, as after a merge, that of
    the later one's sweep stands before it.
    """
    name = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    longer = f"{sweep}: {name}"
    several = (f"{longer} ({number})" for number in count(2))
    return next(x for x in chain([name, longer], several) if x not in taken)


def _telling(settings: Mapping[str, Any]) -> list[str]:
    """The fields that name a configuration where no other is shown."""
    defaults = default_fields()
    return [
        name
        for name, value in settings.items()
        if (name in ("task", *FIRST, "hidden_size") and value != IMPORTED)
        or (place_of(name)[0] == 0 and value != defaults[name])
    ]


def _join(fields: list[str], settings: Mapping[str, Any]) -> str:
    """A name of these fields; a long one leaves out defaults that are not kept."""
    defaults, remaining = default_fields(), list(fields)
    architecture = settings.get("architecture", "")

    def text() -> str:
        return ", ".join(say_setting(x, settings[x], architecture) for x in remaining)

    # The least telling default is left out first.
    for name in reversed(fields):
        is_telling = name in FIRST or place_of(name)[0] == 0
        if (
            len(text()) > MOST_CHARACTERS
            and not is_telling
            and settings[name] == defaults.get(name)
        ):
            remaining.remove(name)
    return text()
