"""Networks and strings drawn at random, for tests of what the network computes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.models.initialization import initial_parameters
from seqcls.models.positions import read_ids
from seqcls.strings.token_strings import TokenStrings
from tests.zoo import readable_model as plain_model

__all__ = ["Case", "cases", "plain_model"]


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
