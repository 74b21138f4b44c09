"""The encoder-decoder Transformer, against PyTorch's own layers and against itself."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from seqcls.config import COUPLED, NetworkConfig
from seqcls.decode import KeepingStepper, RecomputeStepper, start
from seqcls.engines.choice import choose_engine
from seqcls.engines.pytorch.computations import plain_logits
from seqcls.errors import ConfigError
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.batches import Batch
from seqcls.models.encoder_decoder import EncoderDecoder
from seqcls.models.entries import ENCODER_DECODER
from seqcls.models.initialization import initial_parameters
from seqcls.models.positions import POSITIONS
from seqcls.models.positions.places import positions_of
from seqcls.problem import configuration, resolve
from seqcls.strings.tokenizer import CLS, PAD
from seqcls.training import train_group
from tests.unit.networks import plain_model
from tests.unit.streams import GENERAL, example_ids, random_values

HIDDEN, HEADS, BLOCKS = 8, 2, 3
SEP, END = 7, 8
NETWORK = NetworkConfig(
    **GENERAL,
    architecture="encoder_decoder",
    hidden_size=HIDDEN,
    num_blocks=BLOCKS,
    num_attention_heads=HEADS,
    attention_head_size=HIDDEN // HEADS,
    feed_forward_size=12,
    layer_norm="nn",
    biases=True,
)
VARIANTS: list[dict[str, Any]] = [
    {"positions": "learned", "final_norm": True, "tied_embeddings": True},
    {"positions": "learned", "position_draw": "shifted", "norm_placement": "post"},
    {"positions": "sinusoidal", "activation": "gelu_tanh", "biases": False},
    {"positions": "rotary", "attention_scale": "log_length", "no_attend_cls": True},
    {"positions": "learned", "attention_scale": "learned_log_length"},
    {"positions": "alibi", "norm_placement": "post", "layer_norm": "rms"},
    {"positions": "relative", "layer_norm_eps": 0.0, "no_attend_cls": True},
    {"num_attention_heads": 0},
    {"embedding_scale": "sqrt", "tied_embeddings": True},
]


def network(**fields: Any) -> NetworkConfig:
    return NETWORK.model_copy(update=fields)


def drawn(config: NetworkConfig) -> EncoderDecoder:
    """A model whose every value is far from those of a norm or a bias at the start."""
    model = plain_model(config, random_values(config))
    assert isinstance(model, EncoderDecoder)
    return model


class PyTorchs(nn.Module):
    """The same network of `torch.nn.Transformer`, with a model's weights."""

    def __init__(self, model: EncoderDecoder, config: NetworkConfig) -> None:
        super().__init__()
        self.layers = nn.Transformer(
            config.hidden_size,
            config.num_attention_heads,
            config.num_blocks,
            config.num_blocks,
            config.feed_forward_size,
            dropout=0.0,
            activation=config.activation,
            layer_norm_eps=config.layer_norm_eps,
            batch_first=True,
            norm_first=config.norm_placement == "pre",
            dtype=torch.float64,
        )
        if not config.final_norm:
            self.layers.encoder.norm = self.layers.decoder.norm = None
        self.embedding = nn.Embedding(config.vocabulary_size, config.hidden_size).double()
        self.classifier = nn.Linear(config.hidden_size, config.num_outputs).double()
        self.load_state_dict(self.values(dict(model.named_parameters())))

    @staticmethod
    def values(named: dict[str, Tensor]) -> dict[str, Tensor]:
        """A model's parameters, or their gradients, as PyTorch's layers have them."""
        found = {}
        for name, value in named.items():
            layer = "layers." + name.replace("blocks", "layers")
            is_decoder = name.startswith("decoder")
            for ours, theirs in {
                "cross_attention_norm": "norm2",
                "feed_forward_norm": "norm3" if is_decoder else "norm2",
                "final_norm": "norm",
                "cross_attention.output": "multihead_attn.out_proj",
                "attention.output": "self_attn.out_proj",
                "feed_forward.input": "linear1",
                "feed_forward.output": "linear2",
                "attention_norm": "norm1",
            }.items():
                layer = layer.replace(f".{ours}.", f".{theirs}.")
            if name.startswith(("embedding", "classifier")):
                found[name] = value
            elif ".key." not in name and ".value." not in name:
                found[layer.replace(".query.", ".in_proj_")] = value
            if ".query." in name:
                parts = [named[name.replace("query", part)] for part in ("query", "key", "value")]
                into = layer.replace(".query.", ".in_proj_")
                into = into.replace("cross_attention", "multihead_attn")
                found.pop(layer.replace(".query.", ".in_proj_"))
                found[into.replace(".attention.", ".self_attn.")] = torch.cat(parts)
        return found

    def forward(self, ids: Tensor) -> list[Tensor]:
        """The outputs from `SEP` on, string by string."""
        rows = [[token for token in row if token != PAD] for row in ids.tolist()]
        inputs = [torch.tensor(row[: row.index(SEP)]) for row in rows]
        outputs = [torch.tensor(row[row.index(SEP) :]) for row in rows]
        read = nn.utils.rnn.pad_sequence(inputs, batch_first=True, padding_value=PAD)
        written = nn.utils.rnn.pad_sequence(outputs, batch_first=True, padding_value=PAD)
        later = torch.ones(written.shape[1], written.shape[1]).triu(1).bool()
        states = self.layers(
            self.embedding(read),
            self.embedding(written),
            tgt_mask=later,
            src_key_padding_mask=read == PAD,
            tgt_key_padding_mask=written == PAD,
            memory_key_padding_mask=read == PAD,
        )
        logits = self.classifier(states)
        return [row[: len(output)] for row, output in zip(logits, outputs, strict=True)]


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize(("activation", "final_norm"), [("gelu", True), ("relu", False)])
def test_the_readable_model_and_its_gradients_are_those_of_pytorchs_transformer(
    placement: str, activation: str, final_norm: bool
) -> None:
    config = network(norm_placement=placement, activation=activation, final_norm=final_norm)
    model, ids = drawn(config), example_ids()
    theirs = PyTorchs(model, config)
    outputs = torch.cat(theirs(ids))
    asked = Batch(config, ids, positions_of(config, ids)).is_asked
    found = model(ids)
    torch.testing.assert_close(found[asked], outputs, rtol=1e-12, atol=1e-12)
    assert not found[~asked].any()
    share = torch.linspace(-1, 2, outputs.numel(), dtype=torch.float64).view(outputs.shape)
    (found[asked] * share).sum().backward()
    (outputs * share).sum().backward()
    gradients = {name: value.grad for name, value in model.named_parameters()}
    expected = PyTorchs.values({x: y for x, y in gradients.items() if y is not None})
    for name, value in theirs.named_parameters():
        torch.testing.assert_close(expected[name], value.grad, rtol=1e-10, atol=1e-11, msg=name)


@pytest.mark.parametrize("fields", VARIANTS, ids=str)
def test_the_engine_of_strings_gives_the_readable_models_outputs_and_gradients(
    fields: dict[str, Any],
) -> None:
    config = network(**fields)
    ids = example_ids()
    places = positions_of(config, ids)
    if config.position_draw == "shifted":
        places = places + torch.arange(len(ids)).unsqueeze(1)
    batch = Batch(config, ids, places)
    of_all = []
    for outputs_of in (
        lambda model: plain_logits(model, batch),
        lambda model: model(ids, places)[batch.is_asked],
    ):
        model = drawn(config)
        outputs = outputs_of(model)
        (outputs**2).sum().backward()
        gradients = [x.grad for x in model.parameters() if x.grad is not None and x.numel()]
        of_all.append([outputs.detach(), *gradients])
    largest = max(float(plain.abs().max()) for plain in of_all[1])
    for ours, plain in zip(*of_all, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-12 * largest)


@pytest.mark.parametrize("fields", [{}, *VARIANTS], ids=str)
def test_outputs_depend_on_no_padding_and_no_other_string(fields: dict[str, Any]) -> None:
    model, ids = drawn(network(**fields)), example_ids()
    together = model(torch.nn.functional.pad(ids, (0, 3), value=PAD))
    for row, string in enumerate(ids):
        length = int((string != PAD).sum())
        alone = model(string[None, :length])[0]
        torch.testing.assert_close(together[row, :length], alone, rtol=1e-12, atol=1e-12)
        assert not together[row, length:].any()


def test_the_decoder_reads_no_later_token_and_the_encoder_all() -> None:
    model = drawn(network(positions="learned"))
    ids = torch.tensor([[CLS, 2, 3, 4, SEP, 5, 6, 2]])
    later = ids.clone()
    later[0, 6] = 3
    before, after = model(ids), model(later)
    torch.testing.assert_close(before[:, 4:6], after[:, 4:6], rtol=0, atol=1e-12)
    assert (before[:, 6:] != after[:, 6:]).all()
    other = ids.clone()
    other[0, 3] = 5
    assert (model(other)[:, 4:] != before[:, 4:]).all()


def test_scaled_embeddings_are_longer_ones() -> None:
    values = random_values(NETWORK)
    longer = {**values, "embedding.weight": values["embedding.weight"] * math.sqrt(HIDDEN)}
    scaled = plain_model(network(embedding_scale="sqrt"), values)
    torch.testing.assert_close(scaled(example_ids()), plain_model(NETWORK, longer)(example_ids()))


@pytest.mark.parametrize("fields", [{}, *VARIANTS], ids=str)
def test_writing_with_a_cache_is_writing_without(fields: dict[str, Any]) -> None:
    model = drawn(network(**fields))
    ids = torch.tensor([[CLS, 2, 3, SEP], [CLS, SEP, PAD, PAD], [CLS, 4, SEP, 5]])
    with torch.no_grad():
        cached, outputs = start(model, ids, 5)
        again, expected = RecomputeStepper.start(model, ids, 5)
        assert isinstance(cached, KeepingStepper)
        torch.testing.assert_close(outputs, expected, rtol=1e-12, atol=1e-12)
        for tokens in ([2, 3, 4], [5, 5, 2], [6, 3, 3, 2]):
            if len(tokens) > 3:
                rows = torch.tensor([2, 0, 0, 1])
                cached.take(rows)
                again.take(rows)
            outputs, expected = cached.step(torch.tensor(tokens)), again.step(torch.tensor(tokens))
            torch.testing.assert_close(outputs, expected, rtol=1e-12, atol=1e-12)


def test_every_attention_has_a_name() -> None:
    model, ids = drawn(NETWORK), example_ids()
    kept = model.activations(ids)
    shapes = [tuple(kept[name].shape) for name in model.attention()]
    strings, read, written = len(ids), 6, 5
    assert (
        shapes
        == [(strings, HEADS, read, read)] * BLOCKS
        + [
            (strings, HEADS, written, written),
            (strings, HEADS, written, read),
        ]
        * BLOCKS
    )
    for name in model.attention():
        sums = kept[name].sum(dim=-1)
        torch.testing.assert_close(sums, torch.ones_like(sums))


@pytest.mark.parametrize("fields", [{}, {"layer_norm": "rms", "final_norm": True}], ids=str)
def test_the_parameters_of_both_sides_are_counted(fields: dict[str, Any]) -> None:
    config = network(biases=False, **fields)
    sides = [
        value.numel()
        for name, value in initial_parameters(config, 0).items()
        if name.startswith(("encoder", "decoder"))
    ]
    assert ENCODER_DECODER.parameters(config) == sum(sides)


def test_gpt2s_initial_values_narrow_with_what_adds_to_each_side() -> None:
    config = network(
        hidden_size=64, attention_head_size=32, feed_forward_size=256,
        embeddings_init_strategy="gpt2", positions="learned",
    )  # fmt: skip
    values = initial_parameters(config, 0)
    for side, depth in (("encoder", 2 * BLOCKS), ("decoder", 3 * BLOCKS)):
        for name, value in values.items():
            if name.startswith(side) and name.endswith("output.weight"):
                assert abs(value.std() * math.sqrt(depth) / 0.02 - 1) < 0.06, name
    assert abs(values["decoder.positions.table.weight"].std() / 0.02 - 1) < 0.1
    assert values["embedding.weight"][PAD].abs().max() == 0
    others = initial_parameters(config.model_copy(update={"positions": "none"}), 0)
    assert all(torch.equal(value, values[name]) for name, value in others.items())


COPY: dict[str, Any] = {
    "task": "copy",
    "architecture": "encoder_decoder",
    "hidden_size": 16,
    "num_attention_heads": 2,
    "attention_head_size": 8,
    "feed_forward_size": 32,
    "train_max_length": 4,
    "validation_max_length": 4,
    "test_max_length": 6,
    "train_size": 640,
    "validation_size": 30,
    "test_size": 40,
    "max_num_epochs": 12,
    "patience": 20,
}


@pytest.mark.parametrize(
    "fields", [{}, {"dropout_rate": 0.02, "max_num_epochs": 2}], ids=["", "dropout"]
)
def test_it_is_trained_to_write_and_in_a_group_as_alone(fields: dict[str, Any]) -> None:
    problem = resolve(configuration({**COPY, "positions": "relative", **fields}))
    assert choose_engine(problem).name == "strings"
    member, _ = train_group([(problem, 0), (problem, 1)])
    (alone,) = train_group([(problem, 0)])
    assert member.train_losses == alone.train_losses
    if fields:
        return
    assert member.train_losses[-1] < 0.4 * member.train_losses[0]
    strings = problem_examples(problem).strings
    assert TrainedModel(problem, member.kept_weights).outputs(strings).wrong.mean() < 0.5


def problem_examples(problem: Any) -> Any:
    from seqcls.sampling.streams import stream

    return stream(problem.validation).epoch(0)


@pytest.mark.parametrize("positions", sorted({*POSITIONS} - {*COUPLED, "fire"}))
def test_it_may_have_any_positions(positions: str) -> None:
    network = resolve(configuration({**COPY, "positions": positions})).network
    model = plain_model(network, initial_parameters(network, 0))
    assert torch.isfinite(model(torch.tensor([[CLS, 2, 3, 4, 3]]))).all()
    assert np.isfinite(ENCODER_DECODER.products(network, 10))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"task": "parity"}, "this task asks for one answer of a string"),
        ({"loss_on": "all"}, "loss_on='all' with architecture='encoder_decoder'"),
        ({"attention_mask": "causal"}, "attention_mask='causal': not read by architecture"),
        ({"readout": "mean"}, "readout='mean': not read by architecture"),
        ({"positions": "rotary", "position_range": 99}, "position_range=99: places are drawn"),
        ({"final_norm": True, "layer_norm_eps": 0.0}, "final_norm=True with layer_norm_eps=0"),
    ],
)
def test_what_it_cannot_have_is_refused_in_one_line(fields: dict[str, Any], message: str) -> None:
    own = {name: COPY[name] for name in ("task", "architecture")}
    with pytest.raises(ConfigError, match=message) as refused:
        configuration({**own, **fields})
    assert "\n" not in str(refused.value)
