"""The keys of a sweep specification and their values, bases, and paths of files."""

import datetime
import glob
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator

from seqcls.config import RunConfig, check_model_seed, default_fields
from seqcls.errors import ConfigError, DatasetError, SpecError
from seqcls.fields import fields_unread
from seqcls.kinds import kind_name
from seqcls.problem import with_samplers
from seqcls.strings.datasets import remember
from seqcls.tasks import TASKS
from seqcls.text import OTHER_NAMES, closest, nearest
from sweeps.datasets import read_rows_or_automaton
from sweeps.grid.seeds import Until

MAX_RUNS = 100_000
"""Maximum number of runs of a grid; a larger one is refused before it is expanded."""

MAX_NAME = 200

Base = Literal["report", "small_transformer"]
Seeds = range | tuple[int, ...]
Table = dict[str, Any]

_RANGE = re.compile(r"(\d{1,19})\.\.(\d{1,19})")


def range_of(value: Any) -> range | None:
    """Returns the integers of a range such as '0..7', ends included; None where it is none."""
    if not isinstance(value, str) or (match := _RANGE.fullmatch(value)) is None:
        return None
    return range(int(match[1]), int(match[2]) + 1)


# Checks of values.


def _check_line(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("text of one line, without control characters")
    return text


def _check_text(text: str) -> str:
    if "\0" in text:
        raise ValueError("text without zero bytes, which no database can hold")
    return text


def _check_until(text: str) -> str:
    if text:
        Until.parse(text)
    return text


def _check_names(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in fields:
        if name == "model_seeds" or OTHER_NAMES.get(name) == "model_seeds":
            raise SpecError(
                f"{name!r} is not a field: write model_seeds = [0, 1] or '0..7' at the top of the "
                "file, before all tables"
            )
        if name not in RunConfig.model_fields:
            raise SpecError(
                f"unknown field {name!r}: {nearest(name, list(RunConfig.model_fields))}"
            )
    return fields


def _check_axes(axes: Mapping[str, Any]) -> Mapping[str, Any]:
    for name, values in _check_names(axes).items():
        if not isinstance(values, list) or not values:
            expected = "a list of values, or a range of whole numbers such as '0..7'"
            raise SpecError(f"axes: {name}={values!r}: expected {expected}")
    return axes


def _read_seeds(value: Any, whose: str = "") -> Seeds:
    seeds: Seeds = tuple(value) if isinstance(value, list) else range_of(value) or ()
    prefix = f"model_seeds={repr(value)[:200]}{whose}: expected "
    # Not by len(), which fails on ranges of numbers of 19 digits.
    if isinstance(seeds, range) and seeds.stop - seeds.start > MAX_RUNS:
        raise SpecError(f"{prefix}at most {MAX_RUNS:,} seeds; take fewer")
    try:
        # The ends of a range bound all its seeds.
        for seed in (seeds[0], seeds[-1]) if isinstance(seeds, range) else seeds:
            check_model_seed(seed)
    except ConfigError as error:
        raise SpecError(str(error)) from None
    if not seeds or (isinstance(seeds, tuple) and len(set(seeds)) < len(seeds)):
        raise SpecError(
            f"{prefix}a range such as '0..7', ends included, or a list of distinct whole numbers"
        )
    return seeds


def _read_entry(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Reads the fields of one of the configurations, and its model seeds if it has any."""
    _check_names({name: value for name, value in fields.items() if name != "model_seeds"})
    if "model_seeds" not in fields:
        return fields
    return {**fields, "model_seeds": _read_seeds(fields["model_seeds"], " of a configuration")}


class WrittenSpec(BaseModel):
    """The keys of a specification, in the order in which they are written."""

    model_config = ConfigDict(frozen=True, strict=True)

    name: Annotated[str, Field(max_length=MAX_NAME), AfterValidator(_check_line)]
    description: Annotated[str, AfterValidator(_check_text)] = ""
    model_seeds: Annotated[Seeds, PlainValidator(_read_seeds)]
    checkpoints: Literal["best_epoch", "every_epoch"] = "best_epoch"
    verdict: bool = False
    """Check every run exhaustively, where that is affordable."""
    until: Annotated[str, AfterValidator(_check_until)] = ""
    """Add seeds until a share of them is known, as `share ± 10 %`, or differs between two
    configurations, as `share apart`."""
    most_seeds: Annotated[int, Field(ge=1, le=MAX_RUNS)] = 500
    """Maximum number of seeds of a configuration."""
    base: Base | None = None
    """Source of values for fields in no table."""
    parents: dict[str, str] = {}
    """The key of the configuration from which each was made: the new one gets the name of that one
    with the change."""
    fixed: Annotated[Table, AfterValidator(_check_names)] = {}
    axes: Annotated[Table, AfterValidator(_check_axes)] = {}
    configurations: Annotated[
        Sequence[Annotated[Table, AfterValidator(_read_entry)]], Field(min_length=1)
    ] = ({},)
    """Each may have `model_seeds`, which replace the common ones."""


def check_keys(data: Mapping[str, Any]) -> None:
    """Refuses an unknown key."""
    # In the order of the file: a set would name another key each time.
    for name in [x for x in data if x not in WrittenSpec.model_fields]:
        field = closest(name, list(RunConfig.model_fields))
        meant = field if field in (name, OTHER_NAMES.get(name.lower())) else None
        if meant and OTHER_NAMES.get(name.lower()) not in WrittenSpec.model_fields:
            raise SpecError(
                f"unknown key {name!r}: put it under [fixed], as {meant} = …, or under [axes], as "
                f"{meant} = [ … ]"
            )
        hint = nearest(name, list(WrittenSpec.model_fields))
        seeds = " write model_seeds = [0, 1] or model_seeds = '0..7'" * ("model_seeds" in hint)
        raise SpecError(f"unknown key {name!r}: {hint}{seeds}")


def toml_of(submitted: str) -> str:
    """Writes a specification as TOML, its keys in the usual order.

    Args:
        submitted: the stored specification, as JSON.
    """
    spec = json.loads(submitted)
    return tomli_w.dumps({key: spec[key] for key in WrittenSpec.model_fields if key in spec})


def refuse_unfit(value: Any, name: str = "") -> None:
    """Refuses values that JSON lacks, such as dates and infinities, by their names."""
    expected = None
    if isinstance(value, Mapping | list | tuple):
        inner = value.items() if isinstance(value, Mapping) else ((name, item) for item in value)
        for key, item in inner:
            if not isinstance(key, str):
                raise SpecError(f"{key!r}: expected text as the name of a value")
            refuse_unfit(item, key)
    elif isinstance(value, float) and not math.isfinite(value):
        expected = "a finite number"
    elif isinstance(value, datetime.date | datetime.time):
        expected, value = "a number, text or true or false; put text in quotes", str(value)
    elif not isinstance(value, str | float | int | None):
        expected, value = "a number, text or true or false", f"{value!r:.80}"
    if expected is not None:
        # A key may contain line breaks, a message may not.
        name = name if name.isprintable() else repr(name)
        raise SpecError(f"{name}={value}: expected {expected}")


# Bases: `base = "small_transformer"` sets defaults of a specification.

_VALUES: Mapping[Base, Mapping[str, Callable[[Table], Any] | bool | float | str]] = {
    "report": {"no_attend_cls": True, "layer_norm_eps": 0.0},
    "small_transformer": {
        "num_blocks": 2,
        "hidden_size": 32,
        "num_attention_heads": 4,
        "attention_head_size": lambda x: max(
            1, x["hidden_size"] // max(1, x["num_attention_heads"])
        ),
        "feed_forward_size": lambda x: 4 * x["hidden_size"],
        "layer_norm": "nn",
        "biases": True,
        # Recurrent networks and causal masks have no CLS that has read the string; outputs are read
        # out at every position.
        "readout": lambda x: (
            "last"
            if (x["architecture"] != "transformer" or x["attention_mask"] == "causal")
            and _is_language(x["task"])
            else "first"
        ),
        "negative_lengths": "uniform",
        "train_batch_size": 128,
        "validation_min_length": lambda x: x["train_min_length"],
        "validation_max_length": lambda x: x["train_max_length"],
        "learning_rate": 0.003,
        "warm_up_steps": 100,
        "final_learning_rate_factor": 0.1,
        "gradient_clip": 1.0,
        "max_num_epochs": 50,
        "min_num_epochs": 0,
        "patience": lambda x: x["max_num_epochs"],
        "min_validation_loss": 0.0,
        "stop_when_right": True,
    },
}
"""Values by field, some computed from other fields. They never change: a stored specification names
its base."""


def _is_language(task: str) -> bool:
    return all(kind_name(TASKS[name]) == "membership" for name in TASKS.usable([task]))


def on_base(base: Base | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a configuration, with values of its base for others that it reads.

    Args:
        base: the name of the base; None adds nothing.

    Raises:
        ConfigError: the fields are no configuration.
    """
    if base is None:
        return dict(fields)
    values = _VALUES[base]
    unread = fields_unread(RunConfig.from_mapping(with_samplers(fields)))
    known = {**default_fields(), **fields}
    added: dict[str, Any] = {}
    for name, value in values.items():
        if name not in fields and name not in unread:
            # Values may depend on earlier ones, as the size of heads on the hidden size.
            added[name] = value({**known, **added}) if callable(value) else value
    return {**added, **fields}


# Files of strings: configurations have their digests.


def with_digests(data: Mapping[str, Any], folder: Path | None = None) -> dict[str, Any]:
    """Reads the files of every `path` in a specification, replaces it by `dataset` and the digest,
    and converts axes to lists.

    Args:
        folder: the folder of the specification, where paths are looked up before the working
            directory.

    Raises:
        SpecError: a file cannot be read or is refused.
    """
    settings = dict(data)
    for key in ("fixed", "axes"):
        if isinstance(fields := settings.get(key), Mapping):
            settings[key] = _replace_path(fields, folder)
    if isinstance(axes := settings.get("axes"), Mapping):
        settings["axes"] = {name: listed_values(name, values) for name, values in axes.items()}
    if isinstance(listed := settings.get("configurations"), list | tuple):
        settings["configurations"] = [
            _replace_path(fields, folder) if isinstance(fields, Mapping) else fields
            for fields in listed
        ]
    return settings


def listed_values(name: str, values: Any) -> Any:
    """Returns the values of an axis; those of a range such as '0..7' as a list."""
    if (found := range_of(values)) is None:
        return values
    if not found:
        raise SpecError(f"axes: {name}={values!r}: a range that ends before it begins")
    if found.stop - found.start > MAX_RUNS:
        raise SpecError(f"axes: {name}={values!r}: expected at most {MAX_RUNS:,}; take fewer")
    return list(found)


def _replace_path(fields: Mapping[str, Any], folder: Path | None) -> Mapping[str, Any]:
    if "path" not in fields:
        return fields
    if "dataset" in fields:
        raise SpecError("both path and dataset are given; a path stands for its dataset")
    named = fields["path"]
    others = {name: value for name, value in fields.items() if name != "path"}
    listed = named if isinstance(named, list) else [named]
    files = [file for pattern in listed for file in _files(pattern, folder or Path())]
    digests: dict[str, str] = {}
    for file, path in files:
        try:
            digest = remember(read_rows_or_automaton(path))
        except DatasetError as error:
            raise SpecError(f"path={error}") from None
        if file == named:
            # A single name gives one value, a list or a pattern an axis of them.
            return {**others, "dataset": digest}
        if digest in digests:
            raise SpecError(f"path={file!r}: has the content of {digests[digest]!r}; keep one")
        digests[digest] = file
    return {**others, "dataset": list(digests)}


def _files(named: Any, folder: Path) -> list[tuple[str, Path]]:
    """Returns the files that a pattern such as `languages/*.att` matches, in order, with their
    paths; any other name is one file.
    """
    if not isinstance(named, str) or not named or "\0" in named:
        raise SpecError(f"path={named!r:.60}: expected the name of a file, such as 'data.csv'")
    is_pattern = any(x in named for x in "*?[")
    for base in (folder, Path()):
        if (base / named).exists():
            return [(named, base / named)]
    for base in (folder, Path()) if is_pattern else ():
        if found := sorted(glob.glob(named, root_dir=base, recursive=True)):
            return [(file, base / file) for file in found]
    if is_pattern:
        raise SpecError(f"path={named!r:.60}: no file matches it")
    return [(named, Path(named))]
