"""Files of strings that a specification names: their digests stand in configurations."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seqcls.datasets.known import remember
from seqcls.errors import DatasetError, SpecError
from sweeps.datasets import read_dataset


def with_digests(data: Mapping[str, Any], folder: Path | None = None) -> Mapping[str, Any]:
    """A specification whose every `path` is read, and replaced by `dataset` and its digest.

    Args:
        data: the table as TOML gives it.
        folder: where paths are looked for first, that of the specification; else, or where there
            is none, the working directory.

    Raises:
        SpecError: a file cannot be read or is refused.
    """
    settings = dict(data)
    for key in ("fixed", "axes"):
        if isinstance(fields := settings.get(key), Mapping):
            settings[key] = _replaced(fields, folder)
    if isinstance(listed := settings.get("configurations"), list | tuple):
        settings["configurations"] = [
            _replaced(fields, folder) if isinstance(fields, Mapping) else fields
            for fields in listed
        ]
    return settings


def _replaced(fields: Mapping[str, Any], folder: Path | None) -> Mapping[str, Any]:
    if "path" not in fields:
        return fields
    if "dataset" in fields:
        raise SpecError("both path and dataset are given; a path stands for its dataset")
    named = fields["path"]
    digests = [_digest(x, folder) for x in named] if isinstance(named, list) else None
    others = {name: value for name, value in fields.items() if name != "path"}
    return {**others, "dataset": digests if digests is not None else _digest(named, folder)}


def _digest(named: Any, folder: Path | None) -> str:
    if not isinstance(named, str) or not named or "\0" in named:
        raise SpecError(f"path={named!r:.60}: expected the name of a file, such as 'data.csv'")
    there = (folder or Path()) / named
    try:
        return remember(read_dataset(there if there.exists() else Path(named)))
    except DatasetError as error:
        raise SpecError(f"path={error}") from None
