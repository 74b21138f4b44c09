"""Weights that were trained elsewhere, loaded as runs and looked into like any."""

import io
import json
import re
import runpy
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import seqcls
from seqcls.errors import ConfigError, InvalidStringError, SpecError
from seqcls.problem import configuration
from sweeps import api
from tests.app import open_app, page_text, rerun
from tests.commands import run_main
from tests.commands.files import Content, folder_of, written
from tests.oracles.gpt2 import SCALE, gpt2_states

HEADS = {"heads": 2}
TASK = {"task": "parity", "test_size": 200, "test_max_length": 12}
STRINGS = ["0", "1", "01", "110", "0101101", "111111111111"]


class OwnRecurrent(nn.Module):
    """A network as people write it: an embedding, a recurrent layer, a linear head."""

    def __init__(
        self, cell: Callable[..., nn.Module], embedding: int, answers: int = 1, tokens: int = 2
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, embedding)
        self.body = cell(embedding, 6, num_layers=2, batch_first=True)
        self.head = nn.Linear(6, answers)

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.body(self.embedding(ids))
        read: Tensor = self.head(states[:, -1])
        return read[:, 0] if read.shape[1] == 1 else read[:, 1] - read[:, 0]


class OwnEncoder(nn.Module):
    """An encoder that reads `<cls>` first, with a learned table of positions."""

    def __init__(self, **how: Any) -> None:
        super().__init__()
        self.tok = nn.Embedding(4, 8)
        self.pos = nn.Parameter(torch.randn(20, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True, **how)
        norm = nn.LayerNorm(8) if how.get("norm_first") else None
        self.encoder = nn.TransformerEncoder(layer, 2, norm=norm, enable_nested_tensor=False)
        self.out = nn.Linear(8, 1)

    def forward(self, ids: Tensor) -> Tensor:
        ids = torch.cat([torch.full_like(ids[:, :1], 2), ids], dim=1)
        states = self.encoder(self.tok(ids) + self.pos[: ids.shape[1]])
        logits: Tensor = self.out(states[:, 0])[:, 0]
        return logits


@torch.no_grad()
def logits_of(model: Callable[[Tensor], Tensor], strings: Sequence[str]) -> list[float]:
    return [float(model(torch.tensor([[int(x) for x in text]]))) for text in strings]


def save(model: nn.Module, file: Path) -> Path:
    # Values like those of a trained model: initial norms and biases are ones and zeros.
    for value in model.parameters():
        value.data = torch.randn_like(value)
    save_file(model.state_dict(), file)
    return file


def refused(db: Path, file: Path, reason: str, **how: Any) -> None:
    """Checks that loading is refused in one line and writes nothing."""
    there = db.exists()
    with pytest.raises((ConfigError, SpecError), match=re.escape(reason)) as error:
        api.load_weights(db, file, **{"task": TASK, **how})
    assert "\n" not in str(error.value)
    assert db.exists() == there


FOUR = ["0", "1", "<cls>", "<pad>"]
"""The tokens of an encoder."""


def loaded_logits(db: Path, file: Path, strings: Sequence[str] = STRINGS, **how: Any) -> Any:
    run = api.load_weights(db, file, **{"task": TASK, **how})
    return api.model(api.open_store(str(db)), run).ask_all(list(strings)).score


@pytest.mark.parametrize(
    ("embedding", "precision"),
    [(3, torch.float32), (6, torch.float64), (6, torch.float32), (9, torch.float64)],
)
@pytest.mark.parametrize("cell", [nn.RNN, nn.GRU, nn.LSTM])
def test_a_recurrent_network_answers_as_in_pytorch(
    cell: Callable[..., nn.Module], embedding: int, precision: torch.dtype, tmp_path: Path
) -> None:
    model = OwnRecurrent(cell, embedding, answers=2 if embedding == 6 else 1).to(precision)
    file = save(model, tmp_path / "own.safetensors")
    found = loaded_logits(tmp_path / "runs.db", file)
    close = 1e-5 if precision == torch.float32 else 1e-12
    assert np.allclose(found, logits_of(model, STRINGS), rtol=close, atol=close)


@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_answers_as_in_pytorch(norm_first: bool, tmp_path: Path) -> None:
    model = OwnEncoder(norm_first=norm_first, activation="gelu").double().eval()
    file = save(model, tmp_path / "own.safetensors")
    how: dict[str, Any] = {"tokens": written(tmp_path, "tokens.json", FOUR)}
    settings = {**HEADS, "norm_first": norm_first, "activation": "gelu"}
    found = loaded_logits(tmp_path / "runs.db", file, settings=settings, **how)
    assert np.allclose(found, logits_of(model, STRINGS), rtol=1e-10, atol=1e-10)


BUFFERS = {
    "mask": torch.ones(30, 30).triu(1).bool(),
    "src_mask": torch.full((30, 30), -torch.inf).triu(1),
    "tril": torch.ones(30, 30).tril(),
}


@pytest.mark.parametrize("name", BUFFERS)
def test_a_saved_causal_mask_is_applied(name: str, tmp_path: Path) -> None:
    model = OwnEncoder(activation="gelu").eval()
    save(model, tmp_path / "model.safetensors")
    written(tmp_path, "model.safetensors", {**model.state_dict(), name: BUFFERS[name]})
    written(tmp_path, "config.json", {"nhead": 2, "hidden_act": "gelu"})
    written(tmp_path, "vocab.json", {"0": 0, "1": 1, "<eos>": 2, "<pad>": 3})

    def causal(ids: Tensor) -> Tensor:
        ids = torch.cat([ids, torch.full_like(ids[:, :1], 2)], dim=1)
        mask = BUFFERS["mask"][: ids.shape[1], : ids.shape[1]]
        read: Tensor = model.encoder(model.tok(ids) + model.pos[: ids.shape[1]], mask=mask)
        logits: Tensor = model.out(read[:, -1])[:, 0]
        return logits

    found = loaded_logits(tmp_path / "runs.db", tmp_path, settings={"readout": "last"})
    assert np.allclose(found, logits_of(causal, STRINGS), rtol=1e-4, atol=1e-5)


def test_a_head_without_bias_after_one_hot_tokens_is_no_embedding(tmp_path: Path) -> None:
    body, head = nn.RNN(2, 2, batch_first=True), nn.Linear(2, 1, bias=False)
    named = {f"rnn.{x}": y for x, y in body.state_dict().items()} | {"head.weight": head.weight}
    save_file(named, tmp_path / "own.safetensors")
    found = loaded_logits(tmp_path / "runs.db", tmp_path / "own.safetensors")
    one_hot = torch.eye(2)
    right = logits_of(lambda ids: head(body(one_hot[ids])[0][:, -1]), STRINGS)
    assert np.allclose(found, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("table", ["pos", "pe"])
def test_all_positions_of_a_table_are_loaded_and_given(table: str, tmp_path: Path) -> None:
    model = OwnEncoder().double().eval()
    if table == "pe":
        waves = model.pos.data.clone()
        del model.pos
        model.register_buffer("pos", waves)
    file = save(model, tmp_path / "own.safetensors")
    # Tests of few letters; the table has 20 places, of which one is that of `<cls>`.
    task = {"task": "parity", "test_max_length": 4, "test_size": 10, "train_max_length": 3}
    tokens = written(tmp_path, "tokens.json", FOUR)
    how: dict[str, Any] = {"tokens": tokens, "settings": HEADS}
    run = api.load_weights(tmp_path / "runs.db", file, task=task, **how)
    loaded, inputs = seqcls.load_run(tmp_path / "runs.db", run), [*STRINGS, "01" * 9 + "1"]
    right = logits_of(model, inputs)
    assert np.allclose(loaded.logits(inputs), right, rtol=1e-10, atol=1e-10)
    with pytest.raises(InvalidStringError, match="20 tokens, more than the 19 places"):
        loaded.answer("01" * 10)
    api.give(api.open_store(str(tmp_path / "runs.db")), run, tmp_path / "given")
    given = runpy.run_path(str(tmp_path / "given" / "model.py"))
    assert np.allclose(given["logits"](given["load"](), inputs).numpy(), right)
    with pytest.raises(ValueError, match="20 tokens: the model has places for at most 19"):
        given["logits"](given["load"](), ["01" * 10])
    again = api.load_weights(tmp_path / "again.db", tmp_path / "given", task=task)
    assert np.array_equal(
        seqcls.load_run(tmp_path / "again.db", again).logits(inputs), loaded.logits(inputs)
    )


def test_loading_reports_how_weights_were_read(tmp_path: Path) -> None:
    file = save(OwnEncoder(), tmp_path / "own.safetensors")
    without = {x: y for x, y in load_file(file).items() if x != "pos"}
    save_file(without, tmp_path / "without.safetensors")
    tokens = written(tmp_path, "tokens.json", {"0": 0, "1": 1, "<cls>": 2})
    command = ["load", "--task", json.dumps(TASK), "--tokens", str(tokens), "--set", "heads=2"]
    loaded = [
        run_main(*command, str(tmp_path / f"{name}.safetensors"), SEQCLS_DB=str(tmp_path / "a.db"))
        for name in ("own", "without")
    ]
    assert "positions: pos, 20 places" in loaded[0].stdout
    assert "positions: no table of them in the file, read as a model without" in loaded[1].stdout
    for part in (
        "read as transformer_encoder: ",
        "vocabulary: tokens.json: 0=0, 1=1, <cls>=2 (begin)",
        "tensors: embedding=tok.weight, head=out.weight",
        "given: heads=2\n",
        "assumed, as nothing says it: readout=first, embedding_scale=none, mask=full, "
        "layer_norm_eps=1e-05, norm_first=false, activation=relu\n",
    ):
        assert part in loaded[1].stdout
    as_data = json.loads(
        run_main(*command, str(file), "--json", SEQCLS_DB=str(tmp_path / "b.db")).stdout
    )
    run = api.load_weights(tmp_path / "c.db", file, task=TASK, tokens=tokens, settings={"heads": 2})
    assert as_data == {"run": run, "sweep": "loaded", **run.reading}
    assert run.reading["places"] == 20
    assert run.reading["settings"]["assumed"]["norm_first"] is False
    (row,) = api.runs(api.open_store(str(tmp_path / "c.db"))).to_dict("records")
    assert row["engine"] == "loaded"


TOKENIZER = {
    "model": {"type": "WordLevel", "vocab": {"1": 0, "0": 2}},
    "added_tokens": [{"id": 1, "content": "<pad>"}],
}
PIECES = {"model": {"type": "BPE", "vocab": {"1": 0, "0": 2, "01": 1}, "merges": ["0 1"]}}
IDS = {"1": 0, "0": 2}
VOCABULARIES: list[dict[str, Content]] = [
    {"vocab.json": IDS},
    {"vocab.txt": "1\n<pad>\n0\n\n"},
    {"vocab.txt": "1\r\n<pad>\r\n0"},
    {"tokenizer.json": TOKENIZER},
    {"tokenizer.json": TOKENIZER, "vocab.json": IDS, "merges.txt": ""},
    {"vocab.json": {"1": 0}, "added_tokens.json": {"0": 2}},
    {"vocabulary.json": ["1", "<pad>", "0"], "vocab.json": {"1": 2, "0": 0}},
]
NO_VOCABULARIES: list[tuple[dict[str, Content], str]] = [
    ({}, "has 3 rows, and the task 2 tokens: say which"),
    ({"tokenizer_config.json": {"added_tokens_decoder": {"0": {"content": "1"}}}}, "'0' of the"),
    ({"vocab.json": {"1": 0}}, "token '0' of the task is not in the vocabulary"),
    ({"vocab.json": {"1": 0, "0": 9}}, "has 3 rows, and the vocabulary the id 9"),
    ({"vocab.json": {**IDS, "<x>": 7}}, "has 3 rows, and the vocabulary the id 7"),
    ({"vocab.json": {"1": 0, "0": 0}}, "'1' and '0' have one id, 0"),
    ({"vocab.json": {**IDS, "<pad>": 2}}, "'0' and '<pad>' have one id, 2"),
    ({"vocab.json": {"1": 0, "0": "2"}}, "expected distinct tokens"),
    ({"vocab.json": "{"}, "no JSON"),
    ({"vocab.txt": "1\n1\n0"}, "vocab.txt: the token '1' twice"),
    ({"tokenizer.json": TOKENIZER, "vocab.json": {"1": 2, "0": 0}}, "two ids of the token '1'"),
    ({"tokenizer.json": PIECES}, "has '01' besides '0', so that its model reads other tokens"),
    ({"vocab.json": {**IDS, "01": 1}, "merges.txt": "0 1"}, "has '01' besides '0'"),
    ({"vocab.txt": "1\n##1\n0"}, "has '##1' besides '0'"),
]
"""Files beside a model of three tokens."""


def test_a_vocabulary_beside_the_weights_is_read(tmp_path: Path) -> None:
    model = OwnRecurrent(nn.LSTM, 3, tokens=3)
    translated = [text.replace("0", "2").replace("1", "0") for text in STRINGS]
    for number, files in enumerate(VOCABULARIES):
        folder = written(tmp_path / str(number), "model.safetensors", model.state_dict()).parent
        folder_of(folder, files)
        found = loaded_logits(tmp_path / "runs.db", folder, seed=number)
        assert np.allclose(found, logits_of(model, translated), rtol=1e-5, atol=1e-5), files
    both = {"vocab.json": {"1": 0, "0": 1}, "added_tokens.json": {"x": 2}}
    run = api.load_weights(tmp_path / "both.db", folder_of(tmp_path / "0", both), task=TASK)
    assert run.reading["vocabulary"] == {"0": 1, "1": 0}
    assert run.reading["vocabulary_files"] == list(both)


def test_special_tokens_and_positions_are_read_from_the_folder(tmp_path: Path) -> None:
    model = OwnEncoder().double().eval()
    files = {
        "config.json": {
            "heads": 2, "gate": "sigmoid", "transformers_version": 5, "position_offset": 2,
        },
        "vocab.json": {"0": 0, "1": 1, "start": 2, "<s>": 3},
        "special_tokens_map.json": {"cls_token": {"content": "start"}},
        "spiece.model": "",
    }  # fmt: skip
    folder = folder_of(tmp_path / "own", files)
    save(model, folder / "model.safetensors")
    model.pos.data = model.pos.data[2:]
    run = api.load_weights(tmp_path / "runs.db", folder, task=TASK)
    assert run.reading["special_tokens"] == {"begin": {"token": "start", "id": 2}}
    assert run.reading["not_read"] == ["config.json's gate='sigmoid'", "spiece.model"]
    found = seqcls.load_run(tmp_path / "runs.db", run).logits(STRINGS)
    assert np.allclose(found, logits_of(model, STRINGS), rtol=1e-10, atol=1e-10)


def test_a_model_of_another_type_is_not_read_as_a_gpt2(tmp_path: Path) -> None:
    kind = "gpt_neo"
    tensors = gpt2_tensors(2, 20, **{"score.weight": (2, 8)})
    written(tmp_path, "config.json", {"n_head": 2, "model_type": kind})
    written(tmp_path, "model.safetensors", tensors)
    refused(tmp_path / "runs.db", tmp_path, f"model_type={kind!r}")
    run = api.load_weights(tmp_path / "runs.db", tmp_path, task=TASK, adapter="gpt2")
    assert run.reading["not_read"] == [f"config.json's model_type={kind!r}"]


NAMES = ("weight", "bias")


def gpt2_tensors(tokens: int, places: int, **more: tuple[int, ...]) -> dict[str, Tensor]:
    """Two blocks with the names and shapes of Hugging Face: matrices are [in, out]."""
    shapes: dict[str, tuple[int, ...]] = {"wte.weight": (tokens, 8), "wpe.weight": (places, 8)}
    linear = {"attn.c_attn": (8, 24), "attn.c_proj": (8, 8)}
    linear |= {"mlp.c_fc": (8, 20), "mlp.c_proj": (20, 8)}
    for block in ("h.0.", "h.1."):
        for layer, shape in linear.items():
            shapes[f"{block}{layer}.weight"] = shape
            shapes[f"{block}{layer}.bias"] = shape[1:]
        norms = [f"{block}{norm}.{name}" for norm in ("ln_1", "ln_2") for name in NAMES]
        shapes |= dict.fromkeys(norms, (8,))
    shapes |= {f"ln_f.{name}": (8,) for name in NAMES}
    return {name: torch.randn(*x).double() for name, x in (shapes | more).items()}


PUBLISHED = {
    "wte": "embedding", "wpe": "positions.table", "ln_f": "final_norm", "h": "blocks",
    "ln_1": "attention_norm", "ln_2": "feed_forward_norm", "attn.c_proj": "attention.output",
    "mlp.c_fc": "feed_forward.input", "mlp.c_proj": "feed_forward.output",
}  # fmt: skip


def states_there(tensors: dict[str, Tensor], ids: list[int], scale: float = SCALE) -> Tensor:
    """The last states of one string, by the published equations and their names."""
    named = {}
    for name, value in tensors.items():
        own = value.T if "c_" in name and value.ndim == 2 else value
        for part in PUBLISHED:
            name = re.sub(rf"(^|(?<=\.)){re.escape(part)}(?=\.)", PUBLISHED[part], name)
        parts = own.chunk(3) if "c_attn" in name else [own]
        for part, of_part in zip(("query", "key", "value"), parts, strict=False):
            named[name.replace("attn.c_attn", f"attention.{part}")] = of_part
    return gpt2_states(named, ids, scale)


@pytest.mark.parametrize("divided", [True, False])
def test_a_gpt2_classifier_answers_as_in_its_equations(tmp_path: Path, divided: bool) -> None:
    tensors = gpt2_tensors(2, 20, **{"score.weight": (2, 8)})
    written(tmp_path, "model.safetensors", tensors)
    settings = {"n_head": 2, "activation_function": "gelu_new", "scale_attn_weights": divided}
    written(tmp_path, "config.json", settings)
    scale = SCALE if divided else 1.0
    found = loaded_logits(tmp_path / "runs.db", tmp_path)
    for text, logit in zip(STRINGS, found, strict=True):
        states = states_there(tensors, [int(x) for x in text], scale)
        no, yes = tensors["score.weight"] @ states[-1]
        assert logit == pytest.approx(float(yes - no), rel=1e-8)


SIX = ["0", "1", "<bos>", "<sep>", "<eos>", "<pad>"]
NO_GPT2: list[tuple[dict[str, Any], int, str]] = [
    ({"n_layer": 3}, 0, "n_layer=3, and by its tensors it is 2"),
    ({"n_embd": 16}, 0, "n_embd=16, and by its tensors it is 8"),
    ({"n_inner": 32}, 0, "n_inner=32, and by its tensors it is 20"),
    ({"n_positions": 1024}, 0, "n_positions=1024, and by its tensors it is 20"),
    ({"vocab_size": "7"}, 0, "vocab_size='7', and by its tensors it is 6"),
    ({"tie_word_embeddings": False}, 0, "'lm_head.weight' is missing"),
    ({"tie_word_embeddings": True}, 2, "'lm_head.weight' differs from 'wte.weight'"),
    ({"model_type": "gpt2"}, 2, "'lm_head.weight' differs from 'wte.weight'"),
    ({"tie_word_embeddings": "yes"}, 0, "tie_word_embeddings='yes': expected true or"),
]
"""Settings beside a GPT-2, the multiple of the embedding that is its head, and the message."""
YES_NO: dict[str, Any] = {"settings": {"yes": "1", "no": "0"}}


def gpt2_files(config: dict[str, Any], times: int) -> dict[str, Content]:
    """A GPT-2 whose head is a multiple of its embedding."""
    tensors = gpt2_tensors(6, 20)
    if times:
        tensors["lm_head.weight"] = tensors["wte.weight"] * times
    about = {"n_head": 2, **config}
    return {"model.safetensors": tensors, "config.json": about, "vocabulary.json": SIX}


@pytest.mark.parametrize(
    ("config", "times"),
    [
        ({"model_type": "gpt2", "n_inner": None, "n_layer": 2}, 1),
        ({"model_type": "gpt2", "tie_word_embeddings": False}, 2),
        ({}, 2),
    ],
)
def test_settings_of_a_gpt2_are_read(config: Any, times: int, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, gpt2_files(config, times))
    assert api.load_weights(tmp_path / "runs.db", folder, task=TASK, **YES_NO) == 1


@pytest.mark.parametrize("wrapper", ["module.", "_orig_mod.module.", "model."])
def test_a_network_that_was_wrapped_for_training_is_read(wrapper: str, tmp_path: Path) -> None:
    tensors = gpt2_tensors(2, 20, **{"score.weight": (2, 8)})
    found = []
    for name, prefix in (("plain", ""), ("wrapped", wrapper)):
        named = {f"{prefix}{x}": y for x, y in tensors.items()}
        file = written(tmp_path, f"{name}.safetensors", named)
        found.append(loaded_logits(tmp_path / "runs.db", file, settings={"n_head": 2}))
    assert np.array_equal(*found)


def test_a_gpt2_gives_outputs_the_probabilities_of_its_equations(tmp_path: Path) -> None:
    tokens = ["a", "b", "<bos>", "<sep>", "<eos>", "<pad>"]
    tensors = gpt2_tensors(len(tokens), 40)
    written(tmp_path, "model.safetensors", tensors)
    written(tmp_path, "config.json", {"n_head": 2})
    written(tmp_path, "vocabulary.json", tokens)
    task = {"task": "copy", "test_size": 50, "test_max_length": 6}
    run = api.load_weights(tmp_path / "runs.db", tmp_path, task=task)
    found = api.model(api.open_store(str(tmp_path / "runs.db")), run).ask_all(["ab"]).score
    logits = states_there(tensors, [2, 0, 1, 3, 0, 1]) @ tensors["wte.weight"].T
    output = logits.log_softmax(1)[[3, 4, 5], [0, 1, 4]].sum()
    assert found[0] == pytest.approx(float(output), rel=1e-8)


def test_a_network_with_an_answer_at_every_position_answers_as_in_pytorch(tmp_path: Path) -> None:
    model = OwnRecurrent(nn.LSTM, 3).double()
    model.embedding = nn.Embedding(3, 3).double()
    file = save(model, tmp_path / "own.safetensors")
    tokens = written(tmp_path, "tokens.json", ["0", "1", "<bos>"])
    task = {**TASK, "answers": "prefixes"}
    run = api.load_weights(tmp_path / "runs.db", file, task=task, tokens=tokens)
    loaded = api.model(api.open_store(str(tmp_path / "runs.db")), run)
    read = [2, 0, 1, 1, 0]
    with torch.no_grad():
        right = [int(model(torch.tensor([read[: end + 1]])) > 0) for end in range(5)]
    assert loaded.ask_all(["0110"]).predicted[0].tolist() == right


def loaded_lstm(folder: Path, **how: Any) -> tuple[api.Store, int]:
    """A database with one loaded LSTM, and its run."""
    file = save(OwnRecurrent(nn.LSTM, 3), folder / "own.safetensors")
    run = api.load_weights(folder / "runs.db", file, **{"task": TASK, **how})
    return api.open_store(str(folder / "runs.db")), run


def test_a_loaded_run_is_inspected_like_any_and_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = {**TASK, "train_max_length": 6}
    store, run = loaded_lstm(tmp_path, model="mine", sweep="theirs")
    again, _ = loaded_lstm(tmp_path, task=task, sweep="of known lengths")
    row, judged = api.runs(again).to_dict("records")
    assert judged["outcome"] != "not known"
    assert "theirs" in row["sweeps"]
    assert row["engine"] == "loaded"
    assert row["config.model"] == "mine"
    assert row["outcome"] == "not known"
    assert not api.errors_of_run(store, run).empty
    assert api.model(store, run).answer("01").predicted in (True, False)
    assert api.verify(store).damages == []
    assert api.verify(store).imported == 2
    shown = open_app(monkeypatch, str(store.path), "model", run=str(run))
    shown.session_state["settings"] = True
    assert "Trained elsewhere as mine" in page_text(rerun(shown))
    assert not [x for x in shown.select_slider if "untrained" in x.label]
    with pytest.raises(ConfigError, match="trained elsewhere"):
        configuration(api.config(store, run).model_dump())


def test_a_notebook_escapes_names_from_others(tmp_path: Path) -> None:
    store, run = loaded_lstm(tmp_path, model="<script>alert(1)</script>")
    drawn = seqcls.load_run(store.path, run)._repr_html_()
    assert "&lt;script&gt;" in drawn
    assert "<script>" not in drawn
    assert drawn.count('<tr style="color:') == sum(
        api.model(store, run).answer(x).is_wrong
        for x in ("", "0", "1", "00", "01", "10", "11", "000", "001", "010", "011", "100")
    )


@pytest.mark.parametrize(("how", "reason"), [({}, "replace"), ({"sweep": ""}, "name")])
def test_a_loaded_run_without_a_free_name_is_refused(how: Any, reason: str, tmp_path: Path) -> None:
    _, run = loaded_lstm(tmp_path)
    with pytest.raises((ConfigError, SpecError), match=reason):
        loaded_lstm(tmp_path, **how)
    assert loaded_lstm(tmp_path, replace=True)[1] != run


MODEL, HEAD, BIAS = "model.safetensors", "head.weight", "head.bias"
GATE, NORM = "h.0.attn.gate.weight", "encoder.layers.0.norm1.bias"
ROW = torch.zeros(2, 8)
LSTM, THREE = (OwnRecurrent(nn.LSTM, 3, tokens=x).state_dict() for x in (2, 3))
RNN, ENCODER = OwnRecurrent(nn.RNN, 3).state_dict(), OwnEncoder().state_dict()
GPT2 = gpt2_tensors(2, 20, **{"score.weight": (2, 8)})
UNFIT: list[tuple[dict[str, Tensor | None], str]] = [
    ({**dict.fromkeys(LSTM), "wte.weight": ROW, "layers.0.weight": ROW + 1}, "of no kind that"),
    ({"body.weight_hh_l1": None}, "weight_hh_l1"),
    ({"body.weight_ih_l1": torch.zeros(24, 7)}, "shape"),
    ({"body.bias_hh_l1": None}, "'body.bias_hh_l1' is missing"),
    ({"norm.weight": torch.zeros(6)}, "norm.weight"),
    ({"other.weight": torch.zeros(2, 6)}, "each be the head"),
    ({HEAD: None, BIAS: None}, "no linear head"),
    ({HEAD: torch.zeros(7, 6), BIAS: torch.zeros(7)}, "7 rows"),
    ({"body.weight_ih_l0": torch.zeros(24)}, "a matrix"),
    ({"body.weight_hr_l0": torch.zeros(6, 6)}, "weight_hr"),
    ({"body.weight_ih_l0_reverse": torch.zeros(6)}, "reads forward"),
    ({BIAS: torch.full((1,), torch.nan)}, "not finite"),
    ({BIAS: torch.zeros(1).half()}, "F16"),
    ({BIAS: torch.zeros(1).bfloat16()}, "BF16"),
    ({BIAS: torch.zeros(1).double()}, "two types"),
    ({"../../evil": torch.zeros(1)}, "../../evil"),
]
"""Tensors that an LSTM has otherwise, or lacks."""


LOST: list[tuple[dict[str, Tensor | None], str]] = [
    ({"encoder.layers.1.linear2.bias": None}, "'encoder.layers.1.linear2.bias' is missing"),
    ({NORM: None}, f"'{NORM}' is missing"),
    ({"tok_type.weight": ROW}, "tok.weight, tok_type.weight may each be the embed"),
]
"""Tensors that an encoder lacks, or has besides."""
WRONGLY: list[tuple[dict[str, Any], str]] = [
    ({"adapter": "onnx"}, "'onnx'"),
    ({"settings": {"n_head": 2}}, "n_head: not read by 'recurrent'"),
    ({"settings": {"readout": "middle"}}, "'middle'"),
    ({"settings": {"readout": "last"}}, "no end token"),
    ({"settings": {"nonlinearity": "relu"}}, "'relu'"),
    ({"settings": {"head": "nothing"}}, "nothing.weight"),
    ({"task": "parityy"}, "parity"),
    ({"task": {"task": "parity", "hidden_size": 9}}, "the weights say it"),
    ({"task": {"task": "dyck"}}, "not in the vocabulary"),
    ({"seed": -1}, "seed"),
    ({"model": "a\nb"}, "printable"),
]
"""Arguments that are invalid for an LSTM, and a part of the message."""
ENCODER_REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"task": {**TASK, "test_max_length": 30}, "settings": HEADS}, "has 20 places"),
    ({"settings": {**HEADS, "positions": "sinusoidal"}}, "other numbers than positions="),
]
GPT2_REFUSALS: list[tuple[dict[str, Tensor], str]] = [
    ({GATE: torch.zeros(8, 8).double()}, f"'{GATE}' has no place"),
    ({GATE: torch.zeros(8, dtype=torch.int8)}, f"'{GATE}' is of int8"),
]


def bytes_of(save_to: Callable[[Any, io.BytesIO], object], content: Any) -> bytes:
    made = io.BytesIO()
    save_to(content, made)
    return made.getvalue()


def zipped(tensors: dict[str, Tensor], to: io.BytesIO) -> None:
    with zipfile.ZipFile(to, "w") as archive:
        archive.writestr("own.safetensors", safetensors.torch.save(tensors))


NO_MODEL: list[tuple[str, Content, str]] = [
    ("model-00001-of-00002.safetensors", LSTM, "a part of a model of several files"),
    (MODEL, {**LSTM, "head.weight_g": torch.ones(1)}, "of which a weight is"),
    ("pytorch_model.bin", bytes_of(torch.save, LSTM), "pytorch_model.bin: a pickle"),
    ("model.pt", bytes_of(torch.save, LSTM), "save_file"),
    ("model.npz", bytes_of(lambda x, to: np.savez(to, **x), {"a": np.ones(3)}), "dict(numpy.load"),
    ("own.zip", bytes_of(zipped, LSTM), "an archive with 'own.safetensors' in it"),
]
"""Files that are no complete model, and a part of the message."""

FOUR_TOKENS: dict[str, Content] = {"vocabulary.json": FOUR}
REFUSED: list[tuple[dict[str, Content], dict[str, Any], str]] = [
    *(({MODEL: THREE, **files}, {}, x) for files, x in NO_VOCABULARIES),
    *((gpt2_files(config, times), YES_NO, x) for config, times, x in NO_GPT2),
    *(({MODEL: {**LSTM, **more}}, {}, x) for more, x in UNFIT),
    *(({MODEL: {**ENCODER, **more}, **FOUR_TOKENS}, {"settings": HEADS}, x) for more, x in LOST),
    (
        {MODEL: {x: y for x, y in ENCODER.items() if "layers.1" not in x}, **FOUR_TOKENS,
         "config.json": {"num_layers": 2}},
        {"settings": HEADS}, "num_layers=2, and by its tensors it is 1",
    ),
    *(({MODEL: LSTM, "vocabulary.json": ["0", "1"]}, how, x) for how, x in WRONGLY),
    *(({MODEL: ENCODER, **FOUR_TOKENS}, how, x) for how, x in ENCODER_REFUSALS),
    *(
        ({MODEL: {**GPT2, **more}, "config.json": {"n_head": 2}}, {"adapter": "gpt2"}, x)
        for more, x in GPT2_REFUSALS
    ),
    *(({name: content}, {}, x) for name, content, x in NO_MODEL),
    ({MODEL: RNN, "config.json": {"hidden_act": "relu"}}, {}, "nonlinearity='relu': expected tanh"),
]  # fmt: skip
"""Files of a folder, further arguments, and a part of the message."""


@pytest.mark.parametrize(("files", "how", "reason"), REFUSED, ids=[row[2] for row in REFUSED])
def test_unreadable_weights_are_refused_in_one_line(
    files: dict[str, Content], how: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    for name, content in files.items():
        tensors = name.endswith("safetensors")
        present = {x: y for x, y in content.items() if y is not None} if tensors else content
        path = written(tmp_path / "own", name, present)
    alone = path.suffix in (".pt", ".npz", ".zip")
    refused(tmp_path / "runs.db", path if alone else tmp_path / "own", reason, **how)


def test_files_beside_the_only_file_of_weights_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    file = save(OwnRecurrent(nn.LSTM, 3, tokens=3), folder / "own.safetensors")
    (folder / "vocabulary.json").write_text('["<pad>", "0", "1"]')
    (folder / "config.json").write_text('{"readout": "mean"}')
    own, of_folder = (loaded_logits(tmp_path / f"{x.name}.db", x) for x in (file, folder))
    assert own.tolist() == of_folder.tolist()
    save(OwnRecurrent(nn.LSTM, 3, tokens=3), folder / "other.safetensors")
    with pytest.raises(ConfigError, match="has 3 rows"):
        loaded_logits(tmp_path / "alone.db", file)


def hostile_files(sound: bytes) -> Iterator[bytes]:
    """Files that are no model: cut, changed, and with headers that lie."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        data = bytearray(sound)
        for offset in rng.integers(200, size=8):
            data[offset] = int(rng.integers(256))
        yield bytes(data)
    yield from (sound[:size] for size in range(0, len(sound), len(sound) // 60))
    length = int.from_bytes(sound[:8], "little")
    header = json.loads(sound[8 : 8 + length])
    first = next(iter(header))
    whole: list[Any] = [None, [], 1, "x", {}, {"a": 1}, {first: []}, {first: {}}]
    entries: list[dict[str, Any]] = [
        {"dtype": "F32", "shape": [50_000, 50_000], "data_offsets": [0, 10**10]},
        {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]},
        {"dtype": "F32", "shape": [1], "data_offsets": [2**64 - 4, 2**64]},
        {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]},
        {"dtype": 7, "shape": "x", "data_offsets": None},
        {"dtype": "C64", "shape": [1], "data_offsets": [0, 8]},
    ]
    names = ["../../../etc/passwd", "/dev/zero", "a" * 10_000, "", "\x00", "a\nb"]
    whole += [{first: x} for x in entries]
    whole += [{name: entries[0]} for name in names]
    whole += [{**header, first: x} for x in entries]
    for made in whole:
        text = json.dumps(made).encode()
        yield len(text).to_bytes(8, "little") + text + sound[8 + length :]
    yield (10**10).to_bytes(8, "little") + b"{" * 100
    yield b'\xff\xff\xff\xff\xff\xff\xff\xff{"a":1}'
    yield (200_000).to_bytes(8, "little") + b"[" * 200_000


def test_hostile_files_of_weights_are_refused_in_one_line(tmp_path: Path) -> None:
    sound = save(OwnRecurrent(nn.LSTM, 3), tmp_path / "own.safetensors").read_bytes()
    file = tmp_path / "hostile.safetensors"
    messages = []
    for data in hostile_files(sound):
        file.write_bytes(data)
        try:
            api.load_weights(tmp_path / "runs.db", file, task=TASK)
        except ConfigError as error:
            messages.append(str(error))
    # A changed name of a tensor is refused, too; a changed value is one that a model may have.
    assert len(messages) >= 140
    assert not [text for text in messages if "\n" in text or len(text) > 600]
