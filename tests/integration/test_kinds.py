"""A kind of answer from outside, with one task: trained, stored, asked, exported and shown.

It stands in a package of its own, `tests/assets/plugin_package/remainders.py`: no file of this
program knows of it.
"""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from dashboard.text import verbatim
from seqcls.engines.choice import choose_engine
from seqcls.errors import ConfigError, PluginError
from seqcls.evaluation import distinct_test_strings, logits_of
from seqcls.kinds import KINDS, ErrorColumn, Measure, Words
from seqcls.kinds.membership import OneAnswer
from seqcls.plugin_checks import check_kind
from seqcls.plugins import UnfitError
from seqcls.problem import configuration, resolve
from seqcls.tasks import TASKS
from seqcls.training import train_group
from sweeps.api.models import trained_model
from sweeps.cli.app import app as seqcls
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.app import markdown_of, open_app, said
from tests.conftest import ASSETS, ROOT, SHORT
from tests.databases import file_of
from tests.plugins import forget_parts

TINY = {**SHORT, "task": "ones_modulo", "train_size": 256, "max_num_epochs": 2, "test_size": 500}
TINY |= {"train_max_length": 8, "validation_max_length": 8, "test_max_length": 30}
RECURRENT, TRANSFORMER = "1", "3"
SPECS: dict[str, dict[str, Any]] = {
    "recurrent": {"architecture": "lstm", "readout": "last"},
    "attending": {"positions": "sinusoidal", "num_blocks": 2},
}
NO_LANGUAGE = "task='ones_modulo' is no language: its answers are not yes or no"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A database with two models of each configuration, in this order."""
    folder = tmp_path_factory.mktemp("kinds")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SEQCLS_CACHE", str(folder / "cache"))
        patched.syspath_prepend(str(ASSETS / "plugin_package"))
        forget_parts()
        store = open_writer(str(folder / "kinds.db"))
        for name, fields in SPECS.items():
            spec = {"name": name, "model_seeds": [0, 1], "fixed": {**TINY, **fields}}
            work(store, [writer.submit(store, parse_spec(spec))], WorkOptions(workers=0))
        patched.delenv("SEQCLS_CACHE")
        yield file_of(store)
    forget_parts()


def told(db: Path, *arguments: str) -> Result:
    return CliRunner().invoke(seqcls, [*arguments, "--db", str(db)])


def test_no_file_of_this_program_knows_of_it() -> None:
    parts = [*ROOT.glob("seqcls/**/*.py"), *ROOT.glob("sweeps/**/*.py")]
    parts += ROOT.glob("dashboard/**/*.py")
    assert len(parts) > 300
    named = ("remainders", '"remainder"', "ones_modulo", "OnesModulo")
    assert not [path for path in parts if any(name in path.read_text() for name in named)]


def test_what_is_stored_is_what_the_models_say(db: Path) -> None:
    store = open_reader(str(db))
    for run_id in (int(RECURRENT), int(TRANSFORMER)):
        model = trained_model(store, run_id)
        test = distinct_test_strings(model.problem.test)
        (outputs,) = logits_of(model.problem, [model.weights], test.strings)
        assert outputs.shape == (len(test.strings), 3)
        ones = test.strings.counts[:, 1]
        is_wrong = outputs.argmax(axis=1) != ones % 3
        with closing(sqlite3.connect(db)) as connection:
            query = "SELECT tested, wrong, tn, fp, fn, tp, digest FROM run WHERE id = ?"
            tested, wrong, *cells, digest = connection.execute(query, (run_id,)).fetchone()
            scores = connection.execute(
                "SELECT sum(tested), sum(wrong), count(tn) FROM length_score WHERE run_id = ?",
                (run_id,),
            ).fetchone()
            errors = connection.execute(
                "SELECT string, label, target, logit FROM misclassified WHERE run_id = ?", (run_id,)
            ).fetchall()
        assert (tested, wrong) == (500, int(test.occurrences[is_wrong].sum())) == scores[:2]
        assert cells == [None] * 4
        assert scores[2] == 0
        assert digest.startswith("v3:")
        known = dict(zip(test.texts, zip(ones % 3, outputs, strict=True), strict=True))
        assert {string for string, *_ in errors} == {
            text for text, fails in zip(test.texts, is_wrong, strict=True) if fails
        }
        for string, label, target, margin in errors:
            right, scored = known[string]
            assert (label, target) == (None, f"remainder {right}")
            assert margin == pytest.approx(scored[right] - np.delete(scored, right).max(), abs=1e-6)
            assert margin <= 0


def test_the_loss_that_is_trained_on_is_the_kinds(db: Path) -> None:
    with closing(sqlite3.connect(db)) as connection:
        losses = dict(
            connection.execute("SELECT run_id, min(validation_loss) FROM epoch GROUP BY run_id")
        )
    # Three classes, about as likely: not far from so many times log 3.
    size = configuration({**TINY, **SPECS["recurrent"]}).validation_size
    for loss in losses.values():
        assert 0.5 < loss / (size * np.log(3)) < 1.5


def test_other_engines_say_why_they_do_not_train_it(db: Path) -> None:
    del db
    problem = resolve(configuration({"task": "ones_modulo"}))
    choice = choose_engine(problem)
    assert (choice.name, choice.reason) == ("strings", NO_LANGUAGE)
    assert problem.config.test_sampler == "uniform_inputs"


@pytest.mark.parametrize(
    ("method", "returned", "message"),
    [
        ("num_outputs", 0, "num_outputs=0, expected a whole number from 1"),
        ("texts", ["one"], r"texts as \['one'\], expected one for each string"),
        ("texts", None, "texts as None"),
        ("margins", np.zeros(1), "expected one for each string"),
        ("answers", None, "answers as None"),
    ],
)
def test_a_kind_that_cannot_be_used_is_refused_in_one_line(
    db: Path, monkeypatch: pytest.MonkeyPatch, method: str, returned: object, message: str
) -> None:
    del db
    monkeypatch.setattr(KINDS["remainder"], method, lambda *_: returned)
    forget_parts(registries=False)
    with pytest.raises(PluginError, match=message) as refused:
        configuration({"task": "ones_modulo"})
    assert "\n" not in str(refused.value)
    forget_parts(registries=False)


OWN = ("num_outputs", "losses", "answers", "margins", "texts")
"""What a kind has to say itself."""


@pytest.mark.parametrize("inherits", [True, False])
def test_a_kind_says_little_itself_or_inherits_nothing(
    db: Path, monkeypatch: pytest.MonkeyPatch, inherits: bool
) -> None:
    said = told(db, "predict", RECURRENT, "0110", "111").stdout
    bases = KINDS["remainder"].__mro__[:-1]
    parts = {name: part for base in reversed(bases) for name, part in vars(base).items()}
    own = OWN if inherits else [name for name in parts if not name.startswith(("__", "_abc"))]
    kind = type("Another", (OneAnswer,) if inherits else (), {name: parts[name] for name in own})
    monkeypatch.setitem(vars(KINDS)["_loaded"], "remainder", kind)
    forget_parts(registries=False)
    problem = resolve(configuration(TINY))
    assert (type(problem.kind), problem.config.test_sampler) == (kind, "uniform_inputs")
    assert told(db, "predict", RECURRENT, "0110", "111").stdout == said
    (first, *_) = json.loads(told(db, "errors", RECURRENT, "--json").stdout)
    assert first["target"].startswith("remainder")
    (trained,) = train_group([(resolve(configuration({**TINY, **SPECS["recurrent"]})), 0)])
    weights = trained_model(open_reader(str(db)), int(RECURRENT)).weights
    assert all((trained.kept_weights[name] == weights[name]).all() for name in weights)
    forget_parts(registries=False)


@pytest.mark.parametrize("lost", OWN)
def test_a_kind_that_does_not_say_what_it_has_to_is_refused_in_one_line(
    db: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    del db
    parts = {name: vars(KINDS["remainder"])[name] for name in OWN if name != lost}
    kind = type("Another", (OneAnswer,), parts)
    monkeypatch.setitem(vars(KINDS)["_loaded"], "remainder", kind)
    forget_parts(registries=False)
    with pytest.raises(PluginError, match=lost) as refused:
        configuration(TINY)
    assert "\n" not in str(refused.value)
    forget_parts(registries=False)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"test_sampler": "balanced_strings"}, "cannot serve task 'ones_modulo'.*uniform_inputs"),
        ({"task": "parity", "test_sampler": "uniform_inputs"}, "use balanced_strings"),
        ({"train_min_length": 9, "train_max_length": 8}, "min_length=9"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    db: Path, fields: dict[str, Any], message: str
) -> None:
    del db
    with pytest.raises(ConfigError, match=message) as refused:
        configuration({"task": "ones_modulo", **fields})
    assert "\n" not in str(refused.value)


def test_it_is_verified_and_merged(db: Path, tmp_path: Path) -> None:
    assert "4 runs checked, nothing is damaged" in told(db, "verify").stdout
    other = tmp_path / "other.db"
    merged = CliRunner().invoke(seqcls, ["merge", str(db), "--db", str(other)])
    assert merged.exit_code == 0, merged.output
    assert "4 runs checked, nothing is damaged" in told(other, "verify").stdout
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("UPDATE length_score SET wrong = wrong - 1 WHERE run_id = 1 AND wrong")
        connection.commit()
    assert "run 1" in told(other, "verify").output


@pytest.mark.parametrize("run", [RECURRENT, TRANSFORMER])
def test_commands_explain_a_model(db: Path, run: str) -> None:
    predicted = told(db, "predict", run, "0110", "111").stdout
    assert re.findall(r"^ (\d+) +(remainder \d) +remainder \d +", predicted, re.MULTILINE) == [
        ("0110", "remainder 2"),
        ("111", "remainder 0"),
    ]
    (first, *_) = json.loads(told(db, "errors", run, "--json").stdout)
    assert first["target"].startswith("remainder")
    minimal = told(db, "minimal", run, first["string"]).stdout
    assert f"is {first['target']}, predicted remainder" in minimal
    assert "no single deletion fails" in minimal
    assert "margin" in told(db, "states", run, "0110").stdout
    assert "misclassified" in told(db, "ablate", run).stdout
    letters = trained_model(open_reader(str(db)), int(run)).letters("011")
    assert letters == (0, 1, 1)
    patched = json.loads(told(db, "patch", run, "0110", "--source", "0111", "--json").stdout)
    assert patched["base"]["label"] == "remainder 2"
    assert patched["source"]["label"] == "remainder 0"


def test_patching_everything_carries_the_whole_answer_over(db: Path) -> None:
    patched = json.loads(told(db, "patch", RECURRENT, "0110", "--source", "0111", "--json").stdout)
    model = trained_model(open_reader(str(db)), int(RECURRENT))
    # The last layer as a whole, after the last token: the source's answer, told by the base's.
    kind, task = model.problem.kind, model.task
    strings = model.ask_all([model.letters("0110"), model.letters("0111")]).strings
    outputs = logits_of(model.problem, [model.weights], strings)[0]
    target = kind.targets(task, strings)[:1]
    whole = patched["logits"][patched["sites"].index("layer 0")]
    assert whole[-1] == pytest.approx(kind.margins(outputs[1:], target)[0], abs=1e-5)


@pytest.mark.parametrize(
    "arguments",
    [
        ("rules", RECURRENT),
        ("family", TRANSFORMER, "1{n}"),
        ("verdict", RECURRENT),
        ("sensitive", RECURRENT),
        ("causes", "recurrent"),
        ("explain", TRANSFORMER, "011"),
    ],
)
def test_what_holds_of_languages_alone_says_so(db: Path, arguments: tuple[str, ...]) -> None:
    refused = told(db, *arguments)
    assert refused.exit_code != 0
    assert NO_LANGUAGE in " ".join(str(refused.exception or refused.output).split())


def test_results_are_exported(db: Path, tmp_path: Path) -> None:
    assert told(db, "export", str(tmp_path / "out")).exit_code == 0
    errors = pd.read_csv(tmp_path / "out" / "errors.csv", dtype={"string": str})
    assert errors["label"].isna().all()
    assert set(errors["target"]) <= {f"remainder {n}" for n in range(3)}
    lengths = pd.read_csv(tmp_path / "out" / "lengths.csv")
    assert lengths["tn"].isna().all()
    assert (lengths["wrong"] <= lengths["tested"]).all()


@pytest.mark.parametrize("page", ["compare", "map", "failing", "sweeps"])
def test_pages_show_it(monkeypatch: pytest.MonkeyPatch, db: Path, page: str) -> None:
    app = open_app(monkeypatch, db, page)
    assert not app.error
    text = said(app).replace("\\", "")
    if page == "compare":
        (measure,) = [x for x in app.get("button_group") if "Measure" in str(x.proto)]
        assert "False positive rate" not in str(measure.proto)
    if page == "failing":
        strings = next(x.value for x in app.dataframe if "target" in x.value)
        assert strings["target"].str.startswith("remainder").all()
        assert NO_LANGUAGE in text
        assert "Misclassified" in [metric.label for metric in app.metric]
        assert "Errors by length" in str([x.proto for x in app.get("vega_lite_chart")])


@pytest.mark.parametrize("run", [RECURRENT, TRANSFORMER])
@pytest.mark.parametrize("view", ["Answers", "States", "Minimal and nearest", "Ablation", "Live"])
def test_the_page_model_shows_it(
    monkeypatch: pytest.MonkeyPatch, db: Path, run: str, view: str
) -> None:
    app = open_app(monkeypatch, db, "model", run=run, view=view)
    assert not app.error
    text = said(app).replace("\\", "")
    assert "The answer is the number of 1s modulo 3" in text
    assert NO_LANGUAGE in text
    assert "false positive" not in text
    if view == "Answers":
        asked = app.dataframe[0].value
        assert asked["target"].str.startswith("remainder").all()
        assert (asked["correct"] == (asked["target"] == asked["predicted"])).all()


MARKED = "![x](http://outside.example/w) **w**"


@pytest.mark.parametrize("page", ["compare", "map", "failing", "compare_two", "model"])
def test_words_of_a_kind_are_shown_as_they_are(
    monkeypatch: pytest.MonkeyPatch, db: Path, page: str
) -> None:
    kind = type(KINDS["remainder"]())
    words = Words(*(f"{MARKED} {part}" for part in ("string", "{}", "{}", "wrong", "task", "sum")))
    monkeypatch.setattr(kind, "words", replace(words, hit=MARKED))
    columns = tuple(ErrorColumn(x.name, MARKED, MARKED) for x in kind.answer_columns)
    monkeypatch.setattr(kind, "answer_columns", columns)
    measures = (Measure("accuracy", MARKED, MARKED),)
    monkeypatch.setattr(kind, "measures", lambda _: measures)
    errors = tuple(replace(x, title=MARKED, meaning=MARKED) for x in kind().error_columns())
    monkeypatch.setattr(kind, "error_columns", lambda _: errors)
    monkeypatch.setattr(TASKS["ones_modulo"], "describe", lambda _: MARKED)
    views = ("Answers", "States", "Minimal and nearest", "Ablation", "Live")
    for view in views if page == "model" else ("",):
        app = open_app(
            monkeypatch, db, page, **({"run": TRANSFORMER, "view": view} if view else {})
        )
        shown = list(markdown_of(app))
        assert [text for text in shown if MARKED in text] == [], view
        assert any(verbatim(MARKED) in text for text in shown), view


def test_words_of_a_kind_that_make_no_sentence_are_refused() -> None:
    kind = KINDS["remainder"]()
    for made in (replace(kind.words, miss="gets {it} wrong"), replace(kind.words, string="")):
        spoiled = type("Spoiled", (type(kind),), {"words": made})()
        with pytest.raises(UnfitError, match="expected"):
            check_kind(spoiled, TASKS["ones_modulo"]())
