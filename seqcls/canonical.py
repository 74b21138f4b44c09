"""Text that is equal for equal values, to be hashed and compared."""

import json
from typing import Any


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values, equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
