"""Commands that look into models of any architecture, on models trained for a moment."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from sweeps.cli.app import app
from sweeps.store.opening import open_reader
from tests.errors_of_runs import check_runs

SPEC = """
name = "any"
model_seeds = [0]

[fixed]
task = "even_pairs"
train_size = 64
train_batch_size = 32
validation_size = 32
test_size = 200
train_max_length = 8
validation_max_length = 8
test_max_length = 16
max_num_epochs = 1
min_num_epochs = 1
hidden_size = 4
readout = "last"

[[configurations]]
num_blocks = 2
positions = "sinusoidal"
attention_mask = "causal"

[[configurations]]
architecture = "lstm"
"""
BLOCKS, LSTM = "1", "2"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("any")
    (folder / "any.toml").write_text(SPEC)
    path = str(folder / "any.db")
    sweep = ["sweep", str(folder / "any.toml"), "--db", path, "--workers", "0"]
    assert CliRunner().invoke(app, sweep).exit_code == 0
    return path


def invoke(db: str, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--db", db])


def data(db: str, *arguments: str) -> Any:
    result = invoke(db, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_what_parts_add_sums_to_the_logit(db: str) -> None:
    found = data(db, "states", BLOCKS, "0110")
    assert found["steps"][-1]["logit"] == pytest.approx(found["logit"], abs=1e-5)
    assert sum(own["adds"] for own in found["steps"]) == pytest.approx(found["steps"][-1]["logit"])
    assert found["prefix_logits"][-1] == pytest.approx(found["logit"])
    assert len(found["attention"]) == 2
    said = invoke(db, "states", BLOCKS, "0110").output
    assert "what each part adds to the logit" in said
    assert "the logit after every" in said


def test_a_recurrent_models_units_are_told(db: str) -> None:
    found = data(db, "states", LSTM, "0110")
    assert set(found["gates"]) == {
        *("input_gate", "forget_gate", "candidate", "output_gate", "cell")
    }
    assert "steps" not in found
    assert len(found["path"]) == len(found["tokens"])
    assert "the last layer's units after each token" in invoke(db, "states", LSTM, "0110").output


@pytest.mark.parametrize("run", [BLOCKS, LSTM])
def test_patching_a_string_with_itself_turns_nothing(db: str, run: str) -> None:
    found = data(db, "patch", run, "0110", "--source", "0110")
    for row in found["logits"]:
        assert row == pytest.approx([found["base"]["logit"]] * len(row), abs=1e-5)
    assert not any(any(row) for row in found["flips"])
    assert "no single state" in invoke(db, "patch", run, "0110", "--source", "0110").output


def test_patching_strings_of_other_lengths_is_refused(db: str) -> None:
    result = invoke(db, "patch", BLOCKS, "0110", "--source", "011")
    assert result.exit_code != 0
    assert "expected as many" in str(result.exception)


def test_ablation_names_every_part_and_counts_errors(db: str) -> None:
    found = data(db, "ablate", BLOCKS, "--sample", "50")
    assert [own["without"] for own in found["parts"][:1]] == [[]]
    assert len(found["parts"]) == 1 + 2 * (2 + 1)
    assert found["strings"] == sum(found["parts"][0]["strings"]) == 50
    pruned = data(db, "ablate", BLOCKS, "--sample", "50", "--prune", "--part", "head")["steps"]
    assert [len(own["without"]) for own in pruned] == [0, 1, 2, 3, 4]
    units = data(db, "ablate", LSTM, "--sample", "50", "--how", "mean")["parts"]
    assert {"layer 0, unit 3"} in [set(own["without"]) for own in units]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("ablate", LSTM, "--part", "head"), "has no such part"),
        (("ablate", BLOCKS, "--part", "hed"), "expected head, feed-forward, unit"),
        (("ablate", BLOCKS, "--how", "off"), "expected zero or mean"),
        (("states", BLOCKS, "012"), "unknown letter '2'"),
        (("family", LSTM, "01"), "expected one or two"),
    ],
)
def test_what_cannot_be_meant_is_said_in_a_line(
    db: str, arguments: tuple[str, ...], problem: str
) -> None:
    result = invoke(db, *arguments)
    assert result.exit_code != 0
    assert problem in str(result.exception)


def test_families_with_groups_and_two_counts_are_run(db: str) -> None:
    found = data(db, "family", LSTM, "<01>{n}")
    assert found["n"][-1] == 2000
    assert len(found["logit"]) == len(found["label"]) == len(found["n"])
    assert "strings of <01>{n} were run" in invoke(db, "family", LSTM, "<01>{n}").output
    grid = data(db, "family", LSTM, "0{m}1{n}")
    assert len(grid["logit"]) == len(grid["m"]) == len(grid["changes"])


def test_what_is_said_of_errors_holds_for_each_of_them(db: str) -> None:
    checked = check_runs(open_reader(db), 10)
    assert min(checked.values()) >= 5
    assert {"the parts sum to the logit", "with any one token less it does not"} <= set(checked)
    assert sum("patched" in what for what in checked) == 5
