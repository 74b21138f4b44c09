"""`seqcls try`: networks on a task as a specification, trained and summarized."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqcls.errors import ConfigError, Parameter
from seqcls.tasks import TASKS
from seqcls.text import as_argument
from sweeps.api import typed
from sweeps.api.outcomes import configurations
from sweeps.api.selecting import condition
from sweeps.api.sweeping import submit, work
from sweeps.files import whole_files
from sweeps.grid.spec import spec_as_written
from sweeps.grid.written_spec import toml_of, with_digests
from sweeps.store.database import Store

if TYPE_CHECKING:
    import pandas as pd

LENGTHS = {"train_max_length": [20], "test_max_length": [100]}
"""Default lengths, the same as on the form of a new sweep."""

LONGEST_NAME = 40

ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet", ".att", ".dot")
"""Endings of file names: a mistyped one is refused as a file, and not read as an expression."""


def specify(
    task: str,
    *,
    networks: str = "transformer",
    positions: str | Sequence[str] = (),
    seeds: int | str = 5,
    settings: Mapping[str, Any] | Sequence[str] = (),
    name: str | None = None,
) -> dict[str, Any]:
    """Returns the specification of networks on tasks, as a table.

    Args:
        task: a list of tasks as they are typed: names, expressions, formulas; `(ab|ba)*, parity`;
            or files of strings or automata, such as `words.csv`.
        networks: a list of networks as they are typed, such as `transformer, lstm`.
        positions: position schemes, each combined with every network.
        seeds: the number of model seeds; or a range such as `0..4`.
        settings: values of other fields, as `hidden_size=16` or as a mapping; several of one field,
            with commas or as a list, make a configuration each.
        name: of the sweep; by default made of the task.

    Raises:
        ConfigError, SpecError: a part of it is refused, by name.
    """
    named = typed.parts_of(positions) if isinstance(positions, str) else list(positions)
    values: dict[str, list[Any]] = dict(LENGTHS)
    if named:
        values["positions"] = named
    if isinstance(settings, Mapping):
        values |= {x: list(y) if isinstance(y, list | tuple) else [y] for x, y in settings.items()}
    else:
        for text in settings:
            field, _, written = text.partition("=")
            if field in ("path", "dataset"):
                file = f": name the file as the task: `seqcls try {as_argument(written)}`"
                raise ConfigError(Parameter("settings", text), file)
            # Refuses an unknown field and a missing value.
            condition(text.split(",")[0], Parameter("settings", text))
            values[field] = typed.values_of(field, written)
    # Only here, and for no form of a page: visitors of a page may not read this machine's files.
    files = {x: _digest(x) for x in typed.phrases_of(task) if _is_file(x)}
    tasks, nets = typed.tasks_of(task, files), typed.networks_of(networks)
    name = name or _name_of(task)
    return typed.specification(name, tasks, nets, typed.seeds_of(str(seeds)), values)


def _is_file(phrase: str) -> bool:
    """True if a task is the name of a file, existing or not; in quotes it is an expression."""
    return phrase not in TASKS and (os.path.exists(phrase) or phrase.endswith(ENDINGS))


def _digest(path: str) -> str:
    return str(with_digests({"fixed": {"path": path}})["fixed"]["dataset"])


def _name_of(text: str) -> str:
    """Makes a name for a sweep and its file from the letters and digits of a text."""
    words = re.findall(r"\w+", text)
    # A task such as '()' has no letter or digit to name a file by.
    return "-".join(words)[:LONGEST_NAME].strip("-") or "question"


def write_specification(table: Mapping[str, Any], folder: Path) -> Path:
    """Writes a specification into a file, unless the same one is there.

    Returns:
        The file, named by the letters and digits of the sweep's name.

    Raises:
        SpecError: the specification is refused, or one of its configurations.
        ConfigError: a file of that name has another content.
    """
    spec = spec_as_written(table)
    # Expanding checks every configuration before the file is written.
    for _ in spec.configs():
        pass
    text = toml_of(spec.submitted)
    path = folder / f"{_name_of(spec.name)}.toml"
    if path.exists():
        if path.read_text(encoding="utf-8") == text:
            return path
        what = Parameter("name", str(table["name"]))
        raise ConfigError(what, f": {path} asks something else; give the question another name")
    with whole_files(folder) as new:
        (new / path.name).write_text(text, encoding="utf-8")
    return path


def try_task(
    store: Store,
    task: str,
    *,
    networks: str = "transformer",
    positions: str | Sequence[str] = (),
    seeds: int | str = 5,
    name: str | None = None,
    workers: int = 0,
    **settings: Any,
) -> "pd.DataFrame":
    """Trains small networks on a task, and counts how many learn it and how many generalize.

    Args:
        store: the database.
        task: as `specify` takes it, such as `(ab|ba)*`; likewise the other arguments.
        networks: such as `transformer, lstm`.
        positions: such as `["none", "rotary"]`.
        seeds: the number of seeds of each.
        name: of the sweep; by default made of the task.
        workers: processes to train in, as for `work`.
        **settings: values of fields, as `train_max_length=30` or `hidden_size=[16, 32]`.

    Returns:
        The frame of `configurations`.

    Raises:
        ConfigError, SpecError: a part of it is refused, by name; nothing is trained.
    """
    table = specify(
        task, networks=networks, positions=positions, seeds=seeds, settings=settings, name=name
    )
    work(store, submit(store, table), workers=workers)
    return configurations(store, str(table["name"]))
