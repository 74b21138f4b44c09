"""Commands and the page Model on transductions, of models trained for a moment."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner, Result

from sweeps import api
from sweeps.cli.app import app as seqcls
from sweeps.store.opening import open_reader
from tests.app import open_app, said

SPEC = """
name = "copying"
model_seeds = [0]

[fixed]
task = "copy"
num_tokens = 4
train_size = 256
train_batch_size = 32
validation_size = 32
test_size = 60
train_max_length = 4
validation_max_length = 4
test_max_length = 7
max_num_epochs = 1
min_num_epochs = 1
hidden_size = 8

[[configurations]]
num_blocks = 2
num_attention_heads = 2
attention_head_size = 4
positions = "alibi"

[[configurations]]
architecture = "lstm"
"""
BLOCKS, LSTM = "1", "2"
STRING = "abca"
TABS = ["Answers", "Writing", "States", "Minimal and nearest", "Patching", "Ablation"]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("copying")
    (folder / "copying.toml").write_text(SPEC)
    path = str(folder / "copying.db")
    sweep = ["sweep", str(folder / "copying.toml"), "--db", path, "--workers", "0"]
    result = CliRunner().invoke(seqcls, sweep)
    assert result.exit_code == 0, result.output
    return path


def invoke(db: str, *arguments: str) -> Result:
    return CliRunner().invoke(seqcls, [*arguments, "--db", db])


def data(db: str, *arguments: str) -> Any:
    result = invoke(db, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def model(
    monkeypatch: pytest.MonkeyPatch, db: str, run: str, view: str, **query: str | list[str]
) -> AppTest:
    return open_app(monkeypatch, Path(db), "model", run=run, view=view, string=STRING, **query)


def headers(app: AppTest) -> list[str]:
    return [each.value for each in app.subheader]


@pytest.mark.parametrize("run", [BLOCKS, LSTM])
def test_states_are_those_of_input_and_output(db: str, run: str) -> None:
    found = data(db, "states", run, STRING)
    assert found["tokens"][:6] == ["CLS", *STRING, "SEP"]
    read = found["output"] if found["output"][-1]["token"] == "END" else found["output"][:-1]
    written = [token["token"] for token in read if token["token"] != "END"]
    assert found["tokens"][6:] == written
    assert "prefix_logits" not in found
    if run == BLOCKS:
        weights = found["attention"]
        assert [len(weights), len(weights[0])] == [2, 2]
        assert all(sum(row) == pytest.approx(1) for row in weights[1][1])
    table = invoke(db, "states", run, STRING).stdout
    assert "the output, token by token" in table
    assert "log-probability of the target" in table


@pytest.mark.parametrize("run", [BLOCKS, LSTM])
def test_patches_are_of_the_input_and_sep(db: str, run: str) -> None:
    found = data(db, "patch", run, STRING, "--source", "abda")
    assert found["tokens"] == {
        "base": ["CLS", *STRING, "SEP"],
        "source": ["CLS", *"abda", "SEP"],
    }
    assert found["number"].startswith("log-probability of the target")
    assert all(len(row) == 6 for row in found["logits"])
    first = api.patch(open_reader(db), run, STRING, "abda").patched
    assert first.logits.tolist() == found["logits"]
    assert invoke(db, "patch", run, STRING, "--source", "abda").exit_code == 0
    refused = invoke(db, "patch", run, STRING, "--source", "abd")
    assert "expected as many" in str(refused.exception)


@pytest.mark.parametrize("run", [BLOCKS, LSTM])
def test_ablation_begins_with_the_whole_model(db: str, run: str) -> None:
    found = data(db, "ablate", run)
    whole = found["parts"][0]
    assert (whole["without"], whole["logit_change"]) == ([], 0)
    assert whole["misclassified"] <= found["strings"] <= 60
    assert whole["loss"] > 0
    assert "change of the log-probability" in invoke(db, "ablate", run).stdout.replace("\n", " ")


def test_failing_inputs_are_reduced(db: str) -> None:
    wrong = data(db, "errors", BLOCKS)[0]["string"]
    found = data(db, "minimal", BLOCKS, wrong)
    assert found["minimal"]["predicted"] != found["minimal"]["label"]
    assert data(db, "minimal", BLOCKS)["count"] > 0


@pytest.mark.parametrize("command", ["rules", "family"])
def test_what_is_of_languages_is_refused_with_its_reason(db: str, command: str) -> None:
    refused = invoke(db, command, BLOCKS, *(["a{n}"] if command == "family" else []))
    assert "task='copy' is no language" in str(refused.exception)


def test_writing_is_watched_on_the_page(monkeypatch: pytest.MonkeyPatch, db: str) -> None:
    app = model(monkeypatch, db, BLOCKS, "Writing")
    assert [tab.label for tab in app.tabs] == TABS
    assert headers(app) == ["Token by token", "Attention while it writes", "Likeliest outputs"]
    tokens, outputs = (each.value for each in app.dataframe)
    along = data(db, "states", BLOCKS, STRING)
    assert tokens["token"].tolist() == [token["token"] for token in along["output"]]
    assert tokens["probability"].between(0, 1).all()
    assert 1 <= len(outputs) <= 5
    assert outputs["probability"].is_monotonic_decreasing
    assert outputs["probability"].iloc[0] == pytest.approx(
        math.exp(outputs["log_probability"].iloc[0])
    )
    (chart,) = app.get("vega_lite_chart")
    assert "Token that is written" in chart.proto.spec
    assert "block 1, head 1" in str(app.get("button_group")[-1].proto)
    assert "no language" in said(app)
    assert "Ablation" not in next(info.value for info in app.info)


def test_a_recurrent_model_writes_without_attention(
    monkeypatch: pytest.MonkeyPatch, db: str
) -> None:
    app = model(monkeypatch, db, LSTM, "Writing")
    assert headers(app) == ["Token by token", "Likeliest outputs"]
    assert "lstm names no attention" in said(app)


def test_an_input_that_is_none_is_said(monkeypatch: pytest.MonkeyPatch, db: str) -> None:
    app = open_app(monkeypatch, Path(db), "model", run=BLOCKS, view="Writing", string="xyz")
    assert "unknown letter" in said(app)


@pytest.mark.parametrize("run", [BLOCKS, LSTM])
def test_the_other_sections_hold(monkeypatch: pytest.MonkeyPatch, db: str, run: str) -> None:
    app = model(monkeypatch, db, run, "States")
    assert headers(app) == ["Along input and output"]
    assert "the input, SEP, and the output that it writes" in said(app)
    assert len(app.get("vega_lite_chart")) == 1
    other = LSTM if run == BLOCKS else BLOCKS
    beside = model(monkeypatch, db, run, "States", beside=other)
    assert len(beside.get("vega_lite_chart")) == 2
    app = model(monkeypatch, db, run, "Minimal and nearest")
    assert "Nearest correctly classified string" in headers(app)
    app = model(monkeypatch, db, run, "Patching")
    app.text_input[0].set_value("abda")
    app.run()
    assert not app.exception
    assert "the output is teacher forced" in said(app)
    (chart,) = app.get("vega_lite_chart")
    assert "Patched log-probability" in chart.proto.spec
    app = model(monkeypatch, db, run, "Ablation", ablate="true")
    assert "Exact match by teacher forcing" in said(app)
    assert headers(app)[0] == "Without each part alone"


@pytest.mark.parametrize("run", [BLOCKS, LSTM])
def test_figures_have_a_column_for_every_token_read(db: str, run: str, tmp_path: Path) -> None:
    result = invoke(db, "figures", run, STRING, "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    names = {path.name for path in tmp_path.glob("*.svg")}
    assert any(name.startswith("attention_weights" if run == BLOCKS else "units") for name in names)
    assert not any("prefix" in name for name in names)
