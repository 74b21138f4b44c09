"""Networks and strings drawn at random, for tests of what the network computes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from seqcls.config import COUPLED, NetworkConfig
from seqcls.models.base import Classifier
from seqcls.models.initialization import initial_parameters, make_model
from seqcls.models.positions import POSITIONS, read_ids
from seqcls.strings.token_strings import TokenStrings


@st.composite
def network_configs(draw: st.DrawFn, *, any_depth: bool = False) -> NetworkConfig:
    """Any network without dropout or positions, in float64: the report's, or of any depth."""
    more: dict[str, Any] = {}
    if any_depth:
        more = {
            "num_blocks": draw(st.integers(1, 3)),
            "readout": draw(st.sampled_from(["first", "last", "mean"])),
            "attention_scale": draw(st.sampled_from(["sqrt", "log_length", "learned_log_length"])),
            "norm_placement": draw(st.sampled_from(["pre", "post"])),
            "activation": draw(st.sampled_from(["gelu", "relu", "gelu_tanh"])),
            "biases": draw(st.booleans()),
            "final_norm": draw(st.booleans()),
        }
    return NetworkConfig(
        num_letters=draw(st.integers(1, 26)),
        hidden_size=draw(st.integers(1, 9)),
        num_attention_heads=draw(st.integers(0, 4)),
        attention_head_size=draw(st.integers(1, 5)),
        feed_forward_size=draw(st.integers(0, 6)),
        layer_norm=draw(st.sampled_from(["rms", "nn"])),
        layer_norm_eps=draw(st.sampled_from([0.0, 1e-5, 1e-2])),
        no_attend_cls=draw(st.booleans()),
        precision="float64",
        **more,
    )


@dataclass(frozen=True)
class Case:
    """A network, the parameters of some members, and strings."""

    config: NetworkConfig
    members: list[dict[str, Tensor]]
    strings: list[list[int]]
    """Letter numbers."""

    @property
    def ids(self) -> Tensor:
        """The strings as the model reads them, padded, shape (string, position)."""
        strings = TokenStrings.of_lists(self.config.num_letters, self.strings)
        return torch.from_numpy(read_ids(strings, self.config.readout)).int()

    @property
    def counts(self) -> np.ndarray:
        """The strings as letter counts, shape (string, letter)."""
        letters = range(self.config.num_letters)
        rows = [[string.count(x) for x in letters] for string in self.strings]
        return np.array(rows, dtype=np.int64)

    def stacked(self) -> dict[str, Tensor]:
        """The members' parameters with a leading member axis, ready for gradients."""
        return {
            name: torch.stack([own[name] for own in self.members]).requires_grad_()
            for name in self.members[0]
        }


@st.composite
def cases(draw: st.DrawFn, *, any_depth: bool = False) -> Case:
    """A network with members whose every parameter is random, norms too, and strings."""
    config = draw(network_configs(any_depth=any_depth))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    members = []
    for seed in range(draw(st.integers(1, 3))):
        parameters = initial_parameters(config, seed)
        for name, value in parameters.items():
            if "norm" in name or "length" in name:
                noise = torch.randn(value.shape, generator=generator, dtype=torch.float64)
                parameters[name] = value + 0.3 * noise
        members.append(parameters)
    letter = st.integers(0, config.num_letters - 1)
    strings = draw(st.lists(st.lists(letter, max_size=12), min_size=1, max_size=5))
    return Case(config, members, strings)


@st.composite
def ordered_networks(draw: st.DrawFn, *, compiled: bool = False) -> NetworkConfig:
    """Any network that there is, whether letter counts suffice or not, in float64.

    With `compiled` only those that an engine of compiled code may have.
    """
    memories = ["deltanet", "gated_deltanet", "mamba", "hybrid"] if compiled else []
    architecture = draw(
        st.sampled_from(["transformer", "transformer", "rnn", "gru", "lstm", *memories])
    )
    transformer = architecture == "transformer"
    more: dict[str, Any] = {}
    mask = "full"
    if transformer:
        left_out = {*COUPLED, "fire"} if compiled else {*COUPLED}
        positions = draw(st.sampled_from(sorted({*POSITIONS} - left_out)))
        mask = draw(st.sampled_from(["full", "causal"]))
        reads = POSITIONS[positions].reads
        randomized = "position_range" in reads and draw(st.booleans())
        shifted = "position_draw" in reads and not (randomized or compiled) and draw(st.booleans())
        more = {
            "positions": positions,
            "position_range": 40 if randomized else 0,
            "position_draw": "shifted" if shifted else "sorted",
            "attention_mask": mask,
            "attention_head_size": 2 * draw(st.integers(1, 3)),
            "attention_scale": draw(
                st.sampled_from(
                    ["sqrt", "log_length", *([] if compiled else ["learned_log_length"])]
                )
            ),
            "norm_placement": draw(st.sampled_from(["pre", "post"])),
            "activation": draw(
                st.sampled_from(["gelu", "relu", *([] if compiled else ["gelu_tanh"])])
            ),
            "final_norm": not compiled and draw(st.booleans()),
            "no_attend_cls": draw(st.booleans()),
        }
    if architecture in memories:
        more = {
            "attention_head_size": 2 * draw(st.integers(1, 3)),
            "norm_placement": draw(st.sampled_from(["pre", "post"])),
            "activation": draw(st.sampled_from(["gelu", "relu"])),
            "eigenvalue_range": draw(st.sampled_from(["positive", "signed"])),
            "short_convolution": draw(st.booleans()),
            "expand": draw(st.integers(1, 3)),
            "state_size": draw(st.integers(1, 5)),
        }
    if architecture == "hybrid":
        more["layers"] = draw(st.text("adgm", min_size=1, max_size=3))
        more["positions"] = draw(st.sampled_from(["none", "rotary", "alibi"]))
        more["attention_scale"] = draw(st.sampled_from(["sqrt", "log_length"]))
    blind = not transformer or mask == "causal"
    return NetworkConfig(
        architecture=architecture,
        num_letters=draw(st.integers(1, 5)),
        hidden_size=draw(st.integers(1, 6)),
        num_attention_heads=draw(st.integers(int(architecture in memories), 3)),
        feed_forward_size=draw(st.integers(0, 6)),
        layer_norm=draw(st.sampled_from(["rms", "nn"])),
        layer_norm_eps=draw(st.sampled_from([0.0, 1e-2])),
        num_blocks=draw(st.integers(1, 3)),
        readout=draw(st.sampled_from(["last", "mean", *([] if blind else ["first"])])),
        biases=draw(st.booleans()),
        trained_length=30,
        precision="float64",
        **more,
    )


@st.composite
def ordered_cases(draw: st.DrawFn, *, compiled: bool = False) -> Case:
    """A network of any kind with members whose parameters are random, and strings."""
    config = draw(ordered_networks(compiled=compiled))
    members = [initial_parameters(config, seed) for seed in range(draw(st.integers(1, 2)))]
    letter = st.integers(0, config.num_letters - 1)
    strings = draw(st.lists(st.lists(letter, max_size=12), min_size=1, max_size=5))
    return Case(config, members, strings)


def plain_model(config: NetworkConfig, parameters: dict[str, Tensor]) -> Classifier:
    """The readable model with these parameters, in evaluation mode."""
    model = make_model(config).to(getattr(torch, config.precision))
    model.load_state_dict(parameters)
    return model.eval()
