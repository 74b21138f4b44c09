"""Transduction: a string is the answer, written token by token, each read off its logits.

One stream: a model reads `CLS x SEP y` from left to right, x the input and y the target. From `SEP`
on it predicts the next token: y, then `END`.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int64
from pydantic import Field

from seqcls.declarations import About, Fields
from seqcls.kinds.base import (
    NO_LANGUAGE,
    Ability,
    Answers,
    ErrorKind,
    Examples,
    Kind,
    Outputs,
    Questions,
    Scored,
    Targets,
    TrainedModels,
    Words,
    Written,
    pad_to_one_width,
)
from seqcls.kinds.output_errors import edits, error_kind, first_wrong
from seqcls.network import Head, NetworkConfig
from seqcls.strings.token_strings import NO_LETTER, TokenStrings
from seqcls.strings.tokenizer import CLS, FIRST_LETTER, PAD, Tokenizer
from seqcls.tasks.base import Task

if TYPE_CHECKING:
    from torch import Tensor


NO_TARGET = -1
"""The encoded target where nothing is predicted."""

SPECIAL_LETTERS = 2
"""Number of `SEP` and `END`, which follow the alphabet's tokens in this order."""


def separator_id(network: NetworkConfig) -> int:
    """The token id of `SEP`."""
    return network.vocabulary_size - 2


def end_id(network: NetworkConfig) -> int:
    """The token id of `END`."""
    return network.vocabulary_size - 1


class WritingFields(Fields):
    """loss_on: Which tokens a transduction's training loss counts: `all` has the input's too.
    decoding: `greedy`: the likeliest token each time; `beam`: several outputs are kept at once.
    beam_width: Outputs that `beam` keeps at once.
    """

    loss_on: Annotated[Literal["output", "all"], About("Training", 16)] = "output"
    decoding: Annotated[Literal["greedy", "beam"], About("Task", 21)] = "greedy"
    beam_width: Annotated[int, Field(ge=1, le=1_000), About("Task", 22)] = 5


class TransductionKind(Kind):
    """Answers of transductions: strings."""

    reads: ClassVar[frozenset[str]] = WritingFields.reads | Head.reads
    shortcut_readers: ClassVar[tuple[str, ...]] = ("identity", "most_frequent", "aligned")
    defaults: ClassVar[Mapping[str, Any]] = {"attention_mask": "causal"}
    words: ClassVar[Words] = Words(
        "input",
        "get {} wrong",
        "gets {} wrong",
        "wrongly answered",
        "task",
        "target",
        "rightly answered",
    )
    answer_columns: ClassVar[tuple[str, str]] = ("output", "log_probability")
    score_name: ClassVar[str] = "log-probability of the target"
    unjudged_score_name: ClassVar[str] = "log-probability of the output"
    every_string: ClassVar[bool] = False
    absent: ClassVar[Mapping[Ability, str]] = {
        "labels": NO_LANGUAGE,
        "prefixes": ": an input's prefixes have outputs of their own; look at its output token by "
        "token instead",
    }

    def num_outputs(self, task: Task) -> int:
        """Implements `Kind.num_outputs`: an output for each token id, at every token."""
        return FIRST_LETTER + len(task.alphabet) + SPECIAL_LETTERS

    def network(self, task: Task, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return {
            "num_letters": len(task.alphabet) + SPECIAL_LETTERS,
            "num_outputs": self.num_outputs(task),
            "head": fields["loss_on"],
        }

    def reading(self, task: Task, examples: Examples) -> TokenStrings:
        """Implements `Kind.reading`: the input, `SEP`, and the target without `END`."""
        inputs, targets = examples.strings, examples.targets
        before, after = inputs.lengths, target_lengths(targets)
        lengths = before + 1 + after
        letters = np.full((len(inputs), int(lengths.max(initial=0))), NO_LETTER, dtype=np.uint8)
        rows, places = np.nonzero(inputs.letters != NO_LETTER)
        letters[rows, places] = inputs.letters[rows, places]
        # `SEP` is the first letter after those of the alphabet.
        letters[np.arange(len(inputs)), before] = len(task.alphabet)
        rows, places = np.nonzero(targets != NO_LETTER)
        letters[rows, before[rows] + 1 + places] = targets[rows, places]
        return TokenStrings(len(task.alphabet) + SPECIAL_LETTERS, lengths, letters)

    def longest_reading(self, task: Any, length: int) -> int:
        longest: int = task.longest_target(length)
        return length + 1 + longest

    def encoded(
        self, task: Task, examples: Examples, network: NetworkConfig
    ) -> Int64[np.ndarray, "string place"]:
        """Implements `Kind.encoded`: token ids in the order of prediction, then `NO_TARGET`.

        With the head `output` those of target and `END`; with `all` the input and `SEP` too.
        """
        predicted = examples.targets
        if network.head == "all":
            predicted = self.reading(task, examples).letters
        return _append_end(predicted, end_id(network))

    def losses(
        self, outputs: "Tensor", targets: "Tensor", train_loss: str
    ) -> "Float[Tensor, '*member string']":
        """Implements `Kind.losses`: each string's cross entropy, summed over predicted tokens."""
        has_target = targets != NO_TARGET
        scores = outputs.log_softmax(dim=-1)
        # Outputs are those at predicted tokens alone, of all strings concatenated.
        chosen = targets[has_target].expand(scores.shape[:-1]).unsqueeze(-1)
        return -per_string(scores.gather(-1, chosen).squeeze(-1), has_target)

    def units(self, targets: "Tensor") -> int:
        """Implements `Kind.units`: the number of predicted tokens."""
        return int((targets != NO_TARGET).sum())

    def are_right(self, outputs: "Tensor", targets: "Tensor") -> "Bool[Tensor, '*member string']":
        """Implements `Kind.are_right`: every token of target and `END` has the highest output."""
        has_target = targets != NO_TARGET
        likeliest = writable(outputs).argmax(dim=-1)
        # A head that also predicts the input is evaluated by the output alone.
        missed = (likeliest != targets[has_target]) & follow_separator(targets, outputs.shape[-1])
        return per_string(missed.to(outputs.dtype), has_target) == 0

    def are_right_length_given(
        self, outputs: "Tensor", targets: "Tensor"
    ) -> "Bool[Tensor, '*member string']":
        """Implements `are_right` for outputs of the target's length: `END` comes exactly there."""
        has_target, end = targets != NO_TARGET, outputs.shape[-1] - 1
        target_tokens = targets[has_target]
        # `END` cannot be chosen before the target's end, and need not be chosen there.
        missed = (writable(outputs)[..., :end].argmax(dim=-1) != target_tokens) & (
            target_tokens != end
        )
        missed = missed & follow_separator(targets, outputs.shape[-1])
        return per_string(missed.to(outputs.dtype), has_target) == 0

    def ask(self, models: TrainedModels, questions: Questions) -> Iterator["OutputAnswers"]:
        """Implements `Kind.ask` by writing outputs, one model after another.

        Teacher forcing determines which outputs of greedy decoding are right: those in which every
        token has the highest output after the target's tokens before it. Only the others are
        written. The score of an input without a known target is the output's log-probability.
        """
        fits = self.lengths_read(questions) <= models.places
        known, unknown = (
            np.flatnonzero(fits & rows)
            for rows in (questions.has_target, questions.is_input & ~questions.has_target)
        )
        examples = questions.take(known)
        for member, scored in enumerate(models.score(examples)):
            # A beam may find other outputs than teacher forcing predicts, so all are written.
            rows = np.arange(len(known))
            if models.writes_likeliest:
                rows = np.flatnonzero(~scored.right)
            written = models.write(member, examples.strings.take(rows))
            wrong: dict[int, WrongOutput] = {}
            for row, output in zip(rows.tolist(), written, strict=True):
                letters, target = _letters_of(output), _tokens(examples.targets[row])
                # An output that was cut off is wrong even if it equals the target.
                is_answer = output.ended and not math.isnan(output.log_probability)
                if letters != target or not is_answer:
                    wrong[int(known[row])] = WrongOutput(letters, target, output.ended)
            others = models.write(member, questions.strings.take(unknown)) if len(unknown) else []
            yield _answers(questions, known, scored, wrong, unknown, others)

    def margins(self, outputs: Outputs, targets: Targets) -> Float[np.ndarray, " string"]:
        """Implements `Kind.margins`: the log-probability of each target and `END`."""
        # Imported late: PyTorch takes a second or two to load.
        import torch

        encoded = torch.from_numpy(_append_end(targets, outputs.shape[-1] - 1))
        return -self.losses(torch.from_numpy(outputs), encoded, "default").numpy()

    def lengths_read(self, examples: Examples) -> Int64[np.ndarray, " string"]:
        return np.asarray(examples.strings.lengths + 1 + target_lengths(examples.targets))

    def prompt_length(self, length: int) -> int:
        """Implements `Kind.prompt_length`: `SEP` follows the input."""
        return length + 1

    def texts(self, task: Task, answers: np.ndarray) -> Sequence[str]:
        """Implements `Kind.texts`, in the notation of strings."""
        return output_texts(Tokenizer(task.alphabet), answers)

    def error_columns(self) -> Mapping[str, str]:
        return {
            "target": "Target",
            "output": "Output",
            "error_kind": "Error",
            "first_wrong": "Right tokens",
            "logit": "Log-probability",
        }


def output_texts(tokenizer: Tokenizer, outputs: np.ndarray) -> list[str]:
    """Returns outputs, in the form of targets, in the notation of strings."""
    return tokenizer.decode_all(outputs, target_lengths(outputs))


def writable(outputs: "Float[Tensor, '*token output']") -> "Float[Tensor, '*token output']":
    """Returns the head's outputs with -inf for `CLS`, `PAD` and `SEP`, which are never written."""
    # The caller still needs its numbers, for the loss or for probabilities.
    outputs = outputs.clone()
    outputs[..., [CLS, PAD, outputs.shape[-1] - 2]] = -np.inf
    return outputs


def target_lengths(letters: np.ndarray) -> Int64[np.ndarray, " string"]:
    """Number of tokens of each target."""
    return np.asarray((letters != NO_LETTER).sum(axis=1), dtype=np.int64)


def follow_separator(targets: "Tensor", vocabulary: int) -> "Bool[Tensor, ' token']":
    """A mask of the predicted tokens that follow `SEP`: all, unless the head is `all`."""
    has_target = targets != NO_TARGET
    separators = (targets == vocabulary - 2).int()
    # A token follows SEP if there is no SEP at its place or after it.
    return (separators.flip(1).cumsum(1).flip(1) == 0)[has_target]


def _ids(letters: np.ndarray) -> Int64[np.ndarray, "string position"]:
    return np.where(letters == NO_LETTER, NO_TARGET, letters.astype(np.int64) + FIRST_LETTER)


def per_string(
    values: "Float[Tensor, '*member token']", has_target: "Bool[Tensor, 'string place']"
) -> "Float[Tensor, '*member string']":
    """Sums concatenated values of tokens over each string."""
    # `nonzero` goes row by row, in the order of the concatenated values.
    rows = has_target.nonzero()[:, 0]
    sums = values.new_zeros(*values.shape[:-1], len(has_target))
    return sums.index_add(-1, rows, values)


def _append_end(letters: np.ndarray, end: int) -> Int64[np.ndarray, "string position"]:
    """Returns token ids with `END` after each row's tokens."""
    # The longest target needs a column more for its `END`.
    ids = np.pad(_ids(letters), ((0, 0), (0, 1)), constant_values=NO_TARGET)
    ids[np.arange(len(ids)), target_lengths(letters)] = end
    return ids


class WrongOutput(NamedTuple):
    """One wrong output, by letters."""

    output: list[int]
    target: list[int]
    ended: bool


@dataclass(frozen=True, eq=False)
class OutputAnswers(Answers):
    """Outputs that a model writes, and their differences from the targets."""

    right_length_given: Bool[np.ndarray, " string"]
    """A mask of the strings whose output is the target if it gets the target's length."""
    errors: Mapping[int, WrongOutput]
    """The wrong outputs by row, in order."""

    @property
    def outputs(self) -> list[list[int]]:
        """The letters of the wrong outputs."""
        return [error.output for error in self.errors.values()]

    @property
    def target_lengths(self) -> Int64[np.ndarray, " string"]:
        """Number of tokens of each target."""
        return target_lengths(self.targets)

    @cached_property
    def edits(self) -> Int64[np.ndarray, " string"]:
        """Edit distances between outputs and targets."""
        distances = np.zeros(len(self.strings), dtype=np.int64)
        for row, error in self.errors.items():
            distances[row] = edits(error.output, error.target)
        return distances

    @cached_property
    def first_wrong(self) -> Int64[np.ndarray, " wrong"]:
        """Number of tokens before the first in which each wrong output and its target differ."""
        places = [first_wrong(error.output, error.target) for error in self.errors.values()]
        return np.array(places, dtype=np.int64)

    @cached_property
    def error_kinds(self) -> list[ErrorKind]:
        """The difference of each wrong output from its target."""
        return [error_kind(x.output, x.target, ended=x.ended) for x in self.errors.values()]

    @property
    def error_counts(self) -> dict[str, int]:
        """Number of wrong outputs by kind of error, sorted by name."""
        return dict(sorted(Counter[str](self.error_kinds).items()))

    @property
    def _differ(self) -> Bool[np.ndarray, " string"]:
        differ = np.zeros(len(self.strings), dtype=bool)
        # A wrong output may equal the target, if it was cut off there.
        differ[list(self.errors)] = True
        return differ


def letter_rows(outputs: Sequence[Sequence[int]]) -> np.ndarray:
    """Returns outputs in the form of targets: letters, with `NO_LETTER` after each end."""
    width = max(map(len, outputs), default=0)
    rows = np.full((len(outputs), width), NO_LETTER, dtype=np.uint8)
    for row, output in zip(rows, outputs, strict=True):
        row[: len(output)] = output
    return rows


def _tokens(target: np.ndarray) -> list[int]:
    """The letters of one target."""
    letters: list[int] = target[target != NO_LETTER].tolist()
    return letters


def _letters_of(output: Written) -> list[int]:
    return [token - FIRST_LETTER for token in output.tokens]


def _answers(
    questions: Questions,
    known: Int64[np.ndarray, " row"],
    scored: Scored,
    wrong: Mapping[int, WrongOutput],
    unknown: Int64[np.ndarray, " row"],
    written: Sequence[Written],
) -> OutputAnswers:
    """Makes one model's answers.

    Args:
        known: rows with a known target.
        wrong: the wrong outputs of these by row, in order.
        unknown: rows without a known target.
        written: outputs for `unknown`.
    """
    outputs = letter_rows([error.output for error in wrong.values()])
    others = letter_rows([_letters_of(output) for output in written])
    targets, outputs, others = pad_to_one_width(questions.targets, outputs, others)
    # Right outputs are not given, since they equal the targets.
    predicted = targets.copy()
    predicted[list(wrong)] = outputs
    # The caller needs its targets for the next model.
    targets = targets.copy()
    targets[unknown] = predicted[unknown] = others
    score = np.full(len(questions), np.nan)
    score[known] = scored.log_probability
    score[unknown] = [output.log_probability for output in written]
    unanswered, right_length_given = np.zeros((2, len(questions)), dtype=bool)
    unanswered[list(wrong)] = True
    unanswered[unknown] = True
    # Strings that were not evaluated have NaN too, so only the others may be unanswered.
    unanswered &= np.isnan(score)
    right_length_given[known] = scored.right_length_given
    return OutputAnswers(
        questions.strings,
        targets,
        predicted,
        score,
        ~np.isnan(score),
        unanswered,
        right_length_given,
        wrong,
    )
