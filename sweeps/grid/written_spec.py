"""A sweep specification as it is written down: the kinds of its values, and what each may be."""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

import tomli_w
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from seqcls.config import RunConfig, check_model_seed
from seqcls.errors import ConfigError, SpecError
from seqcls.text import OTHER_NAMES, closest, nearest
from sweeps.grid.bases import BASES, Base
from sweeps.grid.seeds import EXPECTED, Until

MAX_RUNS = 100_000
"""A larger grid is refused before anything of it is expanded."""

MAX_NAME = 200

Checkpoints = Literal["best_epoch", "every_epoch"]
CHECKPOINTS: tuple[Checkpoints, ...] = get_args(Checkpoints)

Seeds = range | tuple[int, ...]

_RANGE = re.compile(r"(\d{1,19})\.\.(\d{1,19})")

_TEXTS = "text in quotes"
_TABLES = "tables, each written [[configurations]]"
_VALUES = "a list of values, or a range of whole numbers such as '0..7'"

_EXPECTED: dict[tuple[str, bool], str] = {
    ("name", False): _TEXTS,
    ("description", False): _TEXTS,
    ("base", False): " or ".join(map(repr, BASES)),
    ("verdict", False): "true or false",
    ("checkpoints", False): " or ".join(map(repr, CHECKPOINTS)),
    ("until", False): f"text in quotes, {EXPECTED}",
    ("most_seeds", False): f"a whole number from 1 to {MAX_RUNS:,}",
    ("fixed", False): "a table, written [fixed]",
    ("axes", False): "a table, written [axes]",
    ("axes", True): _VALUES,
    ("configurations", False): _TABLES,
    ("configurations", True): _TABLES,
}
"""What a value is to be, by its key and by whether it stands inside the key's own."""

_SEEDS_HINT = " write model_seeds = [0, 1] or model_seeds = '0..7'"

_WITH_TEXT = "seqcls"
"""The type of the problems that bring a text of their own."""


def _problem(text: str) -> PydanticCustomError:
    return PydanticCustomError(_WITH_TEXT, "{text}", {"text": text})


def _storable(text: str) -> str:
    if "\0" in text or (not text.isascii() and any(0xD800 <= ord(x) < 0xE000 for x in text)):
        raise _problem("has a character that no database can hold; remove it")
    return text


def _title(name: str) -> str:
    if not name.strip():
        raise _problem(f"expected {_TEXTS}")
    if len(name) > MAX_NAME:
        raise _problem(f"has {len(name):,} characters, expected at most {MAX_NAME}")
    if not name.isprintable():
        raise _problem("expected one line without control characters")
    return name


def range_of(value: Any) -> range | None:
    """The whole numbers of a range such as '0..7', ends included; None where it is none."""
    if not isinstance(value, str) or (match := _RANGE.fullmatch(value)) is None:
        return None
    return range(int(match[1]), int(match[2]) + 1)


def _until(text: str) -> str:
    try:
        if text:
            Until.parse(text)
    except ValueError as error:
        raise _problem(str(error)) from None
    return text


def _model_seeds(value: Any) -> Seeds:
    seeds: Seeds = tuple(value) if isinstance(value, list) else ()
    ends = list(seeds)
    if (found := range_of(value)) is not None:
        if found.stop - found.start > MAX_RUNS:
            raise _problem(f"expected at most {MAX_RUNS:,} seeds; take fewer")
        seeds, ends = found, [found.start, found.stop - 1]
    for seed in ends:
        check_model_seed(seed)
    if not seeds or (isinstance(seeds, tuple) and len(set(seeds)) < len(seeds)):
        raise _problem(
            "expected a range such as '0..7', ends included, or a list of distinct whole numbers"
        )
    return seeds


def _check_names(fields: dict[str, Any]) -> dict[str, Any]:
    for name in fields:
        if name == "model_seeds" or OTHER_NAMES.get(name) == "model_seeds":
            raise SpecError(
                f"{name!r} is no field: write model_seeds = [0, 1] or '0..7' at the top of the "
                "file, before all tables"
            )
        if name not in RunConfig.model_fields:
            raise SpecError(
                f"unknown field {name!r}: {nearest(name, list(RunConfig.model_fields))}"
            )
    return fields


def _entry(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of one of the configurations, and its model seeds where it has its own."""
    named = {name: value for name, value in fields.items() if name != "model_seeds"}
    entry = _check_names(named)
    if named == fields:
        return entry
    try:
        return {**entry, "model_seeds": _model_seeds(given := fields["model_seeds"])}
    except PydanticCustomError as error:
        said = f"model_seeds={given!r:.100} of a configuration: {error.message()}"
        raise SpecError(said) from None


Fields = Annotated[dict[str, Any], AfterValidator(_check_names)]
Entry = Annotated[dict[str, Any], AfterValidator(_entry)]
Axes = Annotated[dict[str, Annotated[list[Any], Field(min_length=1)]], AfterValidator(_check_names)]


class WrittenSpec(BaseModel):
    """The table of a TOML file; `sweeps.grid.spec.SweepSpec` says what it means."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True
    )

    name: Annotated[str, AfterValidator(_title), AfterValidator(_storable)]
    description: Annotated[str, AfterValidator(_storable)] = ""
    model_seeds: Annotated[Seeds, PlainValidator(_model_seeds)] = Field((), validate_default=True)
    checkpoints: Checkpoints = CHECKPOINTS[0]
    verdict: bool = False
    """Whether every run is checked exhaustively, where that is affordable."""
    until: Annotated[str, AfterValidator(_until)] = ""
    """Seeds are added until a share of them is known so well, as `share ± 10 %`, or differs between
    two configurations, as `share apart`."""
    most_seeds: Annotated[int, Field(ge=1, le=MAX_RUNS)] = 500
    """A configuration gets no more seeds than these."""
    base: Base | None = None
    """What gives values to fields that no table names."""
    fixed: Fields = {}
    axes: Axes = {}
    configurations: Annotated[list[Entry], Field(min_length=1)] = [{}]
    """Each may have `model_seeds` of its own in place of those of all."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "WrittenSpec":
        """The specification in a table as TOML gives it.

        Raises:
            SpecError: an unknown key or field, or a value of the wrong kind; in one line.
        """
        try:
            return cls.model_validate(dict(data))
        except ConfigError as error:
            raise SpecError(str(error)) from None
        except ValidationError as error:
            problems = error.errors(include_url=False)
            # What is missing is there under another name, where a key is unknown.
            problems.sort(key=lambda problem: problem["type"] != "extra_forbidden")
            raise SpecError(_message(data, problems[0])) from None


def _message(data: Mapping[str, Any], problem: ErrorDetails) -> str:
    key, *inner = problem["loc"]
    if problem["type"] == "extra_forbidden":
        name = str(key)
        field = closest(name, list(RunConfig.model_fields))
        meant = field if field in (name, OTHER_NAMES.get(name.lower())) else None
        if meant and OTHER_NAMES.get(name.lower()) not in WrittenSpec.model_fields:
            return (
                f"unknown key {name!r}: fields stand in a table, {meant} = … in [fixed] or "
                f"{meant} = [ … ] in [axes]"
            )
        hint = nearest(name, list(WrittenSpec.model_fields))
        return f"unknown key {name!r}: {hint}{_SEEDS_HINT if 'model_seeds' in hint else ''}"
    if problem["type"] == _WITH_TEXT:
        text = problem["msg"]
    else:
        text = f"expected {_EXPECTED[str(key), bool(inner)]}"
    if key == "axes" and inner:
        return f"axes: {inner[0]}={data['axes'][inner[0]]!r}: {text}"
    value = repr(data.get(str(key)))
    return f"{key}={value[:200]}: {text}"


def toml_of(submitted: str) -> str:
    """A specification's TOML, its keys in the order in which people write them.

    Args:
        submitted: the specification as it is stored, as JSON.
    """
    spec = json.loads(submitted)
    return tomli_w.dumps({key: spec[key] for key in WrittenSpec.model_fields if key in spec})
