r"""The proportions of some letters, divided until the sign of the logit is proved on each part.

A part is a simplex of proportions, and its bounds hold for all lengths from the least one on: for
every share of `CLS` from 0 to 1 over that length, where it is attended to. Parts are halved until
their sign is proved by `seqcls.interpretability.bounds.logit_bounds`, or they are so small that
their logits are within `RESOLVED` of each other, or the budget is spent.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float

from seqcls.cancellation import check
from seqcls.interpretability.bounds.logit_bounds import logit_bounds
from seqcls.interpretability.model.network import Network

RESOLVED = 0.02
"""Nats of logit between the bounds of a cell that is not divided further."""
MOST_CELLS = 20_000
"""Cells per support, after which what is not proved is left open."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A simplex of proportions in parts; every part a simplex itself."""

    corners: Float[np.ndarray, "cell corner letter"]
    """Proportions of the support's letters, in order; each corner sums to 1."""
    volume: Float[np.ndarray, " cell"]
    """Shares of the whole simplex."""
    low: Float[np.ndarray, " cell"]
    high: Float[np.ndarray, " cell"]
    """Proved bounds of the logit."""


def divide(network: Network, support: tuple[int, ...], most_cls: float) -> Cells:
    """The simplex of these letters' proportions in cells.

    The bounds hold for all strings with at most `most_cls` tokens of `CLS` to a letter: at least
    1 / `most_cls` letters. With 0 they are bounds of the limits.
    """
    corners = np.eye(len(support))[None]
    volume = np.ones(1)
    done: list[tuple[np.ndarray, ...]] = []
    seen = 0
    while len(corners):
        check()
        seen += len(corners)
        outputs = _outputs(network, support, corners, 0.0)
        ends = (
            [outputs] if most_cls == 0 else [outputs, _outputs(network, support, corners, most_cls)]
        )
        bounds = logit_bounds(network, np.concatenate(ends, axis=1))
        settled = (bounds.low > 0) | (bounds.high <= 0) | (bounds.high - bounds.low < RESOLVED)
        settled |= seen > MOST_CELLS or len(support) == 1
        done.append((corners[settled], volume[settled], *(x[settled] for x in bounds)))
        corners, volume = _bisected(
            network, support, corners[~settled], volume[~settled], outputs[~settled]
        )
    return Cells(*(np.concatenate(parts) for parts in zip(*done, strict=True)))


def _outputs(
    network: Network,
    support: tuple[int, ...],
    corners: Float[np.ndarray, "cell corner letter"],
    cls: float,
) -> Float[np.ndarray, "cell corner head hidden"]:
    """What the heads add at the corners, with so much of `CLS` to one of all letters."""
    cells, points, _ = corners.shape
    occurrences = np.zeros((cells, points, network.num_letters + 1))
    occurrences[:, :, 0] = cls
    occurrences[:, :, [1 + x for x in support]] = corners
    flat = occurrences.reshape(cells * points, occurrences.shape[2])
    heads = range(network.config.num_attention_heads)
    outputs = np.array([network.head_output(head, flat) for head in heads])
    shape = (len(heads), cells, points, network.config.hidden_size)
    return np.moveaxis(outputs.reshape(shape), 0, 2)


def _bisected(
    network: Network,
    support: tuple[int, ...],
    corners: Float[np.ndarray, "cell corner letter"],
    volume: Float[np.ndarray, " cell"],
    outputs: Float[np.ndarray, "cell corner head hidden"],
) -> tuple[Float[np.ndarray, "half corner letter"], Float[np.ndarray, " half"]]:
    """Each cell in two, across the edge along which the state changes most.

    The edge is cut where, in the head in which it is longest, attention is half way: near a corner
    a letter outweighs others by orders of magnitude, and half way in proportions would be far off.
    """
    if not len(corners):
        return corners, volume
    edges = list(combinations(range(len(support)), 2))
    lengths = np.stack(
        [np.linalg.norm(outputs[:, i] - outputs[:, j], axis=2) for i, j in edges], axis=1
    )
    longest, head = np.divmod(lengths.reshape(len(corners), -1).argmax(axis=1), lengths.shape[2])
    one, other = np.array(edges)[longest].T
    rows = np.arange(len(corners))
    scores = network.scores[:, 0, [1 + x for x in support]]
    strength = np.exp(scores - scores.max(axis=1, keepdims=True))[head]
    first, second = corners[rows, one], corners[rows, other]
    share = (second * strength).sum(axis=1)
    share = share / (share + (first * strength).sum(axis=1))
    # Never so near an end that a half would have no volume left.
    share = np.clip(share, 1e-6, 1 - 1e-6)[:, None]
    middle = share * first + (1 - share) * second
    halves = corners.copy(), corners.copy()
    halves[0][rows, other], halves[1][rows, one] = middle, middle
    # The half that keeps the first corner has lost the share of the edge beyond the middle.
    volumes = volume * (1 - share[:, 0]), volume * share[:, 0]
    return np.concatenate(halves), np.concatenate(volumes)
