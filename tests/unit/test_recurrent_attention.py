"""The recurrent encoder-decoder, against PyTorch's cells one token after another."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seqcls.config import NetworkConfig
from seqcls.decode import KeepingStepper, RecomputeStepper, start
from seqcls.engines.choice import choose_engine
from seqcls.engines.pytorch.computations import plain_logits
from seqcls.errors import ConfigError
from seqcls.models.base import Classifier
from seqcls.models.batches import Batch
from seqcls.models.entries import RECURRENT_ATTENTION
from seqcls.models.initialization import initial_parameters
from seqcls.models.positions.places import positions_of
from seqcls.problem import configuration, resolve
from seqcls.strings.tokenizer import CLS, PAD
from seqcls.training import train_group
from tests.unit.networks import plain_model
from tests.unit.streams import GENERAL, SEP, example_ids, random_values

HIDDEN, LAYERS = 6, 2
NETWORK = NetworkConfig(
    **GENERAL,
    architecture="recurrent_attention",
    hidden_size=HIDDEN,
    num_blocks=LAYERS,
    biases=True,
)
VARIANTS: list[dict[str, Any]] = [
    {},
    {"attention": "none"},
    {"num_blocks": 1, "biases": False, "tied_embeddings": True},
]


def network(**fields: Any) -> NetworkConfig:
    return NETWORK.model_copy(update=fields)


def drawn(config: NetworkConfig) -> Classifier:
    return plain_model(config, random_values(config))


Kept = tuple[Tensor, Tensor]
"""What a layer keeps of one string: state and cell."""


def unchanged(side: str, layer: int, place: int, kept: Kept) -> Kept:
    del side, layer, place
    return kept


def transcribed(
    weights: Mapping[str, Tensor],
    ids: list[int],
    attends: bool,
    change: Callable[[str, int, int, Kept], Kept] = unchanged,
) -> Tensor:
    """The outputs of one string from `SEP` on, by `torch.nn.LSTMCell` and the paper's equations.

    What a layer of the encoder or decoder keeps after the token at a place is what `change` makes
    of it.
    """

    def cell(name: str) -> nn.LSTMCell:
        inputs = weights[f"{name}.input_weight"].shape[1]
        made = nn.LSTMCell(inputs, HIDDEN, dtype=torch.float64)
        for theirs, ours in {
            "weight_ih": "input_weight",
            "weight_hh": "state_weight",
            "bias_ih": "input_bias",
            "bias_hh": "state_bias",
        }.items():
            delattr(made, theirs)
            setattr(made, theirs, weights[f"{name}.{ours}"])
        return made

    encoder = [cell(f"encoder.{layer}") for layer in range(LAYERS)]
    decoder = [cell(f"decoder.{layer}") for layer in range(LAYERS)]
    embedding = weights["embedding.weight"]
    kept = [(torch.zeros(1, HIDDEN).double(), torch.zeros(1, HIDDEN).double())] * LAYERS
    end = ids.index(SEP)
    annotations = []
    for place, token in enumerate(ids[:end]):
        x = embedding[[token]]
        for layer in range(LAYERS):
            kept[layer] = change("encoder", layer, place, encoder[layer](x, kept[layer]))
            x = kept[layer][0]
        annotations.append(x[0])
    outputs = []
    for place, token in enumerate(ids[end:], end):
        x = embedding[[token]]
        if attends:
            query = weights["additive.query.weight"] @ kept[-1][0][0]
            scores = torch.stack(
                [
                    weights["additive.score.weight"][0]
                    @ torch.tanh(query + weights["additive.key.weight"] @ h)
                    for h in annotations
                ]
            )
            shares = scores.exp() / scores.exp().sum()
            context = sum(share * h for share, h in zip(shares, annotations, strict=True))
            assert isinstance(context, Tensor)
            x = torch.cat([x, context[None]], dim=1)
        for layer in range(LAYERS):
            kept[layer] = change("decoder", layer, place, decoder[layer](x, kept[layer]))
            x = kept[layer][0]
        outputs.append(weights["classifier.weight"] @ x[0] + weights["classifier.bias"])
    return torch.stack(outputs)


@pytest.mark.parametrize("attention", ["additive", "none"])
def test_the_readable_model_and_its_gradients_are_those_of_the_equations(attention: str) -> None:
    config, ids = network(attention=attention), example_ids()
    model = drawn(config)
    named = {name: value.detach().clone() for name, value in model.named_parameters()}
    weights = {name: nn.Parameter(value) for name, value in named.items()}
    found, expected = [], []
    outputs = model(ids)
    for row, string in enumerate(ids.tolist()):
        read = [token for token in string if token != PAD]
        expected.append(transcribed(weights, read, attention == "additive"))
        found.append(outputs[row, read.index(SEP) : len(read)])
        assert not outputs[row, : read.index(SEP)].any()
    ours, theirs = torch.cat(found), torch.cat(expected)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    share = torch.linspace(-1, 2, ours.numel(), dtype=torch.float64).view(ours.shape)
    (ours * share).sum().backward()
    (theirs * share).sum().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(
            parameter.grad, weights[name].grad, rtol=1e-10, atol=1e-11, msg=name
        )


@pytest.mark.parametrize("fields", VARIANTS, ids=str)
def test_the_engine_of_strings_gives_the_readable_models_outputs_and_gradients(
    fields: dict[str, Any],
) -> None:
    config, ids = network(**fields), example_ids()
    batch = Batch(config, ids, positions_of(config, ids))
    of_all = []
    for outputs_of in (
        lambda model: plain_logits(model, batch),
        lambda model: model(ids)[batch.is_asked],
    ):
        model = drawn(config)
        outputs = outputs_of(model)
        (outputs**2).sum().backward()
        of_all.append([outputs.detach(), *(x.grad for x in model.parameters())])
    for ours, plain in zip(*of_all, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("fields", VARIANTS, ids=str)
def test_outputs_depend_on_no_padding_and_no_other_string(fields: dict[str, Any]) -> None:
    model, ids = drawn(network(**fields)), example_ids()
    together = model(torch.nn.functional.pad(ids, (0, 3), value=PAD))
    for row, string in enumerate(ids):
        length = int((string != PAD).sum())
        alone = model(string[None, :length])[0]
        torch.testing.assert_close(together[row, :length], alone, rtol=1e-12, atol=1e-12)
        assert not together[row, length:].any()


@pytest.mark.parametrize("fields", VARIANTS, ids=str)
def test_writing_with_kept_states_is_writing_without(fields: dict[str, Any]) -> None:
    model = drawn(network(**fields))
    ids = torch.tensor([[CLS, 2, 3, SEP, PAD], [CLS, SEP, 2, 6, 5], [CLS, 4, SEP, 5, PAD]])
    with torch.no_grad():
        kept, outputs = start(model, ids, 4)
        again, expected = RecomputeStepper.start(model, ids, 4)
        assert isinstance(kept, KeepingStepper)
        torch.testing.assert_close(outputs, expected, rtol=1e-12, atol=1e-12)
        for tokens in ([2, 3, 4], [6, 3, 3, 2]):
            if len(tokens) > 3:
                rows = torch.tensor([2, 0, 0, 1])
                kept.take(rows)
                again.take(rows)
            outputs, expected = kept.step(torch.tensor(tokens)), again.step(torch.tensor(tokens))
            torch.testing.assert_close(outputs, expected, rtol=1e-12, atol=1e-12)


def test_attention_has_a_name_where_there_is_one() -> None:
    (name,) = drawn(NETWORK).attention()
    weights = drawn(NETWORK).activations(example_ids())[name]
    assert weights.shape == (4, 1, 5, 6)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(4, 1, 5).double())
    assert drawn(network(attention="none")).attention() == ()


@pytest.mark.parametrize("attention", ["additive", "none"])
def test_its_parameters_are_counted(attention: str) -> None:
    config = network(attention=attention, biases=False)
    drawn = initial_parameters(config, 0).items()
    sizes = [
        value.numel() for name, value in drawn if not name.startswith(("embedding", "classifier"))
    ]
    assert RECURRENT_ATTENTION.parameters(config) == sum(sizes)


@pytest.mark.parametrize("attention", ["additive", "none"])
def test_it_is_trained_to_write_and_in_a_group_as_alone(attention: str) -> None:
    fields = {
        "task": "copy", "architecture": "recurrent_attention", "attention": attention,
        "hidden_size": 16, "train_max_length": 4, "validation_max_length": 4, "test_max_length": 6,
        "train_size": 640, "validation_size": 30, "test_size": 40, "max_num_epochs": 8,
        "dropout_rate": 0.02,
    }  # fmt: skip
    problem = resolve(configuration(fields))
    assert choose_engine(problem).name == "strings"
    member, _ = train_group([(problem, 0), (problem, 1)])
    (alone,) = train_group([(problem, 0)])
    assert member.train_losses == alone.train_losses
    assert member.train_losses[-1] < 0.5 * member.train_losses[0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"task": "parity"}, "this task asks for one answer of a string"),
        ({"loss_on": "all"}, "loss_on='all' with architecture='recurrent_attention'"),
        ({"positions": "rotary"}, "positions='rotary': not read by architecture"),
        ({"architecture": "lstm", "attention": "none"}, "attention='none': not read by archi"),
    ],
)
def test_what_it_cannot_have_is_refused_in_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        configuration({"task": "copy", "architecture": "recurrent_attention", **fields})
