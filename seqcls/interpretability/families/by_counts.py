"""Families by letter counts: every change of the answer up to a million letters.

Strings exist only as counts here, so a million letters cost what ten do.
"""

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.interpretability.bounds.lines import sign_changes
from seqcls.interpretability.families.curves import Change, Curve, Map, grid
from seqcls.interpretability.families.notation import Family
from seqcls.interpretability.model.network import Network

MAX_COUNT = 1_000_000
"""The largest value that a free count is given by letter counts."""


def curve(network: Network, family: Family, points: int = 241) -> Curve:
    """A family with one free count, on a logarithmic scale with both sides of every change."""
    changes = _changes(network, family, 0)
    ends = np.array([change.n for change in changes], dtype=np.int64)
    n = np.unique(np.concatenate([grid(MAX_COUNT, points), ends, ends - 1]))
    counts = family.counts(n[:, None])
    limit = network.limit_logits(np.array(family.free, dtype=float))
    logits = network.logits(counts)
    return Curve(family, n, _labels(network, counts), logits, changes, float(limit[0]))


def area(network: Network, family: Family, points: int = 61) -> Map:
    """A family with two free counts, on a logarithmic grid."""
    values = grid(MAX_COUNT, points)
    rows, columns = np.meshgrid(values, values, indexing="ij")
    counts = family.counts(np.column_stack([rows.ravel(), columns.ravel()]))
    labels, logits = _labels(network, counts), network.logits(counts)
    changes = tuple(_changes(network, family, value) for value in values.tolist())
    shape = rows.shape
    return Map(family, values, values, labels.reshape(shape), logits.reshape(shape), changes, True)


def _labels(
    network: Network, counts: Int64[np.ndarray, "string letter"]
) -> Bool[np.ndarray, " string"]:
    """The same for all strings of a family, whose letters are the same."""
    label = network.problem.count_task.labels_of_counts(counts[:1])[0]
    return np.full(len(counts), label, dtype=bool)


def _changes(network: Network, family: Family, first: int) -> tuple[Change, ...]:
    """Every change over the last free count; with two, the first one has this value."""
    step = np.array(family.free[-1])
    start = np.array(family.fixed) + first * np.array(family.free[0])
    changes = sign_changes(network, start, step, 1, MAX_COUNT)
    before = network.logits(start + (changes - 1)[:, None] * step).tolist()
    after = network.logits(start + changes[:, None] * step).tolist()
    return tuple(
        Change(n, logit > 0, logit_before, logit)
        for n, logit_before, logit in zip(changes.tolist(), before, after, strict=True)
    )
