"""Where an automaton's state is inside a model: by a linear probe, and by clusters of states.

The probe is fitted by least squares on the tokens of strings of the training's lengths: its rows
are the states of the model, its targets one number a state of the automaton, 1 for the one that
it is in after the token. It is tried on other strings, longer ones too. That a state can be read
does not say that the model uses it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64, Integer

from seqcls.cancellation import check_each
from seqcls.errors import ConfigError
from seqcls.interpretability.readable_model import ids_of, plain_model
from seqcls.interpretability.states_by_strings import principal_path
from seqcls.interpretability.trained_model import Letters, TrainedModel
from seqcls.models.positions import longest_readable
from seqcls.strings.tokenizer import FIRST_LETTER
from seqcls.tasks.automaton import Automaton

# A model's states at every token of drawn strings, beside those of an automaton.


STRINGS = 160
"""To fit, and as many held out of the lengths of training, and as many longer ones."""

LONGEST = 200
"""Tokens of the longest string whose states are looked at."""

AT_ONCE = 32
"""Strings, whose states of all positions are kept at once."""

LAYERS = {"block", "layer"}


@dataclass(frozen=True, eq=False)
class PrefixPlaces:
    """Tokens of some strings: the states of a model there, and the automaton's after them."""

    layers: dict[str, Float[np.ndarray, "place hidden"]]
    """By the name of the block or layer."""
    states: Int64[np.ndarray, " place"]
    positions: Int64[np.ndarray, " place"]
    """The position of the token in its string, from 1."""
    beyond: Bool[np.ndarray, " place"]
    """Whether it stands in a string longer than those of training."""


def layer_names(model: TrainedModel) -> dict[str, tuple[str, ...]]:
    """The recorded states of each block's residual stream, or of all that a layer keeps."""
    sites = plain_model(model).sites()
    return {site.text: names for site, names in sites.items() if site.name in LAYERS}


def draw_positions(model: TrainedModel, automaton: Automaton) -> tuple[PrefixPlaces, PrefixPlaces]:
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
    places = longest_readable(model.problem.network) or LONGEST
    longest = min(model.problem.test.lengths[-1], LONGEST, places)
    rng = np.random.default_rng(0)
    short = min(trained, longest)
    first = drawn_strings(automaton, rng, rng.integers(1, short + 1, size=2 * STRINGS))
    fitted = first[::2]
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
    for place, length in enumerate(lengths.tolist()):
        wanted = bool(place // 2 % 2)
        positive = wanted if automaton.has(length, wanted) else not wanted
        (row,) = automaton.draw(rng, np.array([length]), positive)
        drawn.append(tuple(row.tolist()))
    return drawn


def _positions(model: TrainedModel, automaton: Automaton, strings: list[Letters]) -> PrefixPlaces:
    names = layer_names(model)
    parts: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for start in check_each(range(0, len(strings), AT_ONCE)):
        ids = ids_of(model, strings[start : start + AT_ONCE])
        with torch.no_grad():
            kept = plain_model(model).activations(ids)
        read = ids >= FIRST_LETTER
        for name, recorded in names.items():
            beside = torch.cat([kept[each][read] for each in recorded], dim=-1)
            parts[name].append(beside.numpy())
    lengths = [len(string) for string in strings]
    trained = model.problem.train.lengths[-1]
    return PrefixPlaces(
        {name: np.concatenate(rows) for name, rows in parts.items()},
        np.concatenate([_path(automaton, string) for string in strings]),
        np.concatenate([np.arange(1, length + 1) for length in lengths]),
        np.repeat(np.array(lengths) > trained, lengths),
    )


def _path(automaton: Automaton, letters: Letters) -> Int64[np.ndarray, " position"]:
    state, states = automaton.start, []
    for letter in letters:
        state = int(automaton.table[state, letter])
        states.append(state)
    return np.array(states, dtype=np.int64)


RIDGE = 1e-6
"""What is added to the mean squares, so that states that do not vary are no obstacle."""

FEWEST = 10
"""Held-out strings that reach a position of which a share is given."""

MOST_CLUSTERED = 1_200
"""Ward's linkage takes memory and time by the square of the states."""
MOST_CLUSTERS = 40
PURE = 0.99
"""The share of prefixes that must be in their cluster's most frequent state."""


@dataclass(frozen=True, eq=False)
class Probe:
    """How well the automaton's state is read from one layer, on held-out strings."""

    layer: str
    trained: float
    """The share of tokens in strings of the training's lengths, in [0, 1]."""
    beyond: float | None
    """The same in longer strings; None where none is tested."""
    positions: Int64[np.ndarray, " position"]
    by_position: Float[np.ndarray, " position"]
    """The share of strings of which it is read, at each position that `FEWEST` of them reach."""


@dataclass(frozen=True, eq=False)
class Clusters:
    """Groups of the states of a recurrent model's last layer after prefixes.

    The fewest in which nearly all prefixes are in the same state of the automaton as most of their
    group; where there are none, the purest of those that were tried.
    """

    points: Float[np.ndarray, "prefix 2"]
    """In the plane in which they vary most."""
    numbers: Integer[np.ndarray, " prefix"]
    """Each one's cluster."""
    states: Int64[np.ndarray, " prefix"]
    """The automaton's state there."""
    of_state: tuple[int, ...]
    """Each cluster's most frequent state of the automaton."""
    purity: float
    """The share of prefixes that are in their cluster's most frequent state."""

    @property
    def count(self) -> int:
        return len(self.of_state)


@dataclass(frozen=True, eq=False)
class Inside:
    """An automaton's states inside a model."""

    states: int
    """States of the automaton."""
    commonest: float
    """The share of held-out tokens after which it is in its most frequent state: what a probe
    that reads nothing gets."""
    probes: tuple[Probe, ...]
    clusters: Clusters | None
    """Clusters of the states of recurrent models."""

    def record(self) -> dict[str, Any]:
        """Probes and clusters, as JSON has them."""
        record: dict[str, Any] = {
            "states": self.states,
            "commonest": self.commonest,
            "probes": [
                {
                    "layer": probe.layer,
                    "trained": probe.trained,
                    "beyond": probe.beyond,
                    "positions": probe.positions.tolist(),
                    "by_position": probe.by_position.tolist(),
                }
                for probe in self.probes
            ],
        }
        if self.clusters is not None:
            clusters = self.clusters
            record["clusters"] = {"of_state": clusters.of_state, "purity": clusters.purity}
        return record


def look_inside(model: TrainedModel, automaton: Automaton) -> Inside:
    """Looks for an automaton's states in a model's own.

    Raises:
        ConfigError: the model names no states of its blocks or layers.
    """
    fitted, held_out = draw_positions(model, automaton)
    count = len(automaton.table)
    probes = tuple(
        _probe(name, fitted.layers[name], fitted.states, held_out, count)
        for name in held_out.layers
    )
    clusters = None
    if plain_model(model).units():
        clusters = _clusters(held_out.layers[probes[-1].layer], held_out.states)
    frequent = np.bincount(held_out.states).max() / len(held_out.states)
    return Inside(count, float(frequent), probes, clusters)


def _probe(
    name: str,
    rows: Float[np.ndarray, "place hidden"],
    states: Int64[np.ndarray, " place"],
    held_out: PrefixPlaces,
    count: int,
) -> Probe:
    center, scale = rows.mean(axis=0), np.maximum(rows.std(axis=0), RIDGE)

    def inputs(of: np.ndarray) -> np.ndarray:
        return np.insert((of - center) / scale, 0, 1.0, axis=1)

    read = inputs(rows)
    squares = read.T @ read / len(read) + RIDGE * np.eye(read.shape[1])
    weights = np.linalg.solve(squares, read.T @ np.eye(count)[states] / len(read))
    said = (inputs(held_out.layers[name]) @ weights).argmax(axis=1)
    right = said == held_out.states
    times = np.bincount(held_out.positions)
    positions = np.flatnonzero(times >= FEWEST)
    shares = np.bincount(held_out.positions, right)[positions] / times[positions]
    return Probe(
        name,
        float(right[~held_out.beyond].mean()),
        float(right[held_out.beyond].mean()) if held_out.beyond.any() else None,
        positions,
        shares,
    )


def _clusters(
    rows: Float[np.ndarray, "prefix hidden"], states: Int64[np.ndarray, " prefix"]
) -> Clusters:
    """The fewest of Ward's clusters that are `PURE`; where none are, the purest."""
    from scipy.cluster.hierarchy import fcluster, linkage

    picked = np.linspace(0, len(rows) - 1, min(len(rows), MOST_CLUSTERED)).astype(int)
    rows, states = rows[picked], states[picked]
    tree, points = linkage(rows, "ward"), principal_path(rows).points
    best: Clusters | None = None
    for count in range(1, MOST_CLUSTERS + 1):
        numbers = fcluster(tree, count, "maxclust") - 1
        table = np.zeros((numbers.max() + 1, states.max() + 1), dtype=np.int64)
        np.add.at(table, (numbers, states), 1)
        purity = float(table.max(axis=1).sum() / len(states))
        if best is None or purity > best.purity:
            of_state = tuple(table.argmax(axis=1).tolist())
            best = Clusters(points, numbers, states, of_state, purity)
        if best.purity >= PURE:
            break
    assert best is not None
    return best
