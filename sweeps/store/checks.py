"""Whether a row's text says what it should."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from seqcls.config import RunConfig
from seqcls.errors import ConfigError, SpecError
from sweeps.grid.spec import SweepSpec, spec_as_written

Parsed = TypeVar("Parsed")

IMPORTED_JSON = '"imported":"{'
"""Stands in the JSON of the configurations of models trained elsewhere, and of no others."""


def read_config(text: str) -> RunConfig:
    """The configuration in a row's JSON.

    Raises:
        ValueError: it is none.
    """
    return _read(text, RunConfig.from_mapping, "cannot be read")


def read_config_of_key(text: str, key: str | None) -> RunConfig:
    """The configuration in a row's JSON, of the key beside it.

    Raises:
        ValueError: it is none, or has another key.
    """
    config = read_config(text)
    if (misfit := key_misfit(config, key)) is not None:
        raise ValueError(misfit)
    return config


def key_misfit(config: RunConfig, key: str | None) -> str | None:
    """What is wrong with the key beside a configuration; None where it is its own."""
    if config.key == key:
        return None
    return f"its key is {str(key or '')[:16]!r}, not that of its json"


def read_spec(text: str) -> SweepSpec:
    """The specification in a row's JSON.

    Raises:
        ValueError: it is none.
    """
    return _read(text, spec_as_written, "its specification cannot be read")


def _read(text: str, reads: Callable[[dict[str, Any]], Parsed], said: str) -> Parsed:
    try:
        return reads(json.loads(text))
    except (ConfigError, SpecError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{said} ({' '.join(str(error).split())[:200]})") from None
