"""Configurations of models trained elsewhere: their name and settings, whatever these are.

A setting is named by its path: `{"optimizer": {"lr": 0.1}}` and `{"optimizer.lr": 0.1}` have the
same, `config.optimizer.lr` beside our fields. Configurations are the same where their settings are,
and 64 and 64.0 are one number.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, time
from enum import Enum
from pathlib import PurePath
from typing import Any
from unicodedata import category

from seqcls.config import IMPORTED, RunConfig
from seqcls.errors import ConfigError
from seqcls.fields import fields_of_training, fields_unread, strings_read, test_set_json
from seqcls.problem import resolve, with_samplers
from seqcls.text import canonical_json

MODEL, PREFIX = "config.model", "config."
"""What a foreign model's name is called beside our fields, and what its settings begin with."""

MAX_NAME = 200
MAX_SETTINGS = 200
MAX_TEXT = 100_000
"""Characters of a name and its settings as JSON at most, as `RunConfig.imported` may have."""


def imported_config(
    fields: Mapping[str, Any], model: str, settings: Mapping[str, Any] | None = None
) -> RunConfig:
    """The configuration of a model trained elsewhere.

    Args:
        fields: what it was tested on: `task`, the task's fields, and those of its test strings.
        settings: its settings by name, which mean nothing here: numbers, texts, and lists and
            settings of these. Numbers of NumPy and PyTorch are taken as numbers, paths and dates
            as text.

    Raises:
        ConfigError: there are no such test strings, or a setting is none of these.
    """
    is_name = isinstance(model, str) and model.isprintable() and 1 <= len(model) <= MAX_NAME
    if not is_name or not model.strip():
        raise ConfigError(
            f"model={_shorten(model)}: expected a name of 1 to {MAX_NAME} printable characters"
        )
    try:
        plain = plain_settings({} if settings is None else settings)
        text = canonical_json({"model": str(model), "config": plain})
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise ConfigError(f"config of model {model!r:.60}: {reason[:300]}") from None
    if len(text) > MAX_TEXT:
        raise ConfigError(
            f"config of model {model!r:.60}: {len(text):,} characters as JSON, expected at most "
            f"{MAX_TEXT:,}"
        )
    config = RunConfig.from_mapping(
        {**with_samplers(fields), "architecture": IMPORTED, "imported": text}
    )
    resolve(config)
    read = {*strings_read(config, "test"), *test_set_json(config), "test_sampler"}
    if others := sorted(set(fields) - read):
        raise ConfigError(
            f"{others[0]}={fields[others[0]]!r:.60}: does not say which strings are tested; leave "
            "it out, or give it as a setting of the model, in config"
        )
    return config


def _shorten(value: Any) -> str:
    """A value in a message of one line."""
    return " ".join(repr(value).split())[:60]


def plain_settings(settings: Any) -> dict[str, Any]:
    """The settings of a model as JSON has them.

    Raises:
        ValueError: one of them is no JSON, or has a name that none can have.
    """
    if not isinstance(settings, Mapping):
        raise ValueError(f"{_shorten(settings)}, expected settings by name, as {{'d': 64}}")
    if len(settings) > MAX_SETTINGS:
        raise ValueError(f"{len(settings):,} settings, expected at most {MAX_SETTINGS}")
    plain = _plain_settings(settings, "")
    named = Counter(path for path, _ in _leaves(plain, ""))
    if twice := [path for path, times in named.items() if times > 1]:
        raise ValueError(f"two settings are called {twice[0]!r:.100}; keep one")
    return plain


def _plain_settings(settings: Mapping[Any, Any], prefix: str) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for given, value in settings.items():
        # Names are texts in JSON, which writes whole numbers as such.
        name = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
        if not isinstance(name, str) or not name or not name.isprintable() or len(name) > MAX_NAME:
            raise ValueError(
                f"a setting is called {_shorten(given)}, expected a printable name of at most "
                f"{MAX_NAME} characters"
            )
        if name in plain:
            raise ValueError(f"two settings are called {prefix + name!r:.100}; keep one")
        plain[str(name)] = _plain(value, f"{prefix}{name}")
    return plain


def _plain(value: Any, path: str) -> Any:
    """A setting as JSON has it.

    Raises:
        ValueError: JSON has no such value.
    """
    # Those missing are Pandas' own; a NaN is a number that training may have made.
    missing = type(value).__name__ in ("NAType", "NaTType")
    if value is None or isinstance(value, bool) or missing:
        return value if isinstance(value, bool) else None
    # Members of a `StrEnum` are texts as well, so that enumerations come first.
    if isinstance(value, Enum):
        return _plain(value.value, path)
    if isinstance(value, str):
        # Surrogates without a partner are no UTF-8, so no database holds them.
        if any(category(x) == "Cs" for x in value):
            raise ValueError(f"{path!r:.100} is {_shorten(value)}, which is not text in Unicode")
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(
                f"{path!r:.100} is {value}, which is not a JSON number; leave it out, or give it "
                f"as text, '{value}'"
            )
        # Also NumPy's own 64-bit numbers come here, which are floats of Python's by inheritance.
        return float(value)
    if isinstance(value, Mapping):
        return _plain_settings(value, f"{path}.")
    if isinstance(value, list | tuple):
        return [_plain(x, path) for x in value]
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, date | time):
        return value.isoformat()
    # Arrays and tensors, and single numbers of them; times are counted in units that differ.
    is_time = getattr(getattr(value, "dtype", None), "kind", "") in ("M", "m")
    if callable(as_list := getattr(value, "tolist", None)) and not is_time:
        return _plain(as_list(), path)
    raise ValueError(
        f"{path!r:.100} is {_shorten(value)}, of type {type(value).__name__}, which is not JSON: "
        "expected a number, text, true or false, None, or a list or mapping of these; give it as "
        "text"
    )


def _leaves(settings: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Each setting's path and value; an empty mapping is a value."""
    # Sorted, as the order in which settings are given means nothing.
    for name, value in sorted(settings.items()):
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _name_of(path: str) -> str:
    """What a setting is called beside our fields.

    `config.model` is the model's own name, so a setting called `model` is `config.config.model`,
    one called `config.model` takes one `config.` more, and so on: no two have one name.
    """
    rest = path
    while rest.startswith(PREFIX):
        rest = rest.removeprefix(PREFIX)
    return PREFIX * (2 if rest == "model" else 1) + path


def _settings(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A foreign model's name and settings by their names beside our fields, as JSON has them."""
    if not (text := fields.get("imported")):
        return {}
    try:
        content = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {MODEL: str(text)}
    if not isinstance(content, dict):
        return {MODEL: str(content)}
    settings = content.get("config")
    found: dict[str, Any] = {MODEL: str(content.get("model"))}
    for path, value in _leaves(settings if isinstance(settings, dict) else {}, ""):
        name = _name_of(path)
        while name in found:
            # Older versions stored two of one path, such as "a.b" beside "a": {"b": …}.
            name += "'"
        found[name] = value
    return found


def unfold(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A foreign model's name and settings as `config.model`, `config.d_model` and so on.

    Settings within settings are named by their path; lists are text. Of configurations of models
    that are trained here there are none.
    """
    return in_columns([_settings(fields)])[0]


def fields_known(config: RunConfig) -> dict[str, Any]:
    """A configuration's fields by name.

    Of a model trained elsewhere its settings besides, as JSON has them. Fields of ours that say
    nothing of its training are None, and of its network where its weights are not here.
    """
    fields = config.model_dump()
    if not config.imported:
        return fields
    absent = fields_unread(config) if config.is_imported else fields_of_training(config)
    known = {x: None if x in absent or x == "imported" else value for x, value in fields.items()}
    return {**known, **_settings(fields)}


def in_columns(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fields of several configurations, of which each foreign setting has values of one type.

    All are numbers, all are true or false, or all are text. Of several types, each value is
    written so that no two are alike: 64 and True as JSON has them, and a text that could be taken
    for such a value in quotation marks. None is a missing value.

    Args:
        rows: fields by name, as `fields_known` has them.
    """
    known = list(rows)
    types: dict[str, set[str]] = {}
    for row in known:
        if MODEL in row:
            for name, value in row.items():
                if name.startswith(PREFIX) and value is not None:
                    types.setdefault(name, set()).add(_type(value))
    ways = {name: write for name, some in types.items() if (write := _writer(some))}
    return [
        {x: ways[x](y) if x in ways and y is not None else y for x, y in row.items()}
        if MODEL in row
        else row
        for row in known
    ]


def _type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "json"


def _writer(types: set[str]) -> Callable[[Any], str] | None:
    """How values of a column are written; None where they are as they are."""
    if types <= {"number"} or types <= {"bool"}:
        return None
    return _text if types == {"text"} else _text_among_others


def _text(value: str) -> str:
    return _quote(value) if value.startswith('"') or _has_controls(value) else value


def _text_among_others(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(normalize_numbers(value), separators=(",", ":"), ensure_ascii=False)
    try:
        json.loads(value)
    except RecursionError:
        return _quote(value)
    except ValueError:
        return _text(value)
    return _quote(value)


def _quote(text: str) -> str:
    # Control characters become escapes, and letters of any language stay readable.
    return json.dumps(text, ensure_ascii=_has_controls(text))


def _has_controls(text: str) -> bool:
    return any(category(x) in ("Cc", "Cs", "Zl", "Zp") for x in text)


def normalize_numbers(value: Any) -> Any:
    """A value of JSON with its numbers in one spelling each: 64.0 is 64."""
    if isinstance(value, dict):
        return {name: normalize_numbers(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [normalize_numbers(x) for x in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    if isinstance(value, int) and abs(value) >= 2**63:
        return _as_float(value)
    return value


def _as_float(number: int) -> int | float:
    try:
        return float(number) if float(number) == number else number
    except OverflowError:
        return number


def same_settings(config: RunConfig) -> str:
    """Text that is equal for configurations of foreign models that are the same."""
    settings = normalize_numbers(_settings(dict(config)))
    return canonical_json({**config.changed, "imported": settings})
