"""Ablation, states and patching of encoder-decoders."""

from typing import Any

import numpy as np
import pytest
import torch

from seqcls.interpretability.ablation import Judge
from seqcls.interpretability.patching import patch
from seqcls.interpretability.readable_model import (
    Output,
    log_probabilities,
    plain_model,
    read,
    target,
    write_output,
)
from seqcls.interpretability.states_by_strings import recurrent_units
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.parts import Site
from tests import zoo
from tests.oracles.two_streams import Change, StateAndCell, transcribed, unchanged

LAYERS: dict[str, Any] = {"hidden_size": 6, "num_tokens": 5, "biases": True}
"""Settings of the network whose equations are transcribed."""
BASE, SOURCE = (0, 2, 1), (0, 1, 1)


def model_of(name: str, **fields: Any) -> TrainedModel:
    problem = zoo.problem(name, writes=True, **fields)
    return TrainedModel(problem, zoo.scattered_weights(problem.network, width=0.5))


def transcription(
    model: TrainedModel, letters: tuple[int, ...], output: Output, change: Change = unchanged
) -> torch.Tensor:
    """The outputs of a recurrent model from `SEP` on, by the transcribed equations."""
    weights = {name: torch.from_numpy(value).double() for name, value in model.weights.items()}
    (ids,) = read(model, [letters], [output]).ids.tolist()
    with torch.no_grad():
        return transcribed(weights, ids, model.config.attention == "additive", change)


@pytest.mark.parametrize("attention", ["additive", "none"])
@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_ablating_a_unit_equals_the_transcribed_equations(side: str, attention: str) -> None:
    model = model_of("recurrent_attention", **LAYERS, attention=attention)
    judge = Judge(model, 12)
    part = Site("unit", int(side == "decoder"), 3, side)

    def without(of_side: str, layer: int, place: int, memory: StateAndCell) -> StateAndCell:
        del place
        if (of_side, layer) == (side, part.block):
            memory[0][:, part.number] = 0
        return memory

    strings = judge.tested.strings
    inputs = [
        tuple(row[:length].tolist())
        for row, length in zip(strings.letters, strings.lengths, strict=True)
    ]
    expected = [transcription(model, x, target(model, x), without) for x in inputs]
    np.testing.assert_allclose(judge.outputs({part: "zero"}), torch.cat(expected), atol=1e-12)
    assert abs(judge.outputs({part: "zero"}) - judge.outputs({})).max() > 1e-3


@pytest.mark.parametrize("attention", ["additive", "none"])
def test_patching_equals_the_transcribed_equations(attention: str) -> None:
    model = model_of("recurrent_attention", **LAYERS, attention=attention)
    outputs = target(model, BASE), write_output(model, BASE)
    assert outputs[0] != outputs[1]
    of_source: dict[tuple[str, int, int], StateAndCell] = {}

    def keep(side: str, layer: int, place: int, memory: StateAndCell) -> StateAndCell:
        of_source[side, layer, place] = memory
        return memory

    transcription(model, SOURCE, outputs[0], keep)

    def number(site: Site, at: int) -> float:
        def change(side: str, layer: int, place: int, memory: StateAndCell) -> StateAndCell:
            if (side, layer, place) != (site.side, site.block, at):
                return memory
            state, cell = (value.clone() for value in memory)
            units = slice(None) if site.number is None else site.number
            if site.name != "cell":
                state[:, units] = of_source[side, layer, place][0][:, units]
            if site.name != "state":
                cell[:, units] = of_source[side, layer, place][1][:, units]
            return state, cell

        right, written = (
            float(log_probabilities(model, transcription(model, BASE, x, change)[None], 0, x)[0])
            for x in outputs
        )
        return right - written

    found = patch(model, BASE, SOURCE)
    assert found.base_tokens == ("CLS", "a", "c", "b", "SEP")
    # Of two layers of either side all, states, cells and six units.
    assert len(found.sites) == 2 * 2 * (3 + 6)
    for row, site in enumerate(found.sites):
        places = range(4) if site.side == "encoder" else range(4, 5)
        expected = [number(site, place) if place in places else np.nan for place in range(5)]
        np.testing.assert_allclose(found.logits[row], expected, rtol=1e-9, atol=1e-9)
    moved = np.nanmax(abs(found.logits - found.base_logit), axis=1)
    assert (moved > 1e-6).all()
    own = patch(model, BASE, BASE)
    np.testing.assert_allclose(own.logits[own.is_place], own.base_logit, atol=1e-10)
    assert np.isnan(own.logits[~own.is_place]).all()
    assert not own.flips.any()


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_decoder_states_are_read_after_each_output_token(placement: str) -> None:
    model = model_of("encoder_decoder", norm_placement=placement, biases=False)
    letters = model.letters("ab")
    found = recurrent_units(model, letters)
    assert found is not None
    assert found.tokens[0] == "SEP"
    assert found.states.shape == (2, len(found.tokens), 8)
    plain = plain_model(model)
    with torch.no_grad():
        outputs = plain(read(model, [letters]).ids)[0, 3:].numpy()
    head = plain.get_parameter("classifier.weight").detach().numpy()
    np.testing.assert_allclose(found.states[-1] @ head.T, outputs, atol=1e-9)
