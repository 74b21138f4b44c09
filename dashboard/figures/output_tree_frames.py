"""The likeliest outputs as data frames for their chart and table."""

from math import exp

import pandas as pd

from dashboard.figures.string_axes import DRAWN
from seqcls.interpretability.states.output_tree import Leaf, OutputTree

BEFORE = 3
"""Tokens that are drawn before the first at which outputs part, where all are too many."""


def drawn_places(tree: OutputTree) -> range:
    """The places that are drawn: all, or some from those on where outputs part."""
    end = max(leaf.tokens for leaf in tree.leaves)
    parting = min((leaf.branch for leaf in tree.leaves if leaf.row), default=0)
    first = max(parting - BEFORE, 0) if end > DRAWN else 0
    return range(first, min(end, first + DRAWN))


def cells_frame(tree: OutputTree, places: range) -> pd.DataFrame:
    """row, place, token, probability, so_far, strength, choice: of the tokens that are drawn."""
    others = [leaf for leaf in tree.leaves if leaf.row]
    parting = {(row, leaf.branch) for leaf in others for row in (leaf.parent, leaf.row)}
    rows = [
        {
            "row": token.row,
            "place": token.place,
            "token": token.token,
            "probability": token.probability,
            "so_far": exp(token.log_probability),
            "strength": 0.06 + 0.36 * token.probability,
            "choice": share(token.probability) if (token.row, token.place) in parting else "",
        }
        for token in tree.tokens
        if token.place in places
    ]
    return pd.DataFrame(rows)


def links_frame(tree: OutputTree, places: range) -> pd.DataFrame:
    """row, parent, place: where a row leaves another."""
    rows = [
        {"row": leaf.row, "parent": leaf.parent, "place": leaf.branch}
        for leaf in tree.leaves
        if leaf.row and leaf.branch in places
    ]
    return pd.DataFrame(rows, columns=["row", "parent", "place"])


def ends_frame(tree: OutputTree, places: range) -> pd.DataFrame:
    """row, place, said, output, probability, log_probability."""
    rows = [
        {
            "row": leaf.row,
            "place": min(leaf.tokens - 1, places[-1]),
            "said": f"{_outcome(leaf)}, {share(exp(leaf.log_probability))}",
            "output": leaf.text or "the empty output",
            "probability": exp(leaf.log_probability),
            "log_probability": leaf.log_probability,
        }
        for leaf in tree.leaves
    ]
    return pd.DataFrame(rows)


def leaves_frame(tree: OutputTree) -> pd.DataFrame:
    """output, right, ended, probability, log_probability: the likeliest first."""
    rows = [
        {
            "output": leaf.text or "the empty output",
            "right": leaf.right,
            "ended": leaf.ended,
            "probability": exp(leaf.log_probability),
            "log_probability": leaf.log_probability,
        }
        for leaf in sorted(tree.leaves, key=lambda leaf: -leaf.log_probability)
    ]
    return pd.DataFrame(rows).astype({"right": "boolean"})


def share(probability: float) -> str:
    """A probability in a few characters."""
    if probability > 0.9995:
        return ">99.9%"
    if probability < 0.001:
        return "<0.1%"
    return f"{probability:.1%}"


def _outcome(leaf: Leaf) -> str:
    if not leaf.ended:
        return "cut off"
    if leaf.right is None:
        return "target not known"
    return "right" if leaf.right else "wrong"
