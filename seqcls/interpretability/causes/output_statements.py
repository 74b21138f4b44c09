"""What holds of a model's own wrong outputs, whatever it was trained on.

Each statement is of the wrong outputs that were looked at, and holds of at least `EXPLAINS` of
them; that of one place of more than `MOST`. A first wrong place counts the tokens that output and
target share before they part.

- **repeated input tokens**: a token occurs more than once in the input. Only where the test has
  inputs of one length with and without, and a repeat makes errors likelier by `LIKELIER` at least:
  otherwise whatever is long would have repeats;
- **first tokens right**: the greatest n such that the first wrong place is n or later, where every
  test input whose target is longer than n is wrong;
- **first wrong at one place**: the first wrong place is the same for at least `FEW` lengths;
- **first wrong later in longer inputs**: place and length have a rank correlation (Spearman) of at
  least `GROWS`. Places drawn at random within outputs of all lengths would have about 0.65.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.interpretability.causes.mechanisms import (
    EXPLAINS,
    FIRST_RIGHT,
    LATER,
    ONE_PLACE,
    REPEATED,
)
from seqcls.tokens.strings import TokenStrings

FEW = 5
"""With fewer outputs, or lengths, nothing is said: it would hold of too many models."""

LIKELIER, GROWS, MOST = 0.5, 0.9, 0.5


@dataclass(frozen=True, eq=False)
class WrongOutputs:
    """Inputs whose outputs are wrong, and the test that they are from."""

    inputs: TokenStrings
    """Those that were looked at, each once."""
    first_wrong: Int64[np.ndarray, " wrong"]
    tested: TokenStrings
    """All test inputs that the model has places for."""
    target_lengths: Int64[np.ndarray, " string"]
    """Tokens of their targets."""
    is_wrong: Bool[np.ndarray, " string"]


@dataclass(frozen=True, eq=False)
class Statement:
    """What many wrong outputs have in common."""

    mechanism: str
    text: str
    holds: Bool[np.ndarray, " wrong"]
    """Which of those that were looked at it holds of."""


def statements(wrong: WrongOutputs) -> list[Statement]:
    """All that hold, the one that says most first."""
    if len(wrong.inputs) < FEW:
        return []
    found = (say(wrong) for say in _TRIED)
    return [x for x in found if x is not None]


def _repeats(wrong: WrongOutputs) -> Statement | None:
    lengths, repeats = wrong.tested.lengths, _have_repeats(wrong.tested)
    rates, weights = [], []
    for length in np.unique(lengths).tolist():
        sides = [wrong.is_wrong[(lengths == length) & (repeats == has)] for has in (True, False)]
        if smaller := min(map(len, sides)):
            rates.append([side.mean() for side in sides])
            weights.append(smaller)
    if sum(weights) < FEW:
        return None
    with_repeats, without = np.average(rates, axis=0, weights=weights).tolist()
    holds = _have_repeats(wrong.inputs)
    if with_repeats - without < LIKELIER or holds.mean() < EXPLAINS:
        return None
    text = (
        f"a token occurs more than once; of such inputs {with_repeats:.0%} are wrong, of as long "
        f"ones without {without:.0%}"
    )
    return Statement(REPEATED, text, holds)


def _first_right(wrong: WrongOutputs) -> Statement | None:
    # The greatest place that enough of the others reach.
    ordered = np.sort(wrong.first_wrong)
    first = int(ordered[int(len(ordered) * (1 - EXPLAINS) + 1e-9)])
    longer = wrong.target_lengths > first
    if first < 1 or not longer.any() or not wrong.is_wrong[longer].all():
        return None
    tokens = "the first token is" if first == 1 else f"the first {first} tokens are"
    text = f"{tokens} right, and every output with a longer target is wrong"
    return Statement(FIRST_RIGHT, text, wrong.first_wrong >= first)


def _one_place(wrong: WrongOutputs) -> Statement | None:
    places, times = np.unique(wrong.first_wrong, return_counts=True)
    place = int(places[times.argmax()])
    there = wrong.first_wrong == place
    if there.mean() <= MOST or len(np.unique(wrong.inputs.lengths[there])) < FEW:
        return None
    return Statement(ONE_PLACE, f"first wrong at token {place + 1}, whatever the length", there)


def _later(wrong: WrongOutputs) -> Statement | None:
    # SciPy's statistics take a second to load.
    from scipy.stats import spearmanr

    lengths, places = wrong.inputs.lengths, wrong.first_wrong
    if len(np.unique(lengths)) < FEW or len(np.unique(places)) < 2:
        return None
    correlation = float(spearmanr(lengths, places).statistic)
    if correlation < GROWS:
        return None
    text = f"right for longer in longer inputs (rank correlation {correlation:.2f})"
    return Statement(LATER, text, np.ones(len(places), dtype=bool))


_TRIED: tuple[Callable[[WrongOutputs], Statement | None], ...] = (
    *(_repeats, _first_right, _one_place, _later),
)


def _have_repeats(strings: TokenStrings) -> Bool[np.ndarray, " string"]:
    return np.asarray((strings.counts > 1).any(axis=1))
