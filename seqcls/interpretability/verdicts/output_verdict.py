"""What a model writes for every input up to a length, and how that is by_kind."""

from collections import Counter
from dataclasses import dataclass
from typing import get_args

from seqcls.interpretability.model.trained_model import Answer
from seqcls.results import ErrorKind


@dataclass(frozen=True)
class OfLength:
    """All inputs of one length."""

    length: int
    inputs: int
    wrong: dict[ErrorKind, int]
    """By kind of error."""


@dataclass(frozen=True)
class OutputVerdict:
    """What a model writes for every input up to a length."""

    max_length: int
    longest_tested: int
    """The longest length that the model is tested on; where `max_length` is less, there are too
    many
    longer inputs to try them all."""
    by_length: tuple[OfLength, ...]
    """Counts for every length of which there are inputs."""
    shortest: tuple[Answer, ...]
    """Inputs with a wrong output, some of them, the shortest first."""

    @property
    def error_kinds(self) -> dict[ErrorKind, int]:
        """Inputs with a wrong output, by kind of error."""
        numbers = Counter[ErrorKind]()
        for each in self.by_length:
            numbers.update(each.wrong)
        return dict(numbers)

    @property
    def inputs(self) -> int:
        return sum(each.inputs for each in self.by_length)

    @property
    def wrong(self) -> int:
        """Inputs whose output is wrong."""
        return sum(self.error_kinds.values())


def output_verdict_text(verdict: OutputVerdict) -> tuple[str, ...]:
    """What was tried and what came out, then the shortest inputs with a wrong output."""
    up_to = f"up to {verdict.max_length} tokens"
    if not verdict.inputs:
        return (f"The task has no input of {up_to}; there are too many longer strings to try.",)
    every = f"Of all {verdict.inputs:,} inputs of {up_to}"
    if not verdict.wrong:
        said = [f"{every} none gets a wrong output."]
    else:
        kinds = verdict.error_kinds
        by_kind = ", ".join(
            f"{kind}: {kinds[kind]:,}" for kind in get_args(ErrorKind) if kind in kinds
        )
        said = [f"{every} {verdict.wrong:,} get a wrong output ({by_kind})."]
    if verdict.max_length < verdict.longest_tested:
        said.append(
            f"The test has inputs of up to {verdict.longest_tested} tokens; there are too many "
            "longer ones to try them all."
        )
    if verdict.wrong:
        first = verdict.shortest[0]
        texts = map(str, (first.string, first.label, first.predicted))
        string, target, output = map(first.tokenizer.display, texts)
        said.append(
            f"The shortest with a wrong output: {string or 'the empty input'}, whose target "
            f"is {target or 'empty'}, output {(output or 'empty') if first.is_answered else 'NaN'}."
        )
    return tuple(said)
