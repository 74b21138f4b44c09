"""A kind of answer from a plugin, with one task: trained, stored, questioned and shown.

It is in `tests/assets/plugin_package/remainders.py`; no file of this program knows of it.
"""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from dashboard.text import plain
from seqcls.engines.choice import choose_engine
from seqcls.errors import ConfigError, PluginError
from seqcls.evaluation import TrainedGroup, distinct_test_strings
from seqcls.kinds import KINDS, Words
from seqcls.kinds.membership import OneAnswer
from seqcls.plugin_checks import check_kind
from seqcls.plugins import UnfitError
from seqcls.problem import configuration, resolve
from seqcls.tasks import TASKS
from seqcls.training import train_group
from sweeps.api.models import trained_model
from sweeps.cli.app import app as seqcls
from sweeps.store.opening import open_reader
from sweeps.store.reads import queries
from tests.app import markdown_of, open_app, rerun
from tests.oracles.facts import Facts
from tests.plugins import forget_parts
from tests.world import kinds

__all__ = ["kinds"]

SWEEPS = ("from_outside", "blocks_from_outside")
NO_LANGUAGE = "task='ones_modulo' is not a language: its answers are not yes or no"


@pytest.fixture(scope="module")
def db(kinds: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the database of all kinds."""
    return Path(shutil.copy(kinds / "kinds.db", tmp_path_factory.mktemp("outside")))


@pytest.fixture(scope="module")
def facts(db: Path) -> Facts:
    """The facts of that database."""
    return Facts(db)


@pytest.fixture
def run(facts: Facts) -> str:
    """An LSTM with such answers."""
    return str(facts.sweeps[SWEEPS[0]][0]["run_id"])


def invoke(db: Path, *arguments: str) -> Result:
    return CliRunner().invoke(seqcls, [*arguments, "--db", str(db)])


@pytest.mark.parametrize("sweep", SWEEPS)
def test_stored_errors_of_a_plugin_kind_equal_its_outputs(
    db: Path, facts: Facts, sweep: str
) -> None:
    run_id = facts.sweeps[sweep][0]["run_id"]
    model = trained_model(open_reader(str(db)), run_id)
    test = distinct_test_strings(model.problem.test)
    (outputs,) = TrainedGroup(model.problem, [model.weights]).outputs(test.strings)
    assert outputs.shape == (len(test.strings), 3)
    right = test.strings.counts[:, 1] % 3
    is_wrong = outputs.argmax(axis=1) != right
    stored = facts.runs[run_id]
    assert stored["wrong"] == int(test.occurrences[is_wrong].sum())
    assert [stored[cell] for cell in ("tn", "fp", "fn", "tp")] == [None] * 4
    known = dict(zip(test.texts, zip(right, outputs, strict=True), strict=True))
    wrong = facts.ask("SELECT * FROM misclassified WHERE run_id = ?", run_id)
    assert {row["string"] for row in wrong} == {
        text for text, fails in zip(test.texts, is_wrong, strict=True) if fails
    }
    for row in wrong:
        answer, scored = known[row["string"]]
        assert (row["label"], row["target"]) == (None, f"remainder {answer}")
        margin = scored[answer] - np.delete(scored, answer).max()
        assert row["logit"] == pytest.approx(margin, abs=1e-6)
        assert row["logit"] <= 0
    # Three classes, about as likely: the loss is not far from so many times log 3.
    (loss,) = facts.ask("SELECT validation_loss AS x FROM epoch WHERE run_id = ?", run_id)
    assert 0.5 < loss["x"] / (model.problem.config.validation_size * np.log(3)) < 2


def test_other_engines_refuse_a_plugin_kind_with_the_reason(kinds: Path) -> None:
    del kinds
    problem = resolve(configuration({"task": "ones_modulo"}))
    choice = choose_engine(problem)
    assert (choice.name, choice.reason) == ("strings", NO_LANGUAGE)
    assert problem.config.test_sampler == "uniform_inputs"
    for fields, message in (
        ({"test_sampler": "balanced_strings"}, "cannot serve task 'ones_modulo'.*uniform_inputs"),
        ({"task": "parity", "test_sampler": "uniform_inputs"}, "use balanced_strings"),
        ({"train_min_length": 9, "train_max_length": 8}, "min_length=9"),
    ):
        with pytest.raises(ConfigError, match=rf"{message}[^\n]*\Z"):
            configuration({"task": "ones_modulo", **fields})
    words = KINDS["remainder"]().words
    for made in (replace(words, miss="gets {it} wrong"), replace(words, string="")):
        spoiled = type("Spoiled", (KINDS["remainder"],), {"words": made})()
        with pytest.raises(UnfitError, match="expected"):
            check_kind(spoiled, TASKS["ones_modulo"]())


OWN = ("num_outputs", "losses", "answers", "margins", "texts")
"""Methods that a kind must define."""


@pytest.mark.parametrize(
    ("method", "returned", "message"),
    [
        ("num_outputs", 0, "num_outputs=0, expected a whole number from 1"),
        ("texts", ["one"], r"texts as \['one'\], expected one for each string"),
        ("texts", None, "texts as None"),
        ("margins", np.zeros(1), "expected one for each string"),
        ("answers", None, "answers as None"),
        *((name, KeyError, name) for name in OWN),
    ],
)
def test_faulty_plugin_kind_is_refused_in_one_line(
    kinds: Path, monkeypatch: pytest.MonkeyPatch, method: str, returned: Any, message: str
) -> None:
    del kinds
    if returned is KeyError:
        parts = {name: vars(KINDS["remainder"])[name] for name in OWN if name != method}
        kind = type("Another", (OneAnswer,), parts)
        monkeypatch.setitem(vars(KINDS)["_loaded"], "remainder", kind)
    else:
        monkeypatch.setattr(KINDS["remainder"], method, lambda *_: returned)
    forget_parts(registries=False)
    with pytest.raises(PluginError, match=message) as refused:
        configuration({"task": "ones_modulo"})
    assert "\n" not in str(refused.value)
    forget_parts(registries=False)


@pytest.mark.parametrize("inherits", [True, False])
def test_plugin_kind_may_inherit_or_define_all_methods(
    db: Path, run: str, monkeypatch: pytest.MonkeyPatch, inherits: bool
) -> None:
    printed = invoke(db, "predict", run, "0110", "111").stdout
    bases = KINDS["remainder"].__mro__[:-1]
    parts = {name: part for base in reversed(bases) for name, part in vars(base).items()}
    own = OWN if inherits else [name for name in parts if not name.startswith(("__", "_abc"))]
    kind = type("Another", (OneAnswer,) if inherits else (), {name: parts[name] for name in own})
    monkeypatch.setitem(vars(KINDS)["_loaded"], "remainder", kind)
    forget_parts(registries=False)
    store = open_reader(str(db))
    config = queries.run_config(store, int(run))
    problem = resolve(config)
    assert (type(problem.kind), problem.config.test_sampler) == (kind, "uniform_inputs")
    assert invoke(db, "predict", run, "0110", "111").stdout == printed
    (trained,) = train_group([(problem, 0)])
    weights = trained_model(store, int(run)).weights
    assert all((trained.kept_weights[name] == weights[name]).all() for name in weights)
    forget_parts(registries=False)


def test_commands_use_the_words_of_a_plugin_kind(db: Path, run: str) -> None:
    predicted = invoke(db, "predict", run, "0110", "111").stdout
    assert re.findall(r"^ (\d+) +(remainder \d) +remainder \d +", predicted, re.MULTILINE) == [
        ("0110", "remainder 2"), ("111", "remainder 0"),
    ]  # fmt: skip
    (first, *_) = json.loads(invoke(db, "errors", run, "--json").stdout)
    minimal = invoke(db, "minimal", run, first["string"]).stdout
    assert f"is {first['target']}, predicted remainder" in minimal
    assert "margin" in invoke(db, "states", run, "0110").stdout


def test_patching_the_last_layer_gives_the_source_answer(db: Path, run: str) -> None:
    patched = json.loads(invoke(db, "patch", run, "0110", "--source", "0111", "--json").stdout)
    assert patched["base"]["label"] == "remainder 2"
    assert patched["source"]["label"] == "remainder 0"
    model = trained_model(open_reader(str(db)), int(run))
    # The last layer as a whole, after the last token, gives the source's answer.
    kind, task = model.problem.kind, model.task
    strings = model.ask_all([model.letters("0110"), model.letters("0111")]).strings
    (outputs,) = TrainedGroup(model.problem, [model.weights]).outputs(strings)
    target = kind.targets(task, strings)[:1]
    whole = patched["logits"][patched["sites"].index("layer 0")]
    assert whole[-1] == pytest.approx(kind.margins(outputs[1:], target)[0], abs=1e-5)


MARKED = "![x](http://outside.example/w) **w**"


@pytest.mark.parametrize("page", ["results", "sweeps", "model"])
def test_markup_in_words_of_a_kind_is_not_interpreted(
    monkeypatch: pytest.MonkeyPatch, db: Path, facts: Facts, page: str
) -> None:
    kind = type(KINDS["remainder"]())
    words = Words(*(f"{MARKED} {part}" for part in ("string", "{}", "{}", "wrong", "task", "sum")))
    monkeypatch.setattr(kind, "words", replace(words, hit=MARKED))
    errors = dict.fromkeys(kind().error_columns(), MARKED)
    monkeypatch.setattr(kind, "error_columns", lambda _: errors)
    monkeypatch.setattr(TASKS["ones_modulo"], "describe", lambda _: MARKED)
    runs = facts.sweeps[SWEEPS[1]]
    links: dict[str, dict[str, str | list[str]]] = {
        "model": {"run": str(runs[0]["run_id"])},
        "results": {
            "sweep": SWEEPS[1],
            "rows": [str(runs[index]["config_id"]) for index in (0, -1)],
        },
        "sweeps": {"shown": SWEEPS[1]},
    }
    app = open_app(monkeypatch, db, page, **links[page])
    if page == "sweeps":
        app.session_state["in_words"] = True
        rerun(app)
    for view in [tab.label for tab in app.tabs] if page == "model" else ("",):
        if view:
            app.session_state["view"] = view
            rerun(app)
        shown = list(markdown_of(app))
        assert [text for text in shown if MARKED in text] == [], view
        assert any(plain(MARKED) in text for text in shown), view
