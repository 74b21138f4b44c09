"""Models whose weights are written down, and what they must answer in double precision.

They decide whether a string begins with 1, by a construction like that of Chiang & Cholak (2022,
"Overcoming a theoretical limitation of self-attention"): a dimension that is 1 at place 1 and 0
elsewhere, two blocks, ReLU, and norms after each half of a block, or none.
"""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.engines.pytorch.computations import OneByOne
from seqcls.engines.pytorch.groups import FlatGroup, all_logits
from seqcls.models.entries import entry_of
from seqcls.models.positions import POSITIONS, read_ids
from seqcls.models.positions.schemes import Places, Positions, States
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, FIRST_LETTER
from tests.conftest import asset
from tests.zoo import readable_model

EXACT = asset("exact_first.json")
FLAG = 3
"""The dimension that says whether a token stands at place 1."""


class Flag(Positions):
    """Adds 1 to one dimension at place 1 and, where norms need a mean of zero, -1 to its mirror."""

    def embed(self, states: States, places: Places) -> States:
        flags = torch.zeros_like(states)
        flags[..., FLAG] = (places == 1).to(states.dtype)
        return states + mirrored(flags, self.config.has_norms)


def mirrored(values: Tensor, mirrors: bool) -> Tensor:
    """The values and, in the second half of the dimensions, the same with the other sign."""
    half = values.shape[-1] // 2
    return values - values.roll(half, dims=-1) if mirrors else values


def network(model: dict[str, Any]) -> NetworkConfig:
    """The configuration of a written model."""
    return NetworkConfig(
        num_letters=2,
        hidden_size=model["width"],
        num_attention_heads=model["heads"],
        attention_head_size=model["width"] // model["heads"],
        # Blocks are of one size here: a smaller one has rows of zeros.
        feed_forward_size=max(block["ff1"]["shape"][0] for block in model["blocks"]),
        layer_norm="nn",
        # A norm without its constant is one whose constant disappears in rounding.
        layer_norm_eps=(model["eps"] or 1e-300) if model["layer_norm"] else 0.0,
        num_blocks=len(model["blocks"]),
        positions="flag",
        attention_scale="log_length" if model["log_length"] else "sqrt",
        norm_placement="post",
        activation="relu",
        biases=True,
        precision="float64",
    )


WRITTEN = {
    "attention.query.weight": "query",
    "attention.key.weight": "key",
    "attention.value.weight": "value",
    "attention.output.weight": "out",
    "feed_forward.input.weight": "ff1",
    "feed_forward.input.bias": "b1",
    "feed_forward.output.weight": "ff2",
}


def parameters(model: dict[str, Any]) -> dict[str, Tensor]:
    """A written model's parameters; what it does not name is zero, and norms are the identity."""
    made = plain_model_of_zeros(network(model))
    for number, block in enumerate(model["blocks"]):
        for name, written in WRITTEN.items():
            for *place, value in block[written]["entries"]:
                made[f"blocks.{number}.{name}"][tuple(place)] = value
        if model["layer_norm"]:
            for norm in ("attention_norm", "feed_forward_norm"):
                made[f"blocks.{number}.{norm}.weight"].fill_(1)
    for dimension, token in enumerate((FIRST_LETTER, FIRST_LETTER + 1, CLS)):
        made["embedding.weight"][token, dimension] = 1
    made["embedding.weight"] = mirrored(made["embedding.weight"], model["layer_norm"])
    made["classifier.weight"][0, model["read_dimension"]] = 1
    return made


def plain_model_of_zeros(config: NetworkConfig) -> dict[str, Tensor]:
    """Every parameter of a network, zero."""
    from seqcls.models.initialization import make_model

    named = make_model(config).named_parameters()
    return {name: torch.zeros_like(value, dtype=torch.float64).detach() for name, value in named}


@pytest.mark.parametrize("name", EXACT["models"])
def test_a_written_model_answers_as_it_must(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(POSITIONS, "_own", {**POSITIONS._own, "flag": entry_of(Flag)})
    model = EXACT["models"][name]
    config, own = network(model), parameters(model)
    expected = [row for row in EXACT["logits"] if row["model"] == name]
    strings = TokenStrings.of_lists(2, [[int(x) for x in row["string"]] for row in expected])
    logits = np.array([row["logit"] for row in expected])
    plain = readable_model(config, own)(torch.from_numpy(read_ids(strings, "first")).int())
    np.testing.assert_allclose(plain.detach(), logits, rtol=0, atol=1e-9)
    flat = FlatGroup([{key: value.numpy() for key, value in own.items()}], torch.device("cpu"))
    computation = OneByOne(flat, config, len(strings), torch.device("cpu"))
    np.testing.assert_allclose(all_logits(computation, strings, 1)[0], logits, rtol=0, atol=1e-9)
    assert [row["label"] for row in expected] == (logits > 0).astype(int).tolist()
