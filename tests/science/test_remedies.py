"""Suggested remedies: changes that a configuration can have, with reason and source."""

from itertools import product
from typing import Any

import pytest

from seqcls.config import NetworkConfig, RunConfig
from seqcls.interpretability.mechanisms import (
    CAUSES,
    FORGETS,
    FORGETS_WORD,
    LONGER,
    NOT_LEARNED,
    OUTPUT_MECHANISMS,
)
from seqcls.interpretability.remedies import REMEDIES, change_fields, suggestions
from seqcls.problem import configuration, resolve
from seqcls.theory.predictions import theory_of
from sweeps.api.trials import RemedyTrial, rank, results_of, trial_spec
from tests.zoo import LSTM

MECHANISMS = sorted(CAUSES.keys() - {FORGETS, FORGETS_WORD})
BLIND = sorted({*MECHANISMS} - {*OUTPUT_MECHANISMS, LONGER, "dilution", "rounding"})
"""Causes of languages that length does not make."""
ROTARY = {"task": "parity", "positions": "rotary", "attention_head_size": 2, "num_blocks": 2}
CONFIGS = [
    RunConfig(),
    configuration({"task": "parity"}),
    configuration(ROTARY),
    configuration({"task": "parity", "architecture": "lstm", "readout": "last"}),
    configuration({"task": "copy", "positions": "learned", "validation_max_length": 10}),
    configuration({"task": "copy", "positions": "learned", "position_draw": "shifted"}),
    configuration({"task": "sort", "num_blocks": 2}),
    configuration({"task": "copy", "architecture": "gru"}),
]


def test_suggestions_are_trainable_and_change_only_their_fields() -> None:
    assert {mechanism for own in REMEDIES for mechanism in own.causes} == {*MECHANISMS}
    for config, mechanism in product(CONFIGS, MECHANISMS):
        case = f"{mechanism}: {config.changed}"
        for own in suggestions(resolve(config), [mechanism]):
            other = change_fields(config, own.fields)
            before = getattr(config, own.field)
            assert getattr(other, own.field) == own.value != own.before == before, case
            same = {name for name in RunConfig.model_fields if name not in own.fields}
            assert all(getattr(other, name) == getattr(config, name) for name in same), case
            assert own.reason, case
            assert own.source, case


def suggested(config: RunConfig, mechanism: str) -> list[str]:
    return [f"{own.field}={own.value}" for own in suggestions(resolve(config), [mechanism])]


def test_suggestions_fit_the_model() -> None:
    assert suggested(RunConfig(), "dilution")[0] == "attention_scale=log_length"
    already = RunConfig(attention_scale="log_length")
    assert "attention_scale=log_length" not in suggested(already, "dilution")
    assert "num_attention_heads=4" in suggested(RunConfig(), "two heads on one letter")
    rotary, lstm = CONFIGS[2:4]
    places = configuration({**rotary.changed, "task": "even_pairs"})
    assert suggested(places, "longer than in training")[0] == "positions=alibi"
    assert not {"positions=alibi", "architecture=lstm"} & {
        *suggested(lstm, "longer than in training")
    }
    assert "positions=alibi" not in suggested(configuration({"task": "parity"}), "simple rule")
    order = configuration({"task": "even_pairs"})
    assert suggested(order, "simple rule")[0] == "positions=alibi"
    # What cannot see the order is given positions rather than epochs.
    assert suggested(order, NOT_LEARNED) == ["positions=alibi"]
    assert "max_num_epochs=120" in suggested(configuration({"task": "parity"}), NOT_LEARNED)
    # What fails at trained lengths is shown more of them, where there are more.
    assert "train_size=20000" in suggested(lstm, "no cause found")
    fixed = RunConfig(architecture="lstm", readout="last", train_sampler="fixed_length")
    assert not any("train_size" in own for own in suggested(fixed, "errors beyond a bound"))
    # An LSTM needs another readout with it.
    every = suggestions(resolve(CONFIGS[1]), ["simple rule"])
    (own,) = (x for x in every if x.field == "architecture")
    assert own.fields == {"architecture": "lstm", "readout": "last"}


def test_signed_eigenvalues_are_suggested_for_positive_ones() -> None:
    for network, there in (
        *(({"architecture": x}, True) for x in ("deltanet", "gated_deltanet", "deltaproduct")),
        ({"architecture": "mamba"}, True),
        ({"architecture": "mamba", "eigenvalue_range": "signed"}, False),
        ({"architecture": "slstm"}, False),
    ):
        config = configuration({"task": "parity", "readout": "last", **network})
        assert ("eigenvalue_range=signed" in suggested(config, LONGER)) == there, network


def test_suggestions_ignore_length_where_short_strings_may_fail() -> None:
    length = {"train_max_length", "position_range", "attention_scale"}
    for config, mechanism in product(CONFIGS, BLIND):
        case = f"{mechanism}: {config.changed}"
        found = suggestions(resolve(config), [mechanism])
        assert not {own.field for own in found} & length, case
        assert not any("length" in own.reason for own in found), case
        assert ("positions", "none") not in [(own.field, own.value) for own in found], case


@pytest.mark.parametrize("task", ["parity", "even_pairs", "word_problem"])
def test_suggested_networks_are_not_excluded_by_theory(task: str) -> None:
    mechanisms = [*({*BLIND} - {NOT_LEARNED}), LONGER, "dilution"]
    networks: list[dict[str, Any]] = [{}, {"num_blocks": 2}, {"positions": "sinusoidal"}]
    networks += [{"architecture": x, "readout": "last"} for x in ("mamba", "linear_attention")]
    for network, mechanism in product(networks, mechanisms):
        config = configuration({"task": task, **network})
        for own in suggestions(resolve(config), [mechanism]):
            # Other strings or steps may still push back where errors begin.
            if own.field in NetworkConfig.model_fields:
                prediction = theory_of(change_fields(config, own.fields).changed).first
                assert prediction.verdict != "cannot", f"{mechanism}: {network}"
    assert suggested(configuration({"task": "parity"}), "simple rule") == ["architecture=lstm"]


def test_no_positions_are_suggested_only_where_order_stays_visible() -> None:
    blind = configuration({"task": "repeat_01", "positions": "rotary", "attention_head_size": 2})
    causal = configuration({**blind.changed, "attention_mask": "causal", "readout": "last"})
    sharp = configuration({**causal.changed, "attention_scale": "log_length"})
    # Scores that do not grow with the length are proved to be too few for it without positions.
    for config, there in ((blind, False), (causal, False), (sharp, True)):
        found = suggestions(resolve(config), ["longer than in training"])
        assert (("positions", "none") in [(own.field, own.value) for own in found]) == there
        assert "train_max_length" in [own.field for own in found]


def output_suggestions(mechanism: str = "wrong token", /, **named: Any) -> dict[str, str]:
    """Suggestions for a transduction, with the reason of each."""
    found = suggestions(resolve(configuration(named)), [mechanism])
    return {own.text: own.reason for own in found}


def test_coupled_positions_are_suggested_where_the_task_couples_tokens() -> None:
    coupled = "positions=coupled_marks (now rotary)"
    rotary = {"positions": "rotary", "attention_head_size": 2}
    least_first = {"task": "addition", "digit_order": "least_first"}
    for named, there in (
        ({"task": "copy", **rotary}, True),
        ({**least_first, **rotary}, True),
        ({"task": "addition", **rotary}, False),
        ({"task": "sort", **rotary}, False),
        ({"task": "copy", **rotary, "architecture": "encoder_decoder"}, False),
    ):
        assert (coupled in output_suggestions(**named)) == there, named
    assert not any(
        "positions" in x for x in output_suggestions(task="copy", positions="coupled_marks")
    )
    (alone, *_) = output_suggestions(task="copy", positions="coupled")
    assert alone == "positions=coupled_marks (now coupled)"
    assert not any("positions" in x for x in output_suggestions(task="copy", architecture="lstm"))
    # Shared places are drawn in one way.
    (own, *_) = output_suggestions(task="copy", positions="learned", position_draw="shifted")
    assert own == "positions=coupled_marks (now learned), and with it position_draw=sorted"


def test_shifted_positions_and_depth_are_suggested_with_true_reasons() -> None:
    learned = {"task": "sort", "positions": "learned", "validation_max_length": 10}
    shifted = "positions=learned (now none), and with it position_draw=shifted"
    assert shifted in output_suggestions("first tokens right", task="sort")
    assert "position_draw=shifted (now sorted)" in output_suggestions(**learned)
    as_long = {"train_max_length": 10, "validation_max_length": 10, "test_max_length": 10}
    for named in ({"task": "sort", **as_long}, {**learned, **as_long}):
        assert not any("shifted" in x for x in output_suggestions(**named))
    two, three = "num_blocks=2 (now 1)", "num_blocks=3 (now 2)"
    assert "copies distinct tokens" in output_suggestions(task="copy")[two]
    for other in ({"task": "sort"}, {"task": "copy", "architecture": "lstm"}):
        assert "not proven" in output_suggestions(**other)[two]
        assert "copies" not in output_suggestions(**other)[two]
    assert three not in output_suggestions(task="copy", num_blocks=2)
    assert three in output_suggestions(task="copy", architecture="encoder_decoder", num_blocks=2)


def test_longer_training_is_suggested_where_it_ended_early() -> None:
    config = configuration({"task": "parity", **LSTM, "stop_when_right": True})
    for epochs, there in ((3, True), (10, True), (11, False), (None, False)):
        found = suggestions(resolve(config), ["longer than in training"], epochs)
        on = [own.fields for own in found if own.field == "min_num_epochs"]
        assert on == [{"min_num_epochs": 30, "stop_when_right": False}] * there, epochs
    assert "min_num_epochs" not in {
        own.field for x in ("rounding", NOT_LEARNED) for own in suggestions(resolve(config), [x], 3)
    }


def test_mended_seeds_with_two_budgets_count_once() -> None:
    (suggestion, *_) = suggestions(resolve(RunConfig()), ["dilution"])

    def tried(
        model: int, epochs: int, results: dict[int, bool]
    ) -> tuple[RunConfig, int, RemedyTrial]:
        config = RunConfig(max_num_epochs=epochs)
        spec = trial_spec(config, config, suggestion, [0])
        return config, model, RemedyTrial(suggestion, spec, None, results=results)

    few = tried(1, 24, {0: False, 1: False, 2: True})
    many = tried(1, 96, {0: True, 1: False})
    for known, record in (([many, few], (2, 3)), ([few, many, tried(3, 24, {0: False})], (2, 4))):
        (ranked,) = rank([few[-1]], results_of(known))
        assert ranked.mended == record
