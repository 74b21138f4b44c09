"""How a transduction's run fails, as pages show it: by kind of error, and by place."""

from typing import get_args

import pandas as pd

from seqcls.results import ErrorKind
from sweeps.store.database import Store
from sweeps.store.reads.misclassified import errors_of_runs
from sweeps.store.reads.overview import last_lengths

ERROR_KINDS: tuple[str, ...] = get_args(ErrorKind)


def error_kinds_by_length(store: Store, run_id: int, width: int) -> pd.DataFrame:
    """How often a run made each kind of error on strings of similar length.

    Args:
        width: lengths that make one row: with 10, the lengths 0 to 10, 11 to 20, and so on.

    Returns:
        first_length, last_length, error_kind, strings (each as often as it occurs in the test
        set), kinds in the order of `ERROR_KINDS`; no row where there is no such error.
    """
    table = _sum_errors(store, run_id, width, "error_kind")
    table["error_kind"] = pd.Categorical(table["error_kind"], ERROR_KINDS)
    table = table.sort_values(["first_length", "error_kind"], ignore_index=True)
    return table.astype({"error_kind": object})


def first_wrong_positions(store: Store, run_id: int, width: int) -> pd.DataFrame:
    """How often a run's outputs part from their targets at each place, on strings as above.

    Returns:
        first_length, last_length, first_wrong (tokens that are right before), strings.
    """
    return _sum_errors(store, run_id, width, "first_wrong")


def _sum_errors(store: Store, run_id: int, width: int, what: str) -> pd.DataFrame:
    """The test strings that a run got wrong, by length and what their outputs say."""
    with store.read() as connection:
        errors = errors_of_runs(connection, [run_id])
    # Of no transduction there is nothing to count.
    errors = errors if what in errors else errors.head(0).assign(**{what: None})
    first = (errors["length"] - 1) // width * width + 1
    # The empty string is with those of one token, unless each length has a row of its own.
    first = first.where(errors["length"] > width, 0) if width > 1 else errors["length"]
    counted = errors.assign(first_length=first).groupby(["first_length", what])["occurrences"].sum()
    table = counted.rename("strings").reset_index()
    table.insert(1, "last_length", last_lengths(table["first_length"], width))
    return table
