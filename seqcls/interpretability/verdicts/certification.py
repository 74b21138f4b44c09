r"""What can be proved about all strings, however long.

Without attention to `CLS` the logit depends on nothing but the proportions of the letters: what
holds for a proportion holds at every length. With it, a string of N letters is as a limit of which
`CLS` is a letter with the proportion 1/N; so what is proved for every such proportion from 0 to
1/N holds for every string of at least N letters.

For each set of letters (a *support*), `seqcls.interpretability.verdicts.simplex` divides the
simplex of its proportions into parts with a proved sign. What is left over is said to be open.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from seqcls.interpretability.model.network import Network
from seqcls.interpretability.model.obstacle import refuse
from seqcls.interpretability.verdicts.simplex import Cells, divide

MOST_LETTERS = 4
"""The most letters of a support; the simplices of more letters are too many to be divided."""
MOST_SUPPORTS = 64

Claim = Literal[
    "certified right",
    "certified wrong",
    "right in the end",
    "wrong in the end",
    "depends on the proportions",
    "not proved",
]
"""For ever: at every length from the least on. In the end: from some length on, which may be more,
since with the share of `CLS` the answer may change once more."""


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
    right_in_the_end: float
    wrong_in_the_end: float
    """Shares of the simplex with this sign in the limit, as strings of these proportions grow."""
    margin: float | None
    """Where all is proved right, by how much: the proved least |logit|."""
    safe_share: float | None
    """Proved right wherever each required letter has more than this share; positive supports."""
    intervals: tuple[ShareInterval, ...]
    """Supports of two letters: all shares of the first, ascending."""
    cells: Cells


@dataclass(frozen=True, eq=False)
class Certification:
    """What is proved of all strings of at least `least_length` letters."""

    least_length: int
    """1 where the logit depends on proportions alone."""
    supports: tuple[SupportProof, ...]
    left_out: tuple[str, ...]
    """Supports with too many letters, or beyond the `MOST_SUPPORTS` first; nothing is said of
    them."""


def certify(network: Network, *, least_length: int | None = None) -> Certification:
    """Proofs for every support, the smaller first.

    Args:
        network: the model.
        least_length: of the strings that the proofs are about, where `CLS` is attended to; one more
            than the longest test string if not given.

    Raises:
        ConfigError: of this model or task the proofs would not be true.
    """
    refuse(network.problem)
    length = least_length or network.problem.test.lengths[-1] + 1
    if network.config.no_attend_cls:
        length = 1
    letters = range(network.num_letters)
    small = [s for n in letters[:MOST_LETTERS] for s in combinations(letters, n + 1)]
    names = [network.tokenizer.spelled(support) for support in small]
    proofs = [prove(network, support, length) for support in small[:MOST_SUPPORTS]]
    left_out = names[MOST_SUPPORTS:]
    if network.num_letters > MOST_LETTERS:
        left_out.append(f"more than {MOST_LETTERS} letters")
    return Certification(length, tuple(proofs), tuple(left_out))


def prove(network: Network, support: tuple[int, ...], least_length: int) -> SupportProof:
    """What is proved of the strings of `least_length` letters and more with this support."""
    counts = np.isin(np.arange(network.num_letters), support).astype(np.int64)
    label = bool(network.problem.count_task.labels_of_counts(counts[None])[0])
    limits = divide(network, support, 0.0)
    cells = limits
    if not network.config.no_attend_cls:
        cells = divide(network, support, 1 / least_length)
    right, wrong = _judged(cells, label)
    shares = _shares(cells, label)
    in_the_end = _shares(limits, label)
    return SupportProof(
        letters=network.tokenizer.spelled(support),
        label=label,
        claim=_claim(cells, limits, label),
        right=shares[0],
        wrong=shares[1],
        open=shares[2],
        right_in_the_end=in_the_end[0],
        wrong_in_the_end=in_the_end[1],
        margin=float(np.abs(cells.low if label else cells.high).min()) if right.all() else None,
        safe_share=_safe_share(network, support, cells, right) if label else None,
        intervals=_intervals(cells, right, wrong) if len(support) == 2 else (),
        cells=cells,
    )


def _judged(cells: Cells, label: bool) -> tuple[np.ndarray, np.ndarray]:
    """Which cells are proved right, and which wrong."""
    positive, negative = cells.low > 0, cells.high <= 0
    return (positive, negative) if label else (negative, positive)


def _shares(cells: Cells, label: bool) -> tuple[float, float, float]:
    right, wrong = _judged(cells, label)
    proved = [float(cells.volume[part].sum()) for part in (right, wrong)]
    return proved[0], proved[1], float(cells.volume[~right & ~wrong].sum())


def _claim(cells: Cells, limits: Cells, label: bool) -> Claim:
    right, wrong = _judged(cells, label)
    right_at_last, wrong_at_last = _judged(limits, label)
    if right.all():
        return "certified right"
    if wrong.all():
        return "certified wrong"
    if right_at_last.all():
        return "right in the end"
    if wrong_at_last.all():
        return "wrong in the end"
    somewhere = right.any() or right_at_last.any(), wrong.any() or wrong_at_last.any()
    return "depends on the proportions" if all(somewhere) else "not proved"


def _safe_share(
    network: Network, support: tuple[int, ...], cells: Cells, right: np.ndarray
) -> float | None:
    """A share of every required letter above which nothing but proved cells is left."""
    required = [support.index(x) for x in network.problem.required_letters]
    greatest = cells.corners[~right][:, :, required].max(axis=1).min(axis=1)
    share = float(greatest.max(initial=0))
    return share if share * len(required) < 1 else None


def _intervals(cells: Cells, right: np.ndarray, wrong: np.ndarray) -> tuple[ShareInterval, ...]:
    shares = np.sort(cells.corners[:, :, 0], axis=1)
    intervals: list[ShareInterval] = []
    for row in np.argsort(shares[:, 0]):
        claim = True if right[row] else False if wrong[row] else None
        low, high = shares[row].tolist()
        if intervals and intervals[-1].right == claim:
            low = intervals.pop().low
        intervals.append(ShareInterval(low, high, claim))
    return tuple(intervals)
