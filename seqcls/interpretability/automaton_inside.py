"""Linear probes of an automaton's state inside a model.

The probe is fitted by least squares on the tokens of strings of the training's lengths: its rows
are the states of the model, its targets one number a state of the automaton, 1 for the one that
it is in after the token. It is tried on other strings, longer ones too. That a state can be read
does not show that the model uses it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64

from seqcls.cancellation import check_each
from seqcls.errors import ConfigError
from seqcls.interpretability.readable_model import plain_model, read, states
from seqcls.interpretability.trained_model import Letters, TrainedModel
from seqcls.interpretability.wording import percent
from seqcls.models.positions import longest_readable
from seqcls.strings.tokenizer import FIRST_LETTER
from seqcls.tasks.automaton import Automaton
from seqcls.text import count

# A model's states at every token of drawn strings, beside those of an automaton.


STRINGS = 160
"""To fit, and as many held out of the lengths of training, and as many longer ones."""

LONGEST = 200
"""Tokens of the longest string whose states are looked at."""

AT_ONCE = 32
"""Strings whose states of all positions are in memory together."""

LAYERS = {"block", "layer"}


@dataclass(frozen=True, eq=False)
class PrefixPositions:
    """Tokens of some strings: the states of a model there, and the automaton's after them."""

    layers: dict[str, Float[np.ndarray, "place hidden"]]
    """By the name of the block or layer."""
    states: Int64[np.ndarray, " place"]
    positions: Int64[np.ndarray, " place"]
    """The position of the token in its string, from 1."""
    beyond: Bool[np.ndarray, " place"]
    """True if it is in a string longer than those of training."""


def layer_names(model: TrainedModel) -> dict[str, tuple[str, ...]]:
    """The recorded states of each block's residual stream, or of all that a layer keeps."""
    sites = plain_model(model).sites()
    return {site.text: names for site, names in sites.items() if site.name in LAYERS}


def draw_positions(
    model: TrainedModel, automaton: Automaton
) -> tuple[PrefixPositions, PrefixPositions]:
    """The tokens of strings to fit a probe on, and of those held out, of which half are longer.

    Half of the strings are accepted by the automaton, as far as it accepts any.

    Raises:
        ConfigError: the model names no states of its blocks or layers, or there is one string only.
    """
    if not layer_names(model):
        raise ConfigError(
            f"architecture={model.config.architecture!r} names no states of blocks or layers"
        )
    trained = model.problem.train.lengths[-1]
    longest_input = longest_readable(model.problem.network) or LONGEST
    longest = min(model.problem.test.lengths[-1], LONGEST, longest_input)
    # A fixed seed, so that the same model and automaton give the same probe again.
    rng = np.random.default_rng(0)
    # Training may have longer strings than the test, or than are looked at.
    short = min(trained, longest)
    first = drawn_strings(automaton, rng, rng.integers(1, short + 1, size=2 * STRINGS))
    fitted = first[::2]
    # A string that the probe was fitted on would flatter it.
    seen = set(fitted)
    held_out = [string for string in first[1::2] if string not in seen]
    if not held_out:
        # There are so few strings that both halves have all of them: every other one is held out.
        held_out = sorted(seen)[1::2]
        fitted = [string for string in fitted if string not in held_out]
    if not held_out:
        raise ConfigError(
            f"train_max_length={trained}, test_max_length={longest}: there is one string only, so "
            "that none can be held out; train on longer ones"
        )
    if trained < longest:
        lengths = rng.integers(trained + 1, longest + 1, size=STRINGS)
        held_out += drawn_strings(automaton, rng, lengths)
    return _positions(model, automaton, fitted), _positions(model, automaton, held_out)


def drawn_strings(
    automaton: Automaton, rng: np.random.Generator, lengths: Int64[np.ndarray, " string"]
) -> list[Letters]:
    """Uniform strings of some lengths, in turn rejected and accepted where there are both."""
    drawn: list[Letters] = []
    for number, length in enumerate(lengths.tolist()):
        # Two of each in a row, so that every other string is balanced as well.
        label = bool(number // 2 % 2)
        positive = label if automaton.has(length, label) else not label
        (row,) = automaton.draw(rng, np.array([length]), positive)
        drawn.append(tuple(row.tolist()))
    return drawn


def _positions(
    model: TrainedModel, automaton: Automaton, strings: list[Letters]
) -> PrefixPositions:
    names = layer_names(model)
    parts: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for start in check_each(range(0, len(strings), AT_ONCE)):
        batch = read(model, strings[start : start + AT_ONCE])
        found = states(model, batch, [*chain(*names.values())])
        # Only letters move the automaton on: `CLS` and padding do not.
        letters = batch.ids >= FIRST_LETTER
        for name, recorded in names.items():
            beside = torch.cat([found[state][letters] for state in recorded], dim=-1)
            parts[name].append(beside.numpy())
    lengths = [len(string) for string in strings]
    trained = model.problem.train.lengths[-1]
    return PrefixPositions(
        {name: np.concatenate(rows) for name, rows in parts.items()},
        # The first state of a path comes before any letter, where no token is read.
        np.concatenate([automaton.path(string)[1:] for string in strings]),
        np.concatenate([np.arange(1, length + 1) for length in lengths]),
        np.repeat(np.array(lengths) > trained, lengths),
    )


RIDGE = 1e-6
"""The number added to the mean squares, so that states that do not vary are no obstacle."""

MIN_STRINGS = 10
"""Held-out strings that reach a position of which a share is given."""


class Probe(NamedTuple):
    """The accuracy with which the automaton's state is read from one layer, on held-out strings."""

    layer: str
    trained: float
    """The share of tokens in strings of the training's lengths, in [0, 1]."""
    beyond: float | None
    """The same in longer strings; None where none is tested."""
    positions: Int64[np.ndarray, " position"]
    by_position: Float[np.ndarray, " position"]
    """The share of strings of which it is read, at each position that `MIN_STRINGS` reach."""


class Inside(NamedTuple):
    """An automaton's states inside a model."""

    states: int
    """States of the automaton."""
    commonest: float
    """The share of held-out tokens whose state is the most frequent one: the chance level."""
    probes: tuple[Probe, ...]

    def describe(self, _: TrainedModel) -> Iterator[str]:
        """Yields the accuracy of the probes, a sentence a layer."""
        yield (
            f"Held-out strings: the most frequent of the {count(self.states, 'state')} is right "
            f"after {percent(self.commonest, 1)} of their tokens. A linear probe of"
        )
        for probe in self.probes:
            beyond = "" if probe.beyond is None else f", {percent(probe.beyond, 1)} in longer ones"
            yield (
                f"  {probe.layer} is right after {percent(probe.trained, 1)} in strings of the "
                f"training's lengths{beyond}"
            )


def look_inside(model: TrainedModel, automaton: Automaton) -> Inside:
    """Looks for an automaton's states in a model's own.

    Raises:
        ConfigError: the model names no states of its blocks or layers.
    """
    fitted, held_out = draw_positions(model, automaton)
    states = len(automaton.table)
    probes = (
        _probe(name, fitted.layers[name], fitted.states, held_out, states)
        for name in held_out.layers
    )
    frequent = np.bincount(held_out.states).max() / len(held_out.states)
    return Inside(states, float(frequent), tuple(probes))


def _probe(
    name: str,
    rows: Float[np.ndarray, "place hidden"],
    states: Int64[np.ndarray, " place"],
    held_out: PrefixPositions,
    number: int,
) -> Probe:
    center, scale = rows.mean(axis=0), np.maximum(rows.std(axis=0), RIDGE)

    def inputs(layer_states: np.ndarray) -> np.ndarray:
        # The column of ones is the probe's intercept.
        return np.insert((layer_states - center) / scale, 0, 1.0, axis=1)

    read = inputs(rows)
    # Ridge regression on one-hot states: the greatest fitted value names the state.
    squares = read.T @ read / len(read) + RIDGE * np.eye(read.shape[1])
    weights = np.linalg.solve(squares, read.T @ np.eye(number)[states] / len(read))
    predicted = (inputs(held_out.layers[name]) @ weights).argmax(axis=1)
    right = predicted == held_out.states
    times = np.bincount(held_out.positions)
    # Shares of a few strings would jump from position to position.
    positions = np.flatnonzero(times >= MIN_STRINGS)
    shares = np.bincount(held_out.positions, right)[positions] / times[positions]
    return Probe(
        name,
        float(right[~held_out.beyond].mean()),
        float(right[held_out.beyond].mean()) if held_out.beyond.any() else None,
        positions,
        shares,
    )
