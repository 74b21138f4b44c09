"""What a model writes for a family of inputs, and how that is told."""

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise

from seqcls.interpretability.families.notation import Family
from seqcls.results import ErrorKind

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
        said.append(f"Wrong outputs: {len(wrong)}, the first with {_counts(written, wrong[0])}.")
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


def _counts(written: OutputFamily, one: FamilyOutput) -> str:
    pairs = zip(written.family.names, one.values, strict=True)
    return " and ".join(f"{name} = {value:,}" for name, value in pairs)


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
