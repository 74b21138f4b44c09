"""Values, names and errors as text.

Values as JSON that is equal for equal values, to be hashed and compared; hints at the name that was
probably meant; and what is wrong with a user's fields, in one line.
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
    """JSON with sorted keys and no spaces: equal values, equal text."""
    # NaN is no JSON, and is not equal to itself.
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


class TwiceError(ValueError):
    """An object of JSON has a name twice."""


def refuse_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The object that `json` has read; it would take the last of two values of one name.

    Raises:
        TwiceError: a name stands twice.
    """
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise TwiceError(f"{twice!r:.60} twice; keep one")
    return content


def with_nulls(value: Any) -> Any:
    """A value, and all within it, with None for NaN and text for infinity, which JSON lacks."""
    if isinstance(value, Mapping):
        return {name: with_nulls(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [with_nulls(inner) for inner in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def count(number: int, noun: str) -> str:
    """A number of things: 1 run, 2,000 runs."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""What moves the cursor, colors, or turns the direction of writing; lines and tabs may stay."""


def visible(text: str) -> str:
    """A text whose control characters are written as Python writes them."""
    return _CONTROL.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


LISTED = 40
"""Known names that a hint lists at most."""

LONGEST_SHOWN = 60
"""Characters of a name that a hint shows."""

OTHER_NAMES = {
    **dict.fromkeys(("seed", "seeds", "model_seed", "num_seeds", "n_seeds"), "model_seeds"),
    **dict.fromkeys(("grid", "matrix", "axis", "sweep", "parameters", "params"), "axes"),
    **dict.fromkeys(("defaults", "base", "common", "config"), "fixed"),
    **dict.fromkeys(("configs", "variants", "models"), "configurations"),
}
"""What others call a key of a specification, and what it is called here. Fields add their own other
names where they are declared."""


def nearest(name: str, known: list[str]) -> str:
    """A hint at the known name that looks most like this one; else the first that are known."""
    if match := closest(name, known):
        return f"did you mean {_cut(match)!r}?"
    if not known:
        return "none is known"
    more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
    return f"known are {', '.join(map(_cut, known[:LISTED]))}{more}"


def _cut(name: str) -> str:
    """A name that a file may give, so that a message stays a line."""
    return name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}…"


def as_argument(name: str) -> str:
    """A name as it is typed after a command, in quotes where a shell needs them."""
    return f"-- {shlex.quote(name)}" if name.startswith("-") else shlex.quote(name)


def closest(name: str, known: list[str]) -> str | None:
    """The known name that means the same, or looks most like this one, where any does."""
    if (other := OTHER_NAMES.get(name.lower())) in known:
        return other
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.5)), None)


def in_one_line(cls: "type[BaseModel]", error: "ValidationError") -> str:
    """Every problem of a model's fields: name, value, and what was expected."""
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
    """What Pydantic expected in place of a value: `expected greater than or equal to 1`."""
    message = re.sub(r"^String should match pattern", "text that matches", problem["msg"])
    message = re.sub(r", (unable to|got a number with) .*", "", _PREFIX.sub("", message))
    # What Python calls a dictionary, the files that people write call a table.
    for theirs, ours in _PLAIN.items():
        message = message.replace(theirs, ours)
    return f"expected {message}"


_PLAIN = {
    "a valid dictionary": "a table", "a valid integer": "a whole number", "a valid string": "text",
    "a valid boolean": "true or false", "a valid ": "a ",
}  # fmt: skip
"""What Pydantic calls kinds of values, and what they are called here."""


_PREFIX = re.compile(r"^(Value error, )?(expected )?([A-Z][a-z]+ should (be|have) )?")
"""What Pydantic says before it says what it expected."""


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def list_values(values: Mapping[str, Any]) -> str:
    """Values by name in a sentence: `heads=2, norm_first=false`."""
    # As files of settings have it: false, not False.
    texts = {x: y if isinstance(y, str) else json.dumps(y) for x, y in values.items()}
    return ", ".join(f"{name}={text}" for name, text in texts.items())
