"""The contract of every engine: the numbers of the readable model and of a plain training loop."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from seqcls.cache import cache_folder
from seqcls.engines.base import Member
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.engines.compiled import machine_code
from seqcls.engines.member import draw_initial, learning_rates
from seqcls.errors import EngineError, GroupError
from seqcls.kinds.base import Examples
from seqcls.models.initialization import initial_parameters
from seqcls.problem import Problem, configuration, resolve
from seqcls.results import EpochLosses, Weights
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import TokenStrings
from seqcls.training import train_group
from tests import zoo
from tests.contracts import engines
from tests.contracts.readable import (
    compare_answers,
    compare_gradients,
    compare_members,
    with_precision,
)
from tests.oracles.counting import logits_of_counts
from tests.oracles.training import train_plainly

KINDS: dict[str, dict[str, bool]] = {
    "judges": {}, "writes": {"writes": True}, "answers": {"answers": True},
}  # fmt: skip
CASES = [
    *((name, "judges") for name in zoo.JUDGES),
    *((name, "writes") for name in zoo.WRITERS),
    *((name, "answers") for name in zoo.ANSWERERS),
]
# A tile of 64 strings and more, trained on at once.
ONE_BATCH: dict[str, Any] = {"train_size": 70, "train_batch_size": 70}


def engine_problems(problem: Problem) -> list[tuple[str, Problem]]:
    """The engines that train a problem's models in double precision, and in single the others."""
    double, single = (with_precision(problem, x) for x in ("float64", "float32"))
    found = [(engine, double) for engine in engines.engines_of(double)]
    compiled = {"fused", "lanes"} & {*engines.engines_of(single)}
    return [*found, *((engine, single) for engine in sorted(compiled))]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_losses_and_gradients_equal_the_readable_model(name: str, kind: str) -> None:
    # With a mean readout, the empty string has a gradient for the bias of the head alone.
    biased = {"biases": True} if name == "mean" else {}
    for engine, problem in engine_problems(zoo.problem(name, **KINDS[kind], **ONE_BATCH, **biased)):
        assert problem.writes or stream(problem.train).epoch(0).strings.lengths.min() == 0
        compare_gradients(engine, problem, zoo.scattered_weights(problem.network))


@pytest.mark.parametrize(("name", "kind"), [x for x in CASES if x[1] != "writes"])
def test_logits_equal_the_readable_model(name: str, kind: str) -> None:
    for engine, problem in engine_problems(zoo.problem(name, **KINDS[kind], **ONE_BATCH)):
        members = [zoo.scattered_weights(problem.network, seed, 0.5) for seed in (0, 1)]
        compare_answers(engine, problem, members)


NARROWER: dict[str, dict[str, Any]] = {
    "fused": {
        "architecture": ["transformer"], "num_blocks": [1], "activation": ["gelu", "relu"],
        "attention_scale": ["sqrt", "log_length"], "final_norm": [False],
        "norm_placement": ["pre"], "position_draw": ["sorted"],
        "positions": ["none"],
    },
    "counts": {
        "architecture": ["transformer"], "positions": ["none"], "attention_mask": ["full"],
    },
    "lanes": {
        "architecture": [
            "transformer", "transformer", "rnn", "gru", "lstm", "deltanet", "gated_deltanet",
            "mamba", "hybrid", "deltaproduct", "slstm", "linear_attention",
        ],
        "layers": ["mag", "mda", "lps", "ras"],
    },
    "strings": {},
}  # fmt: skip
"""By engine, settings of drawn networks, many of which it can train."""


@pytest.mark.parametrize("engine", NARROWER)
@given(data=st.data())
def test_any_network_equals_the_readable_model(engine: str, data: st.DataObject) -> None:
    precision = "float32" if engine == "lanes" else "float64"
    scaled = {"train_loss": "sigmoid_scaled"} if data.draw(st.booleans()) else {}
    fields = data.draw(zoo.judging_fields(**NARROWER[engine]))
    problem = resolve(configuration({**fields, **ONE_BATCH, **scaled, "precision": precision}))
    assume(engine in engines.engines_of(problem))
    weights = zoo.scattered_weights(problem.network)
    for own in (engine, engines.STACKED) if engine == "strings" else (engine,):
        compare_gradients(own, problem, weights)
        compare_answers(own, problem, [weights])


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"no_attend_cls": True},
        {"num_blocks": 2, "attention_scale": "learned_log_length"},
        {"num_blocks": 2, "readout": "mean", "biases": True},
    ],
)
def test_letter_counts_of_ten_million_are_exact(fields: dict[str, Any]) -> None:
    strings = TokenStrings.of_counts(2, np.array([[10_000_000, 0], [1, 10_000_000], [3, 5]]))
    reading_counts = []
    for engine, problem in engine_problems(zoo.problem("report", **fields)):
        if engine == engines.STACKED or not engine_named(engine).reads_counts(problem):
            continue
        weights = zoo.scattered_weights(problem.network)
        (found,) = engines.logits(engine, problem, [weights], strings)
        expected = logits_of_counts(problem.network, weights, strings.counts)
        near = 1e-9 if problem.config.precision == "float64" else 6e-5
        np.testing.assert_allclose(
            found, expected, rtol=0, atol=near * np.abs(expected).max(), err_msg=engine
        )
        reading_counts.append(engine)
    assert {*reading_counts} >= {"counts", "lanes"}


@pytest.mark.parametrize("name", ["report", "mean", "alibi", "gru", "mamba", "hybrid", "rotary"])
def test_answers_do_not_depend_on_other_strings(name: str) -> None:
    rng = np.random.default_rng(5)
    lengths = [0, 1, 2, 5, 17, 33, *rng.integers(0, 40, 60)]
    rows = [rng.integers(0, 2, length).tolist() for length in lengths]
    strings = TokenStrings.of_lists(2, rows)
    for engine, problem in engine_problems(zoo.problem(name, test_max_length=40)):
        members = [zoo.scattered_weights(problem.network)]
        together = engines.logits(engine, problem, members, strings)[0]
        near = 0 if engine == "lanes" else 1e-6
        for chosen in (np.arange(66)[::-1], np.array([0]), np.array([4]), np.array([3, 5, 60, 3])):
            alone = engines.logits(engine, problem, members, strings.take(chosen))[0]
            np.testing.assert_allclose(
                alone, together[chosen], rtol=near, atol=near, err_msg=f"{engine} {chosen}"
            )
        assert engines.logits(engine, problem, members, strings.take(slice(0, 0))).shape == (1, 0)


COMPILED_WRITERS = (
    *("two blocks", "sinusoidal", "learned", "shifted", "rotary", "alibi", "coupled", "gpt2"),
    *("coupled_marks", "rnn", "gru", "lstm", "deltanet", "gated_deltanet", "mamba", "hybrid"),
    *("deltaproduct", "slstm", "linear_attention", "encoder_decoder"),
)


def compare_outputs(problem: Problem, weights: Weights, examples: Examples, near: float) -> Any:
    """Asserts that compiled code scores and writes outputs as PyTorch does.

    Returns the scores of PyTorch, and the outputs of compiled code and of PyTorch.
    """
    found, plain = (engines.score(x, problem, weights, examples) for x in ("lanes", "strings"))
    assert np.array_equal(found.right, plain.right)
    assert np.array_equal(found.right_length_given, plain.right_length_given)
    scores = found.log_probability, plain.log_probability
    np.testing.assert_allclose(*scores, rtol=min(near, 1e-3), atol=near)
    written, expected = (
        engines.write(x, problem, weights, examples.strings) for x in ("lanes", "strings")
    )
    assert [x[:2] for x in written] == [x[:2] for x in expected]
    return plain, written, expected


@pytest.mark.parametrize("name", COMPILED_WRITERS)
def test_compiled_outputs_equal_the_readable_model(name: str) -> None:
    problem = zoo.problem(name, writes=True, num_tokens=5, hidden_size=12, precision="float32")
    weights, examples = weights_that_end(problem), stream(problem.test).epoch(0)
    _, *outputs = compare_outputs(problem, weights, examples, 0.01)
    written, expected = ([x.log_probability for x in own] for own in outputs)
    np.testing.assert_allclose(written, expected, atol=0.01)
    assert len({len(x.tokens) for x in outputs[1]}) > 3, "outputs of many lengths are compared"
    none = examples.take(np.arange(0))
    assert engines.write("lanes", problem, weights, none.strings) == []
    assert len(engines.score("lanes", problem, weights, none).right) == 0


@pytest.mark.parametrize("name", ["lstm", "rnn"])
@pytest.mark.parametrize("kind", ["judges", "answers", "writes"])
def test_overflowing_letter_does_not_affect_other_strings(name: str, kind: str) -> None:
    problem = zoo.problem(name, **KINDS[kind], precision="float32")
    weights, examples = weights_that_end(problem), stream(problem.test).epoch(0)
    (embedding,) = (x for x in weights if x.endswith("embedding.weight"))
    # Products with it are greater than any number of single precision.
    weights[embedding][-1] = 3e38
    if kind == "writes":
        assert np.isfinite(
            compare_outputs(problem, weights, examples, 1e-3)[0].log_probability
        ).any()
        return
    found, plain = (
        engines.logits(x, problem, [weights], examples.strings) for x in ("lanes", "strings")
    )
    np.testing.assert_allclose(found, plain, rtol=1e-3, atol=1e-3)
    assert np.isfinite(plain).any()


def weights_that_end(problem: Problem) -> Weights:
    """Some that make outputs end early, late and not at all."""
    # Numbers that go through a memory would grow to millions, and single precision end.
    plain = problem.config.architecture in ("transformer", "rnn", "gru", "lstm")
    larger, seed = (3, 3) if plain else (1.5, 5)
    rng = np.random.default_rng(seed)
    return {
        name: (larger * value.numpy() + rng.normal(0, 0.3, value.shape)).astype(np.float32)
        for name, value in initial_parameters(problem.network, 3).items()
    }


# Training.

LENGTHS: dict[str, Any] = {
    "test_size": 256,
    "max_num_epochs": 2,
    "patience": 99,
    "min_validation_loss": 0.0,
}
BY_STEPS: dict[str, Any] = {
    "learning_rate_interval": "step", "final_learning_rate_factor": 0.0, "decay": "matrices",
    "weight_decay": 0.5,
}  # fmt: skip
STAGES: dict[str, Any] = {"train_lengths": [[3, 0.25], [6, 1.0]]}
FROZEN: dict[str, Any] = {"freeze": [["embeddings", 0.4], ["head", 0.7]]}
TRAINED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "report": ("report", "judges", {"hidden_size": 2}),
    "no norms, scaled loss, no heads": (
        "report", "judges",
        {"layer_norm_eps": 0.0, "train_loss": "sigmoid_scaled", "num_attention_heads": 0},
    ),
    "a short last batch": (
        "report", "judges",
        {"task": "contains_all", "train_sampler": "fixed_length", "sequence_length": 5},
    ),
    "clipped, by steps": ("report", "judges", {**BY_STEPS, "gradient_clip": 0.1, "biases": True}),
    "mean, as a cosine": (
        "mean", "judges", {**BY_STEPS, "learning_rate_schedule": "cosine", "layer_norm": "nn"},
    ),
    "places drawn": ("randomized", "judges", {"weight_decay": 0.5}),
    "a table, warm-up": (
        "report", "judges", {**BY_STEPS, "warm_up_steps": 3, "positions": "alibi"},
    ),
    "stages, parts fixed": ("report", "judges", {**STAGES, **FROZEN}),
    "two blocks, clipped": ("two blocks", "judges", {"weight_decay": 0.5, "gradient_clip": 0.1}),
    "post, by steps": ("alibi", "judges", {**BY_STEPS, "warm_up_steps": 3}),
    "learned scales": ("relative", "judges", {}),
    "drawn places, turned": ("rotary", "judges", {"position_range": 60, "gradient_clip": 0.1}),
    "gpt2": ("gpt2", "judges", {"final_learning_rate_factor": 0.0}),
    "dropout": ("shifted", "judges", {"dropout_rate": 0.3}),
    "gru, parts fixed": (
        "gru", "judges", {"freeze": [["block 0", 0.5]], "gradient_clip": 0.05, **STAGES},
    ),
    "gru, by steps": ("gru", "judges", {**BY_STEPS, "warm_up_steps": 2}),
    "lstm of two layers": ("lstm", "judges", {"num_blocks": 2, "gradient_clip": 0.1}),
    "lstm, dropout": ("lstm", "judges", {"num_blocks": 2, "dropout_rate": 0.3}),
    "hybrid": ("hybrid", "judges", {"gradient_clip": 0.1}),
    "mamba": ("mamba", "judges", {"final_norm": False}),
    "writes": ("rotary", "writes", {"loss_on": "all"}),
    "writes, shifted, by steps": ("gpt2", "writes", {**BY_STEPS, "warm_up_steps": 2}),
    "writes, coupled": ("coupled", "writes", FROZEN),
    "writes, gru, tied": ("gru", "writes", {**BY_STEPS, "tied_embeddings": True, "loss_on": "all"}),
    "deltaproduct": ("deltaproduct", "judges", {"gradient_clip": 0.1, **STAGES}),
    # With a bias of its input gates all of them grow alike, and nothing changes but last digits.
    "slstm, parts fixed": (
        "slstm", "judges", {**BY_STEPS, **FROZEN, "num_blocks": 2, "biases": False},
    ),
    "linear attention": ("linear_attention", "judges", {"gradient_clip": 0.1}),
    "writes, slstm": ("slstm", "writes", {"loss_on": "all", **BY_STEPS, "biases": False}),
    "writes, two streams, dropout": ("encoder_decoder", "writes", {"dropout_rate": 0.02}),
    "writes, two streams": ("encoder_decoder", "writes", {**BY_STEPS, **FROZEN}),
    "answers": ("rnn", "answers", {"biases": True}),
}  # fmt: skip
"""By name: a network, its kind of answer, and how it is trained."""


SLOWLY = ("report", "two blocks, clipped", "gru, parts fixed", "hybrid", "writes, coupled")
"""Cases for the GPU's engine, which takes long on a CPU."""


def problem_of(name: str, kind: str, more: dict[str, Any]) -> Problem:
    return zoo.problem(name, **KINDS[kind], **{**LENGTHS, "train_size": 192, **more})


@pytest.mark.parametrize("name", TRAINED)
def test_training_a_group_equals_a_plain_pytorch_loop(name: str) -> None:
    for engine, problem in engine_problems(problem_of(*TRAINED[name])):
        if engine == engines.STACKED and name not in SLOWLY:
            continue
        _, member = engines.train(engine, problem, (0, 1), every_epoch=True)
        plain = train_plainly(problem, 1)
        is_double = problem.config.precision == "float64"
        near = 1e-9 if is_double else 1e-4
        assert member.train_losses == pytest.approx(plain.train_losses, rel=near), engine
        assert member.validation_losses == pytest.approx(plain.validation_losses, rel=near), engine
        for parameter, value in plain.weights.items():
            # Scores of one query move all alike with it: its gradient is 0 but for rounding.
            if is_double or "key.bias" not in parameter:
                atol = (1e-8 if is_double else 1e-4) * max(1, np.abs(value.numpy()).max(initial=0))
                np.testing.assert_allclose(
                    member.weights[2][parameter], value, rtol=0, atol=atol,
                    err_msg=f"{engine}: {parameter}",
                )  # fmt: skip


ENDING: dict[str, Any] = {
    "max_num_epochs": 8, "min_num_epochs": 1, "patience": 1, "learning_rate": 0.05,
}  # fmt: skip
"""Fields with which members stop early, after different epochs."""
UNTIL_RIGHT: dict[str, Any] = {
    "stop_when_right": True, "check_every": 3, "patience": 99, "train_size": 160,
    "train_batch_size": 16, "max_num_epochs": 12,
}  # fmt: skip
"""Fields with which they stop within epochs."""
BESIDE: list[tuple[str, str, dict[str, Any], int]] = [
    ("fused", "report", {"hidden_size": 2}, 16),
    ("lanes", "randomized", {}, 4),
    ("counts", "report", {"hidden_size": 2}, 16),
    ("lanes", "two blocks", {}, 4),
    ("lanes", "lstm", {}, 4),
    ("strings", "rotary", {"position_range": 60, "gradient_clip": 0.1}, 4),
    ("strings", "shifted", {"num_blocks": 2, "dropout_rate": 0.05}, 4),
    ("strings", "slstm", {}, 4),
    ("strings", "deltaproduct", {}, 4),
    ("counts", "report", {"task": "contains_all", "num_blocks": 2, **UNTIL_RIGHT}, 5),
    ("strings", "rnn", {"task": "first", "dropout_rate": 0.02, **UNTIL_RIGHT}, 4),
]


@pytest.mark.parametrize(("engine", "name", "more", "members"), BESIDE)
def test_member_trains_bit_for_bit_as_alone(
    engine: str, name: str, more: dict[str, Any], members: int
) -> None:
    problem = zoo.problem(name, **{**LENGTHS, **ENDING, **more, "precision": "float32"})
    reported: list[EpochLosses] = []
    done: list[float] = []

    def progress(members_done: float, epochs: Sequence[EpochLosses]) -> None:
        done.append(members_done)
        reported.extend(epochs)

    together = engines.train(engine, problem, range(members), progress=progress)
    assert len({member.epochs for member in together}) > 1, "some stop before others"
    assert done == sorted(done)
    assert done[-1] == members
    last = engines.train(engine, problem, [members - 1, 1])
    # All strings at once are added up in an order that depends on how many members there are.
    near = 1e-4 if engine == "counts" else 0
    for own, other in ((together[members - 1], last[0]), (together[1], last[1])):
        compare_members(own, other, near)
        assert list(own.weights) == [own.best_epoch], "the best epoch's weights alone are stored"
    for number, member in enumerate(together):
        own_epochs = [epoch for epoch in reported if epoch.member == number]
        assert [epoch.epoch for epoch in own_epochs] == list(range(1, member.epochs + 1))
        assert [epoch.train_loss for epoch in own_epochs] == member.train_losses
        assert [epoch.validation_loss for epoch in own_epochs] == member.validation_losses


@pytest.mark.parametrize(
    ("engine", "name"),
    [("fused", "report"), ("counts", "report"), ("lanes", "lstm"), ("strings", "rotary")],
)
def test_diverging_member_fails_alone(engine: str, name: str) -> None:
    problem = zoo.problem(name, precision="float32")
    members: list[Member] = [(problem, seed) for seed in (0, 1, 2)]
    initial = draw_initial(members)
    initial[1] = {name: value * np.float32(1e30) for name, value in initial[1].items()}
    first, failed, last = train_group(members, engine=engine, device="cpu", initial=initial)
    sane = engines.train(engine, problem, (0, 2))
    assert (failed.failure or "").startswith("diverged in epoch 1: the training loss became ")
    assert (failed.best_epoch, failed.weights, failed.train_losses) == (None, {}, [])
    with pytest.raises(ValueError, match="has no model: diverged"):
        _ = failed.kept_weights
    for own, other in ((first, sane[0]), (last, sane[1])):
        np.testing.assert_allclose(own.train_losses, other.train_losses, rtol=1e-5)
    (alone,) = train_group(members[1:2], engine=engine, device="cpu", initial=initial[1:2])
    assert alone.failure == failed.failure


def test_members_of_one_group_may_start_differently() -> None:
    problems = [
        zoo.problem("report", precision="float32", embeddings_init_strategy=x)
        for x in ("default", "linear_like")
    ]
    together = train_group([(problem, 0) for problem in problems])
    for problem, member in zip(problems, together, strict=True):
        assert train_group([(problem, 0)])[0].train_losses == member.train_losses
    assert together[0].train_losses != together[1].train_losses
    for members in ([], [(zoo.problem("report"), 0), (zoo.problem("report", hidden_size=3), 0)]):
        with pytest.raises(GroupError, match=f"{len(members)} runs cannot train together"):
            train_group(members)


# The learning rate.


def test_learning_rate_warms_up_and_decays() -> None:
    def rates(**fields: Any) -> list[float]:
        fields |= {"train_size": 10, "train_batch_size": 4, "max_num_epochs": 10}
        problem = zoo.problem("mamba", learning_rate=1, **fields)
        return [rate for x in range(1, 11) for rate in learning_rates(problem, x).tolist()]

    def cosine(done: float) -> float:
        return 0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2

    falling = {"learning_rate_schedule": "cosine", "final_learning_rate_factor": 0.1}
    by_epoch = [cosine(step // 3 / 10) for step in range(30)]
    assert rates(**falling) == pytest.approx(by_epoch, rel=1e-12)
    growing = [min(step / 4, 1) * rate for step, rate in enumerate(by_epoch, 1)]
    assert rates(**falling, warm_up_steps=4) == pytest.approx(growing, rel=1e-12)
    by_step = {**falling, "learning_rate_interval": "step"}
    assert rates(**by_step) == pytest.approx([cosine(step / 30) for step in range(30)], rel=1e-12)
    warm = [0.25, 0.5, 0.75, 1, *(cosine(step / 26) for step in range(26))]
    assert rates(**by_step, warm_up_steps=4) == pytest.approx(warm, rel=1e-12)
    endless = rates(**by_step, warm_up_steps=60)
    assert endless == pytest.approx([step / 60 for step in range(1, 31)], rel=1e-12)
    assert rates(**{**by_step, "learning_rate_schedule": "linear"})[15] == pytest.approx(
        0.55, rel=1e-12
    )


# Which engine, and why not another.

LAST: dict[str, Any] = {"readout": "last"}
WRITES: dict[str, Any] = {"task": "copy"}
SHIFTED: dict[str, Any] = {
    "positions": "learned",
    "position_draw": "shifted",
    "validation_max_length": 10,
}
TURNED: dict[str, Any] = {"attention_head_size": 2}
CHOSEN: list[tuple[dict[str, Any], str, str]] = [
    ({}, "fused", "letter counts suffice, on the CPU"),
    ({"readout": "mean"}, "lanes", "readout='mean'"),
    *(
        ({"positions": x, **TURNED, "validation_max_length": 10}, "lanes", f"positions='{x}'")
        for x in ("alibi", "learned", "relative", "rotary", "sinusoidal")
    ),
    ({"num_blocks": 2}, "lanes", "num_blocks=2"),
    ({"activation": "gelu_tanh"}, "lanes", "activation='gelu_tanh'"),
    ({"final_norm": True}, "lanes", "final_norm=True"),
    ({"norm_placement": "post"}, "lanes", "norm_placement='post'"),
    ({"dropout_rate": 0.5}, "strings", "dropout_rate=0.5"),
    ({"readout": "mean", "positions": "alibi"}, "lanes", "positions='alibi'"),
    ({"attention_scale": "learned_log_length"}, "lanes", "learned_log_length"),
    ({"positions": "fire"}, "lanes", "positions='fire'"),
    (SHIFTED, "lanes", "positions='learned'"),
    ({"num_blocks": 2, "precision": "float64"}, "counts", "precision='float64'"),
    ({"num_blocks": 2, "hidden_size": 200}, "counts", "hidden_size=200"),
    ({"architecture": "lstm", **LAST}, "lanes", "architecture='lstm'"),
    ({"architecture": "lstm", **LAST, "precision": "float64"}, "strings", "precision='float64'"),
    ({"architecture": "lstm", **LAST, "hidden_size": 600}, "strings", "hidden_size=600"),
    ({"architecture": "hybrid", **LAST, "layers": "gda"}, "lanes", "architecture='hybrid'"),
    *(
        ({"architecture": x, **LAST}, "lanes", f"architecture='{x}'")
        for x in ("deltaproduct", "slstm", "linear_attention")
    ),
    ({"architecture": "slstm", **LAST, "dropout_rate": 0.1}, "strings", "dropout_rate=0.1"),
    (WRITES, "lanes", ""),
    ({**WRITES, "precision": "float64"}, "strings", "precision='float64'"),
    ({**WRITES, "architecture": "encoder_decoder"}, "lanes", ""),
    ({**WRITES, "architecture": "recurrent_attention"}, "strings", "recurrent_attention"),
    ({**WRITES, "architecture": "lstm", "num_tokens": 150}, "strings", "152 tokens"),
    ({**WRITES, "architecture": "lstm", "hidden_size": 300}, "strings", "hidden_size=300"),
    ({**zoo.ANSWERED, "architecture": "rnn"}, "lanes", ""),
    ({**zoo.ANSWERED, "positions": "alibi", "position_range": 300}, "strings", "position_range="),
]
CANNOT: list[tuple[str, dict[str, Any], str]] = [
    ("fused", {"dropout_rate": 0.5}, "dropout_rate=0.5"),
    ("fused", {"architecture": "lstm", **LAST}, "architecture='lstm'"),
    ("fused", {"readout": "mean"}, "readout='mean'"),
    ("fused", SHIFTED, "positions='learned'"),
    ("lanes", {**zoo.ANSWERED, "positions": "alibi", "position_range": 300}, "position_range=300"),
    ("counts", {"architecture": "mamba", **LAST}, "equal letter counts"),
    ("counts", WRITES, "task='copy'"),
]


def test_engine_is_chosen_with_a_reason() -> None:
    for fields, name, named in CHOSEN:
        choice = choose_engine(resolve(configuration(fields)), device="cpu")
        assert choice.name == name, (fields, str(choice))
        assert named in choice.reason, (fields, str(choice))
    for engine, fields, named in CANNOT:
        with pytest.raises(EngineError) as refused:
            choose_engine(resolve(configuration(fields)), engine)
        assert named in str(refused.value), fields
    plain = resolve(configuration({}))
    assert choose_engine(plain, "torch").reason == "asked for"
    assert choose_engine(plain, device="cuda").name == "counts"
    with pytest.raises(EngineError, match="engine 'jax': expected auto, torch, fused, "):
        choose_engine(plain, "jax")


def test_answering_does_not_wait_for_compilation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = resolve(configuration({"architecture": "lstm", **LAST}))
    known = (cache_folder(), "float32", machine_code.TAPE)
    monkeypatch.setattr(machine_code, "_READY", {known})
    assert choose_engine(problem, ready=True).name == "lanes"
    monkeypatch.setenv("SEQCLS_CACHE", str(tmp_path))
    assert choose_engine(problem, ready=True).name == "strings"
    assert choose_engine(problem).name == "lanes"
    assert choose_engine(problem, "lanes", ready=True).name == "lanes"
