"""Two models on the strings that both are tested on."""

from dataclasses import dataclass

import pandas as pd

from seqcls.errors import UnknownRunError
from sweeps.api.comparisons import fields_apart
from sweeps.statistics.chance import agreeing
from sweeps.statistics.differences import string_differences
from sweeps.statistics.intervals import (
    ConfidenceInterval,
    PairTable,
    fisher,
    mcnemar,
    newcombe,
    paired_newcombe,
)
from sweeps.store.database import Store
from sweeps.store.reads import misclassified, queries


@dataclass(frozen=True, eq=False)
class TwoModels:
    """Two runs side by side; differences are the first less the second.

    Each string counts once, however often the test has it: a model answers it the same each time.
    """

    fields: dict[str, tuple[object, object]]
    """The fields in which their configurations differ, with both values."""
    table: PairTable | None
    """In how many strings both are wrong, only the first, only the second, and none; None where
    their test strings are not the same."""
    difference: ConfidenceInterval
    """The difference of the shares that are wrong, by Newcombe: over pairs, else of independent
    samples; 0 is in it unless the test rules it out."""
    p_value: float
    """Exact McNemar of pairs, else Fisher's exact test; two-sided."""
    strings: pd.DataFrame | None
    """Those that only one gets wrong: string, length, label, wrong_a and wrong_b."""


def compare_models(store: Store, first: int, second: int) -> TwoModels:
    """Two finished runs, string by string where they are tested on the same strings.

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
    if len(queries.test_set_digests(store, ids)) > 1:
        counts = [(len(wrong), len(strings)) for wrong, strings in zip(errors, tested, strict=True)]
        if not all(total for _, total in counts):
            raise UnknownRunError(f"the test strings of runs {first} and {second} are not stored")
        # Different test strings make no pairs, so that the shares are independent samples.
        p_value = fisher(counts[0], counts[1])
        apart = agreeing(newcombe(counts[0], counts[1]), p_value)
        return TwoModels(fields, None, apart, p_value, None)
    # One that only one of them has places for does not count.
    both = tested[0] & tested[1]
    errors = [frame[frame["string"].isin(both)] for frame in errors]
    wrong = [set(frame["string"]) for frame in errors]
    table = PairTable(
        both=len(wrong[0] & wrong[1]),
        only_first=len(wrong[0] - wrong[1]),
        only_second=len(wrong[1] - wrong[0]),
        none=len(both) - len(wrong[0] | wrong[1]),
    )
    p_value = mcnemar(table)
    difference = agreeing(paired_newcombe(table), p_value)
    return TwoModels(fields, table, difference, p_value, string_differences(errors[0], errors[1]))
