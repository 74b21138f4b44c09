"""Networks of attention and cells equal PyTorch's layers and the published equations."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from seqcls.config import NetworkConfig
from seqcls.models.batches import Batch
from seqcls.models.initialization import initial_parameters
from seqcls.models.positions import read_ids
from seqcls.models.positions.places import positions_of
from seqcls.problem import configuration, resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, PAD
from tests import zoo
from tests.oracles.attention import reference_logit
from tests.oracles.two_streams import GENERAL, PyTorchs, example_ids, transcribed
from tests.zoo import readable_model

Values = nn.Module | dict[str, Tensor]


def gradients_of(*pairs: tuple[Tensor, Values]) -> list[dict[str, Tensor]]:
    """The gradients of outputs, each weighted by another number, by the names of parameters."""
    found = []
    for outputs, values in pairs:
        named = dict(values.named_parameters()) if isinstance(values, nn.Module) else values
        share = torch.linspace(-1, 2, outputs.numel(), dtype=torch.float64).view(outputs.shape)
        gradients = torch.autograd.grad(
            (outputs * share).sum(), [*named.values()], allow_unused=True, materialize_grads=True
        )
        found.append(dict(zip(named, gradients, strict=True)))
    return found


# One block of attention.


@given(data=st.data())
def test_one_block_equals_its_written_formulas(data: st.DataObject) -> None:
    positions = data.draw(
        st.sampled_from(["none", "sinusoidal", "learned", "rotary", "alibi", "relative"])
    )
    fields = data.draw(
        zoo.judging_fields(
            architecture=["transformer"], positions=[positions], num_blocks=[1],
            readout=["first", "last"], activation=["gelu", "relu"], norm_placement=["pre"],
            final_norm=[False], position_range=[0], position_draw=["sorted"],
            num_attention_heads=[1, 2, 3, 4],
        )
    )  # fmt: skip
    problem = resolve(configuration(fields))
    network = problem.network
    weights = zoo.scattered_weights(network, 1)
    own = {name: torch.from_numpy(value).requires_grad_() for name, value in weights.items()}
    longest = 6 if positions == "learned" else 20
    rows = st.lists(st.integers(0, 2), max_size=longest)
    letters = data.draw(st.lists(rows, min_size=1, max_size=2))
    strings = TokenStrings.of_lists(3, letters)
    model = readable_model(network, weights)
    found = model(torch.from_numpy(read_ids(strings, network.readout)).int())
    token_positions = [list(range(len(row) + 1)) for row in letters]
    expected = torch.stack(
        [
            reference_logit(network, own, *pair)
            for pair in zip(letters, token_positions, strict=True)
        ]
    )
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    ours, theirs = gradients_of((found, model), (expected, own))
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize(
    ("architecture", "kind"), [("rnn", nn.RNN), ("gru", nn.GRU), ("lstm", nn.LSTM)]
)
def test_recurrent_cells_equal_pytorch(architecture: str, kind: Any, biases: bool) -> None:
    config = NetworkConfig(
        architecture=architecture, hidden_size=5, num_blocks=2, readout="last", biases=biases,
        precision="float64",
    )  # fmt: skip
    parameters = initial_parameters(config, 4)
    layers = kind(5, 5, 2, bias=biases, batch_first=True).double()
    own = [value for name, value in parameters.items() if name.startswith("layers")]
    with torch.no_grad():
        for layer, value in zip(layers.parameters(), own, strict=True):
            layer.copy_(value)
    ids = torch.randint(2, 5, (3, 9))
    states = readable_model(config, parameters).activations(ids)
    expected = layers(states["embedding"])[0]
    torch.testing.assert_close(states["layers.1.state"], expected, rtol=1e-12, atol=1e-12)


def test_causal_log_length_counts_the_tokens_read_so_far() -> None:
    config = NetworkConfig(attention_mask="causal", readout="last", precision="float64")
    scaled = config.model_copy(update={"attention_scale": "log_length"})
    parameters, ids = initial_parameters(config, 0), torch.tensor([[2, 3, 4, CLS, PAD]])
    name = "blocks.0.attention.scores"
    plain, own = (readable_model(x, parameters).activations(ids)[name] for x in (config, scaled))
    read = torch.tensor([1, 2, 3, 4, 4], dtype=torch.float64)
    torch.testing.assert_close(own, plain * read.log()[:, None])


# Named states.


def drawn(network: NetworkConfig, **more: Any) -> Any:
    """A model whose every value is far from those of a norm or a bias at the start."""
    config = network.model_copy(update=more)
    return readable_model(config, zoo.scattered_weights(config, width=0.5))


def test_dropout_uses_its_own_generator_in_training_only() -> None:
    config = NetworkConfig(hidden_size=16, dropout_rate=0.5)
    model = readable_model(config, initial_parameters(config, 0))
    ids = torch.tensor([[CLS, 2, 3, 4]])
    still = model(ids)
    assert torch.equal(still, model(ids))
    model.train()
    before = torch.get_rng_state()
    draws = []
    for seed in (1, 1, 2):
        model.use_dropout_generator(torch.Generator().manual_seed(seed))
        draws.append(model(ids))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert torch.equal(before, torch.get_rng_state())


def test_final_norm_is_a_state_before_the_readout() -> None:
    config = NetworkConfig(
        num_blocks=3, final_norm=True, attention_mask="causal", readout="last", precision="float64"
    )
    states = drawn(config).activations(torch.tensor([[2, 3, 4]]))
    assert list(states)[-4:] == ["blocks.2.after_feed_forward", "final_norm", "readout", "logit"]
    assert torch.equal(states["readout"], states["final_norm"][:, -1])
    plain = readable_model(NetworkConfig(), initial_parameters(NetworkConfig(), 0))
    assert "final_norm" not in plain.activations(torch.tensor([[0, 2, 3]]))


# Two streams.

SEP = 7
TWO_STREAMS = NetworkConfig(
    **GENERAL, architecture="encoder_decoder", hidden_size=8, num_blocks=3, num_attention_heads=2,
    attention_head_size=4, feed_forward_size=12, layer_norm="nn", biases=True,
)  # fmt: skip
RECURRENT = NetworkConfig(
    **GENERAL, architecture="recurrent_attention", hidden_size=6, num_blocks=2, biases=True
)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize(("activation", "final_norm"), [("gelu", True), ("relu", False)])
def test_encoder_decoder_equals_the_pytorch_transformer(
    placement: str, activation: str, final_norm: bool
) -> None:
    more = {"norm_placement": placement, "activation": activation, "final_norm": final_norm}
    model, ids = drawn(TWO_STREAMS, **more), example_ids()
    config = TWO_STREAMS.model_copy(update=more)
    theirs = PyTorchs(model, config)
    outputs = torch.cat(theirs(ids))
    is_predicted = Batch(config, ids, positions_of(config, ids)).is_predicted
    found = model(ids)
    torch.testing.assert_close(found[is_predicted], outputs, rtol=1e-12, atol=1e-12)
    assert not found[~is_predicted].any()
    gradients, right = gradients_of((found[is_predicted], model), (outputs, theirs))
    ours = PyTorchs.values(gradients)
    for name, gradient in right.items():
        torch.testing.assert_close(ours[name], gradient, rtol=1e-10, atol=1e-11, msg=name)


def test_scaled_embeddings_are_multiplied_by_the_root_of_the_width() -> None:
    values = zoo.scattered_weights(TWO_STREAMS)
    longer = {**values, "embedding.weight": values["embedding.weight"] * math.sqrt(8)}
    scaled = readable_model(TWO_STREAMS.model_copy(update={"embedding_scale": "sqrt"}), values)
    torch.testing.assert_close(
        scaled(example_ids()), readable_model(TWO_STREAMS, longer)(example_ids())
    )


@pytest.mark.parametrize("attention", ["additive", "none"])
def test_recurrent_attention_equals_its_equations(attention: str) -> None:
    ids, model = example_ids(), drawn(RECURRENT, attention=attention)
    named = {name: value.detach().clone() for name, value in model.named_parameters()}
    weights: dict[str, Tensor] = {name: nn.Parameter(value) for name, value in named.items()}
    found, expected = [], []
    outputs = model(ids)
    for row, string in enumerate(ids.tolist()):
        read = [token for token in string if token != PAD]
        expected.append(transcribed(weights, read, attention == "additive"))
        found.append(outputs[row, read.index(SEP) : len(read)])
        assert not outputs[row, : read.index(SEP)].any()
    ours, theirs = torch.cat(found), torch.cat(expected)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    found_gradients, right = gradients_of((ours, model), (theirs, weights))
    for name, gradient in right.items():
        torch.testing.assert_close(
            found_gradients[name], gradient, rtol=1e-10, atol=1e-11, msg=name
        )
