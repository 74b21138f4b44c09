"""Names of configurations, given when they are submitted and never changed.

A name lists the settings read by the model that distinguish a configuration from the others of its
submission, the most important first. Names follow a tree: configurations are distinguished by their
language, those of one language by their architecture, those that are still alike by the next
setting, and so on. So the first setting in which two configurations differ is in both names, and
settings that distinguish nothing are in none. A model trained elsewhere keeps its name.
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
"""The length above which a name leaves out dispensable defaults."""

LONGEST_NAME = 400
"""The maximum length of a stored name: PostgreSQL cannot index very long texts."""

MOST_OF_VALUE = 40
"""The maximum length of a value in a name."""

FIRST = ("architecture", MODEL, "positions")
"""Settings that follow the language, and are never left out."""

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
"""Names of values by field; "" is the pattern for other values."""


RECURRENT = ("rnn", "gru", "lstm", "recurrent_attention")
"""Networks whose width is counted in units, and whose blocks are called layers."""


def say_setting(field: str, value: Any, architecture: str = "") -> str:
    """A setting in words, such as `32 units`; for a model trained elsewhere, `d_model=64`."""
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
    # The short form only if it loses no digit.
    text = f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
    return text if len(text) <= MOST_OF_VALUE else text[: MOST_OF_VALUE - 1] + "…"


def settings_read(
    shown: Mapping[int, RunConfig], datasets: Mapping[str, str] | None = None
) -> dict[int, dict[str, Any]]:
    """The settings that each configuration reads, the most important first.

    Args:
        shown: configurations by id.
        datasets: names of datasets by digest.

    Returns:
        Values by field, and by `config.d_model` for models trained elsewhere; by id.
    """
    rows = in_columns(map(fields_known, shown.values()))
    # Neither is a setting: one is expanded into others, and one follows from them.
    order = sorted({x for row in rows for x in row} - {"imported", "plugins"}, key=place_of)
    found = {}
    for (config_id, config), row in zip(shown.items(), rows, strict=True):
        unread = frozenset[str]()
        with suppress(SeqclsError):  # The fields read by a plug-in that is missing are unknown.
            unread = fields_unread(config)
        row["dataset"] = (datasets or {}).get(row["dataset"], row["dataset"])
        read = (x for x in order if x not in unread and row.get(x) is not None)
        found[config_id] = {x: row[x] for x in read}
    return found


def place_of(field: str) -> tuple[Any, ...]:
    """The sort key of a field in names: language, architecture, positions, sizes, all others."""
    if field in FIRST:
        return 1, FIRST.index(field), field
    if field.startswith(PREFIX):
        return 2, 0, field
    about = ABOUT.get(field, About(None))
    if about.group == "Task" and "kind" not in readers().get(field, ()):
        return 0, about.place, field
    # Samplers come before the settings that they read.
    return 2 + _ORDER.index(about.group), not field.endswith("_sampler"), about.place


def name_configurations(
    shown: Mapping[int, RunConfig], datasets: Mapping[str, str] | None = None
) -> dict[int, str]:
    """Unique names of configurations beside each other.

    Args:
        shown: all configurations, by id.
        datasets: names of datasets by digest.

    Returns:
        Names such as `parity, LSTM, 32 units`, in the order of the configurations. Those that no
        setting distinguishes end with their ids.
    """
    known = settings_read(shown, datasets)
    parts: dict[int, list[str]] = {config_id: [] for config_id in known}
    # Groups of configurations that are alike so far; each field splits them further.
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
    # A configuration without distinguishing settings of its own is named by its main ones.
    names = {x: _join(parts[x] or _telling(settings), settings) for x, settings in known.items()}
    # Models trained elsewhere keep their given names, which are extended where two are equal.
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
    """Unique names of configurations that are submitted together, by key.

    Args:
        configs: all of them; duplicates are ignored.
        first: the number of the first, for those that no setting distinguishes.

    Raises:
        ConfigError: the dataset of one is not found.
    """
    distinct = {config.key: config for config in configs}
    digests = sorted({config.dataset for config in distinct.values()} - {""})
    datasets = call_datasets({digest: dataset_of(digest).name for digest in digests})
    numbered = name_configurations(dict(enumerate(distinct.values(), first)), datasets)
    return dict(zip(distinct, numbered.values(), strict=True))


def call_datasets(names: Mapping[str, str]) -> dict[str, str]:
    """Unique names of datasets, by digest.

    Args:
        names: the names of their files, by digest.
    """
    often = Counter(names.values())
    return {x: name if often[name] == 1 else f"{name} ({x[:12]})" for x, name in names.items()}


def name_with_change(name: str, before: RunConfig, after: RunConfig) -> str:
    """The name of a configuration that modifies another, as a remedy or a larger budget does: the
    other's name with the changes, `LSTM, with learning_rate=0.009`.
    """
    old, new = settings_read({0: before, 1: after}).values()
    changed = [x for x in new if new[x] != old.get(x, default_fields().get(x))]
    if BUDGET in changed:
        # These fields grow with the budget.
        changed = [x for x in changed if x not in EARLIEST]
    changes = ", ".join(f"{x}={_shorten(new[x])}" for x in changed)
    return f"{name}, with {changes}" if changes else name


def name_apart(name: str, sweep: str, taken: Collection[str]) -> str:
    """A configuration's name, prefixed by that of its sweep if it is taken, as after a merge."""
    name = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    longer = f"{sweep}: {name}"
    several = (f"{longer} ({number})" for number in count(2))
    return next(x for x in chain([name, longer], several) if x not in taken)


def _telling(settings: Mapping[str, Any]) -> list[str]:
    """The main fields of a configuration, which name it without others."""
    defaults = default_fields()
    return [
        name
        for name, value in settings.items()
        if (name in ("task", *FIRST, "hidden_size") and value != IMPORTED)
        or (place_of(name)[0] == 0 and value != defaults[name])
    ]


def _join(fields: list[str], settings: Mapping[str, Any]) -> str:
    """A name of these fields; a long one leaves out dispensable defaults."""
    defaults, remaining = default_fields(), list(fields)
    architecture = settings.get("architecture", "")

    def text() -> str:
        return ", ".join(say_setting(x, settings[x], architecture) for x in remaining)

    # The least important default is left out first.
    for name in reversed(fields):
        is_telling = name in FIRST or place_of(name)[0] == 0
        if (
            len(text()) > MOST_CHARACTERS
            and not is_telling
            and settings[name] == defaults.get(name)
        ):
            remaining.remove(name)
    return text()
