"""Models given away as one file of PyTorch, which answers as the model here."""

import importlib.util
import json
import re
import runpy
import subprocess
import sys
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import seqcls
from seqcls.errors import ConfigError, InvalidStringError
from seqcls.evaluation import TrainedGroup
from seqcls.interpretability.readable_model import plain_model, read, target
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.initialization import initial_parameters
from seqcls.problem import Problem, configuration, resolve
from seqcls.questions import RunModel
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import FIRST_LETTER
from sweeps import api
from sweeps.api.giving import files_of
from tests import zoo
from tests.commands import printed
from tests.conftest import ROOT

PARITY: dict[str, Any] = {"task": "parity", "num_blocks": 2, "precision": "float64"}
SHORT = {"train_max_length": 12, "validation_max_length": 12, "test_max_length": 12}
COPY: dict[str, Any] = {**PARITY, **SHORT, "task": "copy", "hidden_size": 4}

LANGUAGES: list[dict[str, Any]] = [
    {"architecture": "hybrid", "readout": "last_letter", "hidden_size": 4, "layers": "ga"},
    {**SHORT, "positions": "learned", "position_range": 40, "readout": "last",
     "attention_mask": "causal"},
    {"norm_placement": "post", "layer_norm": "nn", "biases": True, "readout": "mean"},
]  # fmt: skip
"""Networks that label strings: settings beside those of all networks, which answer alone below."""
WRITERS: list[dict[str, Any]] = [
    {"positions": "fire", "tied_embeddings": True},
    {"architecture": "recurrent_attention", "attention": "none"},
]


def name_of(fields: Any) -> str:
    """The name of a test's case."""
    return fields if isinstance(fields, str) else "-".join(map(str, fields.values()))


def drawn_model(fields: dict[str, Any]) -> tuple[Problem, Weights]:
    """The problem of a configuration, and randomly drawn weights."""
    problem = resolve(configuration(fields))
    drawn = initial_parameters(problem.network, 0)
    return problem, {name: 2 * value.numpy() for name, value in drawn.items()}


def given(fields: dict[str, Any], folder: Path) -> tuple[TrainedModel, ModuleType]:
    """A model that is drawn, and its file as a module."""
    model = TrainedModel(*drawn_model(fields))
    for name, content in files_of(model, "given", 0).items():
        (folder / name).write_bytes(content)
    spec = importlib.util.spec_from_file_location("given", folder / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return model, module


def plain_tokens(model: TrainedModel, text: str) -> list[str]:
    """The tokens of a string, without the notation that shortens it."""
    return [model.task.alphabet[x - FIRST_LETTER] for x in model.tokenizer.encode(text)[1:]]


def plain_text(model: TrainedModel, text: str) -> str:
    return "".join(plain_tokens(model, text))


def strings(tokens: str, number: int) -> list[str]:
    rng = np.random.default_rng(0)
    return ["".join(rng.choice(list(tokens), size)) for size in rng.integers(0, 12, number)]


AT_POSITIONS: list[dict[str, Any]] = [
    {"architecture": "gru", "answers": "prefixes", "hidden_size": 4},
    {"architecture": "mamba", "answers": "states", "hidden_size": 4},
    {"positions": "learned", "answers": "prefixes"},
    {"positions": "learned", "answers": "next_symbols", "tied_embeddings": True},
]


@pytest.mark.parametrize("fields", [*LANGUAGES, *AT_POSITIONS], ids=name_of)
def test_a_given_file_computes_the_logits_of_the_model(fields: Any, tmp_path: Path) -> None:
    model, module = given({**PARITY, **SHORT, **fields}, tmp_path)
    # Those of the language, as answers at positions need.
    inputs = [x for x in strings("01", 400) if x.count("1") % 2][:150]
    if fields in LANGUAGES:
        inputs += ["", *strings("01", 50)]
        assert module.logits(module.load(), []).tolist() == []
    known = TokenStrings.of_lists(2, list(map(model.letters, inputs)))
    (expected,) = TrainedGroup(model.problem, [model.weights]).outputs(known)
    found = module.logits(module.load(), inputs).numpy()
    there = ~np.isnan(expected)
    assert there.reshape(len(inputs), -1).any(axis=1).all()
    assert np.abs(found - expected)[there].max() < 1e-6
    with pytest.raises(ValueError, match="token 1 is 2, and the model reads 0 1"):
        module.logits(module.load(), [[2]])


DECODED: list[dict[str, Any]] = [
    {"decoding": "beam", "beam_width": 3},
    {"positions": "learned", "decoding": "beam", "beam_width": 2},
    {"positions": "learned"},
    {"architecture": "gru", "task": "duplicate", "decoding": "beam", "beam_width": 4},
]
"""Networks whose outputs end before the limit of the file."""


@pytest.mark.parametrize("fields", [*WRITERS, *DECODED], ids=name_of)
def test_a_given_file_writes_the_outputs_of_the_model(fields: Any, tmp_path: Path) -> None:
    model, module = given({**COPY, **fields}, tmp_path)
    loaded = module.load()
    texts = map(model.text, product(range(model.num_letters), repeat=5))
    known = [x for x in texts if model.is_input(model.letters(x))][:24]
    assert len(known) > 3
    for text, written in zip(known, model.decode(model.ask_all(known).predicted), strict=True):
        tokens = plain_tokens(model, str(written))
        limit = () if fields in DECODED else (len(tokens) + 1,)
        found = module.write(loaded, plain_text(model, text), *limit)
        assert found[: len(tokens)] == tokens
        assert fields in WRITERS or len(found) == len(tokens)
    targets = [target(model, (0, 1, 1))] * len(known)
    ids = read(model, list(map(model.letters, known)), targets).ids
    with torch.no_grad():
        torch.testing.assert_close(loaded(ids), plain_model(model)(ids), atol=1e-6, rtol=0)


@pytest.mark.parametrize("architecture", ["transformer", "encoder_decoder"])
def test_all_positions_of_a_given_model_are_loaded_again(architecture: str, tmp_path: Path) -> None:
    model, _ = given({**COPY, "architecture": architecture, "positions": "learned"}, tmp_path)
    task = {"task": "copy", "test_max_length": 4, "test_size": 20}
    run = api.load_weights(tmp_path / "runs.db", tmp_path, task=task)
    loaded, inputs = seqcls.load_run(tmp_path / "runs.db", run), ["a", "ab" * 6]
    assert np.allclose(loaded.ask_all(inputs).score, model.ask_all(inputs).score, atol=1e-12)


ALONE = """
import json, runpy, sys, torch
torch.set_num_threads(1)
sys.modules.update(dict.fromkeys(["seqcls", "sweeps", "jaxtyping"]))
for folder, strings in json.load(sys.stdin).items():
    given = runpy.run_path(folder + "/model.py")
    model, ask = given["load"](), given["logits"]
    if given["read"]("config.json")["settings"]["writes"]:
        ask = lambda model, strings: [given["write"](model, x) for x in strings]
    found = ask(model, strings)
    print(json.dumps([folder, found if isinstance(found, list) else found.tolist()]))
"""
"""Asks given models in a process that cannot import this package."""


def model_of(kind: str, name: str, seed: int) -> TrainedModel:
    """A model that judges, that answers at every place, or that writes, some by a beam."""
    is_beam = kind == "writes" and seed % 2
    more: dict[str, Any] = {"decoding": "beam", "beam_width": 3} if is_beam else {}
    own = zoo.problem(name, writes=kind == "writes", answers=kind == "answers", **more)
    return TrainedModel(own, zoo.random_weights(own, seed))


def test_given_models_of_all_networks_answer_without_this_package(tmp_path: Path) -> None:
    networks = {"judges": zoo.JUDGES, "answers": zoo.ANSWERERS, "writes": zoo.WRITERS}
    models: dict[str, TrainedModel] = {}
    inputs_of: dict[str, list[str]] = {}
    texts = ["".join(x) for n in (0, 2, 5) for x in product("01", repeat=n)]
    for kind, names in networks.items():
        for seed, name in enumerate(x for x in names if "coupled" not in x):
            model, folder = model_of(kind, name, seed), tmp_path / f"{kind} {name}"
            folder.mkdir()
            for file, content in files_of(model, "given", 0).items():
                (folder / file).write_bytes(content)
            known = (model.text(tuple(map(int, text))) for text in texts)
            inputs = [x for x in known if model.is_input(model.letters(x))]
            models[str(folder)] = model
            inputs_of[str(folder)] = [
                plain_text(model, x) for x in inputs[:: len(inputs) // 8 or 1]
            ]
    command = [sys.executable, "-P", "-c", ALONE]
    completed = subprocess.run(command, input=json.dumps(inputs_of), capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    found = dict(map(json.loads, completed.stdout.splitlines()))
    for path, model in models.items():
        if model.problem.writes:
            right = model.decode(model.ask_all(inputs_of[path]).predicted)
            assert found[path] == [plain_tokens(model, str(x)) for x in right], path
            continue
        strings = TokenStrings.of_lists(2, list(map(model.letters, inputs_of[path])))
        (expected,) = TrainedGroup(model.problem, [model.weights]).outputs(strings)
        there = ~np.isnan(expected)
        assert there.any()
        assert np.abs(np.array(found[path]) - expected)[there].max() < 1e-6, path
    assert len(models) > 60


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"positions": "learned"}, "0" * 13, "13 tokens: the model has places for at most 12"),
    ({"positions": "learned", **COPY}, "a" * 25, "25 tokens: the model has places for at most 24"),
    ({}, "012", "token 3 is '2', and the model reads 0 1"),
    ({"task": "dyck", "max_depth": 2}, "(_)", "token 2 is '_', and the model reads"),
    (COPY, "a\n", "token 2 is '\\n'"),
    (COPY, "", "an input without tokens: expected at least one"),
    (COPY, "a" * 1001, "1001 tokens: the model has places for at most 1000"),
]


@pytest.mark.parametrize(("fields", "string", "reason"), REFUSED, ids=lambda x: str(x)[:30])
def test_a_given_file_refuses_the_strings_that_are_refused_here(
    fields: Any,
    string: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given({**PARITY, **SHORT, "hidden_size": 4, **fields}, tmp_path)
    monkeypatch.setattr(sys, "argv", ["model.py", string])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(tmp_path / "model.py"), run_name="__main__")
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    assert reason in printed.err
    assert printed.err.count("\n") == 1


GPT2: dict[str, Any] = {
    "positions": "learned",
    "attention_mask": "causal",
    "layer_norm": "nn",
    "final_norm": True,
    "biases": True,
    "hidden_size": 4,
    "attention_head_size": 2,
    "activation": "gelu_tanh",
}
ENCODER: dict[str, Any] = {
    "layer_norm": "nn",
    "hidden_size": 4,
    "attention_head_size": 2,
    "feed_forward_size": 3,
}
FOREIGN: dict[str, list[dict[str, Any]]] = {
    "gpt2": [
        {**GPT2, "readout": "last"},
        {**GPT2, "answers": "next_symbols", "tied_embeddings": True},
        {**GPT2, "biases": False, "readout": "last_letter", "activation": "relu"},
    ],
    "transformer_encoder": [
        {**ENCODER, "biases": True, "positions": "learned", "readout": "last"},
        {**ENCODER, "norm_placement": "post", "activation": "relu", "readout": "mean"},
        {**ENCODER, "final_norm": True, "attention_mask": "causal", "answers": "prefixes"},
    ],
    "recurrent": [
        {"architecture": "rnn", "hidden_size": 5, "biases": True, "readout": "last"},
        {"architecture": "gru", "hidden_size": 4, "readout": "mean"},
        {"architecture": "lstm", "hidden_size": 4, "biases": True, "answers": "next_symbols"},
    ],
}
"""Networks of ours that are models of theirs."""


@pytest.mark.parametrize(
    ("form", "fields"),
    [(form, fields) for form, networks in FOREIGN.items() for fields in networks],
    ids=name_of,
)
def test_a_model_given_in_a_foreign_format_is_loaded_again(
    form: str, fields: Any, tmp_path: Path
) -> None:
    model = TrainedModel(*drawn_model({**PARITY, **SHORT, **fields}))
    if form == "gpt2" and "classifier.bias" in model.weights:
        model.weights["classifier.bias"][:] = 0
    for name, content in files_of(model, "given", 0, form).items():
        (tmp_path / name).write_bytes(content)
    task = {"task": "parity", "test_max_length": 12, "test_size": 50}
    task |= {x: y for x, y in fields.items() if x == "answers"}
    run = api.load_weights(tmp_path / "runs.db", tmp_path, task=task)
    assert run.reading["read_as"] == form
    loaded, inputs = seqcls.load_run(tmp_path / "runs.db", run), strings("01", 100)
    assert np.allclose(loaded.ask_all(inputs).score, model.ask_all(inputs).score, atol=1e-12)


@torch.no_grad()
def test_pytorch_computes_the_logit_from_given_tensors(tmp_path: Path) -> None:
    """The tensors have the names of PyTorch's classes."""
    model = TrainedModel(*drawn_model({**PARITY, **SHORT, **FOREIGN["recurrent"][0]}))
    for name, content in files_of(model, "given", 0, "recurrent").items():
        (tmp_path / name).write_bytes(content)
    tensors = load_file(str(tmp_path / "model.safetensors"))
    body = torch.nn.RNN(5, 5, num_layers=2, batch_first=True).double()
    body.load_state_dict({x[4:]: y for x, y in tensors.items() if x.startswith("rnn.")})
    ids = [*(x + FIRST_LETTER for x in model.letters("0110")), 0]
    states, _ = body(tensors["embedding.weight"][torch.tensor([ids])])
    logit = states[0, -1] @ tensors["head.weight"].T + tensors["head.bias"]
    assert float(logit) == pytest.approx(float(model.ask_all(["0110"]).score[0]), abs=1e-12)


NO_MODEL_OF_OTHERS: list[tuple[str, dict[str, Any], str]] = [
    (
        "gpt2",
        {**GPT2, "layer_norm": "rms", "readout": "last"},
        "layer_norm='rms': GPT-2 has layer_norm='nn'",
    ),
    ("gpt2", {**GPT2, "readout": "mean"}, "readout='mean': GPT-2 has readout='first' or"),
    (
        "gpt2",
        {**GPT2, "hidden_size": 6, "readout": "last"},
        "attention_head_size=2: GPT-2 of width 6",
    ),
    (
        "gpt2",
        {**GPT2, "positions": "rotary", "readout": "last"},
        "positions='rotary': GPT-2 has positions='learned'",
    ),
    ("gpt2", {"architecture": "gru", "readout": "last"}, "architecture='gru': GPT-2 has"),
    ("gpt2", {**GPT2, "readout": "last"}, "the head has a bias: that of a GPT-2 has none"),
    (
        "transformer_encoder",
        {**ENCODER, "activation": "gelu_tanh"},
        "activation='gelu_tanh': torch",
    ),
    ("transformer_encoder", {**ENCODER, "attention_scale": "log_length"}, "attention_scale='log"),
    ("transformer_encoder", {**ENCODER, "no_attend_cls": True}, "no_attend_cls=True: torch.nn"),
    ("recurrent", {"architecture": "mamba", "readout": "last"}, "architecture='mamba': torch.nn"),
    ("onnx", {}, "form='onnx': expected torch, gpt2 or"),
]


@pytest.mark.parametrize(("form", "fields", "reason"), NO_MODEL_OF_OTHERS)
def test_models_without_a_foreign_form_are_refused(form: str, fields: Any, reason: str) -> None:
    model = TrainedModel(*drawn_model({**PARITY, **SHORT, **fields}))
    with pytest.raises(ConfigError, match=re.escape(reason)) as error:
        files_of(model, "given", 0, form)
    assert "\n" not in str(error.value)


def test_a_model_that_needs_its_task_is_not_given(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="coupling"):
        given({**COPY, "positions": "coupled"}, tmp_path)


def test_a_given_run_needs_no_part_of_this_package(tmp_path: Path) -> None:
    db = str(ROOT / "runs.db")
    computes = printed("give", "all_initializations/2", str(tmp_path / "given"), "--db", db)
    *_, computes = computes.splitlines()
    assert computes.startswith("computes: architecture=transformer, hidden_size=2, ")
    assert "of strings of any number of tokens out of a b c; a logit, positive" in computes
    assert computes.removeprefix("computes: ") in (tmp_path / "given" / "README.md").read_text()
    text = (tmp_path / "given" / "model.py").read_text()
    assert "import seqcls" not in text
    assert "from seqcls" not in text
    run = [sys.executable, "-P", str(tmp_path / "given" / "model.py"), "ab", "aaaa"]
    output = subprocess.run(run, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    found = [float(line.split()[1]) for line in output.splitlines()]
    trained = seqcls.load_run(ROOT / "runs.db", "all_initializations/2")
    assert np.allclose(found, trained.logits(["ab", "aaaa"]), rtol=1e-4)
    again = api.load_weights(tmp_path / "runs.db", tmp_path / "given", task="contains_all")
    loaded = seqcls.load_run(tmp_path / "runs.db", again)
    assert np.array_equal(loaded.logits(["ab", "aaaa"]), trained.logits(["ab", "aaaa"]))
    assert (tmp_path / "given" / "specification.toml").read_text().count("model_seeds") == 1


def test_strings_are_accepted_as_arrays_and_tensors() -> None:
    model = RunModel(*drawn_model({**PARITY, "hidden_size": 4}))
    inputs = [[0, 1], np.array([0, 1], dtype=np.uint8), torch.tensor([0, 1]), [torch.tensor(0), 1]]
    assert set(model.logits([*inputs, np.array(["0", "1"])])) == set(model.logits(["01"]))
    with pytest.raises(InvalidStringError, match="token 2: there is no letter number 3"):
        TokenStrings.of_letters(3, np.array([[0, 3]]))


def test_a_notebook_shows_the_accuracy_and_answers_of_a_run() -> None:
    drawn = seqcls.load_run(ROOT / "runs.db", "all_initializations/2")._repr_html_()
    assert "Accuracy by length, up to 200, trained up to 10" in drawn
    assert "<title>length 200: " in drawn
    assert "<tr><td>ab</td><td>True</td><td>True</td>" in drawn
    # Results are of the best epoch, and no other is beside them.
    early = seqcls.load_run(ROOT / "runs.db", "all_initializations/2", epoch=1)
    assert "Accuracy" not in early._repr_html_()


def test_a_notebook_shows_strings_of_any_length() -> None:
    strings = TokenStrings.of_lists(3, [[0, 2], [], [1] * 200, *[[0]] * 20])
    drawn = strings._repr_html_()
    assert drawn.count("<span") == 2 + 100 + 9
    assert "(empty)" in drawn
    assert "and 100 more" in drawn
    assert "and 11 more strings" in drawn
    counted = TokenStrings.of_counts(2, np.array([[10**9, 1]]))
    assert counted._repr_html_() == "&lt;TokenStrings: 1 over 2 letters&gt;"
