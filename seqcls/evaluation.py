"""How a trained model does on its test strings: in all, by length, and string by string."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.cache import remembered
from seqcls.cancellation import check
from seqcls.engines.base import Writer
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.errors import ConfigError
from seqcls.fields import TestSet
from seqcls.kinds import KINDS, Examples, kind_name
from seqcls.kinds.base import are_unanswered
from seqcls.kinds.transduction import target_lengths
from seqcls.models.positions import longest_readable
from seqcls.problem import Problem
from seqcls.results import Evaluation, OutputResults, StringErrors, Weights
from seqcls.sampling import Sampler
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import FIRST_LETTER, Tokenizer

if TYPE_CHECKING:
    from seqcls.decode import Judged


@dataclass(frozen=True, eq=False)
class DistinctStrings:
    """The distinct strings of a test set."""

    strings: TokenStrings
    occurrences: Int64[np.ndarray, " string"]
    targets: np.ndarray
    """What is right of each: (string)."""
    texts: list[str]
    target_texts: Sequence[str] | None = None
    """The targets as text, where the kind of the task writes them."""

    @property
    def labels(self) -> Bool[np.ndarray, " string"]:
        """The targets of a language: which strings are in it."""
        return self.targets

    @cached_property
    def numbers(self) -> Int64[np.ndarray, " string"]:
        """Each string's number in the test set: its place among the texts, sorted."""
        numbers = np.empty(len(self.texts), dtype=np.int64)
        numbers[self._order] = np.arange(len(self.texts))
        return numbers

    @cached_property
    def test_set(self) -> TestSet:
        """The same strings in the order of their numbers."""
        return TestSet(
            [self.texts[row] for row in self._order],
            self.strings.lengths[self._order],
            None if self.target_texts else self.targets[self._order],
            self.occurrences[self._order],
            self.target_texts and [self.target_texts[row] for row in self._order],
        )

    def in_order(self, chosen: Bool[np.ndarray, " string"]) -> Int64[np.ndarray, " row"]:
        """The rows of some strings, in the order of their numbers."""
        rows = np.flatnonzero(chosen)
        return rows[np.argsort(self.numbers[rows])]

    @cached_property
    def _order(self) -> list[int]:
        return sorted(range(len(self.texts)), key=self.texts.__getitem__)


@remembered
def distinct_test_strings(sampler: Sampler) -> DistinctStrings:
    """The first epoch of a stream, each string once, made once for all models tested on it."""
    drawn = stream(sampler).epoch(0)
    # Strings that were drawn by counts differ in nothing else.
    strings = drawn.strings
    rows: np.ndarray = strings.counts if strings.is_counted else strings.letters
    _, first, occurrences = np.unique(rows, axis=0, return_index=True, return_counts=True)
    distinct = drawn.take(first)
    texts = _texts(Tokenizer(sampler.task.alphabet), distinct.strings)
    kind = KINDS[kind_name(sampler.task)]()
    targets = kind.texts(sampler.task, distinct.targets)
    return DistinctStrings(distinct.strings, occurrences, distinct.targets, texts, targets)


def _texts(tokenizer: Tokenizer, strings: TokenStrings) -> list[str]:
    # Strings by their counts have their letters in order, and need not be spelled out.
    if strings.is_counted:
        return [tokenizer.text_of_counts(counts) for counts in strings.counts.tolist()]
    return [tokenizer.decode(ids) for ids in strings.ids.tolist()]


def logits_of(
    problem: Problem,
    weights: Sequence[Weights],
    strings: TokenStrings,
    *,
    engine: str = "auto",
    device: str = "auto",
) -> Float[np.ndarray, "member string *output"]:
    """Logits of models of one shape for strings; positive means label 1.

    Dropout is off. Engine and device are as for `seqcls.training.train_group`, but `auto` takes no
    engine that would have to be compiled first. Strings beyond the
    places that the models know, about which they cannot be asked, have none but NaN.
    """
    check()
    chosen = engine_named(choose_engine(problem, engine, device, ready=True).name)
    readable = readable_strings(problem, strings)
    if readable.all():
        return chosen.logits(problem, weights, strings, device=device)
    known = chosen.logits(problem, weights, strings.take(np.flatnonzero(readable)), device=device)
    shape = (len(weights), len(strings), *known.shape[2:])
    logits = np.full(shape, np.nan, dtype=known.dtype)
    logits[:, readable] = known
    return logits


def readable_strings(problem: Problem, strings: TokenStrings) -> Bool[np.ndarray, " string"]:
    """Which strings a problem's models can be asked about: all, or those with places."""
    end = longest_readable(problem.network)
    return strings.lengths <= (np.inf if end is None else end)


def evaluate(
    problem: Problem,
    weights: Sequence[Weights],
    *,
    engine: str = "auto",
    device: str = "auto",
) -> list[Evaluation]:
    """Tests the models of one group, in their order.

    Args:
        problem: of one of them; all have the same `group_key`.
        weights: each one's trained parameters.
        engine: as for `seqcls.training.train_group`.
        device: likewise.
    """
    test = distinct_test_strings(problem.test)
    if problem.writes:
        chosen = engine_named(choose_engine(problem, engine, device, ready=True).name)
        writer = chosen if isinstance(chosen, Writer) else None
        return [_written(problem, member, test, writer) for member in weights]
    logits = logits_of(problem, weights, test.strings, engine=engine, device=device)
    return [evaluation_of(problem, test, member_logits) for member_logits in logits]


def evaluation_of(
    problem: Problem, test: DistinctStrings, outputs: Float[np.ndarray, "string *output"]
) -> Evaluation:
    """What these outputs for the test strings make of one model.

    Where an output is NaN the model gives no answer, which is never right.
    """
    kind, targets = problem.kind, test.targets
    readable = readable_strings(problem, test.strings)
    answers, unanswered = kind.answers(outputs), are_unanswered(outputs)
    if answers.dtype == np.bool_:
        # Without an answer a string is misclassified, whatever its label.
        answers = np.where(unanswered, ~targets, answers)
    is_wrong = ((answers != targets) | unanswered) & readable
    lengths, times = test.strings.lengths, test.occurrences * readable
    # Counts at each length: of right and wrong ones, or of the kind's own cells.
    cell = kind.cell(answers, targets) if kind.cells else is_wrong.astype(np.int64)
    width = len(kind.cells) or 2
    table = np.bincount(width * lengths + cell, times, width * (int(lengths.max()) + 1))
    counts = table.astype(np.int64).reshape(-1, width)
    tested = np.flatnonzero(counts.any(axis=1))
    wrong = test.in_order(is_wrong)
    return Evaluation(
        lengths=tested,
        tested_by_length=counts[tested].sum(axis=1),
        wrong_by_length=_per_length(lengths, test.occurrences * is_wrong, tested),
        cells=counts[tested] if kind.cells else None,
        errors=StringErrors(test.numbers[wrong], kind.margins(outputs[wrong], targets[wrong])),
        solved_length=_solved_length(problem, lengths[wrong]),
        test_set=test.test_set.digest,
    )


def _written(
    problem: Problem, weights: Weights, test: DistinctStrings, writer: Writer | None
) -> Evaluation:
    """What a model's outputs for the test strings make of it."""
    from seqcls.decode import judge, readable_inputs

    every = Examples(test.strings, test.targets)
    rows = np.flatnonzero(readable_inputs(problem, every))
    if not len(rows):
        raise ConfigError(
            f"positions={problem.config.positions!r}: the models have places for no test string "
            "with its target; train on longer strings, or test shorter ones"
        )
    examples = every.take(rows)
    judged = judge(problem, weights, examples, writer)
    return judged_evaluation(problem, test, rows, judged)


def judged_evaluation(
    problem: Problem,
    test: DistinctStrings,
    rows: Int64[np.ndarray, " row"],
    judged: "Judged",
    writer: Tokenizer | None = None,
) -> Evaluation:
    """What outputs for some test strings, held against their targets, make of a model.

    Args:
        problem: what is asked of it.
        test: the strings.
        rows: those of them that it was asked about.
        judged: its outputs for them.
        writer: writes outputs that may have tokens beyond the alphabet; by default the problem's.
    """
    write = (writer or problem.tokenizer).decode
    examples = Examples(test.strings, test.targets).take(rows)
    lengths, times = examples.strings.lengths, test.occurrences[rows]
    tested = np.unique(lengths)
    order = np.argsort(test.numbers[rows[judged.is_wrong]])
    wrong = rows[judged.is_wrong][order]
    return Evaluation(
        lengths=tested,
        tested_by_length=_per_length(lengths, times, tested),
        wrong_by_length=_per_length(lengths, times * judged.is_wrong, tested),
        cells=None,
        errors=StringErrors(test.numbers[wrong], judged.log_probability[judged.is_wrong][order]),
        solved_length=_solved_length(problem, test.strings.lengths[wrong]),
        test_set=test.test_set.digest,
        outputs=OutputResults(
            right_length_given=_per_length(lengths, times * judged.right_length_given, tested),
            edits=_per_length(lengths, times * judged.edits, tested),
            target_tokens=_per_length(lengths, times * target_lengths(examples.targets), tested),
            texts=[write([FIRST_LETTER + x for x in judged.outputs[each]]) for each in order],
            first_wrong=judged.first_wrong[order],
            error_kinds=[judged.error_kinds[error] for error in order],
        ),
    )


def _per_length(
    lengths: Int64[np.ndarray, " string"],
    times: Int64[np.ndarray, " string"],
    of: Int64[np.ndarray, " length"],
) -> Int64[np.ndarray, " length"]:
    """How often strings of each of some lengths occur."""
    every = np.bincount(lengths, times, int(lengths.max()) + 1).astype(np.int64)
    return np.asarray(every[of])


def _solved_length(problem: Problem, wrong: Int64[np.ndarray, " error"]) -> int:
    """The greatest length up to which all are right, given those of the errors."""
    if len(wrong):
        return int(wrong.min()) - 1
    return problem.longest_tested


def drawn_test_set(problem: Problem) -> TestSet:
    """The strings that a problem's models are tested on."""
    return distinct_test_strings(problem.test).test_set
