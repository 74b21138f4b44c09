"""Strings with free counts, `ab{n}`, `a{m}b{n}` or `<ab>{n}`: where answers change as they grow.

Where letter counts decide and the family has no groups, every change up to a million is told. Else
strings are run; between the values that are tried the answer may change and change back unseen, but
every change that is reported is one between neighbours. Inputs of a transduction are held against
targets.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise, product

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.errors import InvalidStringError
from seqcls.interpretability.bounds import sign_changes
from seqcls.interpretability.family import (
    Change,
    Curve,
    Family,
    FamilyMap,
    FamilyOutput,
    OutputFamily,
    Values,
    grid,
    parse_family,
)
from seqcls.interpretability.network import Network, as_network
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.kinds.transduction import OutputAnswers
from seqcls.results import ErrorKind
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import MAX_SPELLED_LENGTH

# Families by letter counts: every change of the answer up to a million letters.
#
# Strings exist only as counts here, so a million letters cost what ten do.

MAX_COUNT = 1_000_000
"""The largest value that a free count is given by letter counts."""


def counted_curve(network: Network, family: Family, points: int = 241) -> Curve:
    """A family with one free count, on a logarithmic scale with both sides of every change."""
    changes = _changes(network, family, 0)
    ends = np.array([change.n for change in changes], dtype=np.int64)
    n = np.unique(np.concatenate([grid(MAX_COUNT, points), ends, ends - 1]))
    counts = family.counts(n[:, None])
    limit = network.limit_logits(np.array(family.free, dtype=float))
    logits = network.logits(counts)
    return Curve(family, n, _labels(network, counts), logits, changes, float(limit[0]))


def counted_map(network: Network, family: Family, points: int = 61) -> FamilyMap:
    """A family with two free counts, on a logarithmic grid."""
    values = grid(MAX_COUNT, points)
    rows, columns = np.meshgrid(values, values, indexing="ij")
    counts = family.counts(np.column_stack([rows.ravel(), columns.ravel()]))
    labels, logits = _labels(network, counts), network.logits(counts)
    changes = tuple(_changes(network, family, value) for value in values.tolist())
    shape = rows.shape
    return FamilyMap(
        family, values, values, labels.reshape(shape), logits.reshape(shape), changes, True
    )


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


# Families whose strings are run: between the values tried, the answer may change unseen.
#
# No string has more than `MAX_TOKENS` tokens, nor more than the model has places for.

MAX_N = 2_000
"""The largest value of a free count where strings are run."""

MAX_TOKENS = 10_000
"""Tokens of the longest string of a family that is run."""


def tried_curve(model: TrainedModel, family: Family, points: int = 40) -> Curve:
    """A family with one free count: its first sixteen strings, then others, and every change.

    Others are tried evenly on a logarithmic scale; the changes are those that show between them.

    Raises:
        InvalidStringError: even its first string is too long, or none has an answer.
    """
    known = _Known(model, family, ())
    known.try_all(_tried_first(_longest(family), points))
    if not known.logits and known.has_nan:
        raise InvalidStringError(
            f"{family.text[:60]!r}: none of its strings has an answer: what the model computes for "
            "them is NaN"
        )
    if not known.logits:
        raise InvalidStringError(
            f"{family.text[:60]!r}: even its first string is longer than the model has places for"
        )
    changes = known.changes()
    tried = sorted(known.logits)
    labels = np.array([known.labels[n] for n in tried], dtype=bool)
    logits = np.array([known.logits[n] for n in tried], dtype=np.float64)
    return Curve(family, np.array(tried, dtype=np.int64), labels, logits, changes, None)


def tried_map(model: TrainedModel, family: Family, points: int = 14) -> FamilyMap:
    """A family with two free counts, on a logarithmic grid.

    Raises:
        InvalidStringError: even its first string is too long.
    """
    tried = grid(_longest(family), points)
    values = tried.tolist()
    logits = np.full((len(values), len(values)), np.nan)
    labels = np.zeros((len(values), len(values)), dtype=bool)
    changes = []
    for row, value in enumerate(values):
        known = _Known(model, family, (value,))
        known.try_all(values)
        logits[row] = [known.logits.get(other, np.nan) for other in values]
        labels[row] = [known.labels.get(other, False) for other in values]
        changes.append(known.changes())
    return FamilyMap(family, tried, tried, labels, logits, tuple(changes), False)


def _longest(family: Family) -> int:
    """The greatest value of all free counts such that no string has more than `MAX_TOKENS`.

    Raises:
        InvalidStringError: even the first string is too long to be spelled out.
    """
    free = len(family.names)
    if family.length(*[1] * free) > MAX_SPELLED_LENGTH:
        raise InvalidStringError(
            f"{family.text[:60]!r} has more than the {MAX_SPELLED_LENGTH:,} tokens that can be "
            "spelled out; lower its fixed counts"
        )
    longest = MAX_N
    while longest > 1 and family.length(*[longest] * free) > MAX_TOKENS:
        longest -= 1
    return longest


def _tried_first(longest: int, points: int) -> list[int]:
    """The first sixteen values, then others evenly on a logarithmic scale."""
    values: list[int] = np.union1d(
        np.arange(1, min(16, longest) + 1), grid(longest, points)
    ).tolist()
    return values


def _neighbors(
    before: int, after: int, has_changed: Callable[[int], bool | None]
) -> tuple[int, int]:
    """Two values between which there is a change, found by halving, as far as anything tells.

    Args:
        has_changed: which side of it a value is on; None where that is not known.
    """
    while after - before > 1:
        middle = (before + after) // 2
        changed = has_changed(middle)
        if changed is None:
            break
        before, after = (before, middle) if changed else (middle, after)
    return before, after


class _Known:
    """Answers for the strings of a family that were asked about so far, by the last count."""

    def __init__(self, model: TrainedModel, family: Family, before: tuple[int, ...]) -> None:
        self._model = model
        self._family = family
        self._before = before
        self.labels: dict[int, bool] = {}
        self.logits: dict[int, float] = {}
        self.has_nan = False
        """Whether there was a string for which the model computes NaN."""

    def try_all(self, values: Sequence[int]) -> None:
        strings = [self._family.letters(*self._before, value) for value in values]
        answers = self._model.ask_all(strings)
        self.has_nan = self.has_nan or bool(answers.unanswered.any())
        for row in np.flatnonzero(answers.known).tolist():
            self.labels[values[row]] = bool(answers.targets[row])
            self.logits[values[row]] = float(answers.score[row])

    def changes(self) -> tuple[Change, ...]:
        """The changes of the answer that show between values tried, to the neighbour."""
        return tuple(
            self._change(before, after)
            for before, after in pairwise(sorted(self.logits))
            if self._positive(before) != self._positive(after)
        )

    def _change(self, before: int, after: int) -> Change:
        """A change between two values that are answered differently, by halving."""
        answer = self._positive(after)
        before, after = _neighbors(before, after, lambda n: self._positive(n) == answer)
        logits = (self.logits.get(n, math.nan) for n in (before, after))
        return Change(after, answer, *logits)

    def _positive(self, n: int) -> bool:
        if n not in self.logits:
            self.try_all([n])
        return self.logits.get(n, math.nan) > 0


# Families whose strings are inputs of a transduction: which outputs are right, and up to where.

LONGEST = 400
"""Tokens of the longest input that is tried; its output may be several times as long."""

LEAST_LONGEST = 60
"""The same of a model that is tested on short strings: else it is twice the longest test length."""


def output_curve(model: TrainedModel, family: Family, points: int = 30) -> OutputFamily:
    """A family with one free count: its first sixteen strings, then others, and every change.

    Others are tried evenly on a logarithmic scale; between two of them of which one alone is
    answered right, the first change is found by halving.

    Raises:
        InvalidStringError: as `_check`.
    """
    tried = _Tried(model, family)
    tried.add([(n,) for n in _tried_first(_longest_input(model, family), points)])
    _check(tried, family)
    for one, other in tried.result.changes:
        tried.halve(one, other)
    return tried.result


def output_map(model: TrainedModel, family: Family, points: int = 12) -> OutputFamily:
    """A family with two free counts, each on a logarithmic scale.

    Raises:
        InvalidStringError: as `_check`.
    """
    values = grid(_longest_input(model, family), points).tolist()
    tried = _Tried(model, family)
    tried.add(list(product(values, values)))
    _check(tried, family)
    return tried.result


def _longest_input(model: TrainedModel, family: Family) -> int:
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
    written = tried.result
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
    def result(self) -> OutputFamily:
        outputs = tuple(self._outputs[values] for values in sorted(self._outputs))
        return OutputFamily(self._family, outputs, len(self._no_inputs), self._no_places)

    def add(self, values: Sequence[Values]) -> None:
        """Asks the model about the inputs with these counts."""
        model, family = self.model, self._family
        letters = [family.letters(*each) for each in values]
        strings = TokenStrings.of_lists(model.num_letters, letters)
        is_input, answers = model.problem.questions(strings).has_target, model.ask(strings)
        assert isinstance(answers, OutputAnswers)
        self._no_inputs += [each for each, known in zip(values, is_input, strict=True) if not known]
        self._no_places += int((is_input & ~answers.asked).sum())
        texts, outputs = model.said(answers.targets), model.said(answers.predicted)
        tokens = answers.target_lengths.tolist()
        places = answers.first_wrong.tolist()
        errors = dict(
            zip(answers.errors, zip(answers.error_kinds, places, strict=True), strict=True)
        )
        for row in np.flatnonzero(answers.asked & is_input).tolist():
            target, length, each = str(texts[row]), tokens[row], values[row]
            said: tuple[str, ErrorKind | None, int] = (target, None, length)
            if row in errors:
                said = (str(outputs[row]), *errors[row])
            self._outputs[each] = FamilyOutput(each, family.member(each), target, length, *said)

    def halve(self, one: FamilyOutput, other: FamilyOutput) -> None:
        """Tries strings between two of one free count, until what changes is next to each other."""

        def has_changed(n: int) -> bool | None:
            self.add([(n,)])
            answer = self._outputs.get((n,))
            return None if answer is None else answer.is_right != one.is_right

        (before,), (after,) = one.values, other.values
        _neighbors(before, after, has_changed)

    def why_no_input(self) -> str:
        """What the task says of the first string that is no input."""
        letters = self._family.letters(*self._no_inputs[0])
        string = TokenStrings.of_lists(self.model.num_letters, [letters])
        reason = self.model.problem.targets_or_reason(string)
        return reason if isinstance(reason, str) else ""


def answers(model: TrainedModel, text: str) -> Curve | FamilyMap:
    """What a model says of the family that a text stands for: by letter counts where they decide.

    Raises:
        ConfigError: the task is no language.
        InvalidStringError: as `parse_family`, or the family is too long to be run.
    """
    model.problem.require_language()
    family = parse_family(model.tokenizer, text)
    one = len(family.names) == 1
    network = None if "<" in text else as_network(model)
    if network is not None:
        return counted_curve(network, family) if one else counted_map(network, family)
    return tried_curve(model, family) if one else tried_map(model, family)


def output_family(model: TrainedModel, text: str) -> OutputFamily:
    """What a model that writes makes of the family that a text stands for.

    Raises:
        InvalidStringError: as `parse_family`, or none of its strings can be answered.
    """
    family = parse_family(model.tokenizer, text)
    one = len(family.names) == 1
    return output_curve(model, family) if one else output_map(model, family)
