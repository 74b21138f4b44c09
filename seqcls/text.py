"""Values, names and errors as text.

Values as JSON that is equal for equal values, to be hashed and compared; hints at the name that was
probably meant; and errors in a user's fields, in one line.
"""

import difflib
import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails


def canonical_json(value: Any) -> str:
    """Returns JSON with sorted keys and no spaces, which is equal for equal values."""
    # NaN is no JSON, and is not equal to itself.
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


class TwiceError(ValueError):
    """An object of JSON has a name twice."""


def refuse_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Makes an object of the pairs that `json` has read, which would take the last of two values.

    Raises:
        TwiceError: a name occurs twice.
    """
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise TwiceError(f"{twice!r:.60} twice; keep one")
    return content


def with_nulls(value: Any) -> Any:
    """Replaces NaN by None and infinity by text, which JSON lacks, in a value and all within it."""
    if isinstance(value, Mapping):
        return {name: with_nulls(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [with_nulls(inner) for inner in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def short(value: Any) -> str:
    """Shortens a name or a value for a message of one line."""
    return " ".join(repr(value).split())[:60]


def count(number: int, noun: str) -> str:
    """Writes a number with its noun: 1 run, 2,000 runs."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that move the cursor, color, or change the direction of writing, but no lines and
tabs."""


def visible(text: str) -> str:
    """Escapes the control characters of a text as Python does."""
    return _CONTROL.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


LISTED = 40
"""Most known names that a hint lists."""

LONGEST_SHOWN = 60
"""Most characters of a name that a hint shows."""

OTHER_NAMES = {
    **dict.fromkeys(("seed", "seeds", "model_seed", "num_seeds", "n_seeds"), "model_seeds"),
    **dict.fromkeys(("grid", "matrix", "axis", "sweep", "parameters", "params"), "axes"),
    **dict.fromkeys(("defaults", "base", "common", "config"), "fixed"),
    **dict.fromkeys(("configs", "variants", "models"), "configurations"),
}
"""Other names for a specification's keys and a configuration's fields; declarations add theirs."""


def nearest(name: str, known: list[str]) -> str:
    """Returns a hint at the known name most similar to this one; else the first known names."""
    if match := closest(name, known):
        return f"did you mean {_cut(match)!r}?"
    if not known:
        return "none is known"
    more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
    return f"known are {', '.join(map(_cut, known[:LISTED]))}{more}"


def _cut(name: str) -> str:
    """Shortens a name from a file, so that a message stays one line."""
    return name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}…"


def as_argument(name: str) -> str:
    """Returns a name as an argument of a command, quoted if a shell needs it."""
    return f"-- {shlex.quote(name)}" if name.startswith("-") else shlex.quote(name)


def closest(name: str, known: list[str]) -> str | None:
    """Returns the known name that means the same or is most similar; None if there is none."""
    if (other := OTHER_NAMES.get(name.lower())) in known:
        return other
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.5)), None)


def in_one_line(cls: "type[BaseModel]", error: "ValidationError") -> str:
    """Describes every error in a model's fields: name, value, and expectation."""
    problems = []
    for problem in error.errors(include_url=False):
        name = ".".join(map(str, problem["loc"])) or cls.__name__
        if problem["type"] == "extra_forbidden":
            problems.append(f"unknown field {name!r}: {nearest(name, list(cls.model_fields))}")
            continue
        shown = "NaN" if _is_nan(problem["input"]) else repr(problem["input"])
        problems.append(f"{name}={shown[:80]}: {expectation(problem)}")
    return "; ".join(problems)


def expectation(problem: "ErrorDetails") -> str:
    """Returns Pydantic's expectation of a value: `expected greater than or equal to 1`."""
    message = re.sub(r"^String should match pattern", "text that matches", problem["msg"])
    message = re.sub(r", (unable to|got a number with) .*", "", _PREFIX.sub("", message))
    # A dictionary of Python is a table in the files that users write.
    for theirs, ours in _PLAIN.items():
        message = message.replace(theirs, ours)
    return f"expected {message}"


_PLAIN = {
    "a valid dictionary": "a table", "a valid integer": "a whole number", "a valid string": "text",
    "a valid boolean": "true or false", "a valid ": "a ",
}  # fmt: skip
"""Names of kinds of values, by Pydantic's names."""


_PREFIX = re.compile(r"^(Value error, )?(expected )?([A-Z][a-z]+ should (be|have) )?")
"""The beginning of Pydantic's message, before the expectation."""


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def list_values(values: Mapping[str, Any]) -> str:
    """Lists values by name in a sentence: `heads=2, norm_first=false`."""
    # In the notation of files of settings: false, not False.
    texts = {x: y if isinstance(y, str) else json.dumps(y) for x, y in values.items()}
    return ", ".join(f"{name}={text}" for name, text in texts.items())
