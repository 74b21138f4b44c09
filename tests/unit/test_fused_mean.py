"""The compiled engine where the logit reads the mean of all states, against the plain model."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from seqcls.config import NetworkConfig, RunConfig
from seqcls.engines.choice import choose_engine
from seqcls.engines.compiled.arithmetic import BETA_1
from seqcls.engines.compiled.engine import Update
from seqcls.engines.fused import buffers, mean
from seqcls.engines.fused.packing import pack, unpack
from seqcls.engines.fused.tiles import make_tiles, shape_of
from seqcls.engines.fused.training import fused_logits
from seqcls.models.positions import read_ids
from seqcls.models.transformer import Transformer
from seqcls.problem import resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.training import train_group
from tests.conftest import SHORT

ROWS = [[0, 1, 2, 1], [], [2] * 9, [0, 0, 1]]
FIELDS: list[dict[str, Any]] = [
    {},
    {"layer_norm": "nn", "biases": True, "activation": "relu", "attention_scale": "log_length"},
]


@pytest.mark.slow
@pytest.mark.parametrize("fields", FIELDS, ids=str)
def test_a_step_is_that_of_the_plain_model(fields: dict[str, Any]) -> None:
    sizes: dict[str, Any] = {"hidden_size": 5, "num_attention_heads": 2, "feed_forward_size": 3}
    config = NetworkConfig(precision="float64", readout="mean", num_letters=3, **sizes, **fields)
    torch.manual_seed(0)
    model = Transformer(config).double()
    for value in model.parameters():
        torch.nn.init.normal_(value)
    weights = {name: x.detach().numpy().copy() for name, x in model.state_dict().items()}
    strings = TokenStrings.of_lists(3, ROWS)
    logits = model(torch.from_numpy(read_ids(strings, "mean")).long())
    labels = np.array([True, False, False, True])
    binary_cross_entropy_with_logits(logits, torch.from_numpy(labels).double()).backward()

    found = fused_logits(config, [weights], strings)[0]
    np.testing.assert_allclose(found, logits.detach().numpy(), rtol=1e-12)
    tiles = make_tiles(strings.counts, labels, len(ROWS), "float64", special=False)
    flat = pack(config, weights)
    moments, scratch = np.zeros((2, len(flat))), np.empty(buffers.TILE, np.int64)
    mean.train_epoch(
        flat, moments, 0, Update(np.full(1, 1e-2), 0.0, 0.0), shape_of(config), scratch, *tiles
    )
    # After one step AdamW's first moments are a share of the gradient.
    gradients = unpack(config, moments[0] / (1 - BETA_1))
    for name, value in model.named_parameters():
        exact = torch.zeros_like(value) if value.grad is None else value.grad
        np.testing.assert_allclose(gradients[name], exact.numpy(), rtol=1e-9, atol=1e-12)


def test_a_training_is_that_of_the_counts_engine() -> None:
    config = RunConfig.from_mapping({**SHORT, "readout": "mean", "precision": "float64"})
    assert choose_engine(resolve(config)).name == "fused"
    ours, theirs = (
        train_group([(resolve(config), 3)], engine=own)[0] for own in ("fused", "counts")
    )
    assert ours.best_epoch == theirs.best_epoch
    np.testing.assert_allclose(ours.train_losses, theirs.train_losses, rtol=1e-8)
    np.testing.assert_allclose(ours.validation_losses, theirs.validation_losses, rtol=1e-8)
    assert ours.train_losses[-1] < ours.train_losses[0]
