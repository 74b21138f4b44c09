"""Answers at every place of a string: for each prefix, the empty one first.

A model reads `CLS w` from left to right and answers at every token, so that the answer at `CLS` is
that for the empty prefix. A string is right if its answers at all places are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.kinds.base import (
    Ability,
    ErrorKind,
    Examples,
    Kind,
    Outputs,
    Questions,
    Targets,
    TrainedModels,
    Words,
    pad_to_one_width,
)
from seqcls.kinds.transduction import SPECIAL_LETTERS, OutputAnswers, WrongOutput, per_string
from seqcls.network import Head, NetworkConfig
from seqcls.strings.alphabets import has_names
from seqcls.strings.tokenizer import CLS, FIRST_LETTER, PAD, Tokenizer
from seqcls.tasks.base import Task
from seqcls.tasks.places import NO_ANSWER, AnswersFields, AtEveryPlace

if TYPE_CHECKING:
    from torch import Tensor

NOTHING = "∅"
"""Notation of the empty set."""

_AT_EVERY_PLACE = ", asked at every place,"


@dataclass(frozen=True, eq=False)
class PlaceAnswers(OutputAnswers):
    """Answers at every place; the inherited outputs are these answers."""

    of_bits: bool
    """True if an answer is a set of bits."""

    @property
    def target_lengths(self) -> Int64[np.ndarray, " string"]:
        """Number of places of each string."""
        return np.asarray(self.strings.lengths + 1)

    @cached_property
    def error_kinds(self) -> list[ErrorKind]:
        """The difference of each string's first wrong answer from its target."""
        firsts = zip(self.errors.values(), self.first_wrong.tolist(), strict=True)
        pairs = [(error.output[place], error.target[place]) for error, place in firsts]
        return [_error_kind(*pair) if self.of_bits else "wrong answer" for pair in pairs]

    @cached_property
    def edits(self) -> Int64[np.ndarray, " string"]:
        """Number of wrong places of each string."""
        # Answers missing because the string is too long to be read are no edits.
        return np.asarray((self.predicted != self.targets).sum(axis=1) * self.judged)


def _error_kind(answer: int, right: int) -> ErrorKind:
    """The difference of a set from its target; NaN is no answer, and so a wrong one."""
    if answer == NO_ANSWER or (answer & ~right and right & ~answer):
        return "wrong answer"
    return "too much" if answer & ~right else "too little"


class PlacesKind(Kind):
    """Answers at every place that are sets of bits, each read off another logit."""

    of_bits: ClassVar[bool] = True
    reads: ClassVar[frozenset[str]] = AnswersFields.reads
    sampler: ClassVar[str] = "balanced_strings"
    defaults: ClassVar[Mapping[str, Any]] = {"attention_mask": "causal"}
    words: ClassVar[Words] = Words(
        *("string", "get {} wrong", "gets {} wrong", "wrongly answered", "language", "target"),
        "rightly answered",
    )
    answer_columns: ClassVar[tuple[str, str]] = ("output", "margin")
    absent: ClassVar[Mapping[Ability, str]] = {
        "labels": f"{_AT_EVERY_PLACE} answers more than yes or no",
        "outputs": f"{_AT_EVERY_PLACE} is not a transduction: its models write no outputs",
    }

    def num_outputs(self, task: Any) -> int:
        return 1

    def network(self, task: Task, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**super().network(task, fields), "head": "places"}

    def encoded(
        self, task: Task, examples: Examples, network: NetworkConfig
    ) -> Int64[np.ndarray, "string place"]:
        return examples.targets.astype(np.int64)

    def units(self, targets: "Tensor") -> int:
        # Losses are sums over places, so a batch is divided by its places and not by its strings.
        return int((targets != NO_ANSWER).sum())

    def losses(
        self, outputs: "Tensor", targets: "Tensor", train_loss: str
    ) -> "Float[Tensor, '*member string']":
        has_target = targets != NO_ANSWER
        return per_string(self.place_losses(outputs, targets[has_target]), has_target)

    def place_losses(
        self, outputs: "Tensor", targets: "Tensor"
    ) -> "Float[Tensor, '*member token']":
        """Computes the loss at each place, in nats: the mean binary cross entropy of its bits."""
        import torch
        from torch.nn import functional

        # A set is one whole number, whose bit k is 1 if k is in it.
        bits = (targets[:, None] >> torch.arange(outputs.shape[-1], device=targets.device)) & 1
        bits = bits.to(outputs.dtype).expand_as(outputs)
        losses = functional.binary_cross_entropy_with_logits(outputs, bits, reduction="none")
        # The mean keeps losses of alphabets of different sizes comparable.
        return losses.mean(dim=-1)

    def decide(self, outputs: np.ndarray) -> Int64[np.ndarray, "*string place"]:
        """Decides the answer at each place: the set of the bits whose logit is positive."""
        return np.asarray((outputs > 0) @ (1 << np.arange(outputs.shape[-1])))

    def place_margins(
        self, outputs: np.ndarray, targets: Int64[np.ndarray, "*string place"]
    ) -> Float[np.ndarray, "*string place"]:
        """Computes the margin of the target at each place: the least margin of its bits."""
        bits = (targets[..., None] >> np.arange(outputs.shape[-1])) & 1
        return np.asarray(np.where(bits == 1, outputs, -outputs).min(axis=-1))

    def are_right(self, outputs: "Tensor", targets: "Tensor") -> "Bool[Tensor, '*member string']":
        import torch

        has_target, given = targets != NO_ANSWER, outputs.detach().cpu().numpy()
        # NumPy decides here as in tests, so that stopping and evaluation follow one rule.
        missed = self.decide(given) != targets[has_target].cpu().numpy()
        missed |= np.isnan(given).any(axis=-1)
        # `per_string` adds up in the type of its values: sums of bools would be bools.
        wrong = torch.from_numpy(missed.astype(np.float32)).to(targets.device)
        return per_string(wrong, has_target) == 0

    def ask(self, models: TrainedModels, questions: Questions) -> Iterator[PlaceAnswers]:
        # One model after another: the outputs of all members at all places would fill memory.
        for model in models.members():
            (outputs,) = model.outputs(questions.strings)
            yield self.judge(questions, outputs, models.places)

    def judge(
        self, questions: Questions, outputs: Float[np.ndarray, "string *output"], places: float
    ) -> PlaceAnswers:
        """Evaluates outputs; where no target is known, any answer is right."""
        lengths = questions.strings.lengths
        if outputs.ndim == 1:
            # The model can read none of them.
            outputs = outputs[:, None, None]
        # A string of n tokens has n + 1 places, since `CLS` comes before it.
        there = np.arange(outputs.shape[1]) <= lengths[:, None]
        readable, is_nan = lengths <= places, np.isnan(outputs).any(axis=-1) & there
        unanswered = is_nan.any(axis=1) & readable
        predicted = np.where(there & ~is_nan, self.decide(outputs), NO_ANSWER)
        targets, predicted = pad_to_one_width(questions.targets.astype(np.int64), predicted)
        targets = np.where(questions.has_target[:, None], targets, predicted)
        margins = self.place_margins(outputs, targets[:, : outputs.shape[1]])
        # The least margin is that of the string; padding must not count.
        score = np.where(there, margins, np.inf).min(axis=1)
        known, same = readable & ~unanswered, (predicted == targets).all(axis=1)
        errors = {}
        for row in np.flatnonzero((known & ~same) | unanswered).tolist():
            output, target = (x[row, : lengths[row] + 1].tolist() for x in (predicted, targets))
            errors[row] = WrongOutput(output, target, ended=True)
        return PlaceAnswers(
            questions.strings,
            targets,
            predicted,
            np.where(known, score, np.nan),
            known,
            unanswered,
            known & same,
            errors,
            self.of_bits,
        )

    def margins(self, outputs: Outputs, targets: Targets) -> Float[np.ndarray, " string"]:
        has_target = targets != NO_ANSWER
        starts = np.cumsum(has_target.sum(axis=1)) - has_target.sum(axis=1)
        margins = self.place_margins(outputs, targets[has_target].astype(np.int64))
        # Places of all strings are concatenated; every string has at least one.
        return np.asarray(np.minimum.reduceat(margins, starts)) if len(starts) else margins

    def texts(self, task: Any, answers: np.ndarray) -> Sequence[str]:
        codes = np.unique(answers[answers != NO_ANSWER]).tolist()
        names = self._names(task, codes)
        tokenizer = Tokenizer(tuple(names.values()))
        ids = np.searchsorted(list(names), answers) + FIRST_LETTER
        ends = (answers != NO_ANSWER).sum(axis=1).tolist()
        # The first name is written alone, so that a space follows it.
        between, cut = tokenizer.separator, bool(tokenizer.separator)
        parts = [(row[:cut], row[cut:end]) for row, end in zip(ids.tolist(), ends, strict=True)]
        return [between.join(filter(None, map(tokenizer.decode, pieces))) for pieces in parts]

    def names(self, task: AtEveryPlace, codes: Sequence[int]) -> Mapping[int, str]:
        """The texts of answers, with all that decide whether spaces separate them."""
        return {0: "0", 1: "1"}

    def _names(self, task: AtEveryPlace, codes: Sequence[int]) -> Mapping[int, str]:
        """The sorted `names`; if the alphabet's tokens have names, answers are separated too."""
        names = dict(sorted(self.names(task, codes).items()))
        # With one name of several characters, the tokenizer puts spaces between all names.
        return {**names, max(names) + 1: "none"} if has_names(task.alphabet) else names

    def error_columns(self) -> Mapping[str, str]:
        return {
            "target": "Targets",
            "output": "Answers",
            "error_kind": "Error",
            "first_wrong": "Right places",
            "logit": "Margin",
        }


class PrefixesKind(PlacesKind):
    """Membership of each prefix in the language."""


class NextSymbolsKind(PlacesKind):
    """The set of tokens that may follow, `END` among them: a bit for each token id, so that a head
    can be tied to the embeddings. The bits of `CLS`, `PAD` and `SEP` are never right.
    """

    reads: ClassVar[frozenset[str]] = AnswersFields.reads | Head.reads
    sampler: ClassVar[str] = "uniform_inputs"
    every_string: ClassVar[bool] = False

    def num_outputs(self, task: Any) -> int:
        return int(task.end) + 1

    def network(self, task: Any, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        special = {"num_letters": len(task.alphabet) + SPECIAL_LETTERS}
        return {**super().network(task, fields), **special}

    def names(self, task: AtEveryPlace, codes: Sequence[int]) -> Mapping[int, str]:
        tokens = {CLS: "^", PAD: "_", task.end - 1: "|", task.end: "$"}
        # If the alphabet has one of the short signs, a text could be read in two ways.
        if has_names(task.alphabet) or {*tokens.values(), NOTHING} & {*task.alphabet}:
            tokens = {CLS: "CLS", PAD: "PAD", task.end - 1: "SEP", task.end: "END"}
        between = "," if "CLS" in tokens.values() else ""
        tokens |= dict(enumerate(task.alphabet, FIRST_LETTER))
        return {
            code: between.join(tokens[x] for x in sorted(tokens) if code >> x & 1) or NOTHING
            # The set of all has several characters, so that spaces separate all sets.
            for code in (*codes, (2 << task.end) - 1)
        }


class StatesKind(PlacesKind):
    """The state of the minimal automaton, with an output for each state."""

    of_bits: ClassVar[bool] = False

    def num_outputs(self, task: Any) -> int:
        return len(task.automaton.table)

    def place_losses(
        self, outputs: "Tensor", targets: "Tensor"
    ) -> "Float[Tensor, '*member token']":
        chosen = targets.expand(outputs.shape[:-1]).unsqueeze(-1)
        return -outputs.log_softmax(dim=-1).gather(-1, chosen).squeeze(-1)

    def decide(self, outputs: np.ndarray) -> Int64[np.ndarray, "*string place"]:
        return np.asarray(outputs.argmax(axis=-1))

    def place_margins(
        self, outputs: np.ndarray, targets: Int64[np.ndarray, "*string place"]
    ) -> Float[np.ndarray, "*string place"]:
        is_target = np.arange(outputs.shape[-1]) == targets[..., None]
        others = np.where(is_target, -np.inf, outputs).max(axis=-1)
        return np.asarray(np.where(is_target, outputs, -np.inf).max(axis=-1) - others)

    def names(self, task: AtEveryPlace, codes: Sequence[int]) -> Mapping[int, str]:
        return {state: str(state) for state in range(self.num_outputs(task))}
