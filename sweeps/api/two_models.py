"""Comparison of two models on the strings that both are tested on."""

from typing import NamedTuple

import pandas as pd

from seqcls.errors import UnknownRunError
from sweeps.api.comparisons import fields_apart
from sweeps.statistics.chance import Difference, compare_shares
from sweeps.statistics.differences import string_differences
from sweeps.store.database import Store
from sweeps.store.reads import misclassified, queries


class TwoModels(NamedTuple):
    """A comparison of two runs; differences are the first minus the second.

    Each distinct string counts once.
    """

    fields: dict[str, tuple[object, object]]
    """The fields in which their configurations differ, with both values."""
    wrong: Difference
    """The shares of wrong strings; of pairs where their test strings are the same."""
    strings: pd.DataFrame | None
    """Strings that only one gets wrong: string, length, label, wrong_a and wrong_b."""


def compare_models(store: Store, first: int, second: int) -> TwoModels:
    """Compares two finished runs, by string where they are tested on the same strings.

    Raises:
        UnknownRunError: there is no such run, or it is not finished.
    """
    for run_id in (first, second):
        queries.check_done(store, run_id, "was not tested")
    configurations = [queries.config_id_of(store, run_id) for run_id in (first, second)]
    ids = (configurations[0], configurations[1])
    fields = fields_apart(store, ids)
    errors = [misclassified.errors_of(store, [run_id]) for run_id in (first, second)]
    tested = [misclassified.tested_strings(store, config_id) for config_id in ids]
    paired = len(queries.test_set_digests(store, ids)) == 1
    if paired:
        # A string too long for the position table of one of them does not count.
        tested = [tested[0] & tested[1]] * 2
        errors = [frame[frame["string"].isin(tested[0])] for frame in errors]
    wrong = [
        dict.fromkeys(strings, 0.0) | dict.fromkeys(frame["string"], 1.0)
        for strings, frame in zip(tested, errors, strict=True)
    ]
    found = compare_shares(*wrong, paired=paired, plan=False)
    if found.p_value is None:
        raise UnknownRunError(f"the test strings of runs {first} and {second} are not stored")
    return TwoModels(fields, found, string_differences(*errors) if paired else None)
