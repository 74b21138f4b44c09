"""Commands and the page Model on transductions, of models trained for a moment."""

import json
import math
import shutil
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner, Result

from dashboard.live.route import look
from dashboard.views import written
from seqcls.engines.member import draw_initial
from seqcls.errors import ConfigError
from seqcls.interpretability.mechanisms import NOT_LEARNED, OUTPUT_BEHAVIOURS
from seqcls.interpretability.states_by_strings import attention_kinds, attention_patterns
from seqcls.interpretability.states_of_outputs import likeliest_outputs, output_tree
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.results import ErrorKind
from seqcls.strings.tokenizer import FIRST_LETTER
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

[[configurations]]
architecture = "encoder_decoder"
num_blocks = 2
num_attention_heads = 2
attention_head_size = 4
positions = "learned"

[[configurations]]
architecture = "recurrent_attention"

[[configurations]]
architecture = "recurrent_attention"
attention = "none"
"""
BLOCKS, LSTM, ENCODER_DECODER, ADDITIVE, NO_ATTENTION = "12345"
STRING = "abca"
TABS = ["Answers", "Writing", "States", "Minimal and nearest", "Patching"]
TABS += ["Breaking point", "All inputs", "Ablation", "Live"]


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


@pytest.mark.parametrize("run", [BLOCKS, LSTM, ENCODER_DECODER, ADDITIVE])
def test_patches_are_of_the_input_and_sep(db: str, run: str) -> None:
    found = data(db, "patch", run, STRING, "--source", "abda")
    assert found["tokens"] == {
        "base": ["CLS", *STRING, "SEP"],
        "source": ["CLS", *"abda", "SEP"],
    }
    assert found["number"].startswith("log-probability of the target")
    assert all(len(row) == 6 for row in found["logits"])
    first = api.patch(open_reader(db), run, STRING, "abda").patched
    given = np.array(found["logits"], dtype=float)
    np.testing.assert_array_equal(given, first.logits)
    # An encoder has no state at SEP, and a decoder none before it.
    nowhere = np.zeros(given.shape, dtype=bool)
    for row, site in enumerate(found["sites"]):
        nowhere[row] = np.array([site.startswith("decoder")] * 5 + [site.startswith("encoder")])
    np.testing.assert_array_equal(np.isnan(given), nowhere)
    assert nowhere.any() == (run in (ENCODER_DECODER, ADDITIVE))
    assert invoke(db, "patch", run, STRING, "--source", "abda").exit_code == 0
    refused = invoke(db, "patch", run, STRING, "--source", "abd")
    assert "expected as many" in str(refused.exception)


@pytest.mark.parametrize("run", [BLOCKS, LSTM, ADDITIVE])
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


def test_rules_are_of_languages_and_refused_with_the_reason(db: str) -> None:
    refused = invoke(db, "rules", BLOCKS)
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
    attention, tree = app.get("vega_lite_chart")
    assert "Token that is written" in attention.proto.spec
    assert "Each row is an output" in tree.proto.spec
    assert "block 1, head 1" in str(app.get("button_group")[-1].proto)
    assert "no language" in said(app)
    assert "Ablation" not in next(info.value for info in app.info)


def test_a_recurrent_model_writes_without_attention(
    monkeypatch: pytest.MonkeyPatch, db: str
) -> None:
    app = model(monkeypatch, db, LSTM, "Writing")
    assert headers(app) == ["Token by token", "Likeliest outputs"]
    assert "lstm names no attention" in said(app)


def weights_shown(app: AppTest) -> pd.DataFrame:
    """The cells of the heat map, the first of two drawings."""
    attention, tree = app.get("vega_lite_chart")
    assert "Token that is written" in attention.proto.spec
    assert "Each row is an output" in tree.proto.spec
    (cells,) = (x for x in attention.proto.datasets if x.name == "output_attention")
    return convert_arrow_bytes_to_pandas_df(cells.data.data)


@pytest.mark.parametrize("epoch", [{}, {"epoch": "0"}])
def test_an_encoder_decoder_shows_what_it_attends_to_and_its_outputs(
    monkeypatch: pytest.MonkeyPatch, db: str, epoch: dict[str, str]
) -> None:
    app = model(monkeypatch, db, ENCODER_DECODER, "Writing", head="block 1, head 1", **epoch)
    assert headers(app) == ["Token by token", "Attention while it writes", "Likeliest outputs"]
    assert not app.info or "one stream" not in said(app)
    opened = api.model(open_reader(db), ENCODER_DECODER)
    if epoch:
        opened = TrainedModel(opened.problem, draw_initial([(opened.problem, 0)])[0])
    letters = opened.letters(STRING)
    for kind in attention_kinds(opened):
        app.segmented_control(key="attends").set_value(kind).run()
        assert not app.exception
        found = attention_patterns(opened, letters, kind=kind)
        assert found.tokens[0] == ("CLS" if kind == "cross-attention" else "SEP")
        cells = weights_shown(app)
        assert set(cells["to"]) <= set(found.tokens)
        for row, letter, weight in cells[["row", "letter", "weight"]].itertuples(index=False):
            assert weight == pytest.approx(found.weights[1, 1, row, letter], abs=1e-3)


def test_a_recurrent_decoder_shows_its_only_attention(
    monkeypatch: pytest.MonkeyPatch, db: str
) -> None:
    app = model(monkeypatch, db, ADDITIVE, "Writing")
    assert set(weights_shown(app)["to"]) <= {"CLS", *STRING}
    assert "the state before that token" in said(app)
    app = model(monkeypatch, db, NO_ATTENTION, "Writing")
    assert "this recurrent_attention has none" in said(app).replace("\\", "")
    assert headers(app) == ["Token by token", "Likeliest outputs"]


@pytest.mark.parametrize(("run", "maps"), [(ENCODER_DECODER, 4), (ADDITIVE, 1)])
def test_what_a_decoder_attends_to_follows_what_is_typed(db: str, run: str, maps: int) -> None:
    found = look(api.model(open_reader(db), run), STRING)
    assert found["maps"][0]["name"] == "Cross-attention, block 0, head 0"
    assert len(found["maps"]) == maps
    for each in found["maps"]:
        assert each["columns"] == ["CLS", *STRING]
        assert each["rows"][0] == "SEP"
        assert len(each["cells"]) == len(each["rows"]) * len(each["columns"])


def test_what_hides_attention_hides_no_outputs(monkeypatch: pytest.MonkeyPatch, db: str) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise ConfigError("no weights of this kind")

    monkeypatch.setattr(written, "patterns_of", refused)
    app = model(monkeypatch, db, ENCODER_DECODER, "Writing")
    assert "no weights of this kind" in said(app)
    (tree,) = app.get("vega_lite_chart")
    assert "Each row is an output" in tree.proto.spec


def test_an_input_that_is_none_is_said(monkeypatch: pytest.MonkeyPatch, db: str) -> None:
    app = open_app(monkeypatch, Path(db), "model", run=BLOCKS, view="Writing", string="xyz")
    assert "unknown letter" in said(app)


@pytest.mark.parametrize("run", [ENCODER_DECODER, ADDITIVE])
def test_states_of_both_streams_are_patched_on_the_page(
    monkeypatch: pytest.MonkeyPatch, db: str, run: str
) -> None:
    app = model(monkeypatch, db, run, "Patching")
    app.text_input[0].set_value("abda")
    app.run()
    assert "decoder states only at SEP" in said(app)
    (chart,) = app.get("vega_lite_chart")
    cells = convert_arrow_bytes_to_pandas_df(chart.proto.datasets[0].data.data)
    sides = cells["site"].str.split().str[0]
    assert set(sides) == {"encoder", "decoder"}
    assert cells[sides == "decoder"]["letter"].nunique() == 1
    assert cells[sides == "encoder"]["letter"].nunique() == 5
    assert not cells["logit"].isna().any()


@pytest.mark.parametrize("run", [BLOCKS, LSTM])
def test_the_other_sections_hold(monkeypatch: pytest.MonkeyPatch, db: str, run: str) -> None:
    app = model(monkeypatch, db, run, "States")
    assert headers(app) == ["Attention" if run == BLOCKS else "Units"]
    assert "the input, SEP, and the output that it writes" in said(app)
    assert len(app.get("vega_lite_chart")) == 2
    other = LSTM if run == BLOCKS else BLOCKS
    beside = model(monkeypatch, db, run, "States", beside=other)
    assert len(beside.get("vega_lite_chart")) == 4
    app = model(monkeypatch, db, run, "Minimal and nearest")
    assert "Nearest rightly answered input" in headers(app)
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
    spec = app.get("vega_lite_chart")[0].proto.spec
    assert "Mean change of the log-probability of the target" in spec
    assert "Test inputs wrongly answered without it" in spec


@pytest.mark.parametrize(("run", "kinds"), [(ENCODER_DECODER, 2), (ADDITIVE, 1), (NO_ATTENTION, 0)])
def test_figures_show_what_a_decoder_attends_to_and_keeps(
    db: str, run: str, kinds: int, tmp_path: Path
) -> None:
    result = invoke(db, "figures", run, STRING, "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    names = [path.name for path in tmp_path.glob("*.svg")]
    attention = [name for name in names if name.startswith("attention_weights")]
    assert len(attention) == (8 if run == ENCODER_DECODER else kinds)
    assert any(name.startswith("units") for name in names)


@pytest.mark.parametrize("run", [BLOCKS, LSTM])
def test_figures_have_a_column_for_every_token_read(db: str, run: str, tmp_path: Path) -> None:
    result = invoke(db, "figures", run, STRING, "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    names = {path.name for path in tmp_path.glob("*.svg")}
    assert any(name.startswith("attention_weights" if run == BLOCKS else "units") for name in names)
    assert not any("prefix" in name for name in names)


def test_a_family_of_inputs_is_asked_with_targets_beside_outputs(db: str) -> None:
    found = data(db, "family", BLOCKS, "ab{n}")
    outputs = found["outputs"]
    assert [each["n"] for each in outputs][:16] == list(range(1, 17))
    for each in outputs:
        assert each["target"] == each["input"].replace("{1}", "")
        assert each["right"] == (each["output"] == each["target"])
        assert each["right"] == (each["error_kind"] is None)
        assert each["right_tokens"] <= each["target_tokens"] == each["n"] + 1
    strings = [each["input"] for each in outputs[:8]]
    predicted = data(db, "predict", BLOCKS, *strings)
    assert [each["output"] for each in predicted] == [each["output"] for each in outputs[:8]]
    wrong = sum(not each["right"] for each in outputs)
    said = invoke(db, "family", BLOCKS, "ab{n}").stdout
    assert f"Tried: {len(outputs)} inputs" in said
    assert "Every output is" in said or f"Wrong outputs: {wrong}" in said


def test_a_family_of_two_counts_has_a_line_for_each_of_the_first(db: str) -> None:
    outputs = data(db, "family", LSTM, "a{m}b{n}")["outputs"]
    rows = {each["m"] for each in outputs}
    wrong = [each for each in outputs if not each["right"]]
    said = invoke(db, "family", LSTM, "a{m}b{n}").stdout.splitlines()
    for m in rows if 0 < len(wrong) < len(outputs) else ():
        of_row = [each for each in wrong if each["m"] == m]
        assert any(line.startswith(f"m = {m}: {len(of_row)} of") for line in said)


@pytest.mark.parametrize(("family", "reason"), [("x{n}", "unknown letter"), ("ab", "free counts")])
def test_a_family_that_is_none_is_refused_by_name(db: str, family: str, reason: str) -> None:
    assert reason in str(invoke(db, "family", BLOCKS, family).exception)


def test_every_input_up_to_a_length_is_tried(db: str) -> None:
    found = data(db, "verdict", BLOCKS)
    # Tested on up to 7 tokens: 4 + 16 + ... + 4096 inputs, and the next length is too long.
    assert [each["inputs"] for each in found["by_length"]] == [4**n for n in range(1, 8)]
    assert found["inputs"] == sum(4**n for n in range(1, 8))
    assert found["wrong"] == sum(sum(each["wrong"].values()) for each in found["by_length"])
    predicted = data(db, "predict", BLOCKS, *"abcd")
    wrong = [each["string"] for each in predicted if each["output"] != each["target"]]
    assert sum(found["by_length"][0]["wrong"].values()) == len(wrong)
    if wrong:
        assert found["shortest"][0]["string"] == wrong[0]


def test_the_tree_of_outputs_shares_what_they_begin_with(db: str) -> None:
    opened = api.model(open_reader(db), BLOCKS)
    letters = opened.letters(STRING)
    tree = output_tree(opened, letters, 5)
    best = likeliest_outputs(opened, letters, 5)
    assert {leaf.text for leaf in tree.leaves} == {
        opened.text([token - FIRST_LETTER for token in output.tokens]) for output in best
    }
    cells = {(token.row, token.place): token for token in tree.tokens}
    for leaf in tree.leaves:
        # What stands before a branch is drawn in the row above that it leaves.
        own = [cells[leaf.row, place] for place in range(leaf.branch, leaf.tokens)]
        assert (leaf.row, leaf.branch - 1) not in cells
        before = 0.0
        if leaf.branch:
            row = leaf.parent
            while (row, leaf.branch - 1) not in cells:
                row = tree.leaves[row].parent
            before = cells[row, leaf.branch - 1].log_probability
        whole = before + sum(math.log(token.probability) for token in own)
        assert whole == pytest.approx(leaf.log_probability)
    starts = [token.probability for token in tree.tokens if token.place == 0]
    assert sum(starts) <= 1 + 1e-9
    assert all(leaf.right == (leaf.ended and leaf.text == STRING) for leaf in tree.leaves)


def test_families_and_all_inputs_have_pages(monkeypatch: pytest.MonkeyPatch, db: str) -> None:
    app = model(monkeypatch, db, LSTM, "Breaking point")
    assert app.text_input[0].value == "a{n}"
    (chart,) = app.get("vega_lite_chart")
    assert "The family a{n}" in chart.proto.spec
    assert len(app.dataframe[0].value) == len(data(db, "family", LSTM, "a{n}")["outputs"])
    app = model(monkeypatch, db, LSTM, "Breaking point", family="a{m}b{n}")
    assert "The family a{m}b{n}" in app.get("vega_lite_chart")[0].proto.spec
    app = model(monkeypatch, db, LSTM, "Breaking point", family="xyz{n}")
    assert "unknown letter" in app.error[0].value
    app = model(monkeypatch, db, LSTM, "All inputs", every_input="true")
    assert "inputs of up to 7 tokens" in said(app)
    assert "Errors by length" in app.get("vega_lite_chart")[0].proto.spec


def test_an_epoch_is_chosen_and_two_stand_side_by_side(
    monkeypatch: pytest.MonkeyPatch, db: str
) -> None:
    app = model(monkeypatch, db, BLOCKS, "Writing", epoch="0")
    untrained = app.dataframe[0].value["probability"].tolist()
    kept = model(monkeypatch, db, BLOCKS, "Writing").dataframe[0].value["probability"].tolist()
    assert untrained != kept
    app = model(monkeypatch, db, BLOCKS, "Writing", beside=BLOCKS, beside_epoch="0")
    assert "epoch 0" in said(app)
    assert app.dataframe[0].value["probability"].tolist() == kept
    assert app.dataframe[1].value["probability"].tolist() == untrained
    assert len(app.get("vega_lite_chart")) == 4


@pytest.mark.parametrize("view", ["Writing", "States"])
def test_a_model_beside_itself_is_drawn_twice(
    monkeypatch: pytest.MonkeyPatch, db: str, view: str
) -> None:
    app = model(monkeypatch, db, BLOCKS, view, beside=BLOCKS)
    assert "Model 1 again" in said(app)
    assert len(app.get("vega_lite_chart")) in (2, 4)


def test_what_sensitive_cannot_keep_of_outputs_is_said_with_what_can_be_done(db: str) -> None:
    refused = invoke(db, "sensitive", BLOCKS)
    assert "the confusion matrix is kept" in str(refused.exception)
    assert "--precision float64" in str(refused.exception)


def test_causes_remedies_and_compare_speak_of_outputs(db: str, tmp_path: Path) -> None:
    copied = shutil.copy(db, tmp_path / "causes.db")
    told = {
        name: invoke(str(copied), *arguments)
        for name, arguments in {
            "causes": ("causes", "copying"),
            "remedies": ("remedies", BLOCKS),
            "lstm": ("remedies", LSTM),
            "compare": ("compare", BLOCKS, LSTM),
            "ablate": ("ablate", BLOCKS),
        }.items()
    }
    for name, result in told.items():
        assert result.exit_code == 0, (name, result.output)
        assert "classif" not in result.output, name
    causes = data(str(copied), "causes", "copying")["causes"]
    for run in (int(BLOCKS), int(LSTM)):
        of_run = [cause for cause in causes if cause["run_id"] == run]
        known = {*get_args(ErrorKind), *OUTPUT_BEHAVIOURS, NOT_LEARNED}
        assert {x["mechanism"] for x in of_run} <= known
        assert math.isclose(sum(cause["share"] for cause in of_run), 1)
        assert all(cause["mechanism"] in told["causes"].output for cause in of_run)
        assert of_run[0]["mechanism"] == NOT_LEARNED, "neither has copied what it was trained on"
    for name in ("remedies", "lstm"):
        said = told[name].output
        assert "has not learned the trained lengths: wrong on" in said
        assert "test inputs of trained lengths" in said
        assert "against not learned" in said
        # What helps with longer inputs is not tried on a model that has not learned the short ones.
        assert "Position Coupling" not in said
    assert "test inputs are wrongly answered by more runs of one" in told["compare"].output
