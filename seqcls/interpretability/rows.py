"""Answers as rows: named tuples, from which JSON is made."""

import math
from collections.abc import Mapping, Sequence
from typing import Any


def record(found: Any) -> Any:
    """An answer as programs read it: of a named tuple its fields by name, whatever they hold.

    An object with a method `record` is written as that method returns it.
    A number that is not finite is None, as JSON has none; an array is a list of lists.
    """
    if hasattr(found, "record"):
        return record(found.record())
    if hasattr(found, "_asdict"):
        return {name: record(value) for name, value in found._asdict().items()}
    if isinstance(found, Mapping):
        return {str(name): record(value) for name, value in found.items()}
    # An array or a number of NumPy, which commands do without until they need it.
    if hasattr(found, "tolist"):
        return record(found.tolist())
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    if isinstance(found, Sequence) and not isinstance(found, str):
        return [record(value) for value in found]
    return found
