"""Strings with free counts, `ab{n}`, `a{m}b{n}` or `<ab>{n}`: where answers change as they grow.

Values of the free counts are tried evenly on a logarithmic scale. Between neighbors that differ the
change is found by halving; between neighbors that agree the answer may change and change back
unseen, so the claim is what was tried. By letter counts, where these decide, a million tokens
cost what ten do; elsewhere strings are run. Of languages it is the answer that changes, of what
writes outputs or answers at every place whether they are right.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise, product
from typing import Any, NamedTuple

import numpy as np

from seqcls.errors import InvalidStringError
from seqcls.interpretability.domains import obstacle
from seqcls.interpretability.readable_model import logits
from seqcls.interpretability.rows import record
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.interpretability.wording import Table, number, sign
from seqcls.kinds.membership import MembershipKind
from seqcls.kinds.transduction import OutputAnswers
from seqcls.strings.free_counts import Family, Values, parse_family
from seqcls.strings.token_strings import TokenStrings
from seqcls.text import count


class Range(NamedTuple):
    """The range in which free counts are followed."""

    longest: int
    """The greatest value of a free count."""
    tokens: int
    """Tokens of the longest string."""
    points: tuple[int, int]
    """Values of each free count, where there is one, and where there are two."""


# By counts a string costs the same at every length; with two free counts all pairs of
# points are tried, 61 x 61 of them.
COUNT_RANGE = Range(10**6, 10**18, (241, 61))
STRING_RANGE = Range(2_000, 10_000, (40, 14))
OUTPUT_RANGE = Range(400, 400, (30, 12))
"""At most: of inputs twice as many tokens as the longest test input has are tried, but 60."""


class Member(NamedTuple):
    """One string of a family, its target and the model's answer."""

    values: Values
    input: str
    target: bool | str
    """The label; of another task the target as text."""
    output: bool | str
    """The answer, in the same form."""
    score: float
    """The logit; of outputs the target's log-probability, or the margin. NaN is no answer."""
    error_kind: str | None
    """The kind of error; None where the answer is right."""
    right_tokens: int | None = None
    """Tokens of an output before the first in which it and the target differ."""
    target_tokens: int | None = None

    @property
    def is_right(self) -> bool:
        return self.error_kind is None

    def __str__(self) -> str:
        if self.right_tokens is not None:
            kind = f" ({self.error_kind}, right tokens: {self.right_tokens})"
            return "is right" if self.is_right else f"is wrong{kind}"
        return f"predicts {sign(bool(self.output))} ({'correct' if self.is_right else 'wrong'})"


class FamilyAnswers(NamedTuple):
    """A model's answers to the strings of a family that were tried."""

    family: Family
    grid: Values
    """The values of each free count that were tried first."""
    by_counts: bool
    """True if strings are read by their letter counts, and not run."""
    of_outputs: bool
    """True if a change is one of rightness, and not of the answer of a language."""
    members: tuple[Member, ...] = ()
    """In the order of their counts; the strings on both sides of every change are among them."""
    limit: float | None = None
    """The logit as the one free count grows without end, by letter counts."""
    no_inputs: int = 0
    """Strings that were looked at and are no inputs of the task."""
    no_places: int = 0
    """Inputs for which the model has no places."""

    @property
    def wrong(self) -> tuple[Member, ...]:
        """Those with a wrong answer or output."""
        return tuple(member for member in self.members if not member.is_right)

    @property
    def rows(self) -> list[tuple[Member, ...]]:
        """The members with the same value of the first free count, where there are two."""
        grouped = groupby(self.members, key=lambda member: member.values[:-1])
        return [tuple(row) for _, row in grouped]

    @property
    def changes(self) -> list[tuple[Member, Member]]:
        """Neighbors along the last free count that differ."""
        # Outputs of two strings are hardly ever the same, right or wrong.
        what = "is_right" if self.of_outputs else "output"
        pairs = (pair for row in self.rows for pair in pairwise(row))
        return [(one, other) for one, other in pairs if getattr(one, what) != getattr(other, what)]

    def record(self) -> dict[str, Any]:
        """The answers as programs read them; of two counts a row for each value of the first."""
        family, names = {"family": self.family.text}, self.family.names
        if self.of_outputs:
            outputs = [
                dict(zip(names, x.values, strict=True)) | x._asdict() | {"right": x.is_right}
                for x in self.members
            ]
            left_out = {"no_inputs": self.no_inputs, "no_places": self.no_places}
            return {**family, "outputs": record(outputs), **left_out}
        changes = [
            (
                x.values[:-1],
                {"n": x.values[-1], "answer": x.output, "logit_before": y.score, "logit": x.score},
            )
            for y, x in self.changes
        ]
        if len(names) == 1:
            columns: dict[str, Any] = {
                "n": [x.values[0] for x in self.members],
                "label": [x.target for x in self.members],
                "logit": [x.score for x in self.members],
                "changes": [change for _, change in changes],
                "first_wrong": self.wrong[0].values[0] if self.wrong else None,
                "limit": self.limit,
            }
        else:
            tried = {x.values: x for x in self.members}
            rows = [[tried.get((m, n)) for n in self.grid] for m in self.grid]
            columns = {
                **dict.fromkeys(names, self.grid),
                "label": [[x and x.target for x in row] for row in rows],
                "logit": [[x and x.score for x in row] for row in rows],
                "changes": [[y for x, y in changes if x == (m,)] for m in self.grid],
            }
        found: dict[str, Any] = record({**family, **columns})
        return found

    def describe(self, model: TrainedModel) -> Iterator[str | Table]:
        """Yields the strings tried and the changes; of outputs also target and output of each."""
        yield from self._sentences()
        if self.of_outputs:
            show = model.tokenizer.display
            rows = [
                {
                    **dict(zip(self.family.names, x.values, strict=True)),
                    "output is": x.error_kind or "right",
                    "right tokens": f"{x.right_tokens} of {x.target_tokens}",
                    "target": show(str(x.target) or '""'),
                    "output": show(str(x.output) or '""'),
                }
                for x in self.members
            ]
            yield Table(f"outputs of {model.name}", rows)

    def _sentences(self) -> Iterator[str]:
        """The strings tried, the errors and the changes: of two counts along some rows."""
        (*first, name), longest, wrong = self.family.names, self.grid[-1], self.wrong
        string, answer = ("input", "output") if self.of_outputs else ("string", "answer")
        left_out = {
            "of its strings that are no inputs of the task": self.no_inputs,
            f"{string}s that the model has no places for": self.no_places,
        }
        without = " and ".join(f"{number} {what}" for what, number in left_out.items() if number)
        yield (
            f"Tried: {count(len(self.members), string)} of {self.family.text}"
            f"{', without ' * bool(without)}{without}, {' and '.join(self.family.names)} from 1 to "
            f"{longest:,}; between neighbors that agree a change is not excluded."
        )
        if wrong:
            pairs = zip(self.family.names, wrong[0].values, strict=True)
            where = " and ".join(f"{name} = {value:,}" for name, value in pairs)
            yield f"Wrong {answer}s: {len(wrong):,}, the first with {where}."
        else:
            yield f"Every {answer} is right."
        rows = self.rows
        # About seven rows represent all; the data have each.
        for row in rows[:: max((len(rows) - 1) // 6, 1) if self.by_counts else 1] if first else ():
            yield _row_text(self._replace(members=row))
        if first:
            return
        if not self.of_outputs:
            one = self.members[0]
            yield f"With {name} = {one.values[0]} the model {one} (logit {number(one.score)})."
        for before, after in self.changes:
            (low,), (high,) = before.values, after.values
            numbers = f" (logit {number(before.score)} before, {number(after.score)} then)"
            yield (
                f"From {name} = {high:,} on it {_stretch_text(self, after)}"
                f"{'' if self.of_outputs else numbers}."
                if high == low + 1
                else f"With {name} = {low:,} it {before}, with {name} = {high:,} it {after}."
            )
        if not self.changes:
            yield f"No change shows up to {name} = {longest:,}."
        if self.limit is not None:
            answer = f"{sign(self.limit > 0)}"
            # A language's labels may continue to change with n: then no answer is right for good.
            if len({member.target for member in self.members[-SETTLED:]}) == 1:
                is_right = (self.limit > 0) == self.members[-1].target
                answer += f" ({'correct' if is_right else 'wrong'})"
            ends = f"the logit tends to {number(self.limit)}: {answer}"
            yield f"As {name} grows without bound, {ends}."


def answers_along(model: TrainedModel, text: str) -> FamilyAnswers:
    """Evaluates a model on the family of strings that a text denotes.

    Raises:
        InvalidStringError: as `parse_family`, or none of its strings can be evaluated.
    """
    family, problem = parse_family(model.tokenizer, text), model.problem
    by_counts = obstacle(problem, "labels") is None
    of_outputs = problem.lacks("labels") is not None
    far = COUNT_RANGE if by_counts else OUTPUT_RANGE if of_outputs else STRING_RANGE
    tokens = far.tokens
    if of_outputs:
        tokens = min(max(2 * problem.test.lengths[-1], 60), tokens)
    longest = min(far.longest, (tokens - int(family.fixed.sum())) // int(family.free.sum()))
    if longest < 1:
        raise InvalidStringError(
            f"{text[:60]!r}: even its first string has more than the {tokens:,} tokens that are "
            "tried; lower its fixed counts"
        )
    more = len(family.names) - 1
    points = np.geomspace(1, longest, far.points[more]).round()
    grid = tuple(map(int, np.unique(points)))
    # The coarser grids skip some of the first values.
    first = grid if more else sorted({*grid, *range(1, min(16, longest) + 1)})
    found = FamilyAnswers(family, grid, by_counts, of_outputs)
    found = _ask(model, found, list(product(first, *[grid] * more)))
    _refuse_unanswered(model, found)
    if by_counts and not more:
        # Without `CLS` and the fixed letters only the proportions of what repeats are left.
        limit = logits(model, family.free, special=0.0)
        found = found._replace(limit=float(limit[0]))
    # A middle that is no input, or has no places, is tried once.
    tried = set[Values]()
    # Halving: each pass evaluates the middles of all changes together.
    while (
        middles := {
            (*one.values[:-1], (one.values[-1] + other.values[-1]) // 2)
            for one, other in found.changes
            if other.values[-1] - one.values[-1] > 1
        }
        - tried
    ):
        tried |= middles
        found = _ask(model, found, sorted(middles))
    return found


def _ask(model: TrainedModel, found: FamilyAnswers, values: Sequence[Values]) -> FamilyAnswers:
    """The answers so far, with those to the strings with these counts."""
    family, questions = found.family, model.problem.questions
    wrong, lengths = dict[int, tuple[str, int]](), list[int]()
    if found.by_counts:
        counts = family.counts(np.array(values))
        strings = TokenStrings.of_counts(model.num_letters, counts)
        answers = MembershipKind().judge(questions(strings), logits(model, counts))
    else:
        letters = [family.letters(*point) for point in values]
        strings = TokenStrings.of_lists(model.num_letters, letters)
        answers = model.ask(strings)
    is_input, was_asked = questions(strings).has_target, answers.judged
    targets, outputs = model.decode(answers.targets), model.decode(answers.predicted)
    if isinstance(answers, OutputAnswers):
        kinds = zip(answers.error_kinds, answers.first_wrong.tolist(), strict=True)
        wrong = dict(zip(answers.errors, kinds, strict=True))
        lengths = answers.target_lengths.tolist()
    members = list(found.members)
    for row in np.flatnonzero(was_asked & is_input).tolist():
        target, output, kind = targets[row], outputs[row], None
        right, length = None, None
        if lengths:
            length = lengths[row]
            kind, right = wrong.get(row, (None, length))
        elif target != output:
            kind = "false negative" if target else "false positive"
        text, score = family.member(values[row]), float(answers.score[row])
        members.append(Member(values[row], text, target, output, score, kind, right, length))
    return found._replace(
        members=tuple(sorted(members)),
        no_inputs=found.no_inputs + int((~is_input).sum()),
        no_places=found.no_places + int((is_input & ~was_asked).sum()),
    )


def _refuse_unanswered(model: TrainedModel, found: FamilyAnswers) -> None:
    """Refuses a family of which nothing was answered.

    Raises:
        InvalidStringError: what keeps every string of it that was tried from being answered.
    """
    if any(not math.isnan(member.score) for member in found.members):
        return
    first = found.family.letters(*[1] * len(found.family.names))
    if found.members:
        reason = "none of its strings has an answer: what the model computes for them is NaN"
    elif found.no_places:
        reason = "even its shortest string is longer than the model has places for"
    else:
        reason = (
            f"none of the {found.no_inputs} strings tried is an input of "
            f"task={model.config.task!r}; {model.why_no_input(first)}"
        )
    raise InvalidStringError(f"{found.family.text[:60]!r}: {reason}")


SETTLED = 10
"""Members at the end of a family; with one target for all the language no longer changes there."""


def _stretch_text(found: FamilyAnswers, first: Member) -> str:
    """Describes the answers from a string on until they next change; labels may change earlier."""
    ends = [after.values for _, after in found.changes if after.values > first.values]
    stretch = [
        member
        for member in found.members
        if first.values <= member.values and (not ends or member.values < ends[0])
    ]
    right = sum(member.is_right for member in stretch)
    if found.of_outputs or right in (0, len(stretch)):
        return str(first)
    return f"predicts {sign(bool(first.output))} (correct for {right} of the {len(stretch)} tried)"


def _row_text(row: FamilyAnswers) -> str:
    """Describes the strings with one value of the first free count."""
    (first, second), one = row.family.names, row.members[0]
    errors = f"{len(row.wrong)} of {len(row.members)} wrong"
    if row.wrong:
        errors += f", the first with {second} = {row.wrong[0].values[1]:,}"
    if row.of_outputs:
        return f"{first} = {one.values[0]:,}: {errors}"
    changes = ", ".join(
        f"{sign(bool(after.output))} from {second} = {after.values[1]:,} on"
        for _, after in row.changes
    )
    return (
        f"With {first} = {one.values[0]:,}: {str(one).removeprefix('predicts ')} for {second} = 1; "
        f"{changes or 'no change shows'}; {errors}."
    )
