"""Rates at which RNNs forget while a word repeats, and the information in their last letters, which
limit proofs (docs/proofs.md).

python -m benchmarks.contraction DATABASE RUN ...

For each run the largest distance between states after the same last letters, and the words after
whose letters a small change of the state lasts longest: its growth a letter, over 480 letters after
the first 240, from 24 states that the network was seen in.
"""

import sys
from collections.abc import Iterator
from itertools import product

import numpy as np
from jaxtyping import Float64, Int64

from seqcls.interpretability.trained_model import TrainedModel
from seqcls.proofs.cells import Cells
from seqcls.proofs.regions import Samples, hulls
from seqcls.proofs.search import Steps, Walker, refine
from seqcls.strings.tokenizer import FIRST_LETTER
from seqcls.tasks.automaton import language_automaton
from sweeps.api import model, open_store

BACK = (8, 16, 38)
"""Last letters after which states are compared."""

LONGEST_WORD, BEFORE, OVER, STATES = 10, 240, 480, 24


def sample(trained: TrainedModel) -> Samples:
    """States that the model is seen in when it is proved."""
    steps, automaton = Steps.from_model(trained), language_automaton(trained.task)
    assert automaton is not None
    refined = refine(steps, automaton)
    return Walker(steps, refined, False).search()[0]


def widths(samples: Samples) -> Iterator[tuple[int, float]]:
    """Yields numbers of letters, and the largest distance of states after the same last letters."""
    for back in BACK:
        keys = np.concatenate([samples.states[:, None], samples.last[:, :back]], axis=1)
        _, numbers = np.unique(keys, axis=0, return_inverse=True)
        low, high = hulls(samples.values, numbers.ravel(), int(numbers.max()) + 1)
        yield back, float((high - low).max())


def rotations_once(letters: int) -> list[tuple[int, ...]]:
    """Words that repeat no shorter one, each once of all its rotations."""
    words = (x for n in range(1, LONGEST_WORD + 1) for x in product(range(letters), repeat=n))
    return [
        x
        for x in words
        if x == min(x[n:] + x[:n] for n in range(len(x)))
        and all(x[n:] + x[:n] != x for n in range(1, len(x)))
    ]


def growth(
    cells: Cells, states: Float64[np.ndarray, "state unit"], word: Int64[np.ndarray, " letter"]
) -> tuple[float, float]:
    """Returns the least and the largest growth of a small change, for each letter, over all states,
    while a word repeats.
    """
    ((weight, biases),) = cells.network.layers
    input_weight, state_weight = np.hsplit(weight, 2)
    given = cells.network.embedding @ input_weight.T + sum(biases)
    changes, grown = np.tile(np.eye(states.shape[1]), (len(states), 1, 1)), np.zeros(len(states))
    for place in range(BEFORE + OVER):
        token = word[place % len(word)] + FIRST_LETTER
        states = np.tanh(states @ state_weight.T + given[token])
        # Before, the states settle into what the repeated word makes of them.
        if place >= BEFORE:
            changes = (1 - states**2)[:, :, None] * (state_weight @ changes)
            # Back to length 1 at every letter: the product of so many derivatives would vanish.
            size = np.linalg.norm(changes, axis=(1, 2))
            changes, grown = changes / size[:, None, None], grown + np.log(size)
    ends = np.exp(grown / OVER) - 1
    return float(ends.min()), float(ends.max())


def main(db: str, ids: list[int]) -> None:
    store = open_store(db)
    for number in ids:
        trained = model(store, number)
        samples, cells = sample(trained), Cells.from_model(trained)
        print(f"run {number}: {trained.config.pattern}")
        print("  apart after the same last letters:", {n: round(x, 2) for n, x in widths(samples)})
        rng = np.random.default_rng(0)
        states = samples.values[rng.integers(len(samples.values), size=STATES)].astype(float)
        found = []
        for word in rotations_once(trained.num_letters):
            least, most = growth(cells, states, np.array(word))
            found.append((most, least, trained.display(word)))
        for most, least, shown in sorted(found, reverse=True)[:4]:
            print(f"  {shown}: a change grows by {least:.1%} to {most:.1%} a letter")


if __name__ == "__main__":
    main(sys.argv[1], list(map(int, sys.argv[2:])))
