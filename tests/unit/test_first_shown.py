"""The string that the page looks at first is one whose states can be shown."""

import pandas as pd
import pytest

from dashboard.choosing.strings import first_shown


@pytest.mark.parametrize(
    ("lengths", "expected"), [([3, 900], "e0"), ([512], "e0"), ([513, 600], "example")]
)
def test_an_error_too_long_to_be_shown_gives_way_to_an_example(
    lengths: list[int], expected: str
) -> None:
    errors = pd.DataFrame({"string": [f"e{i}" for i in range(len(lengths))], "length": lengths})
    assert first_shown(errors, [*errors["string"], "0", "example"]) == expected


def test_a_model_without_errors_is_shown_an_example() -> None:
    none = pd.DataFrame({"string": [], "length": []})
    assert first_shown(none, ["0", "00"]) == "0"
    assert first_shown(none, []) == ""
