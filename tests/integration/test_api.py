"""The same from Python as from the command line."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from seqcls.errors import InvalidStringError, UnknownRunError
from seqcls.interpretability.counts.family import Curve, Map
from seqcls.interpretability.strings.families import GroupCurve
from sweeps import api
from sweeps.cli.app import app
from sweeps.store.databases.engine import Store
from tests.conftest import ROOT

RUN = "all_initializations/2"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    shutil.copy(ROOT / "runs.db", tmp_path / "runs.db")
    return api.open_store(tmp_path / "runs.db")


def test_every_public_name_is_there() -> None:
    assert sorted(api.__all__) == api.__all__
    assert {*api.__all__} >= {
        *("explain", "predict", "verdict", "family", "causes", "compare", "figures")
    }
    assert all(callable(getattr(api, name)) for name in api.__all__)


def test_answers_are_those_of_the_command(store: Store) -> None:
    found = api.predict(store, RUN, ["baac", "ab{100}c{55}"])
    assert found["label"].tolist() == [True, True]
    assert found["predicted"].tolist() == [True, False]
    said = CliRunner().invoke(
        app, ["predict", RUN, "baac", "ab{100}c{55}", "--db", str(store.path), "--json"]
    )
    logits = [own["logit"] for own in json.loads(said.stdout)]
    assert found["logit"].tolist() == pytest.approx(logits, abs=1e-4)
    with pytest.raises(InvalidStringError):
        api.predict(store, RUN, ["xyz"])


def test_a_cause_and_the_causes_of_a_sweep_agree(store: Store) -> None:
    found = api.causes(store, "lower_magnitude_initializations", sample=5)
    assert found.groupby("run_id")["strings"].sum().tolist() == [5] * 6
    own = found[found["run_id"] == 38].iloc[0]
    errors = api.errors(store, [38])
    one = api.explain(store, 38, errors["string"].iloc[0]).mechanism
    assert one is not None
    assert own["mechanism"] == one.name == "two heads on one letter"
    with pytest.raises(UnknownRunError):
        api.causes(store, "nosuch")


def test_families_are_exact_where_letter_counts_decide(store: Store) -> None:
    curve = api.family(store, RUN, "ab{n}")
    assert isinstance(curve, Curve)
    groups = api.family(store, RUN, "a<b>{n}")
    assert isinstance(groups, GroupCurve)
    assert groups.first_wrong == curve.first_wrong
    assert isinstance(api.family(store, RUN, "a{m}b{n}"), Map)


def test_figures_are_charts_that_a_notebook_shows(store: Store) -> None:
    charts = api.figures(store, RUN, ["aac", "baac"])
    assert all("vegaEmbed" in chart._repr_mimebundle_()["text/html"] for chart in charts)
    specs = {_title(spec): spec for spec in (chart.to_dict() for chart in charts)}
    assert list(specs)[:2] == ["Loss by epoch", "Token embeddings"]
    for title in ("Embeddings of a string", "Attention output", "CLS after the block"):
        drawn = json.dumps(specs[title]["datasets"])
        assert '"aac"' in drawn
        assert '"baac"' in drawn


def _title(spec: dict[str, Any]) -> str:
    title = spec.get("title", "")
    return str(title["text"] if isinstance(title, dict) else title)
