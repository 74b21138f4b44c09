"""Common properties of a model's wrong outputs: the difference from their targets, and its place.

Where all outputs that were looked at are the same string, that is the cause. Otherwise, where the
first n tokens are right in `EXPLAINS` of them, for the greatest such n, and every test input whose
target is longer is wrong, that is the cause of those it holds of. Any other error is called by its
kind (`seqcls.kinds.transduction.error_kind`), and by where output and target part: within as many
tokens as the targets of training had at most, or only after as many.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int64

from seqcls.interpretability.domains import tested_strings
from seqcls.interpretability.mechanisms import (
    CONSTANT,
    EXPLAINS,
    FIRST_RIGHT,
    ROUNDING,
    AttributedError,
)
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.interpretability.wording import EMPTY
from seqcls.kinds.transduction import OutputAnswers, target_lengths
from seqcls.strings.token_strings import TokenStrings

MIN_WRONG = 5
"""With fewer wrong outputs nothing is concluded of them together: too many models would fit."""


def output_causes(
    model: TrainedModel, wrong: Sequence[str], picked: Sequence[str]
) -> tuple[AttributedError, ...]:
    """The causes of some wrong outputs.

    Args:
        wrong: all test inputs whose outputs are wrong.
        picked: those to attribute.
    """
    strings = list(dict.fromkeys(picked))
    letters = [model.letters(string) for string in strings]
    judged = model.ask(TokenStrings.of_lists(model.num_letters, letters))
    at_places = model.problem.at_places
    assert isinstance(judged, OutputAnswers)
    outputs = {tuple(output) for output in judged.outputs}
    if not at_places and len(outputs) == 1 and len(judged.outputs) >= MIN_WRONG:
        (output,) = outputs
        about = f"always {model.display(output) or EMPTY}"
        return tuple(AttributedError(string, CONSTANT, None, about) for string in picked)
    # One that is right now hangs on rounding.
    causes = {string: AttributedError(string, ROUNDING) for string in strings}
    rows, positions = list(judged.errors), judged.first_wrong
    right_for = _first_right(model, wrong, positions)
    longest = model.problem.longest_target(model.problem.train.lengths[-1])
    for row, kind, position in zip(rows, judged.error_kinds, positions.tolist(), strict=True):
        string = strings[row]
        if right_for and position >= right_for:
            clause = "has a wrong token" if kind == "wrong token" else kind
            about = _describe_first(right_for, "place" if at_places else "token")
            about += f"; {clause}" if at_places else f"; the output {clause}"
            causes[string] = AttributedError(string, FIRST_RIGHT, None, about)
            continue
        side = "after" if position >= longest else "within"
        about = f"{side} the {longest} tokens of the longest target in training"
        if at_places:
            pair = np.array([[judged.predicted[row, position]], [judged.targets[row, position]]])
            answer, right = model.decode(pair)
            about = f"{answer} for {right}, {side} the {longest} places of training"
        causes[string] = AttributedError(string, kind, None, about)
    return tuple(causes[string] for string in picked)


def _first_right(
    model: TrainedModel, wrong: Sequence[str], first_wrong: Int64[np.ndarray, " wrong"]
) -> int:
    """After how many right tokens outputs go wrong, if all with a longer target do; else 0.

    Args:
        wrong: all test inputs whose outputs are wrong.
        first_wrong: the position of the first wrong token of those that are looked at.
    """
    # Of so few, any number of first tokens could be right by chance.
    if len(first_wrong) < MIN_WRONG:
        return 0
    # The greatest position that enough of them reach.
    first = int(np.sort(first_wrong)[int(len(first_wrong) * (1 - EXPLAINS) + 1e-9)])
    test, failing = tested_strings(model.problem), set(wrong)
    at_places = model.problem.at_places
    # The empty prefix is answered, too.
    lengths = test.strings.lengths + 1 if at_places else target_lengths(test.targets)
    longer = [text for text, length in zip(test.texts, lengths, strict=True) if length > first]
    return first if longer and failing.issuperset(longer) else 0


def _describe_first(number: int, unit: str) -> str:
    tokens = f"the first {unit} is" if number == 1 else f"the first {number} {unit}s are"
    return f"{tokens} right, and every output with a longer target is wrong"
