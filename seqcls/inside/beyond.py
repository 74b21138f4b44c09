r"""What can be proved about all strings, however long.

Without attention to `CLS` the logit depends on nothing but the proportions of the letters: what
holds for a proportion holds at every length. With it, a string of N letters is as a limit of which
`CLS` is a letter with the proportion 1/N; so what is proved for every such proportion from 0 to
1/N holds for every string of at least N letters.

For each set of letters (a *support*), the simplex of its proportions is divided until the sign of
the logit is proved on each part by `seqcls.inside.bounds`, or the part is so small that its logits
are within `RESOLVED` of each other, or the budget is spent. What is left over is said to be open.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from jaxtyping import Float

from seqcls.inside.bounds import logit_bounds
from seqcls.inside.network import Network

RESOLVED = 0.02
"""Nats of logit between the bounds of a cell that is not divided further."""
MOST_CELLS = 20_000
"""Cells per support, after which what is not proved is left open."""
MOST_LETTERS = 4
"""Of a support; the simplices of more letters are too many to be divided."""
MOST_SUPPORTS = 64

Claim = Literal["right for ever", "wrong for ever", "depends on the proportions", "not proved"]


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


@dataclass(frozen=True)
class ShareInterval:
    """Shares of the first of two letters, and what is proved there."""

    low: float
    high: float
    right: bool | None
    """None where nothing is proved."""


@dataclass(frozen=True, eq=False)
class SupportProof:
    """What is proved of all strings that consist of exactly these letters."""

    letters: str
    label: bool
    claim: Claim
    right: float
    wrong: float
    open: float
    """Shares of the simplex of proportions, which sum to 1."""
    margin: float | None
    """Where all is proved right, by how much: the proved least |logit|."""
    safe_share: float | None
    """Proved right wherever each required letter has more than this share; positive supports."""
    intervals: tuple[ShareInterval, ...]
    """Supports of two letters: all shares of the first, ascending."""
    cells: Cells


@dataclass(frozen=True, eq=False)
class Beyond:
    """What is proved of all strings of at least `least_length` letters."""

    least_length: int
    """1 where the logit depends on proportions alone."""
    supports: tuple[SupportProof, ...]
    left_out: tuple[str, ...]
    """Supports with too many letters, or beyond the `MOST_SUPPORTS` first; nothing is said of
    them."""


def beyond(network: Network, *, least_length: int | None = None) -> Beyond:
    """Proofs for every support, the smaller first.

    Args:
        network: the model.
        least_length: of the strings that the proofs are about, where `CLS` is attended to; one more
            than the longest test string if not given.
    """
    config = network.config
    length = least_length or config.test_max_length + 1
    if config.no_attend_cls:
        length = 1
    letters = range(config.num_letters)
    small = [s for n in letters[:MOST_LETTERS] for s in combinations(letters, n + 1)]
    names = ["".join(network.tokenizer.alphabet[x] for x in support) for support in small]
    proofs = [prove(network, support, length) for support in small[:MOST_SUPPORTS]]
    left_out = names[MOST_SUPPORTS:]
    if config.num_letters > MOST_LETTERS:
        left_out.append(f"all of more than {MOST_LETTERS} letters")
    return Beyond(length, tuple(proofs), tuple(left_out))


def prove(network: Network, support: tuple[int, ...], least_length: int) -> SupportProof:
    """What is proved of the strings of `least_length` letters and more with this support."""
    counts = np.isin(np.arange(network.config.num_letters), support).astype(np.int64)
    label = bool(network.config.language.positive(counts[None])[0])
    cells = _divide(network, support, least_length)
    right = (cells.low > 0) if label else (cells.high <= 0)
    wrong = (cells.high <= 0) if label else (cells.low > 0)
    shares = [float(cells.volume[part].sum()) for part in (right, wrong, ~right & ~wrong)]
    return SupportProof(
        letters="".join(network.tokenizer.alphabet[x] for x in support),
        label=label,
        claim=_claim(right, wrong),
        right=shares[0],
        wrong=shares[1],
        open=shares[2],
        margin=float(np.abs(cells.low if label else cells.high).min()) if right.all() else None,
        safe_share=_safe_share(network, support, cells, right) if label else None,
        intervals=_intervals(cells, right, wrong) if len(support) == 2 else (),
        cells=cells,
    )


def length_of_limit(network: Network, tolerance: float) -> int | None:
    """A length from which every logit is proved within `tolerance` of the limit of its proportions.

    `CLS` weighs at most 1 / (1 + N e^(s_k - s_CLS)) among N letters, k the letter with the least
    score; what a head adds moves by that times the difference of what `CLS` and a letter write,
    and GELU is nowhere steeper than 1.13. None where a norm stands before the feed-forward: how
    much it may magnify a difference is not bounded here.
    """
    if network.config.no_attend_cls:
        return 1
    if network.config.has_norms:
        return None
    inner = network.weights["blocks.0.feed_forward.input.weight"]
    output = network.weights["blocks.0.feed_forward.output.weight"]
    moved = network.writes[:, :1] - network.writes[:, 1:]
    reach = np.abs(moved @ network.classifier)
    reach += 1.13 * np.abs(moved @ inner.T) @ np.abs(network.classifier @ output)
    scores = network.scores[:, 0]
    rate = np.exp(scores[:, 1:].min(axis=1) - scores[:, 0])
    low, high = 0, 1
    while (reach.max(axis=1) / (1 + high * rate)).sum() > tolerance:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        close = (reach.max(axis=1) / (1 + middle * rate)).sum() <= tolerance
        low, high = (low, middle) if close else (middle, high)
    return high


def _claim(right: np.ndarray, wrong: np.ndarray) -> Claim:
    if right.all():
        return "right for ever"
    if wrong.all():
        return "wrong for ever"
    return "depends on the proportions" if right.any() and wrong.any() else "not proved"


def _safe_share(
    network: Network, support: tuple[int, ...], cells: Cells, right: np.ndarray
) -> float | None:
    """A share of every required letter above which nothing but proved cells is left."""
    required = [support.index(x) for x in network.config.language.required]
    greatest = cells.corners[~right][:, :, required].max(axis=1).min(axis=1)
    share = float(greatest.max(initial=0))
    return share if share * len(required) < 1 else None


def _intervals(cells: Cells, right: np.ndarray, wrong: np.ndarray) -> tuple[ShareInterval, ...]:
    shares = np.sort(cells.corners[:, :, 0], axis=1)
    found: list[ShareInterval] = []
    for row in np.argsort(shares[:, 0]):
        claim = True if right[row] else False if wrong[row] else None
        low, high = shares[row].tolist()
        if found and found[-1].right == claim:
            low = found.pop().low
        found.append(ShareInterval(low, high, claim))
    return tuple(found)


def _divide(network: Network, support: tuple[int, ...], least_length: int) -> Cells:
    corners = np.eye(len(support))[None]
    volume = np.ones(1)
    done: list[tuple[np.ndarray, ...]] = []
    seen = 0
    while len(corners):
        seen += len(corners)
        outputs = _outputs(network, support, corners, least_length)
        bounds = logit_bounds(network, outputs)
        settled = (bounds.low > 0) | (bounds.high <= 0)
        settled |= bounds.high - bounds.low < RESOLVED
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
    least_length: int,
) -> Float[np.ndarray, "cell point head hidden"]:
    """What the heads add at the corners: without `CLS`, and with one among so many letters."""
    cells, points, _ = corners.shape
    occurrences = np.zeros((cells, points, network.config.num_letters + 1))
    occurrences[:, :, [1 + x for x in support]] = corners
    if not network.config.no_attend_cls:
        with_cls = occurrences.copy()
        with_cls[:, :, 0] = 1 / least_length
        occurrences = np.concatenate([occurrences, with_cls], axis=1)
    flat = occurrences.reshape(-1, occurrences.shape[2])
    heads = range(network.config.num_attention_heads)
    outputs = np.array([network.head_output(head, flat) for head in heads])
    shape = (len(heads), cells, occurrences.shape[1], network.config.hidden_size)
    return np.moveaxis(outputs.reshape(shape), 0, 2)


def _bisected(
    network: Network,
    support: tuple[int, ...],
    corners: Float[np.ndarray, "cell corner letter"],
    volume: Float[np.ndarray, " cell"],
    outputs: Float[np.ndarray, "cell point head hidden"],
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
