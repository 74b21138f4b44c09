"""The contract of questions about the inside of a model, for every network.

Each network of the zoo judges strings and writes outputs. Answers by letter counts are compared
with models that are run.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqcls.errors import ConfigError, InvalidStringError
from seqcls.interpretability.ablation import Ablation, AblationMethod, Judge
from seqcls.interpretability.patching import carry_over, patch, sites_of
from seqcls.interpretability.readable_model import Output, from_counts, plain_model, read, states
from seqcls.interpretability.states_by_strings import (
    attention_patterns,
    logit_steps,
    prefix_logits,
    recurrent_units,
)
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.parts import PART_KINDS, Site
from seqcls.problem import resolve
from tests.oracles.counting import true_logits
from tests.zoo import COUNTED, JUDGES, WRITERS, model, scattered_model, untrained

EVERY = [*((name, False) for name in JUDGES), *((name, True) for name in WRITERS)]
models = pytest.mark.parametrize(
    ("name", "writes"), EVERY, ids=[f"{name}{', writing' * own}" for name, own in EVERY]
)
judges = pytest.mark.parametrize("name", JUDGES)

BASE = {False: (0, 1, 1, 0, 1), True: (0, 2, 1)}
SOURCE = {False: (0, 1, 0, 0, 1), True: (0, 1, 1)}
"""They differ in one token."""
OUTPUT = Output((1, 0))


def head_outputs(own: TrainedModel, letters: tuple[int, ...]) -> np.ndarray:
    """Outputs of the head for a string, or for an input and a part of an output."""
    with torch.no_grad():
        ids = read(own, [letters], [OUTPUT] if own.problem.writes else None).ids
        return np.asarray(plain_model(own)(ids))


@models
def test_patching_with_itself_keeps_and_everywhere_gives_the_source(
    name: str, writes: bool
) -> None:
    own = model(name, writes=writes)
    base, source = BASE[writes], SOURCE[writes]
    found = patch(own, base, base)
    # A side's states are there at its own tokens alone.
    there = ~np.isnan(found.logits)
    assert there.all() or own.config.architecture in ("encoder_decoder", "recurrent_attention")
    np.testing.assert_allclose(found.logits[there], found.base_logit, rtol=1e-9, atol=1e-9)
    assert there.any(axis=1).all()
    assert found.base_logit == found.source_logit
    assert not found.flips.any()
    if not writes:
        assert found.base_logit == pytest.approx(own.answer(base).logit)
    other = patch(own, base, source)
    if other.sites[0].name == "embedding":
        differs = [
            one != two for one, two in zip(other.base_tokens, other.source_tokens, strict=True)
        ]
        expected = np.where(differs, other.source_logit, other.base_logit)
        np.testing.assert_allclose(other.logits[0][there[0]], expected[there[0]], atol=1e-9)
    last = own.config.num_blocks - 1
    whole = {Site(x, last, side=side) for x in ("block", "layer") for side in ("", "decoder")}
    whole |= {Site("embedding")} | {Site("state", 0)} if last == 0 else {Site("embedding")}
    tried = whole & {*plain_model(own).sites()}
    batch, other_batch = (read(own, [x], [OUTPUT] * writes or None) for x in (base, source))
    everywhere = torch.ones(1, batch.ids.shape[1], dtype=torch.bool)
    # A memory's layer lies within a block.
    for site in tried - ({Site("layer", last), Site("state", 0)} if name == "slstm" else set()):
        assert site in sites_of(own)
        given = carry_over(own, batch, site, states(own, other_batch), everywhere)
        np.testing.assert_allclose(given, head_outputs(own, source), atol=1e-9)
    assert tried


def weights_without(own: TrainedModel, part: Site, state: str) -> TrainedModel:
    """The model with zeros where the weights read this part, or of a feed-forward all it adds."""
    weights = {name: value.copy() for name, value in own.weights.items()}
    size, number, block = own.config.attention_head_size, part.number or 0, part.block or 0
    if part.name == "feed-forward":
        for name in weights:
            if name.startswith(f"{state}."):
                weights[name][:] = 0
    elif part.name == "head":
        of_mixer = state.removesuffix("mixed_value")
        outputs = (f"{of_mixer}{within}output.weight" for within in ("", "attention."))
        output = next(name for name in outputs if name in weights)
        weights[output][:, size * number : size * (number + 1)] = 0
    elif "layers." in state:
        layer = state.removesuffix(".state")
        after = f"layers.{block + 1}.input_weight"
        read = after if after in weights else "classifier.weight"
        for name in (f"{layer}.state_weight", read):
            weights[name][:, number] = 0
    else:
        output = state.replace(".activation", ".output").replace("mixed_value", "output")
        weights[f"{output}.weight"][:, number] = 0
    return TrainedModel(own.problem, weights)


@models
def test_zero_ablation_equals_zero_weights(name: str, writes: bool) -> None:
    own = model(name, writes=writes)
    states = plain_model(own).parts()
    backend = Judge(own, 20)
    lasts = {(part.name, part.side, part.which): part for part in states}  # the last ones
    moved = []
    for part in lasts.values():
        # What such a unit writes is read in several places.
        if part.name == "unit" and name in ("slstm", "recurrent_attention"):
            continue
        changed = Judge(weights_without(own, part, states[part]), 20)
        found = backend.outputs({part: "zero"})
        np.testing.assert_allclose(found, changed.outputs({}), atol=1e-9, err_msg=part.text)
        moved.append(np.abs(found - backend.outputs({})).max())
    assert max(moved, default=1) > 1e-3


@models
def test_empty_ablation_equals_the_evaluation(name: str, writes: bool) -> None:
    own = model(name, writes=writes)
    backend = Judge(own, 40)
    answers = own.ask(backend.tested.strings)
    whole = backend.ablate({})
    assert whole.logit_change == 0
    assert whole.errors == int(answers.wrong.sum())
    assert whole.strings.sum() == len(backend.tested.texts)
    assert whole.right.sum() == whole.strings.sum() - whole.errors
    assert whole.lengths.tolist() == sorted({*backend.tested.strings.lengths.tolist()})
    np.testing.assert_allclose(backend.before, answers.score, rtol=1e-8, atol=1e-8)
    if writes:
        assert whole.loss == pytest.approx(-answers.score.mean(), rel=1e-9)
        return
    assert whole.errors == backend.tested.occurrences[answers.wrong].sum()
    losses = np.logaddexp(0, np.where(backend.tested.labels, -1, 1) * answers.score)
    assert whole.loss == pytest.approx(losses.mean(), rel=1e-7)


@judges
def test_logit_steps_sum_to_the_logit(name: str) -> None:
    own = model(name)
    if own.config.architecture != "transformer":
        assert logit_steps(own, BASE[False]) is None
        return
    for string in (BASE[False], (), (1,) * 9):
        steps = logit_steps(own, string) or ()
        logit = float(head_outputs(own, string)[0])
        assert sum(step.adds for step in steps) == pytest.approx(logit, rel=1e-9, abs=1e-9)
        assert steps[-1].logit == pytest.approx(logit, rel=1e-9, abs=1e-9)
    heads = [(step.block, step.head) for step in steps if step.part == "head"]
    assert heads == [(x.block, x.number) for x in plain_model(own).parts() if x.name == "head"]


@judges
def test_prefix_logits_attention_and_units_equal_the_model(name: str) -> None:
    own = model(name)
    prefixes = prefix_logits(own, BASE[False])
    expected = [own.answer(BASE[False][:end]) for end in range(6)]
    assert prefixes.labels.tolist() == [answer.label for answer in expected]
    np.testing.assert_allclose(prefixes.logits, [answer.logit for answer in expected])
    names, letters = [], [own.tokenizer.alphabet[x] for x in BASE[False]]
    if found := attention_patterns(own, BASE[False], "attention"):
        seen = found.weights.sum(axis=3)[..., int(own.config.no_attend_cls) :]
        np.testing.assert_allclose(seen, 1)
        if own.config.attention_mask == "causal":
            assert not np.triu(found.weights, 1).any()
        names = [*found.tokens]
    units = recurrent_units(own, BASE[False])
    assert (units is None) == (own.config.architecture == "transformer")
    if units is not None:
        earlier, gates = recurrent_units(own, BASE[False][:2]), units.gates
        assert earlier is not None
        np.testing.assert_allclose(units.states[:, :2], earlier.states[:, :2])
        assert not np.allclose(units.states[:, 1], units.states[:, 2])
        if "eigenvalue" in gates:
            least = -1 if own.config.eigenvalue_range == "signed" else 0
            assert ((gates["eigenvalue"] > least) & (gates["eigenvalue"] < 1)).all()
    if units is not None and own.config.architecture == "lstm":
        assert np.tanh(gates["cell"]) * gates["output_gate"] == pytest.approx(units.states)
        read = units.states[-1, -1] @ own.weights["classifier.weight"][0]
        logit = own.answer(BASE[False]).logit
        assert read + own.weights["classifier.bias"][0] == pytest.approx(logit)
        names = [*units.tokens]
    assert not names or [x for x in names if x in letters] == letters


def test_invalid_question_is_refused_with_the_reason() -> None:
    own = model("lstm")
    for ask, words in (
        (lambda: prefix_logits(own, (0,) * 600), ("600", "512")),
        (lambda: attention_patterns(model("learned"), (0,) * 600, "attention"), ("600",)),
    ):
        with pytest.raises(InvalidStringError) as refused:
            ask()
        assert all(word in str(refused.value) for word in words)
    with pytest.raises(ConfigError, match="output token by token"):
        prefix_logits(model("lstm", writes=True), (0, 1))
    judge = Judge(untrained(feed_forward_size=30), 10)
    with pytest.raises(ConfigError, match="at most 24"):
        list(judge.prune(judge.parts(PART_KINDS)))


# Rankings and pruning, by strings and by letter counts.


METHODS: tuple[AblationMethod, ...] = ("zero", "mean")


def model_to_ablate(**more: Any) -> TrainedModel:
    small = {"num_attention_heads": 3, "attention_head_size": 2, "test_size": 256}
    return scattered_model(5, hidden_size=4, test_max_length=40, **small, **more)


@pytest.mark.parametrize("by", ["strings", "counts"])
def test_parts_are_ranked_by_cost_and_pruned_from_the_cheapest(by: str) -> None:
    judge = Judge(model("two blocks"), 60) if by == "strings" else Judge(model_to_ablate())
    assert judge.exact == (by == "counts")
    heads = judge.parts(["head"])
    for how in METHODS:
        ranked = judge.rank(heads, how)
        assert {own.parts[0] for own in ranked} == {*heads}
        costs = [(own.errors, own.logit_change) for own in ranked]
        assert costs == sorted(costs, reverse=True)
        assert len({*costs}) > 1
        for own in ranked:
            logits = judge.outputs({own.parts[0]: how})
            change, labels = np.abs(logits - judge.before), judge.tested.labels
            counted = judge.tested.occurrences
            assert own.errors == counted[(logits > 0) != labels].sum()
            assert own.logit_change == pytest.approx(np.average(change, weights=counted))
            losses = np.logaddexp(0, np.where(labels, -1, 1) * logits)
            assert own.loss == pytest.approx(np.average(losses, weights=counted))
    several = (*heads, *(judge.parts(["dimension"]) if by == "counts" else ()))
    steps, off = list(judge.prune(several)), judge.rank(several)
    assert [len(own.parts) for own in steps] == [*range(len(several) + 1)]
    cheapest = min(off, key=lambda own: (own.errors, own.loss))
    assert (steps[1].parts, steps[1].errors) == (cheapest.parts, cheapest.errors)
    for before, after in pairwise(steps):
        assert {*before.parts} < {*after.parts}
        assert after.errors == judge.ablate(dict.fromkeys(after.parts, "zero")).errors


def test_mean_ablation_of_a_constant_part_changes_nothing() -> None:
    """All tokens look alike, so every part is the same in all strings."""
    own = model("two blocks")
    embedding = own.weights["embedding.weight"]
    weights = {**own.weights, "embedding.weight": np.tile(embedding[2], (len(embedding), 1))}
    config = own.config.model_copy(update={"positions": "none"})
    judge = Judge(TrainedModel(resolve(config), weights), 60)
    for part in judge.parts(PART_KINDS):
        np.testing.assert_allclose(judge.outputs({part: "mean"}), judge.before, atol=1e-10)
    assert np.abs(judge.outputs({Site("head", 0, 0): "zero"}) - judge.before).max() > 1e-6


# What is computed of letter counts.

DEEPER: tuple[dict[str, Any], ...] = (
    {},
    {"num_blocks": 2, "readout": "mean", "norm_placement": "post"},
    {"num_blocks": 2, "readout": "last", "attention_scale": "log_length", "biases": True},
)


@pytest.mark.parametrize("fields", DEEPER, ids=["one block", "two blocks", "log-length"])
def test_ablation_by_letter_counts_equals_running_strings(
    fields: dict[str, Any],
) -> None:
    own = model_to_ablate(**fields)
    exact, run = Judge(own), Judge(own, 10**6)
    assert (exact.exact, run.exact) == (True, False)
    # Every test string, as often as it occurs.
    rows = np.repeat(np.arange(len(exact.tested.texts)), exact.tested.occurrences)
    rows = rows[np.argsort(exact.tested.strings.lengths[rows], kind="stable")]
    every = exact.tested.take(rows)
    vars(run)["tested"] = replace(every, occurrences=np.ones_like(every.occurrences))
    assert len(rows) == 256
    parts = exact.parts(PART_KINDS)
    assert parts == run.parts(PART_KINDS)
    kinds = PART_KINDS if own.config.norm_placement == "pre" else PART_KINDS[:3]
    assert {part.name for part in parts} == {*kinds}
    unlike = 0
    for how in METHODS:
        for some in ((), *((part,) for part in parts), parts[1:5]):
            ablation: Ablation = dict.fromkeys(some, how)
            ours, theirs = exact.ablate(ablation), run.ablate(ablation)
            assert (ours.errors, ours.accuracy) == (theirs.errors, theirs.accuracy)
            found = exact.outputs(ablation)[rows]
            np.testing.assert_allclose(found, run.outputs(ablation), rtol=1e-9, atol=1e-9)
            assert ours.loss == pytest.approx(theirs.loss, rel=1e-9)
            assert ours.logit_change == pytest.approx(theirs.logit_change, rel=1e-9, abs=1e-9)
            for name in ("lengths", "strings", "right"):
                np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
            unlike += ours.errors != exact.ablate({}).errors
    assert unlike > 2


FROZEN: list[tuple[Site, str, tuple[slice | int, ...]]] = [
    (Site("head", 0, 0), "attention.mixed_value", np.s_[:, 0]),
    (Site("feed-forward", 0), "feed_forward.output", np.s_[:, :]),
    (Site("unit", 0, 1, in_block=True), "feed_forward.activation", np.s_[:, :, 1]),
]


@pytest.mark.parametrize(("part", "state", "of_part"), FROZEN)
def test_mean_ablation_uses_the_mean_over_all_test_tokens(
    part: Site, state: str, of_part: tuple[slice | int, ...]
) -> None:
    judge = Judge(model_to_ablate())
    own, total, tokens = judge.model, np.zeros(()), 0
    for text, times in zip(judge.tested.texts, judge.tested.occurrences.tolist(), strict=True):
        activations = plain_model(own).activations(read(own, [own.letters(text)]).ids)
        (rows,) = activations[f"blocks.0.{state}"].detach().numpy()[of_part]
        total, tokens = total + times * rows.sum(axis=0), tokens + times * len(rows)

    def freeze(states: np.ndarray) -> np.ndarray:
        states[of_part] = total / tokens
        return states

    counts = judge.tested.strings.counts
    truth = true_logits(own, counts, {f"blocks.0.{state}": freeze})
    np.testing.assert_allclose(judge.outputs({part: "mean"}), truth, atol=1e-10)
    assert np.abs(truth - judge.before).max() > 1e-3


def test_ablated_dimension_is_zero_throughout() -> None:
    def hide(state: np.ndarray) -> np.ndarray:
        state[..., [0, 3]] = 0
        return state

    norms: tuple[dict[str, object], ...] = ({"layer_norm_eps": 0.0}, {"layer_norm": "rms"})
    for norm in norms:
        judge = Judge(scattered_model(5, hidden_size=4, test_size=256, **norm))
        cut: Ablation = {Site("dimension", number=x): "zero" for x in (0, 3)}
        stream = ("embedding", "blocks.0.attention.output", "blocks.0.feed_forward.output")
        counts = judge.tested.strings.counts
        truth = true_logits(judge.model, counts, dict.fromkeys(stream, hide))
        np.testing.assert_allclose(judge.outputs(cut), truth, atol=1e-10)


@given(COUNTED, st.integers(0, 100), st.lists(st.text("abc", max_size=8), min_size=1, max_size=4))
def test_states_by_letter_counts_equal_running_the_string(
    fields: dict[str, object], seed: int, texts: list[str]
) -> None:
    own = scattered_model(seed, **fields)
    counts = np.array([own.tokenizer.counts(text) for text in texts])
    by_counts = states(own, from_counts(own, counts))
    special = {"first": 0, "last": own.num_letters}.get(own.config.readout)

    def close(ours: Any, theirs: Any, what: str = "") -> None:
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9, err_msg=what)

    for row, text in enumerate(texts):
        letters = own.letters(text)
        if not letters and special is None:
            continue
        columns = [letter + (special == 0) for letter in letters]
        columns = [0, *columns] if special == 0 else [*columns, *([special] if special else [])]
        truth = plain_model(own).activations(read(own, [letters]).ids)
        assert [*truth] == [*by_counts]
        times = np.insert(counts[row], special, 1) if special is not None else counts[row]
        for name, value in truth.items():
            ours, theirs = by_counts[name][row].numpy(), value[0].detach().numpy()
            if name.endswith("weights"):
                # Those of a letter's tokens together, of which each has its share.
                ours = ours / np.maximum(times, 1)
            if name.endswith(("weights", "scores")):
                ours = ours[:, columns][:, :, columns]
            elif theirs.ndim > 1 or theirs.shape[0:1] == (len(columns),) != ours.shape[0:1]:
                ours = ours[..., columns, :]
            close(ours, theirs, name)
        steps = logit_steps(own, letters) or ()
        close([sum(step.adds for step in steps), steps[-1].logit], [truth["logit"].item()] * 2)
        assert steps[0].text == "embedding"
