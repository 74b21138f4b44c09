"""What questions are answered with, as rows: named tuples, of which JSON and frames are made."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def record(found: Any) -> Any:
    """An answer as programs read it: of a named tuple its fields by name, whatever they hold.

    What says itself what programs read of it, by a method `record`, is left to it.
    A number that is not finite is None, which JSON can say; an array is a list of lists.
    """
    if hasattr(found, "record"):
        return record(found.record())
    if hasattr(found, "_asdict"):
        return {name: record(value) for name, value in found._asdict().items()}
    if isinstance(found, Mapping):
        return {str(name): record(value) for name, value in found.items()}
    if isinstance(found, np.ndarray | np.generic):
        return record(found.tolist())
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    if isinstance(found, Sequence) and not isinstance(found, str):
        return [record(value) for value in found]
    return found


def frame(rows: Sequence[Any]) -> "pd.DataFrame":
    """Rows of one kind of named tuple as a frame, a column a field."""
    # Imported where it is used: a second for those who only ask.
    import pandas as pd

    return pd.DataFrame([row._asdict() for row in rows])
