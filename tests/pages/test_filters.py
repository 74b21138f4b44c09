"""What pages, reports and commands say under the same filters: what SQL says of the same runs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from seqcls.config import default_fields
from seqcls.errors import SeqclsError
from sweeps import api
from sweeps.store.opening import open_reader
from tests.app import open_app, rerun, said
from tests.commands import run_main
from tests.conftest import ROOT
from tests.oracles.drawn import Chosen, Drawn
from tests.oracles.facts import Facts, done, fails, outcome
from tests.oracles.ledger import Ledger

DB = ROOT / "runs.db"
FACTS = Facts(DB)
FILTERS = {
    "all": Chosen(),
    "seeds": Chosen(("all_initializations",), seeds=(0, 1, 2, 3), failing=True),
    "below": Chosen(below=0.95, failing=True),
    "beyond": Chosen(outcomes=("fails beyond",), learned_at=0.85, below=0.97),
    "width": Chosen(outcomes=("generalizes", "not learned"), width=16, learned_at=1.0),
    "kind": Chosen(kind="false positives", seeds=(2, 4)),
}


def plain(app: AppTest) -> str:
    return said(app).replace("\\", "")


def picked(chosen: Chosen) -> list[dict[str, Any]]:
    return [run for run in chosen.scope(FACTS) if chosen.picks(run)]


def agrees(drawn: Drawn, least: int) -> None:
    """Asserts that all numbers that were compared are those of SQL."""
    assert not drawn.ledger.differences
    assert drawn.ledger.compared.total() >= least


@pytest.mark.parametrize(
    ("page", "chosen"),
    [
        pytest.param(page, FILTERS[name], id=f"{page}-{name}")
        for page, names in (
            ("failing", ("beyond", "kind")),
            ("sweeps", ("beyond",)),
        )
        for name in names
    ],
)
def test_every_page_obeys_its_link(
    monkeypatch: pytest.MonkeyPatch, page: str, chosen: Chosen
) -> None:
    app = open_app(monkeypatch, DB, page, **chosen.query)
    drawn = Drawn(FACTS, Ledger(page), f"page {page}", chosen)
    drawn.page(app)
    agrees(drawn, 9)
    text = plain(app)
    assert f"{len(picked(chosen))} of 43 runs match the filters." in text
    if page == "failing":
        found = [x for x in picked(chosen) if fails(x, chosen.below)]
        assert len(app.dataframe[0].value) == len(found)
        if chosen.kind:
            assert f"are among the {len(done(chosen.scope(FACTS)))} tested models" in text
            assert set(app.dataframe[1].value["kind"]) == {"false positive"}
    if chosen.outcomes:
        assert "count each of its models, whatever its outcome." in text


def test_commands_give_what_sql_says() -> None:
    for name, chosen in FILTERS.items():
        if not chosen.kind:
            sweeps = [f"--sweep={x}" for x in chosen.sweeps]
            asked = run_main("runs", "--json", *sweeps, *chosen.options, SEQCLS_DB=str(DB))
            found = [(run["id"], run["outcome"]) for run in json.loads(asked.stdout)]
            judged = (chosen.learned_at, chosen.below)
            assert found == [(x["run_id"], outcome(x, *judged)) for x in picked(chosen)], name
    chosen = Chosen(("lower_magnitude_initializations",), learned_at=0.85, below=0.97)
    came_to = [outcome(x, 0.85, 0.97) for x in chosen.scope(FACTS)]
    text = run_main("status", *chosen.sweeps, *chosen.options, SEQCLS_DB=str(DB)).stdout
    assert f"of these {came_to.count('generalizes')} generalize" in text


@pytest.mark.usefixtures("undrawn")
def test_files_give_what_sql_says(tmp_path: Path) -> None:
    chosen = Chosen(("all_initializations",), seeds=(0, 5), failing=True)
    out = ("all_initializations", "-o", str(tmp_path / "r.html"))
    done_ = run_main("report", *out, *chosen.options, SEQCLS_DB=str(DB))
    assert done_.returncode == 0, done_.stderr
    text = (tmp_path / "r.html").read_text()
    scope, own = chosen.scope(FACTS), picked(chosen)
    assert f"{sum(map(fails, scope))} of {len(scope)} models" in text
    listed = {int(x) for x in re.findall(r'<details id="run-(\d+)"', text)}
    assert listed == {run["run_id"] for run in own if fails(run)}
    given = (str(tmp_path / "out"), "--sweep=all_initializations", *chosen.options)
    assert run_main("export", *given, SEQCLS_DB=str(DB)).returncode == 0
    assert len((tmp_path / "out" / "runs.csv").read_text().splitlines()) == len(own) + 1


def test_pages_of_what_their_link_names_obey_its_thresholds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen = Chosen(("all_initializations",), (0, 1, 2, 3), learned_at=0.85, below=0.97)
    run_id = min(run["run_id"] for run in picked(chosen))
    app = open_app(monkeypatch, DB, "model", run=str(run_id), **chosen.query)
    drawn = Drawn(FACTS, Ledger("model"), "page model", chosen)
    drawn.model(app, run_id)
    agrees(drawn, 1)
    assert "Thresholds, and filters for other pages" in [panel.label for panel in app.expander]
    # Its seeds that are filtered are those of other pages.
    assert app.multiselect(key="seed").value == list(chosen.seeds)


ASKED = {
    "hidden_size": "999", "hiden_size": "2", "weight_decay": "0.5", "tag": "nowhere",
    "kind": "sideways", "failing": "perhaps", "below": "200", "learned": "-1",
    "outcome": "sideways", "seed": "77", "sweeps": "heads", "sweep": "nope",
}  # fmt: skip
ASKED_OF = {
    "results": {"rows": "999", "measure": "Beauty", "across": "nothing"},
    "sweeps": {"sweep_id": "999"},
    "failing": {"run": "999"},
}
"""What no database has, and what no page offers."""


@pytest.mark.parametrize("page", ASKED_OF)
def test_what_a_link_asks_for_and_nothing_offers_is_said_by_name(
    monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    named = ASKED_OF[page] | (ASKED if page == "failing" else {})
    if page == "results":
        named |= {x: ASKED[x] for x in ("hidden_size", "weight_decay", "outcome", "seed", "sweep")}
    shown = {"show": "Map"} if page == "results" else {}
    app = open_app(monkeypatch, DB, page, **shown, **named)
    warned = [warning.value.replace("\\", "") for warning in app.main.warning]
    for name, value in named.items():
        assert any(value in x and (name in x or "Model" in x) for x in warned), name
    if page == "failing":
        assert "43 of 43 runs match the filters." in said(app)
        app.button("clear_filters").click()
        rerun(app)
        assert "hiden_size" not in app.query_params


def test_of_a_link_that_is_half_known_the_known_half_is_obeyed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decay = str(default_fields()["weight_decay"])
    half: dict[str, Any] = {"seed": ["2", "77"], "hidden_size": ["999", "2"]}
    app = open_app(monkeypatch, DB, "sweeps", weight_decay=decay, **half)
    warned = [warning.value for warning in app.main.warning]
    assert len(warned) == 2
    assert "77" in " ".join(warned)
    assert "999" in " ".join(warned)
    assert app.multiselect(key="seed").value == [2]
    assert app.multiselect(key="hidden_size").value == [2]


def test_filters_are_chosen_on_the_page_and_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, DB, "failing")
    for key, value, number in (
        ("outcome", ["not learned", "fails beyond"], 16),
        ("seed", [2, 3], len([x for x in picked(Chosen(seeds=(2, 3))) if fails(x)])),
        ("hidden_size", [2], None),
    ):
        app.multiselect(key=key).set_value(value)
        rerun(app)
        if number is not None:
            assert f"{number} of 43 runs match the filters." in said(app)
    own = [x for x in picked(Chosen(seeds=(2, 3), width=2)) if fails(x)]
    assert f"{len(own)} of 43 runs match the filters." in said(app)
    app.button("clear_filters").click()
    assert "43 of 43 runs match the filters." in said(rerun(app))
    assert not app.multiselect(key="outcome").value


def test_where_no_model_is_left_the_pages_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    link = {"seed": "5", "failing": "true", "sweep": "all_initializations"}
    for page in ("failing",):
        app = open_app(monkeypatch, DB, page, **link)
        assert app.success[0].value
        assert not app.get("vega_lite_chart")


def test_what_is_no_setting_is_refused_in_a_line() -> None:
    done_ = run_main("populations", "--where=heads=2", SEQCLS_DB=str(DB))
    assert done_.returncode == 2
    (line,) = done_.stderr.splitlines()
    assert "--where heads=2" in line
    with pytest.raises(SeqclsError, match="from 0 to 1"):
        api.causes(open_reader(str(DB)), "all_initializations", below=95)
