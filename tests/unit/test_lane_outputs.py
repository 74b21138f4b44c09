"""The engine of lanes where all tokens are read: teaching, scoring, writing and answering."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from seqcls.decode import best_written, output_limits, score
from seqcls.engines.choice import choose_engine
from seqcls.engines.compiled.arithmetic import BETA_1
from seqcls.engines.compiled.engine import Program, Steps, Update
from seqcls.engines.lanes.batches import make_batch
from seqcls.engines.lanes.engine import Lanes, program_of
from seqcls.engines.lanes.program import OutputProgram
from seqcls.engines.pytorch.computations import OneByOne
from seqcls.engines.pytorch.groups import FlatGroup, Losses
from seqcls.evaluation import ask, evaluate, judge_validation, logits_of
from seqcls.kinds import Examples
from seqcls.kinds.base import Questions
from seqcls.kinds.transduction import OutputAnswers
from seqcls.models.initialization import initial_parameters
from seqcls.problem import Problem, configuration, resolve
from seqcls.results import Weights
from seqcls.sampling.streams import stream
from seqcls.training import train_group

SIZES = {
    "hidden_size": 12,
    "num_blocks": 2,
    "num_attention_heads": 2,
    "attention_head_size": 6,
    "feed_forward_size": 20,
}
GPT_2 = {
    "layer_norm": "nn",
    "final_norm": True,
    "biases": True,
    "activation": "gelu_tanh",
    "embeddings_init_strategy": "gpt2",
}
CASES: dict[str, dict[str, Any]] = {
    "no positions": SIZES,
    "sinusoidal, GPT-2": {**SIZES, **GPT_2, "positions": "sinusoidal"},
    "shifted, tied": {
        **SIZES,
        **GPT_2,
        "positions": "learned",
        "position_draw": "shifted",
        "tied_embeddings": True,
    },
    "rotary, all tokens": {**SIZES, "positions": "rotary", "loss_on": "all"},
    "relative, after, tied": {
        **SIZES,
        "positions": "relative",
        "norm_placement": "post",
        "tied_embeddings": True,
    },
    "alibi, ln N": {
        **SIZES,
        "positions": "alibi",
        "attention_scale": "log_length",
        "no_attend_cls": True,
    },
    "coupled": {**SIZES, "positions": "coupled", "loss_on": "all"},
    "coupled with its marks": {
        **SIZES,
        "task": "addition",
        "digit_order": "least_first",
        "num_tokens": 2,
        "positions": "coupled_marks",
    },
    "coupled backwards": {**SIZES, "task": "reverse", "positions": "coupled_marks"},
    "deltanet": {**SIZES, "architecture": "deltanet"},
    "gated deltanet, signed, all tokens": {
        **SIZES,
        "architecture": "gated_deltanet",
        "eigenvalue_range": "signed",
        "loss_on": "all",
        "final_norm": True,
    },
    "mamba": {
        "architecture": "mamba",
        "hidden_size": 12,
        "num_blocks": 2,
        "feed_forward_size": 20,
        "state_size": 3,
        "eigenvalue_range": "signed",
    },
    "hybrid": {
        **SIZES,
        "num_blocks": 1,
        "architecture": "hybrid",
        "layers": "gamd",
        "positions": "rotary",
        "norm_placement": "post",
        "biases": True,
        "short_convolution": False,
    },
    "lstm": {"architecture": "lstm", "hidden_size": 10},
    "gru of 2": {"architecture": "gru", "hidden_size": 12, "num_blocks": 2, "biases": True},
    "rnn, tied": {
        "architecture": "rnn",
        "hidden_size": 9,
        "tied_embeddings": True,
        "loss_on": "all",
    },
}
PLACES: dict[str, dict[str, Any]] = {
    "next symbols, GPT-2, tied": {
        **CASES["shifted, tied"],
        "answers": "next_symbols",
        "task": "regular",
        "alphabet": "ab",
        "pattern": "(abab)*",
    },
    "next symbols": {**SIZES, "answers": "next_symbols", "task": "dyck", "max_depth": 3},
    "prefixes": {**SIZES, "answers": "prefixes", "task": "majority", "biases": True},
    "states, rotary": {
        **SIZES,
        "answers": "states",
        "task": "word_problem",
        "group": "S3",
        "positions": "rotary",
    },
    "states, hybrid": {
        **SIZES,
        "num_blocks": 1,
        "answers": "states",
        "task": "word_problem",
        "group": "S3",
        "architecture": "hybrid",
        "layers": "ag",
        "positions": "alibi",
        "final_norm": True,
    },
    "next symbols, rnn, tied": {
        "answers": "next_symbols",
        "task": "regular",
        "alphabet": "ab",
        "pattern": "(ab|b)*",
        "architecture": "rnn",
        "hidden_size": 10,
        "tied_embeddings": True,
    },
    "prefixes, lstm": {
        "answers": "prefixes",
        "task": "majority",
        "architecture": "lstm",
        "hidden_size": 9,
        "biases": True,
    },
    "states, gru of 2": {
        "answers": "states",
        "task": "word_problem",
        "group": "S3",
        "architecture": "gru",
        "hidden_size": 9,
        "num_blocks": 2,
    },
}

NO_UPDATE = Update(np.zeros(1), 0.0, 0.0)


@cache
def problem_of(name: str) -> Problem:
    return resolve(
        configuration(
            {
                "train_size": 96,
                "train_batch_size": 32,
                "train_max_length": 9,
                "validation_size": 40,
                "validation_max_length": 9,
                "test_size": 100,
                "test_max_length": 14,
                "max_num_epochs": 2,
                **(PLACES.get(name) or {"task": "copy", "num_tokens": 5, **CASES[name]}),
            }
        )
    )


def weights_of(problem: Problem) -> Weights:
    """Some that make outputs end early, late and not at all."""
    # Numbers that go through a memory would grow to millions, and single precision end.
    plain = problem.config.architecture in ("transformer", "rnn", "gru", "lstm")
    larger, seed = (3, 3) if plain else (1.5, 5)
    rng = np.random.default_rng(seed)
    return {
        name: (larger * value.numpy() + rng.normal(0, 0.3, value.shape)).astype(np.float32)
        for name, value in initial_parameters(problem.network, 3).items()
    }


def program(problem: Problem) -> OutputProgram:
    made: Program = program_of(problem)
    assert isinstance(made, OutputProgram)
    return made


def plain_gradient(
    problem: Problem, weights: Weights, examples: Examples
) -> tuple[float, dict[str, np.ndarray]]:
    """The sum of the losses, and the gradient of their mean by tokens."""
    network, kind, cpu = problem.network, problem.kind, torch.device("cpu")
    seed = problem.config.train_seed
    model = OneByOne(FlatGroup([weights], cpu), network, len(examples), cpu, seed)
    targets = torch.from_numpy(kind.encoded(problem.task, examples, network))
    losses = Losses(lambda x: kind.losses(x, targets, "default"), kind.units(targets))
    (batch,) = model.batches(kind.reading(problem.task, examples))
    mean = model.backward(batch, losses)
    gradients = {name: x.grad for name, x in model.models[0].named_parameters()}
    return float(mean) * losses.units, {k: v.numpy() for k, v in gradients.items() if v is not None}


@pytest.mark.parametrize("name", [*CASES, *PLACES])
def test_gradients_are_those_of_autograd(name: str) -> None:
    problem = problem_of(name)
    weights = {k: v.numpy() for k, v in initial_parameters(problem.network, 3).items()}
    examples = stream(problem.train).epoch(0).take(np.arange(32))
    lesson = make_batch(problem.network, problem.task, examples, [np.arange(32)])
    made = program(problem)
    flat = made.pack(weights)
    moments = np.zeros((2, len(flat)), np.float32)
    results = made.teach(flat, lesson, Steps(moments, 0, NO_UPDATE))
    found = made.unpack(moments[0] / np.float32(1 - BETA_1))

    loss, expected = plain_gradient(problem, weights, examples)
    assert results.loss == pytest.approx(loss, rel=1e-6)
    largest = max(float(np.abs(value).max(initial=0)) for value in expected.values())
    assert found.keys() == expected.keys()
    for parameter, value in expected.items():
        np.testing.assert_allclose(
            found[parameter], value, rtol=0, atol=1e-5 * largest, err_msg=parameter
        )


@pytest.mark.parametrize("name", [*CASES, *PLACES])
def test_training_is_that_of_pytorch(name: str) -> None:
    problem = problem_of(name)
    assert choose_engine(problem).name == "lanes"
    (found,) = train_group([(problem, 4)], engine="lanes", every_epoch=True)
    (expected,) = train_group([(problem, 4)], engine="strings", every_epoch=True)
    np.testing.assert_allclose(found.train_losses, expected.train_losses, rtol=1e-4)
    np.testing.assert_allclose(found.validation_losses, expected.validation_losses, rtol=1e-4)
    for parameter, value in expected.weights[2].items():
        assert found.weights[2][parameter].shape == value.shape
        assert found.weights[2][parameter].dtype == value.dtype


BY_STEPS: dict[str, Any] = {
    "learning_rate_interval": "step", "warm_up_steps": 2, "final_learning_rate_factor": 0.0,
    "decay": "matrices", "weight_decay": 5.0,
}  # fmt: skip


@pytest.mark.parametrize("name", ["shifted, tied", "gru of 2"])
def test_rates_by_steps_and_what_decays_are_those_of_pytorch(name: str) -> None:
    problem = resolve(problem_of(name).config.model_copy(update=BY_STEPS))
    assert choose_engine(problem).name == "lanes"
    (found,) = train_group([(problem, 4)], engine="lanes", every_epoch=True)
    (expected,) = train_group([(problem, 4)], engine="strings", every_epoch=True)
    for parameter, value in expected.weights[2].items():
        if "key.bias" not in parameter:
            tolerance = 1e-4 * float(np.abs(value).max())
            own = found.weights[2][parameter]
            np.testing.assert_allclose(own, value, rtol=0, atol=tolerance, err_msg=parameter)


@pytest.mark.parametrize("name", PLACES)
def test_answers_are_those_of_the_plain_model(name: str) -> None:
    problem = problem_of(name)
    members = [weights_of(problem), train_group([(problem, 1)])[0].kept_weights]
    strings = stream(problem.test).epoch(0).strings
    answers, plain = (logits_of(problem, members, strings, engine=x) for x in ("lanes", "strings"))
    largest = max(1, np.nanmax(np.abs(plain)))
    np.testing.assert_allclose(answers, plain, rtol=0, atol=2e-5 * largest)
    found, expected = (
        [x.wrong_by_length.tolist() for x in evaluate(problem, members, engine=engine)]
        for engine in ("lanes", "strings")
    )
    assert found == expected


def test_training_ends_at_the_check_that_finds_all_answers_right() -> None:
    fields: dict[str, Any] = {
        "stop_when_right": True,
        "check_every": 10,
        "train_size": 3200,
        "patience": 10,
    }
    fields |= {"learning_rate": 0.02, "max_num_epochs": 10}
    config = problem_of("next symbols, rnn, tied").config
    problem = resolve(config.model_copy(update=fields))
    found, expected = (train_group([(problem, 4)], engine=x)[0] for x in ("lanes", "strings"))
    assert found.epochs == expected.epochs < 10
    np.testing.assert_allclose(found.train_losses, expected.train_losses, rtol=1e-3)
    (validated,) = judge_validation(problem, [found.kept_weights])
    assert validated == (40, 0)


@pytest.mark.parametrize("name", CASES)
def test_targets_are_scored_as_by_the_plain_model(name: str) -> None:
    problem = problem_of(name)
    weights, examples = weights_of(problem), stream(problem.test).epoch(0)
    found, expected = Lanes().score(problem, weights, examples), score(problem, weights, examples)
    assert np.array_equal(found.right, expected.right)
    assert np.array_equal(found.right_length_given, expected.right_length_given)
    np.testing.assert_allclose(found.log_probability, expected.log_probability, atol=0.01)


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_is_what_the_plain_model_writes(name: str) -> None:
    problem = problem_of(name)
    weights, inputs = weights_of(problem), stream(problem.test).epoch(0).strings
    found = Lanes().write(problem, weights, inputs, output_limits(problem, inputs))
    expected = best_written(problem, weights, inputs)
    assert [x.tokens for x in found] == [x.tokens for x in expected]
    assert [x.ended for x in found] == [x.ended for x in expected]
    scores = [x.log_probability for x in expected]
    np.testing.assert_allclose([x.log_probability for x in found], scores, atol=0.01)
    lengths = {len(x.tokens) for x in expected}
    assert len(lengths) > 3, "outputs of many lengths are compared"


def test_a_judgment_is_the_same_whoever_writes() -> None:
    problem = problem_of("lstm")
    examples = stream(problem.test).epoch(0)
    weights = train_group([(problem, 1)], engine="lanes")[0].kept_weights
    questions = Questions.about(examples)
    (found,) = ask(problem, [weights], questions, engine="lanes", fast_writing=True)
    (expected,) = ask(problem, [weights], questions)
    assert isinstance(found, OutputAnswers)
    assert isinstance(expected, OutputAnswers)
    assert np.array_equal(found.wrong, expected.wrong)
    assert np.array_equal(found.edits, expected.edits)
    assert found.outputs == expected.outputs
    assert found.error_kinds == expected.error_kinds


def test_nothing_is_written_for_no_inputs() -> None:
    problem = problem_of("lstm")
    weights, none = weights_of(problem), stream(problem.test).epoch(0).take(np.arange(0))
    assert Lanes().write(problem, weights, none.strings, np.zeros(0, np.int64)) == []
    assert len(Lanes().score(problem, weights, none).right) == 0


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"architecture": "encoder_decoder"}, "architecture='encoder_decoder' is not compiled"),
        ({"architecture": "lstm", "num_tokens": 150}, "an alphabet of 152 tokens"),
        ({"architecture": "lstm", "hidden_size": 300}, "hidden_size=300"),
    ],
)
def test_what_is_not_compiled_is_said(fields: dict[str, Any], reason: str) -> None:
    choice = choose_engine(resolve(configuration({"task": "copy", **fields})))
    assert choice.name == "strings"
    assert choice.reason.startswith(reason)
