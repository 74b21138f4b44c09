"""Pages, reports and commands under the same filters agree with SQL on the same runs."""

import re
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from seqcls.config import default_fields
from tests.app import open_app, plain, rerun
from tests.commands import printed, printed_json
from tests.conftest import ROOT
from tests.oracles.chosen import Chosen
from tests.oracles.compared import CONFIGURATION_COLUMNS
from tests.oracles.facts import Facts, Row, by_configuration, configuration, fails, outcome

DB = ROOT / "runs.db"
FACTS = Facts(DB)
FILTERS = {
    "all": Chosen(),
    "seeds": Chosen(("all_initializations",), seeds=(0, 1, 2, 3)),
    "beyond": Chosen(outcomes=("fails beyond",), learned_at=0.85, below=0.97),
    "width": Chosen(outcomes=("generalizes", "not learned"), width=16, learned_at=1.0),
    "failing": Chosen(seeds=(0, 1, 2, 3), failing=True, below=0.95),
}


def picked(chosen: Chosen) -> list[Row]:
    return [run for run in chosen.scope(FACTS) if chosen.picks(run)]


def counts(app: AppTest) -> dict[int, list[int]]:
    """The counts in the table of configurations, by config_id."""
    table = app.dataframe[0].value
    return {
        row["config_id"]: [row[x] for x in CONFIGURATION_COLUMNS]
        for row in table.to_dict("records")
    }


def true_counts(chosen: Chosen) -> dict[int, list[int]]:
    """The counts by SQL over all seeds of each configuration with a picked seed."""
    groups = by_configuration(chosen.scope(FACTS))
    true = {x: configuration(runs, chosen.below, chosen.learned_at) for x, runs in groups.items()}
    own = {run["config_id"] for run in picked(chosen)}
    return {x: [row[name] for name in CONFIGURATION_COLUMNS] for x, row in true.items() if x in own}


@pytest.mark.parametrize(
    ("page", "chosen"),
    [
        pytest.param(page, FILTERS[name], id=f"{page}-{name}")
        for page, names in (
            ("results", ("all", "seeds", "beyond", "width")),
            ("failures", ("seeds",)),
        )
        for name in names
    ],
)
def test_every_page_applies_the_filters_of_its_link(
    monkeypatch: pytest.MonkeyPatch, page: str, chosen: Chosen
) -> None:
    app = open_app(monkeypatch, DB, page, **chosen.query)
    if page == "results":
        assert counts(app) == true_counts(chosen)
    else:
        own = picked(chosen)
        wrong = [x for x in own if outcome(x) in ("fails beyond", "not learned")]
        assert f"{len(wrong)} of {len(own)} tested models fail" in plain(app)
    for key, values in (("sweep", chosen.sweeps), ("seed", chosen.seeds)):
        assert app.multiselect(key=key).value == list(values)


def test_filtered_commands_list_the_runs_of_sql() -> None:
    for name, chosen in FILTERS.items():
        sweeps = [f"--sweep={x}" for x in chosen.sweeps]
        listed = printed_json("runs", *sweeps, *chosen.options, SEQCLS_DB=str(DB))
        found = [(run["id"], run["outcome"]) for run in listed]
        judged = (chosen.learned_at, chosen.below)
        assert found == [(x["run_id"], outcome(x, *judged)) for x in picked(chosen)], name
    chosen = Chosen(("lower_magnitude_initializations",), learned_at=0.85, below=0.97)
    came_to = [outcome(x, 0.85, 0.97) for x in chosen.scope(FACTS)]
    text = printed("status", *chosen.sweeps, *chosen.options, SEQCLS_DB=str(DB))
    assert f"of these {came_to.count('generalizes')} generalize" in text


@pytest.mark.usefixtures("undrawn")
def test_filtered_files_contain_the_runs_of_sql(tmp_path: Path) -> None:
    chosen = Chosen(("all_initializations",), seeds=(0, 5), failing=True)
    out = ("all_initializations", "-o", str(tmp_path / "r.html"))
    printed("report", *out, *chosen.options, SEQCLS_DB=str(DB))
    text = (tmp_path / "r.html").read_text()
    own = picked(chosen)
    listed = {int(x) for x in re.findall(r'<details id="run-(\d+)"', text)}
    assert listed == {run["run_id"] for run in own if fails(run)}
    given = (str(tmp_path / "out"), "--sweep=all_initializations", *chosen.options)
    printed("export", *given, SEQCLS_DB=str(DB))
    assert len((tmp_path / "out" / "runs.csv").read_text().splitlines()) == len(own) + 1


UNKNOWN_FILTERS = {
    "hidden_size": "999", "weight_decay": "0.5", "outcome": "sideways", "seed": "77",
    "sweep": "nope", "tag": "nowhere", "task": "nothing",
}  # fmt: skip
UNKNOWN_FILTERS_OF_PAGE = {
    "results": {"rows": "999", "measure": "Beauty", "across": "nothing", "facet": "no"},
    "failures": {},
}
"""Values that no database has and no page offers."""


@pytest.mark.parametrize("page", UNKNOWN_FILTERS_OF_PAGE)
def test_unknown_parameters_of_a_link_are_named(monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    named = {**UNKNOWN_FILTERS_OF_PAGE[page], **UNKNOWN_FILTERS}
    shown = {"show": "Map"} if page == "results" else {}
    app = open_app(monkeypatch, DB, page, **shown, **named)
    warned = [warning.value.replace("\\", "") for warning in app.main.warning]
    for name, value in named.items():
        assert any(value in x and name in x for x in warned), name
    assert "of 43" in plain(app), "it restricts nothing"


def test_a_link_names_a_task_as_the_sidebar_does(monkeypatch: pytest.MonkeyPatch) -> None:
    (shown,) = open_app(monkeypatch, DB).selectbox(key="task").options
    app = open_app(monkeypatch, DB, task=shown)
    assert not app.main.warning, "the browser writes what was chosen so"
    assert "of 43" in plain(app)


def test_known_parameters_of_a_link_apply_beside_unknown_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decay = str(default_fields()["weight_decay"])
    half: dict[str, Any] = {"seed": ["2", "77"], "hidden_size": ["999", "2"]}
    app = open_app(monkeypatch, DB, "results", weight_decay=decay, **half)
    unknown = " ".join(warning.value for warning in app.main.warning)
    assert len(app.main.warning) == 2
    assert all(value in unknown for value in ("77", "999"))
    assert app.multiselect(key="hidden_size").value == [2]
    assert counts(app) == true_counts(Chosen(seeds=(2,), width=2))


def test_filters_are_chosen_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, DB)
    for key, value, chosen in (
        ("seed", [2, 3], Chosen(seeds=(2, 3))),
        ("outcome", ["fails beyond"], Chosen(seeds=(2, 3), outcomes=("fails beyond",))),
        ("hidden_size", [2], Chosen(seeds=(2, 3), outcomes=("fails beyond",), width=2)),
        ("seed", [], Chosen(outcomes=("fails beyond",), width=2)),
    ):
        app.multiselect(key=key).set_value(value)
        assert counts(rerun(app)) == true_counts(chosen)
