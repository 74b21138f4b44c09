"""Which configuration a user means."""

import json
from typing import Any, Literal, get_args, get_origin

from pydantic import TypeAdapter, ValidationError

from seqcls.config import RunConfig, default_fields
from seqcls.errors import ConfigError, UnknownRunError
from seqcls.fields.imported import PREFIX
from seqcls.spelling import nearest
from sweeps.results.summaries import differing_fields
from sweeps.store.databases.engine import Store
from sweeps.store.reading import queries, sweep_queries
from sweeps.store.reading.selection import View


def config_named(store: Store, reference: str) -> int:
    """The id of the configuration named by `heads`, `heads:hidden_size=16`, `12` or `heads/2`.

    A sweep names its only configuration, or the one that has the values after a colon. A run, by
    its id or by its sweep and model seed, names its own configuration.

    Raises:
        UnknownRunError: no configuration fits, or several do.
        ConfigError: there is no such field, or a value is not one of its values.
    """
    sweep, _, conditions = reference.partition(":")
    if not conditions and (sweep.isdigit() or "/" in sweep):
        return _config_of(store, queries.find_run(store, sweep))
    sweep_queries.find_sweep(store, sweep)
    named = [part for part in conditions.split(",") if part]
    fields = dict(condition(part, f"{reference!r}: {part}") for part in named)
    runs = queries.runs(store, View((sweep,)), fields)
    ids = sorted(set(runs["config_id"]))
    if len(ids) == 1:
        return int(ids[0])
    if not ids:
        raise UnknownRunError(f"{reference!r}: no run of sweep {sweep!r} has these values")
    names = differing_fields(runs)
    raise UnknownRunError(
        f"{reference!r} means {len(ids)} configurations, which differ in {', '.join(names)}; name "
        f"one, as in {sweep}:{names[0]}={runs[names[0]].iloc[0]}"
    )


def condition(text: str, said: str) -> tuple[str, Any]:
    """The field and the value of `hidden_size=16`.

    Args:
        text: what was written.
        said: where it was written, which messages begin with.

    Raises:
        ConfigError: there is no such field, or it does not have that value.
    """
    name, equals, value = text.partition("=")
    if name.startswith(PREFIX) and equals:
        return name, _foreign(value)
    if name not in RunConfig.model_fields:
        raise ConfigError(f"{said}: {nearest(name, list(default_fields()))}")
    if not equals:
        raise ConfigError(f"{said}: expected FIELD=VALUE, as in hidden_size=16")
    return name, value_of(name, value, said)


def _foreign(text: str) -> Any:
    """A setting of a model trained elsewhere: a number where it is one, else text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float | str) else text


def value_of(field: str, text: str, said: str) -> Any:
    """A value of a field, from text.

    Args:
        field: of the configuration.
        text: the value alone.
        said: where it was written, which messages begin with.

    Raises:
        ConfigError: the field does not have that value.
    """
    annotation: Any = RunConfig.model_fields[field].annotation
    named = {str(x): x for x in get_args(annotation)} if get_origin(annotation) is Literal else {}
    if text in named:
        return named[text]
    try:
        return TypeAdapter(annotation).validate_strings(text)
    except ValidationError as error:
        expected = error.errors()[0]["msg"].removeprefix("Input should be ")
        raise ConfigError(f"{said}: expected {expected}") from None


def _config_of(store: Store, run_id: int) -> int:
    frame = queries.runs(store)
    return int(frame.loc[frame["id"] == run_id, "config_id"].iloc[0])
