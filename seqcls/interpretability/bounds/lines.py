"""The logit along a line of letter counts, and every place where its sign changes, exactly.

The line is `start + n * step` for whole numbers n. In every head the attention weights along it are
Moebius functions of n, hence monotonic: what lies between two counts is a cell of
`seqcls.interpretability.bounds.logit_bounds`. Intervals without a proved sign are halved
(geometrically) until they are short enough to try every n.
"""

import numpy as np
from jaxtyping import Float, Int64

from seqcls.interpretability.bounds.logit_bounds import logit_bounds
from seqcls.interpretability.model.network import Network

LARGEST = 2.0**63 - 1024
"""The largest float that is a whole number of 64 bits."""

FLAT = 1e-10
"""A logit that varies less than that, and is no further from zero, has no sign but by rounding."""

SHORT = 16
"""An interval of so many whole numbers is tried one by one."""


def head_outputs(
    network: Network, counts: Int64[np.ndarray, "string letter"]
) -> Float[np.ndarray, "string head hidden"]:
    """What each head adds to the stream of `CLS`."""
    occurrences = network.occurrences(counts)
    heads = range(network.config.num_attention_heads)
    outputs = [network.head_output(head, occurrences) for head in heads]
    shape = (len(heads), len(counts), network.config.hidden_size)
    return np.array(outputs).reshape(shape).swapaxes(0, 1)


def sign_changes(
    network: Network,
    start: Int64[np.ndarray, " letter"],
    step: Int64[np.ndarray, " letter"],
    first: int,
    last: int,
) -> Int64[np.ndarray, " change"]:
    """Every n in (first, last] where the answer differs from that of n - 1, ascending."""
    low, high = _geometric(first, last)
    pairs: list[np.ndarray] = []
    while len(low):
        short = high - low <= SHORT
        pairs.append(_tried(network, start, step, low[short], high[short]))
        low, high = low[~short], high[~short]
        ends = head_outputs(network, _counts(start, step, np.concatenate([low, high])))
        bounds = logit_bounds(network, np.stack(np.split(ends, 2), axis=1))
        open_ = (bounds.low <= 0) & (bounds.high > 0)
        # Of a model whose logit is nothing, with weights of zero say, no halving proves a sign.
        flat = bounds.high - bounds.low <= FLAT
        answers = [network.logits(_counts(start, step, x)) > 0 for x in (low, high)]
        open_ &= ~(flat & (answers[0] == answers[1]))
        low, high = low[open_], high[open_]
        middle = np.clip(_whole(np.sqrt((low + 1.0) * (high + 1.0))), low + 1, high - 1)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return np.sort(np.concatenate([*pairs, np.zeros(0, np.int64)]))


def _counts(
    start: Int64[np.ndarray, " letter"],
    step: Int64[np.ndarray, " letter"],
    n: Int64[np.ndarray, " string"],
) -> Int64[np.ndarray, "string letter"]:
    return np.asarray(start + n[:, None] * step)


def _geometric(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Intervals that share their ends, from first to last."""
    if last <= first:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    ends = np.unique(_whole(np.geomspace(first + 1, last + 1, 33).round()) - 1)
    ends[0], ends[-1] = first, last
    return ends[:-1], ends[1:]


def _whole(values: Float[np.ndarray, " value"]) -> Int64[np.ndarray, " value"]:
    # Next to the largest whole number, the nearest float is one too large.
    return np.asarray(np.minimum(values, LARGEST), dtype=np.int64)


def _tried(
    network: Network,
    start: Int64[np.ndarray, " letter"],
    step: Int64[np.ndarray, " letter"],
    low: Int64[np.ndarray, " interval"],
    high: Int64[np.ndarray, " interval"],
) -> Int64[np.ndarray, " change"]:
    if not len(low):
        return np.zeros(0, np.int64)
    n = np.unique(np.minimum(low[:, None] + np.arange(SHORT + 1), high[:, None]))
    answers = network.logits(_counts(start, step, n)) > 0
    changed = (answers[1:] != answers[:-1]) & (np.diff(n) == 1)
    # Neighbours in n may belong to intervals that do not touch; those are no interval's concern.
    return np.asarray(n[1:][changed])
