"""Families whose strings are inputs of a transduction: which outputs are right, and up to where."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from seqcls.errors import InvalidStringError
from seqcls.interpretability.families.curves import grid
from seqcls.interpretability.families.notation import Family
from seqcls.interpretability.families.output_family import FamilyOutput, OutputFamily, Values
from seqcls.interpretability.model.judged_inputs import judged_inputs
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.kinds.transduction import output_texts
from seqcls.results import ErrorKind
from seqcls.tokens.strings import NO_LETTER, TokenStrings

LONGEST = 400
"""Tokens of the longest input that is tried; its output may be several times as long."""

LEAST_LONGEST = 60
"""The same of a model that is tested on short strings: else it is twice the longest test length."""


def curve(model: TrainedModel, family: Family, points: int = 30) -> OutputFamily:
    """A family with one free count: its first sixteen strings, then others, and every change.

    Others are tried evenly on a logarithmic scale; between two of them of which one alone is
    answered right, the first change is found by halving.

    Raises:
        InvalidStringError: as `_check`.
    """
    longest = _longest(model, family)
    first = np.arange(1, min(16, longest) + 1)
    tried = _Tried(model, family)
    tried.add([(n,) for n in np.union1d(first, grid(longest, points)).tolist()])
    _check(tried, family)
    for one, other in tried.written.changes:
        tried.halve(one, other)
    return tried.written


def area(model: TrainedModel, family: Family, points: int = 12) -> OutputFamily:
    """A family with two free counts, each on a logarithmic scale.

    Raises:
        InvalidStringError: as `_check`.
    """
    values = grid(_longest(model, family), points).tolist()
    tried = _Tried(model, family)
    tried.add(list(product(values, values)))
    _check(tried, family)
    return tried.written


def _longest(model: TrainedModel, family: Family) -> int:
    """The greatest value of all free counts at which a string is no longer than is tried."""
    longest = min(max(2 * model.problem.test.lengths[-1], LEAST_LONGEST), LONGEST)
    free = len(family.names)
    if family.length(*[1] * free) > longest:
        raise InvalidStringError(
            f"{family.text[:60]!r}: even its first string has more than the {longest} tokens that "
            "are tried; lower its fixed counts"
        )
    value = 1
    while family.length(*[value + 1] * free) <= longest:
        value += 1
    return value


def _check(tried: "_Tried", family: Family) -> None:
    """Refuses a family of which nothing was answered.

    Raises:
        InvalidStringError: none of its strings is an input that the model has places for.
    """
    written = tried.written
    if written.outputs:
        return
    if written.no_places:
        raise InvalidStringError(
            f"{family.text[:60]!r}: even its shortest input is longer than the model has places for"
        )
    raise InvalidStringError(
        f"{family.text[:60]!r}: none of the {written.no_inputs} strings tried is an input of "
        f"task={tried.model.config.task!r}; {tried.why_no_input()}"
    )


class _Tried:
    """The strings of a family that were tried so far."""

    def __init__(self, model: TrainedModel, family: Family) -> None:
        self.model = model
        self._family = family
        self._outputs: dict[Values, FamilyOutput] = {}
        self._no_inputs: list[Values] = []
        self._no_places = 0

    @property
    def written(self) -> OutputFamily:
        outputs = tuple(self._outputs[values] for values in sorted(self._outputs))
        return OutputFamily(self._family, outputs, len(self._no_inputs), self._no_places)

    def add(self, values: Sequence[Values]) -> None:
        """Asks the model about the inputs with these counts."""
        model, family = self.model, self._family
        letters = [family.letters(*each) for each in values]
        strings = TokenStrings.of_lists(model.num_letters, letters)
        is_input, _ = model.inputs_among(strings)
        inputs = judged_inputs(model, strings)
        self._no_inputs += [each for each, known in zip(values, is_input, strict=True) if not known]
        self._no_places += int(is_input.sum()) - len(inputs.rows)
        targets = inputs.examples.targets
        texts = output_texts(model.tokenizer, targets)
        tokens = (targets != NO_LETTER).sum(axis=1).tolist()
        judged = inputs.judged
        wrong = iter(
            zip(judged.outputs, judged.first_wrong.tolist(), judged.error_kinds, strict=True)
        )
        answers = zip(inputs.rows.tolist(), judged.is_wrong.tolist(), texts, tokens, strict=True)
        for row, is_wrong, target, length in answers:
            said: tuple[str, ErrorKind | None, int] = (target, None, length)
            if is_wrong:
                output, right_tokens, kind = next(wrong)
                said = (model.text(output), kind, right_tokens)
            each = values[row]
            self._outputs[each] = FamilyOutput(each, family.member(each), target, length, *said)

    def halve(self, one: FamilyOutput, other: FamilyOutput) -> None:
        """Tries strings between two of one free count, until what changes is next to each other."""
        (before,), (after,) = one.values, other.values
        while after - before > 1:
            middle = (before + after) // 2
            self.add([(middle,)])
            answer = self._outputs.get((middle,))
            if answer is None:
                return
            if answer.is_right == one.is_right:
                before = middle
            else:
                after = middle

    def why_no_input(self) -> str:
        """What the task says of the first string that is no input."""
        letters = self._family.letters(*self._no_inputs[0])
        string = TokenStrings.of_lists(self.model.num_letters, [letters])
        reason = self.model.problem.targets_or_reason(string)
        return reason if isinstance(reason, str) else ""
