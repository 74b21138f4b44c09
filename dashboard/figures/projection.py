"""Vectors of any size as points of a line or plane that is fixed over the epochs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

MARGIN = 0.15
"""The part of the span that stays free on each side, for arrow heads and names."""

SHOWN_ENTRIES = 8
"""Entries of a vector that a tooltip shows at most."""

Limits = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Projection:
    """A linear map to one or two coordinates; the origin stays where it is."""

    directions: Float[np.ndarray, "coordinate hidden"]
    """Orthonormal."""
    titles: tuple[str, ...]
    """Names of the coordinates."""
    domains: tuple[Limits, ...]
    """The limits of the coordinates, the same at every epoch."""
    exact: bool
    """Nothing is lost: the coordinates are the vector's own."""

    def coordinates(
        self, states: Float[np.ndarray, "state hidden"]
    ) -> Float[np.ndarray, "state coordinate"]:
        """The places of states."""
        return np.asarray(states @ self.directions.T)

    def points(self, states: Float[np.ndarray, "state hidden"], **columns: Any) -> pd.DataFrame:
        """A row a state: what is known of it, x, y in a plane, and values: the vector, as text."""
        frame = pd.DataFrame(columns, index=range(len(states)))
        # A line has no y.
        for name, column in zip("xy", self.coordinates(states).T, strict=False):
            frame[name] = column
        return frame.assign(values=list(map(_text, states)))

    def describe_loss(self, states: Float[np.ndarray, "state hidden"]) -> str:
        """Reports the share of variance drawn, as a sentence to add; empty if all of it is."""
        if self.exact:
            return ""
        spread = states - states.mean(axis=0)
        total = float((spread**2).sum())
        share = float((self.coordinates(spread) ** 2).sum()) / total if total else 1.0
        dimensions = self.directions.shape[1]
        return f" Two of {dimensions} dimensions are drawn, {share:.0%} of the points' variance."


def project(
    epochs: Sequence[Float[np.ndarray, "state hidden"]],
    kept_index: int,
    name: str = "dimension",
    towards: Float[np.ndarray, " hidden"] | None = None,
) -> Projection:
    """Chooses a projection in which states can be followed over the epochs.

    One or two dimensions are drawn unchanged; of more, the first two principal components of the
    tested epoch's states and the origin, so that the axes are fixed.

    Args:
        epochs: the states of each epoch.
        kept_index: index of the tested epoch among them.
        name: what a coordinate is called, such as `dimension`; two are numbered.
        towards: a direction that becomes the first axis where there are more than two dimensions,
            such as the classifier's; the second is then the first principal component beside it.
    """
    hidden = epochs[kept_index].shape[1]
    if hidden <= 2:
        directions = np.eye(hidden)
        titles = tuple(f"{name} {number}" for number in range(hidden)) if hidden > 1 else (name,)
    # A classifier of zeros has no direction.
    elif towards is not None and np.any(towards):
        first = towards / np.linalg.norm(towards)
        directions = np.stack([first, _beside(first, epochs[kept_index])])
        titles = ("along the classifier", "first principal component beside it")
    else:
        directions = _principal(epochs[kept_index], 2)
        titles = ("first principal component", "second principal component")
    # Limits are those of all epochs, so that only the points move.
    drawn = np.concatenate([states @ directions.T for states in epochs])
    return Projection(directions, titles, _limits(drawn), exact=hidden <= 2)


def _principal(
    states: Float[np.ndarray, "state hidden"], number: int
) -> Float[np.ndarray, "number hidden"]:
    """Orthonormal directions of greatest variance, their largest entry positive."""
    # With the origin, at which every arrow begins.
    points = np.concatenate([states, np.zeros((1, states.shape[1]))])
    directions = np.linalg.svd(points - points.mean(axis=0))[2][:number]
    # The sign of a singular vector is arbitrary: left so, equal states could be mirrored.
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None], axis=1)
    return np.asarray(directions * np.sign(largest))


def _beside(
    first: Float[np.ndarray, " hidden"], states: Float[np.ndarray, "state hidden"]
) -> Float[np.ndarray, " hidden"]:
    """The direction of greatest variance of states at right angles to a unit vector."""
    rest = states - np.outer(states @ first, first)
    principal = _principal(rest, 1)[0]
    # Where no variance is left, the principal direction is any; this one is beside the first.
    basis = np.linalg.qr(np.column_stack([first, principal]))[0]
    return np.asarray(basis[:, 1] * np.sign(basis[:, 1] @ principal or 1))


def _limits(points: Float[np.ndarray, "state coordinate"]) -> tuple[Limits, ...]:
    """Limits that hold all points and the origin; a square, so that scales are equal."""
    low = np.minimum(points.min(axis=0, initial=0), 0)
    high = np.maximum(points.max(axis=0, initial=0), 0)
    # Vectors that are all zero need an axis as well.
    half = (high - low).max() * (0.5 + MARGIN) or 1.0
    middle = (low + high) / 2
    return tuple((float(m - half), float(m + half)) for m in middle)


def _text(vector: Float[np.ndarray, " hidden"]) -> str:
    """`(0.1197, 2.3601)`; the first entries of a long one."""
    entries = [f"{value:.4f}" for value in vector[:SHOWN_ENTRIES].tolist()]
    return f"({', '.join(entries)}{', …' if len(vector) > SHOWN_ENTRIES else ''})"
