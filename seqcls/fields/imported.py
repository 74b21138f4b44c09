"""Configurations of models trained elsewhere: their name and settings, whatever these are."""

import json
from collections.abc import Mapping
from typing import Any

from seqcls.canonical import canonical_json
from seqcls.config import IMPORTED, RunConfig
from seqcls.errors import ConfigError
from seqcls.fields.fields_read import fields_unread
from seqcls.problem import resolve, with_samplers
from seqcls.testset import test_set_json

MODEL, PREFIX = "config.model", "config."
"""What a foreign model's name is called beside our fields, and what its settings begin with."""

MAX_NAME = 200
MAX_SETTINGS = 200


def imported_config(
    fields: Mapping[str, Any], model: str, settings: Mapping[str, Any] | None = None
) -> RunConfig:
    """The configuration of a model trained elsewhere.

    Args:
        fields: what it was tested on: `task`, the task's fields, and those of its test strings.
        model: its name.
        settings: its settings by name; they are kept as they are, and mean nothing here.

    Raises:
        ConfigError: there are no such test strings, or the settings are no JSON.
    """
    if not isinstance(model, str) or not 1 <= len(model) <= MAX_NAME or not model.isprintable():
        raise ConfigError(f"model={model!r:.60}: expected a name of 1 to {MAX_NAME} characters")
    content: dict[str, Any] = {"model": model, "config": dict(_checked(settings or {}))}
    try:
        text = canonical_json(content)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"config of model {model!r}: no JSON ({str(error)[:100]})") from None
    config = RunConfig.from_mapping(
        {**with_samplers(fields), "architecture": IMPORTED, "imported": text}
    )
    resolve(config)
    read = {*test_set_json(config), "test_sampler"}
    if others := sorted(set(fields) - read):
        raise ConfigError(
            f"{others[0]}={fields[others[0]]!r:.60}: does not say which strings are tested; leave "
            "it out, or give it as a setting of the model, in config"
        )
    return config


def _checked(settings: Any) -> Mapping[str, Any]:
    if not isinstance(settings, Mapping):
        raise ConfigError(f"config={settings!r:.60}: expected settings by name, as {{'d': 64}}")
    for name in settings:
        if not isinstance(name, str) or not name or not name.isprintable() or len(name) > MAX_NAME:
            raise ConfigError(f"config has a setting {name!r:.60}, expected a printable name")
    if len(settings) > MAX_SETTINGS:
        raise ConfigError(f"config has {len(settings):,} settings, expected at most {MAX_SETTINGS}")
    return settings


def unfolded(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A foreign model's name and settings as `config.model`, `config.d_model` and so on.

    Settings within settings are named by their path; lists, and what is no JSON, are text. Of
    configurations of models that are trained here there are none.

    Args:
        fields: those of a configuration.
    """
    if not (text := fields.get("imported")):
        return {}
    try:
        content = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {MODEL: str(text)}
    if not isinstance(content, dict):
        return {MODEL: str(content)}
    unfolded: dict[str, Any] = {}
    settings = content.get("config")
    _unfold(settings if isinstance(settings, dict) else {}, PREFIX, unfolded)
    return {MODEL: str(content.get("model")), **{k: v for k, v in unfolded.items() if k != MODEL}}


def fields_known(config: RunConfig) -> dict[str, Any]:
    """A configuration's fields by name.

    Of a model trained elsewhere its settings besides; fields of ours say nothing of its network
    and its training, and are None.
    """
    fields = config.model_dump()
    if config.architecture != IMPORTED:
        return fields
    absent = fields_unread(config)
    known = {name: None if name in absent else value for name, value in fields.items()}
    return {**known, **unfolded(fields)}


def _unfold(settings: Mapping[str, Any], prefix: str, unfolded: dict[str, Any]) -> None:
    for name, value in sorted(settings.items()):
        if isinstance(value, dict):
            _unfold(value, f"{prefix}{name}.", unfolded)
        else:
            plain = isinstance(value, bool | int | float | str)
            unfolded[f"{prefix}{name}"] = value if plain else canonical_json(value)
