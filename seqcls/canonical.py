"""Text that is equal for equal values, to be hashed and compared; values as JSON has them."""

import json
import math
from collections.abc import Mapping
from typing import Any


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values, equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def with_nulls(value: Any) -> Any:
    """A value, and all within it, with None for NaN and text for infinity, which JSON lacks."""
    if isinstance(value, Mapping):
        return {name: with_nulls(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [with_nulls(inner) for inner in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
