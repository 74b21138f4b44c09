"""What a model's wrong outputs have in common: how they differ from their targets, and from where.

Where all outputs that were looked at are the same string, that says it all. Otherwise an error
is attributed by the first statement about the model's wrong outputs that holds of it
(`seqcls.interpretability.output_causes`); the others follow, and its kind
(`seqcls.kinds.transduction.error_kind`). One of which none holds is attributed by its kind, and
by where output and target part: within as many tokens as the targets of training had at most, or
only after as many.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.interpretability.domains import tested_strings
from seqcls.interpretability.mechanisms import (
    CONSTANT,
    EXPLAINS,
    FIRST_RIGHT,
    LATER,
    ONE_PLACE,
    REPEATED,
    ROUNDING,
    AttributedError,
)
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.interpretability.wording import EMPTY
from seqcls.kinds.transduction import OutputAnswers, target_lengths
from seqcls.strings.token_strings import TokenStrings

# What holds of a model's own wrong outputs, whatever it was trained on.
#
# Each statement is of the wrong outputs that were looked at, and holds of at least `EXPLAINS` of
# them; that of one place of more than `MOST`. A first wrong place counts the tokens that output and
# target share before they part.
#
# - **repeated input tokens**: a token occurs more than once in the input. Only where the test has
#   inputs of one length with and without, and a repeat makes errors likelier by `LIKELIER` at
#   least: otherwise whatever is long would have repeats;
# - **first tokens right**: the greatest n such that the first wrong place is n or later, where
#   every test input whose target is longer than n is wrong;
# - **first wrong at one place**: the first wrong place is the same for at least `FEW` lengths;
# - **first wrong later in longer inputs**: place and length have a rank correlation (Spearman) of
#   at least `GROWS`. Places drawn at random within outputs of all lengths would have about 0.65.


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
    unit: str = "token"
    """What a target has so many of."""


@dataclass(frozen=True, eq=False)
class OutputStatement:
    """What many wrong outputs have in common."""

    mechanism: str
    text: str
    holds: Bool[np.ndarray, " wrong"]
    """Which of those that were looked at it holds of."""


def statements(wrong: WrongOutputs) -> list[OutputStatement]:
    """All that hold, the one that says most first."""
    if len(wrong.inputs) < FEW:
        return []
    found = (say(wrong) for say in _TRIED)
    return [x for x in found if x is not None]


def _repeats(wrong: WrongOutputs) -> OutputStatement | None:
    if wrong.unit != "token":
        return None
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
    return OutputStatement(REPEATED, text, holds)


def _first_right(wrong: WrongOutputs) -> OutputStatement | None:
    # The greatest place that enough of the others reach.
    ordered = np.sort(wrong.first_wrong)
    first = int(ordered[int(len(ordered) * (1 - EXPLAINS) + 1e-9)])
    longer = wrong.target_lengths > first
    if first < 1 or not longer.any() or not wrong.is_wrong[longer].all():
        return None
    unit = wrong.unit
    tokens = f"the first {unit} is" if first == 1 else f"the first {first} {unit}s are"
    text = f"{tokens} right, and every output with a longer target is wrong"
    return OutputStatement(FIRST_RIGHT, text, wrong.first_wrong >= first)


def _one_position(wrong: WrongOutputs) -> OutputStatement | None:
    places, times = np.unique(wrong.first_wrong, return_counts=True)
    place = int(places[times.argmax()])
    there = wrong.first_wrong == place
    if there.mean() <= MOST or len(np.unique(wrong.inputs.lengths[there])) < FEW:
        return None
    return OutputStatement(
        ONE_PLACE, f"first wrong at {wrong.unit} {place + 1}, whatever the length", there
    )


def _later(wrong: WrongOutputs) -> OutputStatement | None:
    # SciPy's statistics take a second to load.
    from scipy.stats import spearmanr

    lengths, places = wrong.inputs.lengths, wrong.first_wrong
    if len(np.unique(lengths)) < FEW or len(np.unique(places)) < 2:
        return None
    correlation = float(spearmanr(lengths, places).statistic)
    if correlation < GROWS:
        return None
    text = f"right for longer in longer inputs (rank correlation {correlation:.2f})"
    return OutputStatement(LATER, text, np.ones(len(places), dtype=bool))


_TRIED: tuple[Callable[[WrongOutputs], OutputStatement | None], ...] = (
    *(_repeats, _first_right, _one_position, _later),
)


def _have_repeats(strings: TokenStrings) -> Bool[np.ndarray, " string"]:
    return np.asarray((strings.counts > 1).any(axis=1))


def output_behaviours(
    model: TrainedModel, wrong: Sequence[str], picked: Sequence[str]
) -> tuple[AttributedError, ...]:
    """The causes of some wrong outputs.

    Args:
        wrong: all test inputs whose outputs are wrong.
        picked: those to attribute.
    """
    strings = list(dict.fromkeys(picked))
    letters = [model.letters(string) for string in strings]
    inputs = TokenStrings.of_lists(model.num_letters, letters)
    judged, at_places = model.ask(inputs), model.problem.at_places
    assert isinstance(judged, OutputAnswers)
    outputs = {tuple(output) for output in judged.outputs}
    if not at_places and len(outputs) == 1 and len(judged.outputs) >= FEW:
        (output,) = outputs
        said = f"always {model.display(output) or EMPTY}"
        return tuple(AttributedError(string, CONSTANT, None, said) for string in picked)
    # One that is right now hangs on rounding.
    causes = {string: AttributedError(string, ROUNDING) for string in strings}
    rows = np.array(list(judged.errors), dtype=np.int64)
    held = statements(_with_test(model, wrong, inputs.take(rows), judged.first_wrong))
    longest = model.problem.longest_target(model.problem.train.lengths[-1])
    each = zip(rows.tolist(), judged.error_kinds, judged.first_wrong.tolist(), strict=True)
    for number, (row, kind, place) in enumerate(each):
        string, of_it = strings[row], [x for x in held if x.holds[number]]
        if of_it:
            clause = "" if at_places else "the output "
            clause += {"wrong token": "has a wrong token"}.get(kind, kind)
            said = "; ".join([*(x.text for x in of_it), clause])
            causes[string] = AttributedError(string, of_it[0].mechanism, None, said)
        else:
            side = "after" if place >= longest else "within"
            said = f"{side} the {longest} tokens of the longest target in training"
            if at_places:
                pair = np.array([[judged.predicted[row, place]], [judged.targets[row, place]]])
                answer, right = model.said(pair)
                said = f"{answer} for {right}, {side} the {longest} places of training"
            causes[string] = AttributedError(string, kind, None, said)
    return tuple(causes[string] for string in picked)


def _with_test(
    model: TrainedModel, wrong: Sequence[str], inputs: TokenStrings, first_wrong: np.ndarray
) -> WrongOutputs:
    test, failing = tested_strings(model.problem), set(wrong)
    is_wrong = np.array([text in failing for text in test.texts], dtype=bool)
    if model.problem.at_places:
        lengths, unit = test.strings.lengths + 1, "place"
    else:
        lengths, unit = target_lengths(test.targets), "token"
    return WrongOutputs(inputs, first_wrong, test.strings, lengths, is_wrong, unit)
