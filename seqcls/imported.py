"""Configurations of models trained elsewhere: their name and settings, whatever these are.

A setting is named by its path: `{"optimizer": {"lr": 0.1}}` and `{"optimizer.lr": 0.1}` have the
same, `config.optimizer.lr` beside our fields. Configurations with the same settings are the same,
and 64 and 64.0 are one number.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date, time
from enum import Enum
from pathlib import PurePath
from typing import Any
from unicodedata import category

from seqcls.config import IMPORTED, RunConfig
from seqcls.errors import ConfigError
from seqcls.fields import fields_of_training, fields_unread, strings_read, test_set_json
from seqcls.problem import resolve, with_samplers
from seqcls.text import canonical_json, short

MODEL, PREFIX = "config.model", "config."
"""The field of a foreign model's name beside ours, and the prefix of its settings."""

MAX_NAME = 200
MAX_SETTINGS = 200
MAX_TEXT = 100_000
"""Most characters of a name and its settings as JSON, as in `RunConfig.imported`."""


def imported_config(
    fields: Mapping[str, Any], model: str, settings: Mapping[str, Any] | None = None
) -> RunConfig:
    """Makes the configuration of a model trained elsewhere.

    Args:
        fields: those of its test: `task`, the task's fields, and those of its test strings.
        settings: its settings by name, without meaning here: numbers, texts, and lists and
            settings of these. Numbers of NumPy and PyTorch are taken as numbers, paths and dates
            as text.

    Raises:
        ConfigError: there are no such test strings, or a setting is none of these.
    """
    is_name = isinstance(model, str) and model.isprintable() and 1 <= len(model) <= MAX_NAME
    if not is_name or not model.strip():
        raise ConfigError(
            f"model={short(model)}: expected a name of 1 to {MAX_NAME} printable characters"
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


def plain_settings(settings: Any) -> dict[str, Any]:
    """Returns the settings of a model as JSON values.

    Raises:
        ValueError: a value is no JSON, or a name is invalid.
    """
    if not isinstance(settings, Mapping):
        raise ValueError(f"{short(settings)}, expected settings by name, as {{'d': 64}}")
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
        # Names in JSON are texts, also those that are whole numbers.
        name = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
        if not isinstance(name, str) or not name or not name.isprintable() or len(name) > MAX_NAME:
            raise ValueError(
                f"a setting is called {short(given)}, expected a printable name of at most "
                f"{MAX_NAME} characters"
            )
        if name in plain:
            raise ValueError(f"two settings are called {prefix + name!r:.100}; keep one")
        plain[str(name)] = _plain(value, f"{prefix}{name}")
    return plain


def _plain(value: Any, path: str) -> Any:
    """Returns a setting as a JSON value.

    Raises:
        ValueError: JSON has no such value.
    """
    # Missing values are those of pandas; a NaN is a number that training may have made.
    missing = type(value).__name__ in ("NAType", "NaTType")
    if value is None or isinstance(value, bool) or missing:
        return value if isinstance(value, bool) else None
    # Members of a `StrEnum` are texts as well, so that enumerations come first.
    if isinstance(value, Enum):
        return _plain(value.value, path)
    if isinstance(value, str):
        # Surrogates without a partner are no UTF-8, so no database holds them.
        if any(category(x) == "Cs" for x in value):
            raise ValueError(f"{path!r:.100} is {short(value)}, which is not text in Unicode")
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(
                f"{path!r:.100} is {value}, which is not a JSON number; leave it out, or give it "
                f"as text, '{value}'"
            )
        # NumPy's 64-bit numbers come here too, since they inherit from Python's floats.
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
        f"{path!r:.100} is {short(value)}, of type {type(value).__name__}, which is not JSON: "
        "expected a number, text, true or false, None, or a list or mapping of these; give it as "
        "text"
    )


def _leaves(settings: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yields each setting's path and value; an empty mapping is a value."""
    # Sorted, since the order of settings has no meaning.
    for name, value in sorted(settings.items()):
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _name_of(path: str) -> str:
    """Returns the name of a setting beside our fields.

    `config.model` is the model's name, so a setting called `model` is `config.config.model`, one
    called `config.model` takes one more `config.`, and so on, so that names are distinct.
    """
    rest = path
    while rest.startswith(PREFIX):
        rest = rest.removeprefix(PREFIX)
    return PREFIX * (2 if rest == "model" else 1) + path


def _settings(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a foreign model's name and settings by their names beside our fields."""
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
            # Older versions stored two with one path, such as "a.b" beside "a": {"b": …}.
            name += "'"
        found[name] = value
    return found


def unfold(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a foreign model's name and settings as `config.model`, `config.d_model` and so on.

    Nested settings are named by their path; lists are text. For models trained here it is empty.
    """
    return in_columns([_settings(fields)])[0]


def fields_known(config: RunConfig) -> dict[str, Any]:
    """Returns a configuration's fields by name.

    For a model trained elsewhere these include its settings as JSON values; our fields of training
    are None, and those of the network too if its weights are missing.
    """
    fields = config.model_dump()
    if not config.imported:
        return fields
    absent = fields_unread(config) if config.is_imported else fields_of_training(config)
    known = {x: None if x in absent or x == "imported" else value for x, value in fields.items()}
    return {**known, **_settings(fields)}


def in_columns(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Gives each foreign setting of several configurations values of one type.

    A column has only numbers, only true or false, or only text. Values of several types become
    distinct texts: 64 and True in JSON's notation, and a text that looks like such a value in
    quotation marks. None is a missing value.

    Args:
        rows: fields by name, from `fields_known`.
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
    """Returns the function that writes values of a column; None if they are unchanged."""
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
    """Returns a JSON value with each number in one spelling: 64.0 is 64."""
    if isinstance(value, dict):
        return {name: normalize_numbers(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [normalize_numbers(x) for x in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    if isinstance(value, int) and abs(value) >= 2**63:
        with suppress(OverflowError):
            return float(value) if float(value) == value else value
    return value


def same_settings(config: RunConfig) -> str:
    """Returns text that is equal for equal configurations of foreign models."""
    settings = normalize_numbers(_settings(dict(config)))
    return canonical_json({**config.changed, "imported": settings})
