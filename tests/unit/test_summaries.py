"""What frames of runs say beyond their columns."""

import pandas as pd

from seqcls.config import default_fields
from sweeps.results import accuracy, differing_fields


def test_accuracy_is_the_share_of_right_strings_and_missing_where_there_are_none() -> None:
    rows = [(100, 60), (100, 6), (None, None)]
    shares = accuracy(pd.DataFrame(rows, columns=["tested", "wrong"], dtype="Int64"))
    assert shares[:2].tolist() == [0.4, 0.94]
    assert shares.isna().tolist() == [False, False, True]


def test_fields_that_are_the_same_in_all_runs_do_not_differ() -> None:
    runs = pd.DataFrame([default_fields(), {**default_fields(), "hidden_size": 16}])
    assert differing_fields(runs) == ["hidden_size"]
    assert differing_fields(runs[:1]) == []
