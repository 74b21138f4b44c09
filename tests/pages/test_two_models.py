"""Two models side by side: strings that only one gets wrong agree with SQL."""

from math import comb

import pytest

from seqcls.strings.tokenizer import Tokenizer
from tests.app import open_app, page_text
from tests.conftest import ROOT
from tests.databases import rows
from tests.oracles.facts import Facts

SHIPPED = ROOT / "runs.db"


@pytest.mark.parametrize(("first", "second"), [(3, 20), (3, 4), (5, 5)])
def test_two_models_are_compared_string_by_string(
    monkeypatch: pytest.MonkeyPatch, first: int, second: int
) -> None:
    facts = Facts(SHIPPED)
    a, b = (set(facts.errors[run_id]) for run_id in (first, second))
    page = open_app(
        monkeypatch, SHIPPED, "model", run=str(first), beside=str(second), view="Errors"
    )
    ((tested,),) = rows(SHIPPED, "SELECT count(*) FROM test_string WHERE test_set_id = 1")
    text = page_text(page).replace("\\", "")
    both = f"{len(a & b):,} {'is' if len(a & b) == 1 else 'are'} wrong in both models"
    assert f"Of {tested:,} test strings, {both}, {len(a - b):,} only in model {first}" in text
    assert f"{len(b - a):,} only in model {second}" in text
    n, least = len(a ^ b), min(len(a - b), len(b - a))
    p = min(1.0, 2 * sum(comb(n, x) for x in range(least + 1)) / 2**n) if n else 1.0
    assert f"p = {p:.3g}" in text if p else "p < 1e-300" in text
    display = Tokenizer("abc").display
    tables = [x.value for x in page.dataframe if "wrong_in" in x.value]
    shown = {(row["string"], row["wrong_in"]) for x in tables for row in x.to_dict("records")}
    true = {(display(x), f"model {first}") for x in a - b}
    true |= {(display(x), f"model {second}") for x in b - a}
    assert shown <= true
    assert len(shown) == min(len(true), 1_000)


def test_a_missing_second_model_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    page = open_app(monkeypatch, SHIPPED, "model", run="3", beside="999", view="Second model")
    assert "999" in page.error[0].value
