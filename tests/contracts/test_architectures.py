"""The contract of every architecture: outputs depend on a string alone, however it is read."""

from operator import itemgetter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from torch import Tensor
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.decode import Anew, beginnings, stepping
from seqcls.errors import ConfigError
from seqcls.kinds.transduction import separator_id
from seqcls.models import MODELS
from seqcls.models.base import Classifier
from seqcls.models.batches import Batch, compute
from seqcls.models.forms import form, map_cached
from seqcls.models.initialization import initial_parameters
from seqcls.models.mixing import LinearAttentionMixer, Mixing
from seqcls.models.positions import read_ids
from seqcls.models.transformer import Transformer
from seqcls.problem import Problem, configuration, obstacle_of, resolve
from seqcls.sampling.streams import stream
from seqcls.standalone import network_json, source_of
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, PAD
from sweeps.work import machine
from tests import zoo
from tests.contracts.readable import compare_gradients
from tests.world import parts_from_outside

LAST = {"readout": "last"}
NEAR: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-12}
STRINGS = [[0, 1, 0, 0, 1, 1], [1], [], [0, 0, 1, 1, 1], [1, 0]]
CASES = [
    *((name, False) for name in (*zoo.JUDGES, "deltanet, two blocks", "gru, mean")),
    *((name, True) for name in (*zoo.WRITERS, "encoder_decoder, rotary", "no attention")),
]
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "deltanet, two blocks": ("deltanet", {"num_blocks": 2, "norm_placement": "post"}),
    "gru, mean": ("gru", {"readout": "mean"}),
    "encoder_decoder, rotary": (
        "encoder_decoder",
        {"positions": "rotary", "attention_scale": "log_length", "no_attend_cls": True},
    ),
    "no attention": ("recurrent_attention", {"attention": "none", "tied_embeddings": True}),
}  # fmt: skip
"""Networks beside those of the zoo."""


def problem_of(name: str, *, writes: bool, **more: Any) -> Problem:
    network, own = OTHERS.get(name, (name, {}))
    return zoo.problem(network, writes=writes, **{**own, **more})


def model_of(problem: Problem) -> Classifier:
    return zoo.readable_model(problem.network, zoo.scattered_weights(problem.network))


def ids_of(problem: Problem) -> Tensor:
    """Strings of several lengths as a model reads them; with their outputs, where it writes."""
    if problem.writes:
        examples = stream(problem.validation).epoch(0).take(np.arange(12))
        strings = problem.kind.reading(problem.task, examples)
    else:
        strings = TokenStrings.of_lists(2, STRINGS)
    return torch.from_numpy(read_ids(strings, problem.network.readout)).int()


def compare_beside(model: Classifier, ids: Tensor) -> None:
    """Asserts that neither padding nor other strings change the output for a string."""
    together = model(functional.pad(ids, (0, 3), value=PAD))
    for row, string in enumerate(ids):
        length = int((string != PAD).sum())
        alone = model(string[None, :length])[0]
        own = together[row] if alone.ndim == 0 else together[row, :length]
        torch.testing.assert_close(own, alone, **NEAR)


@pytest.mark.parametrize(("name", "writes"), CASES)
@torch.no_grad()
def test_output_does_not_depend_on_padding_or_other_strings(name: str, writes: bool) -> None:
    problem = problem_of(name, writes=writes)
    compare_beside(model_of(problem), ids_of(problem))


@given(fields=zoo.judging_fields())
@torch.no_grad()
def test_any_network_ignores_padding_and_other_strings(fields: dict[str, Any]) -> None:
    problem = resolve(configuration(fields))
    compare_beside(model_of(problem), ids_of(problem))


@pytest.mark.parametrize(("name", "writes"), CASES)
@torch.no_grad()
def test_causal_networks_do_not_read_ahead(name: str, writes: bool) -> None:
    problem = problem_of(name, writes=writes)
    network = problem.network
    model = model_of(problem)
    if not writes and network.architecture == "transformer" and network.attention_mask == "full":
        return
    ids = torch.tensor([[CLS, 2, 3, 3, 2, 3, 2]])
    if writes:
        ids[0, 3] = separator_id(network)
    later = ids.clone()
    later[0, 5:] = torch.tensor([2, 3])
    if writes:
        torch.testing.assert_close(model(ids)[:, :5], model(later)[:, :5], rtol=0, atol=1e-12)
        assert (model(ids)[:, 5] != model(later)[:, 5]).any()
        return
    states, others = (model.activations(own) for own in (ids, later))
    compared = [name for name, value in states.items() if value.ndim == 3]
    for state in compared:
        torch.testing.assert_close(states[state][:, :5], others[state][:, :5], msg=state, **NEAR)
    assert compared


@pytest.mark.parametrize("name", [name for name, writes in CASES if writes])
@torch.no_grad()
def test_cached_step_equals_reading_the_whole(name: str) -> None:
    problem = problem_of(name, writes=True)
    model, inputs = model_of(problem), TokenStrings.of_lists(3, [[0, 1, 2, 0], [], [2, 1], [1]])
    ids = beginnings(problem, inputs)
    readers = stepping(model), Anew(model)
    (outputs, cached), (expected, again) = (reader.begin(ids, 5) for reader in readers)
    assert form(model, "step") is not None
    torch.testing.assert_close(outputs, expected, **NEAR)
    for tokens in ([2, 3, 4, 2], [4, 4, 2, 3], [3, 2, 2, 4, 3]):
        if len(tokens) > 4:
            # Of four strings one goes on twice, and one not at all.
            rows = torch.tensor([2, 0, 0, 1, 2])
            cached, again = (map_cached(itemgetter(rows), x) for x in (cached, again))
        (outputs, cached), (expected, again) = (
            reader.step(torch.tensor(tokens), before)
            for reader, before in zip(readers, (cached, again), strict=True)
        )
        torch.testing.assert_close(outputs, expected, **NEAR)


class Settings(SimpleNamespace):
    """The configuration that the classes of an exported file read."""

    def model_copy(self, update: dict[str, Any]) -> "Settings":
        return Settings(**{**vars(self), **update})


@pytest.mark.parametrize(("name", "writes"), CASES)
@torch.no_grad()
def test_exported_source_computes_the_same(name: str, writes: bool) -> None:
    problem = problem_of(name, writes=writes)
    model, ids = model_of(problem), ids_of(problem)
    if problem.network.coupling:
        with pytest.raises(ConfigError, match="coupling"):
            source_of(problem.network)
        return
    made: dict[str, Any] = {}
    exec(source_of(problem.network), made)
    alone = made["MODEL"](Settings(**network_json(problem.network))).double()
    alone.load_state_dict(model.state_dict())
    torch.testing.assert_close(alone.eval()(ids), model(ids), **NEAR)


ROUGHLY = {
    "relative",
    "fire",
    "encoder_decoder",
    "rnn",
    "gru",
    "slstm",
    "linear_attention",
    "mamba",
}
ROUGHLY |= {"deltanet", "gated_deltanet", "deltaproduct", "hybrid"}
"""Networks of which some small part is not counted, or the most that there may be."""


@pytest.mark.parametrize("name", zoo.NETWORKS)
def test_estimated_size_is_that_of_the_parameters(name: str) -> None:
    problem = zoo.problem(name, writes=name in zoo.WRITERS, biases=False)
    size = sum(value.nbytes for value in zoo.scattered_weights(problem.network).values())
    estimated = machine.parameter_bytes(problem)
    assert 0.7 * size < estimated < 2.7 * size if name in ROUGHLY else estimated == size


def test_plugin_parts_keep_the_contract() -> None:
    with parts_from_outside():
        for own in ({"architecture": "bag"}, {"positions": "every_other", "num_blocks": 2}):
            fields = {**zoo.TINY, "task": "ends_with_b", **own}
            problem = resolve(configuration({**fields, "train_size": 70, "train_batch_size": 70}))
            with torch.no_grad():
                compare_beside(model_of(problem), ids_of(problem))
            for engine in ("strings", "stacked"):
                compare_gradients(engine, problem, zoo.scattered_weights(problem.network))


def test_overridden_run_of_a_subclass_is_used() -> None:
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
        logits.append(compute(model, batch))
    torch.testing.assert_close(logits[1], 2 * logits[0])


class BothWays(LinearAttentionMixer):
    is_causal = False


class Bidirectional(Mixing):
    mixer = BothWays
    letter = "b"


def test_noncausal_plugin_mixer_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MODELS, "_own", {**MODELS._own, "both": Bidirectional})
    fields = {"task": "parity", **LAST}
    alone = obstacle_of({**fields, "architecture": "both"}) or ""
    assert "architecture='both': its mixer gives tokens what comes after" in alone
    block = obstacle_of({**fields, "architecture": "hybrid", "layers": "ab"}) or ""
    assert "layers='ab': 'b' cannot be a block: architecture='both': its" in block
