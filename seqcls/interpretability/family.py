"""Families of strings with free counts, and what is found along them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.errors import InvalidStringError
from seqcls.interpretability.network import sigmoid
from seqcls.interpretability.trained_model import Letters, TrainedModel
from seqcls.interpretability.wording import Table
from seqcls.results import ErrorKind
from seqcls.strings.tokenizer import FIRST_LETTER, Tokenizer

# How families of strings with free counts are written: `ab{n}`, `a{m}b{n}`, `<ab>{n}`.


MAX_FIXED = 10**12
"""The largest count that is not free: sums of them stay far within the integers of an array."""

_PIECE = r"(?:<((?:[^<>{{}}]|\{{[<>{{}}]\}})+)>|({token}))(?:\{{([a-z]|[1-9][0-9]*)\}})?"
_FREE = re.compile(r"\{([a-z])\}")

Count = int | str
"""How often a group stands in a string: a number, or the name of a free count."""


@dataclass(frozen=True)
class Family:
    """Strings that differ in one or two counts, each from 1 on, which several groups may share."""

    text: str
    num_letters: int
    names: tuple[str, ...]
    """The free counts, sorted, such as `("n",)` or `("m", "n")`."""
    pieces: tuple[tuple[Letters, Count], ...]
    """Groups of letters and how often each stands there."""

    @property
    def fixed(self) -> tuple[int, ...]:
        """How often each letter of the alphabet occurs besides."""
        return self._letters_of(None)

    @property
    def free(self) -> tuple[tuple[int, ...], ...]:
        """For each free count, how many of each letter one more brings: `a{n}b{n}` has (1, 1)."""
        return tuple(self._letters_of(name) for name in self.names)

    def counts(
        self, values: Int64[np.ndarray, "string free"]
    ) -> Int64[np.ndarray, "string letter"]:
        """The letter counts of the strings whose free counts have these values."""
        return np.asarray(np.array(self.fixed) + values @ np.array(self.free, dtype=np.int64))

    def member(self, values: Sequence[int]) -> str:
        """One string of the family, in the usual notation."""
        numbers = dict(zip(self.names, values, strict=True))
        return _FREE.sub(lambda match: f"{{{numbers[match[1]]}}}", self.text)

    def letters(self, *values: int) -> Letters:
        """The string whose free counts have these values, in the order of `names`."""
        free = dict(zip(self.names, values, strict=True))
        times = (count if isinstance(count, int) else free[count] for _, count in self.pieces)
        return tuple(x for (group, _), n in zip(self.pieces, times, strict=True) for x in group * n)

    def length(self, *values: int) -> int:
        """Tokens of that string."""
        return int(self.counts(np.array([values])).sum())

    def _letters_of(self, name: str | None) -> tuple[int, ...]:
        """How often each letter occurs for one of a free count, or in all that is fixed."""
        counts = [0] * self.num_letters
        for group, count in self.pieces:
            fixed = isinstance(count, int)
            if fixed == (name is None) and (fixed or count == name):
                for letter in group:
                    counts[letter] += count if isinstance(count, int) else 1
        return tuple(counts)


def parse_family(tokenizer: Tokenizer, text: str) -> Family:
    """The family that a text such as `ab{n}`, `0{m}1{n}`, `<ab>{n}` or `({n}){n}` stands for.

    A free count is one lowercase letter in braces; the same name twice is the same count.

    Raises:
        InvalidStringError: not of this alphabet or notation, or not one or two free counts.
    """
    names = tuple(sorted(set(_FREE.findall(text))))
    if "<" not in text:
        # Without groups, what cannot be read is most likely a free count that is not closed.
        _check_names(text, names)
    family = Family(text, tokenizer.num_letters, names, tuple(_pieces(tokenizer, text)))
    _check_names(text, names)
    if max(family.fixed) > MAX_FIXED:
        raise InvalidStringError(
            f"{text[:60]!r} fixes a count above {MAX_FIXED:,}; lower it, or make it free"
        )
    return family


def _check_names(text: str, names: tuple[str, ...]) -> None:
    if not 1 <= len(names) <= 2:
        raise InvalidStringError(
            f"{text[:60]!r} has {len(names) or 'no'} free counts; expected one or two, each a "
            "lowercase letter in braces, as in ab{n}, <ab>{n} or a{m}b{n}"
        )


def _pieces(tokenizer: Tokenizer, text: str) -> Iterator[tuple[Letters, Count]]:
    piece = re.compile(_PIECE.format(token=tokenizer.pattern), re.DOTALL)
    place = 0
    while place < len(text):
        if tokenizer.separator and text[place].isspace():
            place += 1
            continue
        match = piece.match(text, place)
        if match is None or (match[1] and match[3] is None and tokenizer.has_notation):
            raise InvalidStringError(
                f"cannot read {text[:60]!r} at character {place + 1}: expected tokens, or groups "
                "such as <ab>{n} or 0{3}"
            )
        count = match[3] or "1"
        letters = tuple(x - FIRST_LETTER for x in tokenizer.encode(match[1] or match[2])[1:])
        yield letters, int(count) if count.isdigit() else count
        place = match.end()


# What is said of a family of strings: where its answer changes, as a curve or a map.


@dataclass(frozen=True)
class Change:
    """The string with `n - 1` is answered otherwise than with `n`."""

    n: int
    answer: bool
    """From `n` on: true means in the language."""
    logit_before: float
    logit: float


@dataclass(frozen=True, eq=False)
class Curve:
    """Labels and answers of a family with one free count."""

    family: Family
    n: Int64[np.ndarray, " string"]
    """From 1 on, evenly on a logarithmic scale, both sides of each change among them."""
    labels: Bool[np.ndarray, " string"]
    logits: Float[np.ndarray, " string"]
    changes: tuple[Change, ...]
    """Changes of the answer, in order, each exact. By letter counts all up to `MAX_COUNT`; else
    there may be more between the values that were tried."""
    limit: float | None
    """The logit as n grows without end, by letter counts; None where strings were run."""

    @property
    def probability(self) -> Float[np.ndarray, " string"]:
        return sigmoid(self.logits)

    @property
    def first_wrong(self) -> int | None:
        """The least n, of those tried, whose string is misclassified."""
        wrong = np.flatnonzero((self.logits > 0) != self.labels)
        return int(self.n[wrong[0]]) if len(wrong) else None

    def record(self) -> dict[str, Any]:
        """What programs read of it: flips where letter counts decide, else what was tried."""
        tried = {"n": self.n.tolist(), "logit": self.logits.tolist()}
        if self.limit is not None:
            return {
                "family": self.family.text,
                "label": bool(self.labels[0]),
                "flips": [asdict(change) for change in self.changes],
                "limit": self.limit,
                **tried,
            }
        return {
            "family": self.family.text,
            "n": tried["n"],
            "label": self.labels.tolist(),
            "logit": tried["logit"],
            "changes": [{"n": change.n, "answer": change.answer} for change in self.changes],
            "first_wrong": self.first_wrong,
        }


@dataclass(frozen=True, eq=False)
class FamilyMap:
    """Labels and answers of a family with two free counts, on a logarithmic grid."""

    family: Family
    first: Int64[np.ndarray, " row"]
    """Values of the first free count."""
    second: Int64[np.ndarray, " column"]
    labels: Bool[np.ndarray, "row column"]
    logits: Float[np.ndarray, "row column"]
    """NaN where the model has no places for so long a string."""
    changes: tuple[tuple[Change, ...], ...]
    """For each value of the first free count, of the answer over the second; as of a `Curve`."""
    exact: bool
    """By letter counts, and not by running strings."""

    @property
    def wrong(self) -> Bool[np.ndarray, "row column"]:
        """Which strings are misclassified."""
        known = ~np.isnan(self.logits)
        return np.asarray(known & ((self.logits > 0) != self.labels))

    def record(self) -> dict[str, Any]:
        """What programs read of it, as of a curve."""
        first, second = self.family.names
        family = {"family": self.family.text}
        axes = {first: self.first.tolist(), second: self.second.tolist()}
        logit = [[None if x != x else x for x in row] for row in self.logits.tolist()]
        if self.exact:
            flips = [[asdict(change) for change in row] for row in self.changes]
            label = bool(self.labels[0, 0])
            return {**family, "label": label, **axes, "logit": logit, "flips": flips}
        changes = [
            [{"n": change.n, "answer": change.answer} for change in row] for row in self.changes
        ]
        return {**family, **axes, "label": self.labels.tolist(), "logit": logit, "changes": changes}


def grid(longest: int, points: int) -> Int64[np.ndarray, " string"]:
    """Values of a free count, evenly on a logarithmic scale."""
    return np.unique(np.geomspace(1, longest, points).round().astype(np.int64))


# What a model writes for a family of inputs, and how that is told.

Values = tuple[int, ...]
"""Values of the free counts."""


@dataclass(frozen=True)
class FamilyOutput:
    """One input of a family, and what the model writes for it."""

    values: Values
    input: str
    target: str
    target_tokens: int
    output: str
    error_kind: ErrorKind | None
    """None where the output is right."""
    right_tokens: int
    """Before the first in which output and target differ; all, where the output is right."""

    @property
    def is_right(self) -> bool:
        return self.error_kind is None

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        record = asdict(self)
        del record["values"]
        return {**record, "right": self.is_right}


@dataclass(frozen=True)
class OutputFamily:
    """What a model writes for the inputs of a family, in the order of their counts."""

    family: Family
    outputs: tuple[FamilyOutput, ...]
    no_inputs: int
    """Strings of the family that were looked at and are no inputs of the task."""
    no_places: int
    """Inputs for which the model has no places."""

    @property
    def wrong(self) -> tuple[FamilyOutput, ...]:
        """Those with a wrong output."""
        return tuple(each for each in self.outputs if not each.is_right)

    @cached_property
    def changes(self) -> tuple[tuple[FamilyOutput, FamilyOutput], ...]:
        """The inputs next to each other, for one free count, of which one alone is answered
        right.
        """
        return tuple(
            (one, other) for one, other in pairwise(self.outputs) if one.is_right != other.is_right
        )

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        names = self.family.names
        outputs = [
            {**dict(zip(names, each.values, strict=True)), **each.record()} for each in self.outputs
        ]
        left_out = {"no_inputs": self.no_inputs, "no_places": self.no_places}
        return {"family": self.family.text, "outputs": outputs, **left_out}

    def describe(self, model: TrainedModel) -> Iterator[str | Table]:
        """Which outputs are right; then counts, right tokens, target and output of each."""
        yield from output_family_text(self)
        rows = [
            {
                **dict(zip(self.family.names, each.values, strict=True)),
                "output is": each.error_kind or "right",
                "right tokens": f"{each.right_tokens} of {each.target_tokens}",
                "target": model.tokenizer.display(each.target or '""'),
                "output": model.tokenizer.display(each.output or '""'),
            }
            for each in self.outputs
        ]
        yield Table(f"outputs of {model.name}", rows)


def output_family_text(written: OutputFamily) -> tuple[str, ...]:
    """Which outputs are right: of one free count, where that changes; of two, along each row."""
    tried, wrong = written.outputs, written.wrong
    inputs = "1 input" if len(tried) == 1 else f"{len(tried)} inputs"
    said = [f"Tried: {inputs} of {written.family.text}{_left_out(written)}."]
    if not wrong:
        return (*said, "Every output is right.")
    names = ", ".join(written.family.names)
    if len(wrong) == len(tried):
        said.append("Every output is wrong.")
    else:
        pairs = zip(written.family.names, wrong[0].values, strict=True)
        first = " and ".join(f"{name} = {value:,}" for name, value in pairs)
        said.append(f"Wrong outputs: {len(wrong)}, the first with {first}.")
    if len(written.family.names) == 1:
        said += [_change(names, *change) for change in written.changes]
        return tuple(said)
    return (*said, *_rows(written))


def _left_out(written: OutputFamily) -> str:
    left = []
    if written.no_inputs:
        left.append(f"{written.no_inputs} of its strings that are no inputs of the task")
    if written.no_places:
        left.append(f"{written.no_places} inputs that the model has no places for")
    return f", without {' and '.join(left)}" if left else ""


def _change(name: str, one: FamilyOutput, other: FamilyOutput) -> str:
    (before,), (after,) = one.values, other.values
    kind = other.error_kind
    is_now = "right" if kind is None else f"wrong ({kind}, right tokens: {other.right_tokens})"
    if after == before + 1:
        return f"From {name} = {after:,} on it is {is_now}."
    was = "right" if one.is_right else "wrong"
    return f"With {name} = {before:,} it is {was}, with {name} = {after:,} {is_now}."


def _rows(written: OutputFamily) -> list[str]:
    """Tells, for two free counts, how many outputs are wrong for each value of the first."""
    first, second = written.family.names
    said = []
    for value, row in groupby(written.outputs, key=lambda each: each.values[0]):
        outputs = list(row)
        wrong = [each.values[1] for each in outputs if not each.is_right]
        first_wrong = f", the first with {second} = {wrong[0]:,}" if wrong else ""
        said.append(f"{first} = {value:,}: {len(wrong)} of {len(outputs)} wrong{first_wrong}")
    return said
