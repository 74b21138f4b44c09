"""Where an automaton's state is inside a model: by a linear probe, and by clusters of states.

The probe is fitted by least squares on the tokens of strings of the training's lengths: its rows
are the states of the model, its targets one number a state of the automaton, 1 for the one that it
is in after the token. It is tried on other strings, longer ones too. That a state can be read does
not say that the model uses it.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int64

from seqcls.interpretability.automata.prefixes import Places, drawn_places
from seqcls.interpretability.model.readable_model import plain_model
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.interpretability.states.by_strings import principal_path
from seqcls.tasks.automata.automaton import Automaton

RIDGE = 1e-6
"""What is added to the mean squares, so that states that do not vary are no obstacle."""

FEWEST = 10
"""Held-out strings that reach a position of which a share is given."""

MOST_CLUSTERED = 1_200
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
    numbers: Int64[np.ndarray, " prefix"]
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


def look_inside(model: TrainedModel, automaton: Automaton) -> Inside:
    """Looks for an automaton's states in a model's own.

    Raises:
        ConfigError: the model names no states of its blocks or layers.
    """
    fitted, held_out = drawn_places(model, automaton)
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
    held_out: Places,
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
