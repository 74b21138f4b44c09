"""The report's models, trained from nothing by the command and as they are shipped."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seqcls.models.transformer import Transformer
from seqcls.prediction import predict
from seqcls.problem import resolve
from seqcls.strings.tokenizer import LETTERS, Tokenizer
from seqcls.weights import from_bytes
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader
from sweeps.store.reads import queries, string_queries
from tests.commands import run_main
from tests.conftest import LONG, ROOT, asset
from tests.databases import rows, stored_sweeps

SHIPPED = ROOT / "runs.db"
SPECS = ROOT / "sweeps" / "grid" / "specs" / "report"
NO_ERROR = [[4329, 0], [0, 5655]]

PUBLISHED = {
    "all_initializations/0": [[4329, 0], [1378, 4277]],
    "all_initializations/5": NO_ERROR,
    "all_initializations/7": [[4329, 0], [214, 5441]],
    "all_fixed_length_sequences/0": [[4329, 0], [340, 5315]],
    "all_fixed_length_sequences/1": [[4329, 0], [322, 5333]],
    "lower_magnitude_initializations/0": NO_ERROR,
    "lower_magnitude_initializations/1": [[4329, 0], [273, 5382]],
    "lower_magnitude_initializations/2": [[2886, 1443], [0, 5655]],
    "lower_magnitude_initializations/6": [[4329, 0], [328, 5327]],
    "lower_magnitude_initializations/7": [[4329, 0], [240, 5415]],
    "walkthrough/5": NO_ERROR,
}
TIED = "lower_magnitude_initializations/2"
"""Its last losses differ by 2e-6 of their value, rounding moves them by up to 7e-4: so rounding
decides when its patience ends and which of its last epochs is the best."""


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database into which the command has just trained the whole report."""
    db = tmp_path_factory.mktemp("report") / "trained.db"
    command = [sys.executable, "-m", "sweeps", "sweep", "report", "--db", str(db)]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "trained 43 runs" in said.stdout
    return db


BRIEF = (
    *("attend_cls", "generalization_errors", "walkthrough"),
    *("increased_dimensionality", "increased_num_attention_heads"),
)
"""Experiments that end after few epochs: the slower engine trains the others in `make chaos`."""


@pytest.fixture(scope="session")
def stacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, trained by the other engine."""
    folder = tmp_path_factory.mktemp("report")
    db, wanted = folder / "stacked.db", SPECS
    workers: list[str] = []
    if not LONG:
        # In this process: others would load PyTorch, which takes longer than to train these.
        wanted, workers = folder / "brief", ["--workers", "0"]
        wanted.mkdir()
        for name in BRIEF:
            # Half of the time would be spent on verdicts, which nothing here looks at.
            brief = (SPECS / f"{name}.toml").read_text().replace("verdict = true\n", "")
            (wanted / f"{name}.toml").write_text(brief)
    said = run_main("sweep", str(wanted), "--db", str(db), "--engine", "torch", *workers)
    assert said.returncode == 0, said
    return db


@pytest.fixture(params=["shipped", "trained", "stacked"])
def store(request: pytest.FixtureRequest) -> Store:
    return open_reader(
        str(SHIPPED if request.param == "shipped" else request.getfixturevalue(request.param))
    )


def results(store: Store, name: str) -> Any:
    frame = queries.runs(store).set_index("id")
    return frame.loc[queries.find_run(store, name)]


def needs(store: Store, name: str) -> None:
    """Skips what the slower engine has not trained now."""
    if not LONG and store.name.endswith("stacked.db") and name.partition("/")[0] not in BRIEF:
        pytest.skip("the slower engine trains it in make chaos")


def matrix(run: Any) -> list[list[int]]:
    return [[int(run.tn), int(run.fp)], [int(run.fn), int(run.tp)]]


def name_of(model: dict[str, Any]) -> str:
    return f"{model['experiment']}/{model['model_seed']}"


def test_the_whole_report_is_there(store: Store) -> None:
    needs(store, "all of it")
    runs = queries.runs(store)
    assert len(runs) == 43
    assert set(runs["state"]) == {"done"}
    assert stored_sweeps(store)["runs"].sum() == 45  # two models stand in two sweeps
    initializations = runs[["all_initializations" in names for names in runs["sweeps"]]]
    assert initializations[initializations["errors"] == 0]["model_seed"].tolist() == [5]


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_confusion_matrices_are_met(store: Store, name: str) -> None:
    needs(store, name)
    assert matrix(results(store, name)) == PUBLISHED[name]


@pytest.mark.parametrize("model", asset("models.json"), ids=name_of)
def test_the_original_programs_results_are_met(store: Store, model: dict[str, Any]) -> None:
    name = name_of(model)
    needs(store, name)
    run = results(store, name)
    run_id = queries.find_run(store, name)
    assert matrix(run) == model["confusion_matrix"]
    if name == TIED:
        stacked = store.name.endswith("stacked.db")
        assert stacked or (run.epochs, model["epochs"]) == (30, 30)
        assert stacked or run.best_epoch in (29, 30)
        lowest = min(model["validation_losses"])
        assert model["validation_losses"][run.best_epoch - 1] < lowest * (1 + 5e-6)
    else:
        assert (run.epochs, run.best_epoch) == (model["epochs"], model["best_epoch"])

    errors = string_queries.string_errors(store, run_id)
    assert errors["occurrences"].sum() == model["misclassified"]
    in_order = sorted(errors["string"]) or [None]
    assert in_order[0] == model["first_misclassified"]
    assert in_order[-1] == model["last_misclassified"]
    assert errors["length"].is_monotonic_increasing

    losses = queries.epochs(store, run_id)
    for kind in ("train", "validation"):
        expected = model[f"{kind}_losses"][: run.epochs]
        assert losses[f"{kind}_loss"].tolist() == pytest.approx(expected, rel=1e-3)

    strings = list(model["probabilities"])
    weights = queries.weights(store, run_id)
    predicted = predict(resolve(queries.run_config(store, run_id)), weights, strings)
    expected = list(model["probabilities"].values())
    assert [p.probability for p in predicted] == pytest.approx(expected, abs=1e-3)


def test_length_scores_and_errors_add_up_to_the_confusion_matrix(store: Store) -> None:
    runs = queries.runs(store)
    scores = queries.length_scores(store, runs["id"].tolist()).groupby("run_id").sum()
    for run in runs.to_dict("records"):
        for name in ("tn", "fp", "fn", "tp", "tested", "wrong"):
            assert scores.loc[run["id"], name] == run[name]
        assert run["tested"] == run["tn"] + run["fp"] + run["fn"] + run["tp"]
        assert run["wrong"] == run["fp"] + run["fn"] == run["errors"]
        errors = string_queries.string_errors(store, run["id"])
        by_label = errors.groupby("label")["occurrences"].sum()
        assert by_label.get(0, 0) == run["fp"]
        assert by_label.get(1, 0) == run["fn"]
        assert not (errors["length"] <= run["solved_length"]).any()


def matrices(db: Path, engine: str) -> dict[tuple[str, int], list[list[int]]]:
    """The matrix of every run, by its configuration and seed."""
    store = open_reader(str(db))
    runs = queries.runs(store)
    assert set(runs["engine"]) == {engine}
    keys = [queries.run_config(store, int(run_id)).key for run_id in runs["id"]]
    seeds = runs["model_seed"].tolist()
    return {
        (key, seed): matrix(run)
        for key, seed, (_, run) in zip(keys, seeds, runs.iterrows(), strict=True)
    }


def test_both_engines_give_the_same_confusion_matrices(trained: Path, stacked: Path) -> None:
    compiled, plain = matrices(trained, "fused"), matrices(stacked, "counts")
    assert len(plain) >= 19
    store = open_reader(str(trained))
    chaotic = queries.find_run(store, "lower_magnitude_initializations/5")
    # Rounding decides it.
    plain.pop((queries.run_config(store, chaotic).key, 5), None)
    assert plain == {own: compiled[own] for own in plain}


def activations(store: Store, run: str, text: str) -> dict[str, torch.Tensor]:
    """The states of a stored model for one string."""
    run_id = queries.find_run(store, run)
    config = queries.run_config(store, run_id)
    model = Transformer(resolve(config).network).eval()
    weights = from_bytes(queries.weights(store, run_id))
    model.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    ids = torch.tensor([Tokenizer(LETTERS[:3]).encode(text)], dtype=torch.int32)
    with torch.no_grad():
        return model.activations(ids)


def close(value: torch.Tensor, expected: Any) -> None:
    """Asserts equality to three digits: the fourth differs between processors."""
    np.testing.assert_allclose(value.numpy(), expected, rtol=2e-3, atol=2e-4)


def test_the_published_figures_of_the_walkthrough_are_met(store: Store) -> None:
    states = {text: activations(store, "walkthrough/5", text) for text in ("aac", "baac")}
    close(states["aac"]["logit"][0], -8.2945)
    close(states["baac"]["logit"][0], 10.9587)
    embedding = states["baac"]["embedding"][0]
    close(embedding[0], (-0.6023, -1.0448))
    close(embedding[1], (-1.5085, -2.1599))
    close(embedding[2], (0.1197, 2.3601))
    close(embedding[4], (1.5460, -0.8536))
    weights = states["aac"]["blocks.0.attention.weights"][0, :, 0]
    close(weights[0], (0, 0.49982, 0.49982, 0.00036))
    close(weights[1], (0, 0.00387, 0.00387, 0.99227))
    close(states["aac"]["blocks.0.after_feed_forward"][0, 0], (-6.4319, -0.9393))
    close(states["baac"]["blocks.0.after_feed_forward"][0, 0], (0.2414, 9.1150))


def test_the_published_causes_of_seed_2s_errors_are_met(store: Store) -> None:
    run = results(store, "generalization_errors/2")
    assert run.fp > 0
    assert run.fn > 0
    value = activations(store, "generalization_errors/2", "ac")["blocks.0.attention.value"][0, 0]
    close(value[1, 0], 2.0178)
    close(value[2, 0], 1.3575)
    run_id = queries.find_run(store, "generalization_errors/2")
    errors = string_queries.string_errors(store, run_id).set_index("string")
    assert errors.loc["ab{100}c{55}", "label"] == 1
    assert errors.loc["b{2}c{152}", "label"] == 0
    config, weights = queries.run_config(store, run_id), queries.weights(store, run_id)
    assert predict(resolve(config), weights, ["ab{100}"])[0].probability == pytest.approx(
        0.12, abs=0.005
    )


def test_the_shipped_database_is_small_and_holds_every_epoch() -> None:
    assert SHIPPED.stat().st_size < 6_000_000
    kept: dict[int, list[int]] = {}
    for run_id, epoch, weights in rows(SHIPPED, "SELECT * FROM checkpoint ORDER BY 1, 2"):
        assert from_bytes(weights)
        kept.setdefault(run_id, []).append(epoch)
    for run_id, epochs in rows(SHIPPED, "SELECT id, epochs FROM run"):
        assert kept[run_id] == [*range(1, epochs + 1)]


def test_trained_again_all_is_there_in_a_moment_and_nothing_is_written(trained: Path) -> None:
    before = trained.read_bytes()
    command = [sys.executable, "-m", "sweeps", "sweep", "report", "--db", str(trained)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert said.stdout == (
        f"9 sweeps: all runs are in {trained}.\n41 of 43 runs learned; of these 27 generalize.\n"
    )
    assert trained.read_bytes() == before


def test_the_command_line_shows_the_same(trained: Path) -> None:
    def seqcls(*arguments: str) -> Any:
        said = run_main(*arguments, "--db", str(trained), "--json")
        assert said.returncode == 0, said.stderr
        return json.loads(said.stdout)

    failing = seqcls("runs", "--sweep", "all_initializations", "--failing")
    assert [run["model_seed"] for run in failing] == [0, 1, 2, 3, 4, 6, 7]
    wide = seqcls("runs", "--where", "hidden_size=16", "--where", "num_attention_heads=2")
    assert len(wide) == 24
    errors = [error["string"] for error in seqcls("errors", "generalization_errors/2")]
    assert (errors[0], min(errors)) == ("ab{68}", "ab{100}c{55}")
    assert seqcls("predict", "walkthrough/5", "aac", "baac")[1]["logit"] == pytest.approx(
        10.9587, rel=1e-3
    )
    first = seqcls("predict", "walkthrough/5", "baac", "--epoch", "1")[0]
    assert first["logit"] != pytest.approx(10.9587, rel=1e-3)
