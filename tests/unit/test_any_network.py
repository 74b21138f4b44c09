"""Networks of every kind: what must not matter, and the formulations that they must agree with."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor, nn

from seqcls.config import NetworkConfig
from seqcls.engines.choice import choose_engine
from seqcls.engines.pytorch.computations import OneByOne, Stacked
from seqcls.engines.pytorch.groups import (
    Computation,
    FlatGroup,
    Losses,
    StackedGroup,
    all_logits,
)
from seqcls.models.initialization import initial_parameters
from seqcls.models.positions import Readout
from seqcls.models.transformer import Transformer
from seqcls.problem import configuration, resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, PAD
from tests.conftest import examples
from tests.unit.networks import Case, ordered_cases, plain_model
from tests.unit.places_reference import reference_logit

HERE = torch.device("cpu")


@given(ordered_cases())
def test_neither_padding_nor_batch_matters(case: Case) -> None:
    model = plain_model(case.config, case.members[0])
    logits = model(case.ids)
    padded = nn.functional.pad(case.ids, (0, 4), value=PAD)
    one_by_one = torch.cat([model(case.ids[row : row + 1]) for row in range(len(case.ids))])
    for other in (model(padded), one_by_one):
        torch.testing.assert_close(other, logits, rtol=1e-12, atol=1e-12)


@given(ordered_cases())
def test_a_causal_state_does_not_depend_on_what_follows(case: Case) -> None:
    if case.config.architecture == "transformer" and case.config.attention_mask == "full":
        return
    model = plain_model(case.config, case.members[0])
    ids = torch.randint(2, case.config.vocabulary_size, (1, 12))
    changed = ids.clone()
    changed[:, 7:] = torch.randint(2, case.config.vocabulary_size, (1, 5))
    places = torch.arange(0, 36, 3).unsqueeze(0)
    states, others = (model.activations(own, places) for own in (ids, changed))
    for name, state in states.items():
        if state.ndim == 3:
            torch.testing.assert_close(
                state[:, :7], others[name][:, :7], rtol=1e-12, atol=1e-12, msg=name
            )


def way_of(
    case: Case, kind: type[OneByOne] | type[Stacked]
) -> tuple[Computation, Callable[[str, int], Tensor | None]]:
    weights = [{name: value.numpy() for name, value in own.items()} for own in case.members]
    own = (case.config, len(case.strings), HERE, 5)
    if kind is Stacked:
        group = StackedGroup(weights, HERE)
        computation = Stacked(group, *own)
        return computation, lambda name, row: _row(group.parameters[name].grad, row)
    flat = FlatGroup(weights, HERE)
    one_by_one = OneByOne(flat, *own)
    return one_by_one, lambda name, row: one_by_one.models[row].get_parameter(name).grad


def _row(gradient: Tensor | None, row: int) -> Tensor | None:
    return None if gradient is None else gradient[row]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [OneByOne, Stacked])
@given(case=ordered_cases())
@settings(max_examples=examples(150))
def test_the_shortest_way_gives_the_plain_models_logits_and_gradients(
    kind: type[OneByOne] | type[Stacked], case: Case
) -> None:
    computation, gradient = way_of(case, kind)
    strings = TokenStrings.of_lists(case.config.num_letters, case.strings)
    tested = all_logits(computation, strings, len(case.members))
    share = torch.linspace(-1, 2, len(case.strings), dtype=torch.float64)
    losses = Losses(lambda logits: logits * share, len(case.strings))
    (batch,) = computation.batches(strings)
    means = computation.backward(batch, losses)
    for row, own in enumerate(case.members):
        model = plain_model(case.config, own)
        np.testing.assert_allclose(tested[row], model(case.ids).detach(), rtol=1e-12, atol=1e-12)
        mean = losses(model(case.ids, batch.places)).mean()
        mean.backward()
        torch.testing.assert_close(means[row], mean.detach(), rtol=1e-12, atol=1e-12)
        for name, parameter in model.named_parameters():
            own_gradient = gradient(name, row)
            found = torch.zeros_like(parameter) if own_gradient is None else own_gradient
            plain = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            torch.testing.assert_close(found, plain, rtol=1e-10, atol=1e-11, msg=name)


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize(
    ("architecture", "kind"), [("rnn", nn.RNN), ("gru", nn.GRU), ("lstm", nn.LSTM)]
)
def test_cells_are_those_of_pytorch(architecture: str, kind: Any, biases: bool) -> None:
    config = NetworkConfig(
        architecture=architecture,
        hidden_size=5,
        num_blocks=2,
        readout="last",
        biases=biases,
        precision="float64",
    )
    parameters = initial_parameters(config, 4)
    layers = kind(5, 5, 2, bias=biases, batch_first=True).double()
    own = [value for name, value in parameters.items() if name.startswith("layers")]
    with torch.no_grad():
        for layer, value in zip(layers.parameters(), own, strict=True):
            layer.copy_(value)
    ids = torch.randint(2, 5, (3, 9))
    states = plain_model(config, parameters).activations(ids)
    expected = layers(states["embedding"])[0]
    torch.testing.assert_close(states["layers.1.state"], expected, rtol=1e-12, atol=1e-12)


def test_recurrent_values_are_drawn_as_pytorch_draws_its_layers() -> None:
    config = NetworkConfig(
        architecture="lstm", hidden_size=6, num_blocks=2, readout="last", biases=True
    )
    with torch.random.fork_rng():
        torch.manual_seed(11)
        layers = [nn.Embedding(5, 6), nn.LSTM(6, 6, 2), nn.Linear(6, 1)]
    drawn = list(initial_parameters(config, 11).values())
    expected = [value.detach().clone() for layer in layers for value in layer.parameters()]
    expected[0][PAD] = 0
    for value, own in zip(drawn, expected, strict=True):
        assert torch.equal(value, own)


def copied(parameters: dict[str, Tensor], number: int) -> dict[str, Tensor]:
    """One block's parameters by the names of PyTorch's encoder layer."""
    own = {
        name.removeprefix(f"blocks.{number}."): value
        for name, value in parameters.items()
        if name.startswith(f"blocks.{number}.")
    }
    attention = [[own[f"attention.{x}.{y}"] for x in ("query", "key", "value")] for y in KINDS]
    named = {
        "self_attn.in_proj_weight": torch.cat(attention[0]),
        "self_attn.in_proj_bias": torch.cat(attention[1]),
    }
    for theirs, ours in NAMES.items():
        named |= {f"{theirs}.{kind}": own[f"{ours}.{kind}"] for kind in KINDS}
    return named


KINDS = ("weight", "bias")
NAMES = {
    "self_attn.out_proj": "attention.output",
    "linear1": "feed_forward.input",
    "linear2": "feed_forward.output",
    "norm1": "attention_norm",
    "norm2": "feed_forward_norm",
}


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_blocks_are_those_of_pytorchs_encoder(placement: Any, activation: Any, mask: Any) -> None:
    config = NetworkConfig(
        hidden_size=6,
        num_attention_heads=3,
        attention_head_size=2,
        feed_forward_size=7,
        layer_norm="nn",
        num_blocks=2,
        biases=True,
        readout="mean",
        norm_placement=placement,
        activation=activation,
        attention_mask=mask,
        precision="float64",
    )
    parameters = initial_parameters(config, 1)
    layer = nn.TransformerEncoderLayer(
        6, 3, 7, 0.0, activation, norm_first=placement == "pre", batch_first=True
    )
    encoder = nn.TransformerEncoder(layer, 2).double()
    for number in range(2):
        encoder.layers[number].load_state_dict(copied(parameters, number))
    ids = torch.tensor([[2, 3, 4, 4, 2], [3, 3, 2, PAD, PAD]])
    model = plain_model(config, parameters)
    causal = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    states = encoder(
        model.activations(ids)["embedding"],
        mask=causal if mask == "causal" else None,
        src_key_padding_mask=torch.zeros(2, 5).masked_fill(ids == PAD, -torch.inf).double(),
    )
    read = torch.stack([states[0].mean(dim=0), states[1, :3].mean(dim=0)])
    expected = read @ parameters["classifier.weight"][0] + parameters["classifier.bias"]
    torch.testing.assert_close(model(ids), expected, rtol=1e-12, atol=1e-12)


def test_what_is_new_is_drawn_after_what_was_there() -> None:
    plain = initial_parameters(NetworkConfig(embeddings_init_strategy="linear_like"), 3)
    more = NetworkConfig(
        embeddings_init_strategy="linear_like",
        biases=True,
        positions="learned",
        trained_length=9,
        norm_placement="post",
    )
    drawn = initial_parameters(more, 3)
    assert drawn["positions.table.weight"].shape == (10, 2)
    for name, value in plain.items():
        assert torch.equal(drawn[name], value), name


def test_the_empty_string_has_a_mean_of_zero() -> None:
    config = NetworkConfig(readout="mean", biases=True, num_blocks=2)
    model = plain_model(config, initial_parameters(config, 0))
    states = model.activations(torch.tensor([[PAD, PAD], [2, PAD]]))
    assert states["readout"][0].tolist() == [0, 0]
    assert states["logit"][0] == model.get_parameter("classifier.bias")


def test_log_length_counts_the_tokens_that_are_read() -> None:
    for tokens in (4, 3):
        readout: Readout = "first" if tokens == 4 else "mean"
        config = NetworkConfig(readout=readout, precision="float64")
        scaled = config.model_copy(update={"attention_scale": "log_length"})
        parameters = initial_parameters(config, 0)
        ids = torch.tensor([[*([CLS] if readout == "first" else []), 2, 3, 4, PAD]])
        name = "blocks.0.attention.scores"
        plain, own = (plain_model(x, parameters).activations(ids)[name] for x in (config, scaled))
        torch.testing.assert_close(own, plain * np.log(tokens))


def test_under_a_causal_mask_log_length_counts_the_tokens_up_to_the_one_that_attends() -> None:
    config = NetworkConfig(attention_mask="causal", readout="last", precision="float64")
    scaled = config.model_copy(update={"attention_scale": "log_length"})
    parameters, ids = initial_parameters(config, 0), torch.tensor([[2, 3, 4, CLS, PAD]])
    name = "blocks.0.attention.scores"
    plain, own = (plain_model(x, parameters).activations(ids)[name] for x in (config, scaled))
    read = torch.tensor([1, 2, 3, 4, 4], dtype=torch.float64)
    torch.testing.assert_close(own, plain * read.log()[:, None])


@pytest.mark.parametrize("no_attend_cls", [False, True])
def test_learned_log_length_is_the_published_formula_with_its_gradients(
    no_attend_cls: bool,
) -> None:
    config = NetworkConfig(
        attention_scale="learned_log_length",
        precision="float64",
        hidden_size=6,
        no_attend_cls=no_attend_cls,
    )
    model = plain_model(config, initial_parameters(config, 3))
    with torch.no_grad():
        model.get_parameter("blocks.0.attention.length_scale").copy_(torch.tensor([0.7, -1.3]))
        model.get_parameter("blocks.0.attention.length_bias").copy_(torch.tensor([0.2, 2.1]))
    weights: dict[str, Tensor] = dict(model.named_parameters())
    for letters in ([0, 1, 2, 1, 0], [2], []):
        ids = torch.tensor([[CLS, *(letter + 2 for letter in letters)]])
        right = reference_logit(config, weights, letters, list(range(len(letters) + 1)))
        torch.testing.assert_close(model(ids)[0], right, rtol=1e-10, atol=1e-10)
        found, expected = (
            torch.autograd.grad(
                x, list(weights.values()), allow_unused=True, materialize_grads=True
            )
            for x in (model(ids)[0], right)
        )
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_learned_log_length_begins_as_log_length_and_is_trained_by_pytorch() -> None:
    fields = {"positions": "alibi", "attention_mask": "causal", "readout": "last"}
    learned = configuration({**fields, "attention_scale": "learned_log_length"})
    fixed = configuration({**fields, "attention_scale": "log_length"})
    ids = torch.tensor([[2, 3, 4, 2, CLS]])
    own, other = (
        plain_model(resolve(x).network, initial_parameters(resolve(x).network, 0))(ids)
        for x in (learned, fixed)
    )
    torch.testing.assert_close(own, other)
    assert str(choose_engine(resolve(learned))) == (
        "strings: attention_scale='learned_log_length' is not compiled"
    )


TWO_BLOCKS = """
embedding
blocks.0.attention.query blocks.0.attention.key blocks.0.attention.value
blocks.0.attention.scores blocks.0.attention.weights blocks.0.attention.mixed_value
blocks.0.attention.output blocks.0.after_attention blocks.0.attention_norm
blocks.0.feed_forward.input blocks.0.feed_forward.activation blocks.0.feed_forward.output
blocks.0.after_feed_forward blocks.0.feed_forward_norm
blocks.1.attention.query blocks.1.attention.key blocks.1.attention.value
blocks.1.attention.scores blocks.1.attention.weights blocks.1.attention.mixed_value
blocks.1.attention.output blocks.1.after_attention blocks.1.attention_norm
blocks.1.feed_forward.input blocks.1.feed_forward.activation blocks.1.feed_forward.output
blocks.1.after_feed_forward blocks.1.feed_forward_norm
readout logit
"""
RECURRENT = {
    "rnn": "embedding layers.0.state readout logit",
    "gru": "embedding layers.0.reset_gate layers.0.update_gate layers.0.candidate layers.0.state "
    "readout logit",
    "lstm": "embedding layers.0.input_gate layers.0.forget_gate layers.0.candidate "
    "layers.0.output_gate layers.0.cell layers.0.state readout logit",
}


def test_every_state_keeps_its_name_and_its_place() -> None:
    ids = torch.tensor([[2, 3, 4]])
    networks = {
        TWO_BLOCKS: NetworkConfig(num_blocks=2, norm_placement="post", readout="mean"),
        **{
            names: NetworkConfig(architecture=architecture, readout="mean")
            for architecture, names in RECURRENT.items()
        },
    }
    for names, config in networks.items():
        model = plain_model(config, initial_parameters(config, 0))
        assert list(model.activations(ids)) == names.split()


def test_a_subclass_is_asked_itself_and_not_what_it_derives_from() -> None:
    from seqcls.engines.pytorch.computations import plain_logits
    from seqcls.models.batches import Batch

    class Doubled(Transformer):
        def run(self, *arguments: Any) -> Tensor:
            return 2 * super().run(*arguments)

    config = NetworkConfig(positions="alibi")
    parameters = initial_parameters(config, 0)
    logits = []
    for kind in (Transformer, Doubled):
        model = kind(config)
        model.load_state_dict(parameters)
        batch = Batch(config, torch.tensor([[CLS, 2, 3]]), torch.arange(3).unsqueeze(0))
        logits.append(plain_logits(model, batch))
    torch.testing.assert_close(logits[1], 2 * logits[0])
