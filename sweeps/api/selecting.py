"""References of users: to configurations, fields, values and selections of runs."""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence, Sized
from contextlib import suppress
from typing import Any, Literal, get_args, get_origin

import numpy as np
from pydantic import TypeAdapter, ValidationError

from seqcls.config import RunConfig, check_model_seed, default_fields
from seqcls.errors import ConfigError, Parameter, UnknownRunError
from seqcls.imported import PREFIX, fields_known
from seqcls.text import expectation, nearest
from sweeps.results import LEARNED_AT, Outcome, differing_fields
from sweeps.store.database import Store
from sweeps.store.reads import queries, sweep_queries
from sweeps.store.reads.selection import Selection as Selection
from sweeps.store.reads.selection import WrittenValue, as_list


def config_named(store: Store, reference: str) -> int:
    """Returns the id of the configuration referred to by its name, or by `heads`,
    `heads:hidden_size=16`, `12` or `heads/2`.

    A sweep refers to its only configuration, or to the one with the values after a colon. A run, by
    its id or by its sweep and model seed, refers to its configuration. Names and values may contain
    colons, commas and slashes: every way to read the reference is tried, and an ambiguous one is
    refused unless all readings are of the same configuration.

    Raises:
        UnknownRunError: no configuration fits, or several do.
        ConfigError: there is no such field, or a value is not one of its values.
    """
    found: dict[str, int] = {}
    refused: list[UnknownRunError | ConfigError] = []
    # The longest first: a sweep may be called a:b beside one that is called a.
    names = sorted(sweep_queries.sweeps_that_begin(store, reference), key=len, reverse=True)
    for name in names:
        conditions = reference[len(name) + 1 :]
        try:
            meaning = f"the sweep {name!r}" if not conditions else f"{conditions} of {name!r}"
            found[meaning] = _config_of_sweep(store, reference, name, conditions)
        except (UnknownRunError, ConfigError) as error:
            refused.append(error)
    if (called := queries.config_called(store, reference)) is not None:
        found[f"the configuration {reference!r}"] = called
    if queries.runs_named(store, reference) or not (names or found):
        try:
            run_id = queries.find_run(store, reference)
            found[f"run {run_id}"] = queries.config_id_of(store, run_id)
        except UnknownRunError as error:
            refused.append(error)
    if found and reference in names and f"the sweep {reference!r}" not in found:
        # The sweep of that name has several configurations: the reference is ambiguous.
        found = {f"the sweep {reference!r}": -1, **found}
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    if found:
        raise UnknownRunError(
            f"{reference!r} means {' or '.join(found)}; write {reference + ':'!r} for the sweep of "
            "that name, or name the other one by a run's id or as SWEEP/SEED"
        )
    if not names and "/" not in reference and not reference.isdecimal():
        sweep_queries.find_sweep(store, reference.partition(":")[0])
    # The first refusal is of the longest sweep name, the most likely reading.
    raise refused[0]


def _config_of_sweep(store: Store, reference: str, sweep: str, conditions: str) -> int:
    """Returns the only configuration of a sweep with the values `hidden_size=16,positions=none`."""
    ids = queries.config_ids_of_sweep(store, sweep_queries.find_sweep(store, sweep))
    known = {x: fields_known(config) for x, config in queries.configs(store, ids).items()}
    # Foreign models have settings of any name, known only from the stored ones.
    names = {name for fields in known.values() for name in fields}
    alike = _with_values(known, conditions, names)
    if not alike:
        # A comma is part of a value unless another FIELD= follows.
        for part in re.split(r",(?=[^,=]+=)", conditions.rstrip(",")):
            condition(part, f"{reference!r}: {part}", names)
        raise UnknownRunError(f"{reference!r}: no run of sweep {sweep!r} has these values")
    if len(alike) == 1:
        return next(iter(alike))
    runs = queries.runs(store, Selection((sweep,), config_ids=tuple(alike)))
    apart = differing_fields(runs)
    first = runs["id"].iloc[0]
    if not apart:
        raise UnknownRunError(
            f"{reference!r} means {len(alike)} configurations, which differ in no field that is "
            f"shown; name one by the id of a run of it: "
            f"{', '.join(map(str, runs.drop_duplicates('config_id')['id'].head(10)))}"
        )
    shown = alike[int(runs["config_id"].iloc[0])].get(apart[0])
    named = f"{sweep}:{apart[0]}={shown}" if shown is not None else str(first)
    raise UnknownRunError(
        f"{reference!r} means {len(alike)} configurations, which differ in {', '.join(apart)}; "
        f"name one, as in {named}, or by the id of a run of it, as in {first}"
    )


Configs = Mapping[int, Mapping[str, Any]]
"""The fields of configurations by id."""


def _with_values(configs: Configs, text: str, names: Collection[str]) -> Configs:
    """Returns those of these configurations with the values of `hidden_size=16,positions=none`;
    none where a part is refused.

    Args:
        names: of all fields. A comma ends a value only where another one follows.
    """
    ends = rf",(?=$|(?:{'|'.join(map(re.escape, names))})=)"
    with suppress(ConfigError):
        for part in filter(None, re.split(ends, text)):
            configs = queries.with_value(configs, *condition(part, part, names))
        return configs
    return {}


def selection_of(
    store: Store,
    sweeps: Sequence[str] = (),
    model_seeds: int | Sequence[int] | None = (),
    *,
    failing: bool = False,
    outcome: str | Sequence[str] | None = (),
    learned_at: float = LEARNED_AT,
    below: float = 1.0,
    conditions: Sequence[str] = (),
    **fields: Any,
) -> Selection:
    """Makes the selection of runs of the filters that all questions about many runs share.

    Args:
        store: the database.
        sweeps: only runs of these sweeps; all where it is empty.
        model_seeds: likewise.
        failing: only runs whose accuracy is below `below`.
        outcome: only runs with one of these outcomes, of `sweeps.results.Outcome`.
        learned_at: the accuracy on trained lengths from which on a run has learned.
        below: the accuracy below which a run fails, on longer lengths or on the whole test.
        conditions: values that fields of the configuration must have, as text: `hidden_size=16`.
        fields: the same as Python values.

    Raises:
        UnknownRunError: there is no such sweep.
        ConfigError: there is no such outcome or field, or a seed is no seed.
    """
    for name in sweeps:
        sweep_queries.find_sweep(store, name)
    given = as_list(() if model_seeds is None else model_seeds)
    seeds = [x.item() if isinstance(x, np.generic) else x for x in given]
    for seed in seeds:
        check_model_seed(seed)
    # All foreign configurations are read only where a condition may name one.
    foreign = queries.foreign_settings(store) if conditions else ()
    required: list[tuple[str, Any]] = []
    for text in conditions:
        source = Parameter("conditions", text)
        name, value = condition(text, source, foreign)
        if any(x == name and y != value for x, y in (*required, *fields.items())):
            raise ConfigError(source, f": {name} has another value before; leave one of them out")
        required.append((name, value))
    for name, value in fields.items():
        if not is_setting(name):
            raise ConfigError(f"{name}={value!r:.60}: {nearest(name, list(default_fields()))}")
        plain = value.item() if isinstance(value, np.generic) else value
        required.append((name, value_of(name, plain, f"{name}={plain!r:.60}", is_text=False)))
    alike: Configs | None = None
    if required:
        alike = queries.with_values(queries.configs(store), required)
        refuse_no_value(alike, conditions)
    return Selection(
        tuple(sweeps),
        tuple(seeds),
        None if alike is None else tuple(alike),
        below=_threshold("below", below),
        learned_at=_threshold("learned_at", learned_at),
        failing=failing,
        outcomes=tuple(map(_outcome, as_list(() if outcome is None else outcome))),
    )


def _outcome(text: Any) -> Outcome:
    known = [outcome.value for outcome in Outcome]
    if text not in known:
        raise ConfigError(Parameter("outcome", text), f": {nearest(str(text), known)}")
    return Outcome(text)


def is_setting(name: str) -> bool:
    """True if a name is that of a field of configurations, or of models trained elsewhere."""
    return name in RunConfig.model_fields or name.startswith(PREFIX)


def _threshold(name: str, value: float) -> float:
    """Checks a threshold of accuracy; raises a ConfigError if it is no share."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigError(
            Parameter(name, value), ": expected an accuracy from 0 to 1, such as 0.99"
        )
    return float(value)


def refuse_no_value(found: Sized, conditions: Sequence[str]) -> None:
    """Refuses a condition such as `x=` or `x=nan`, which finds nothing.

    Raises:
        ConfigError: there is one.
    """
    for text in conditions if not len(found) else ():
        name, _, value = text.rpartition("=")
        if value.strip().lower() in ("", "nan"):
            raise ConfigError(
                Parameter("conditions", text),
                f": no run has that value, and runs without a value of {name} are found by no "
                "condition; expected a value, as in hidden_size=16",
            )


def condition(text: str, source: str | Parameter, foreign: Collection[str] = ()) -> tuple[str, Any]:
    """Reads the field and the value of `hidden_size=16`.

    Args:
        source: the place where it was written, the beginning of messages.
        foreign: known settings of models trained elsewhere, whose names may contain a `=`.

    Raises:
        ConfigError: there is no such field, or it does not have that value.
    """
    name, equals, value = text.partition("=")
    if name.startswith(PREFIX):
        named = [known for known in foreign if text.startswith(f"{known}=")]
        if not named:
            raise ConfigError(source, f": no model has {name!r}: {nearest(name, list(foreign))}")
        name = max(named, key=len)
        value = text[len(name) + 1 :]
    elif name not in RunConfig.model_fields:
        raise ConfigError(source, f": {nearest(name, list(default_fields()))}")
    if not equals:
        raise ConfigError(source, ": expected FIELD=VALUE, such as hidden_size=16")
    return name, value_of(name, value, source)


def value_of(field: str, given: Any, source: str | Parameter, *, is_text: bool = True) -> Any:
    """Reads a value of a field; a setting of models trained elsewhere has no known type.

    Args:
        given: text, such as `16` or `"rotary"`; else a Python value.
        source: the place where it was written, the beginning of messages.

    Raises:
        ConfigError: the field does not have that value.
    """
    if field.startswith(PREFIX):
        return WrittenValue(given) if is_text else given
    annotation: Any = RunConfig.model_fields[field].annotation
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    if is_text and given.startswith('"'):
        # Tables and specifications write texts in quotes.
        with suppress(ValueError):
            given = str(json.loads(given))
    if is_text and get_origin(annotation) is Literal:
        named = {str(x): x for x in get_args(annotation)}
        if given in named:
            return named[given]
    try:
        read = adapter.validate_strings(given) if is_text else adapter.validate_python(given)
    except ValidationError as error:
        raise ConfigError(source, f": {expectation(error.errors()[0])}") from None
    if is_text and isinstance(read, float) and not math.isfinite(read):
        raise ConfigError(source, ": expected a finite number")
    return read
