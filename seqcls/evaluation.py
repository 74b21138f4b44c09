"""Evaluation of trained models on their test strings: in all, by length, and by string."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from jaxtyping import Float, Int64

from seqcls.cache import remembered
from seqcls.cancellation import check
from seqcls.engines.base import Engine, Writer
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.errors import ConfigError, InvalidStringError
from seqcls.fields import TestSet
from seqcls.kinds import KINDS, Examples, kind_name
from seqcls.kinds.base import Answers, Questions, Scored, Written
from seqcls.kinds.transduction import OutputAnswers
from seqcls.models.positions import longest_readable
from seqcls.problem import Problem
from seqcls.results import DRAWN, Evaluation, OutputResults, RangeCounts, StringErrors, Weights
from seqcls.sampling import Sampler
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import Lengths, Rows, TokenStrings, Truths
from seqcls.strings.tokenizer import FIRST_LETTER, Tokenizer


@dataclass(frozen=True, eq=False)
class DistinctStrings(Examples):
    """The distinct strings of a test set; `drawn` has the last of several ways for one string."""

    occurrences: Int64[np.ndarray, " string"]
    texts: list[str]
    target_texts: Sequence[str] | None = None
    """The targets as text, if the task's kind has texts."""

    def take(self, rows: slice | Rows) -> "DistinctStrings":
        chosen, numbers = super().take(rows), np.arange(len(self))[rows].tolist()
        return DistinctStrings(
            chosen.strings,
            chosen.targets,
            self.occurrences[rows],
            [self.texts[row] for row in numbers],
            self.target_texts and [self.target_texts[row] for row in numbers],
            drawn=chosen.drawn,
        )

    @cached_property
    def numbers(self) -> Int64[np.ndarray, " string"]:
        """Each string's number in the test set, its index among the sorted texts."""
        numbers = np.empty(len(self.texts), dtype=np.int64)
        numbers[self._order] = np.arange(len(self.texts))
        return numbers

    @cached_property
    def test_set(self) -> TestSet:
        """The strings in the order of their numbers."""
        return TestSet(
            [self.texts[row] for row in self._order],
            self.strings.lengths[self._order],
            None if self.target_texts else self.targets[self._order],
            self.occurrences[self._order],
            self.target_texts and [self.target_texts[row] for row in self._order],
            None if self.drawn is None else [DRAWN[x] for x in self.drawn[self._order].tolist()],
        )

    def in_order(self, chosen: Truths) -> Rows:
        """Returns the rows of a mask, in the order of their numbers."""
        rows = np.flatnonzero(chosen)
        return rows[np.argsort(self.numbers[rows])]

    @cached_property
    def _order(self) -> list[int]:
        # Sorting by text makes the numbers independent of the order of drawing.
        return sorted(range(len(self.texts)), key=self.texts.__getitem__)


@remembered
def distinct_test_strings(sampler: Sampler) -> DistinctStrings:
    """Draws the first epoch of a stream, each string once; cached for all models tested on it."""
    drawn = stream(sampler).epoch(0)
    # Strings drawn by counts differ in their counts alone.
    strings = drawn.strings
    rows: np.ndarray = strings.counts if strings.is_counted else strings.letters
    first, string, occurrences = _distinct_rows(rows)
    distinct = drawn.take(first)
    ways = None
    if drawn.drawn is not None:
        ways = np.zeros(len(first), dtype=np.uint8)
        # With plain indexing the result would depend on the order of a string's occurrences.
        np.maximum.at(ways, string, drawn.drawn)
    texts = texts_of(Tokenizer(sampler.task.alphabet), distinct.strings)
    kind = KINDS[kind_name(sampler.task)]()
    targets = kind.texts(sampler.task, distinct.targets)
    return DistinctStrings(
        distinct.strings, distinct.targets, occurrences, texts, targets, drawn=ways
    )


def _distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the first of each distinct row, sorted; each row's index among these; counts."""
    if rows.dtype != np.uint8 or not rows.size:
        found = np.unique(rows, axis=0, return_index=True, return_inverse=True, return_counts=True)
        return found[1], found[2].ravel(), found[3]
    # Eight letters make one number with the same order, which is many times as fast.
    wide = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 8))).view(">u8")
    order = np.lexsort(wide.T[::-1])
    is_new = np.append(True, (wide[order[1:]] != wide[order[:-1]]).any(axis=1))
    string = np.empty(len(rows), dtype=np.int64)
    string[order] = is_new.cumsum() - 1
    return order[is_new], string, np.bincount(string)


def texts_of(tokenizer: Tokenizer, strings: TokenStrings) -> list[str]:
    """Returns strings in the notation in which they are stored."""
    # Strings by counts have sorted letters and need not be spelled out.
    if strings.is_counted:
        return [tokenizer.text_of_counts(counts) for counts in strings.counts.tolist()]
    return tokenizer.decode_all(strings.letters, strings.lengths)


@dataclass(frozen=True, eq=False)
class TrainedGroup:
    """Trained models of one shape, an implementation of `seqcls.kinds.base.TrainedModels`."""

    problem: Problem
    weights: Sequence[Weights]
    """Trained parameters of each model."""
    engine: str = "auto"
    """The engine, as for `seqcls.training.train_group`, but `auto` takes none that would have to be
    compiled first; `device` likewise."""
    device: str = "auto"
    fast_writing: bool = False
    """True if the engine writes outputs, if it can; otherwise PyTorch does."""

    @property
    def places(self) -> float:
        return places(self.problem)

    @property
    def writes_likeliest(self) -> bool:
        return self.problem.config.decoding == "greedy"

    def members(self) -> "Iterator[TrainedGroup]":
        for weights in self.weights:
            yield replace(self, weights=[weights])

    def ask(self, questions: Questions) -> Iterator[Answers]:
        """Yields each model's answers to strings, with dropout as the problem has it.

        Raises:
            InvalidStringError: the strings are over another alphabet's letters.
        """
        check()
        given, expected = questions.strings.num_letters, self.problem.tokenizer.num_letters
        if given != expected:
            raise InvalidStringError(
                f"strings over {given} letters: the model reads {expected}; expected strings over "
                "its own"
            )
        return self.problem.kind.ask(self, questions)

    def outputs(self, strings: TokenStrings) -> Float[np.ndarray, "member string *output"]:
        check()
        compute = partial(self._engine.logits, self.problem, self.weights, device=self.device)
        fits = strings.lengths <= self.places
        if fits.all():
            return compute(strings)
        # A table of positions has no rows for longer strings.
        known = compute(strings.take(np.flatnonzero(fits)))
        shape = (len(self.weights), len(strings), *known.shape[2:])
        logits = np.full(shape, np.nan, dtype=known.dtype)
        logits[:, fits] = known
        return logits

    def score(self, examples: Examples) -> Iterator[Scored]:
        # Imported late: PyTorch takes a second or two to load.
        from seqcls.decode import score

        for weights in self.weights:
            yield score(self.problem, weights, examples, self._writer)

    def write(self, member: int, inputs: TokenStrings) -> list[Written]:
        from seqcls.decode import best_written

        return best_written(self.problem, self.weights[member], inputs, self._writer)

    @cached_property
    def _engine(self) -> Engine:
        return engine_named(choose_engine(self.problem, self.engine, self.device, ready=True).name)

    @property
    def _writer(self) -> Writer | None:
        """The engine that scores and writes; None for PyTorch."""
        chosen = self._engine if self.fast_writing else None
        return chosen if isinstance(chosen, Writer) else None


def places(problem: Problem) -> float:
    """Number of tokens that a problem's models can read; infinity if unlimited."""
    end = longest_readable(problem.network)
    return math.inf if end is None else float(end)


def readable(problem: Problem, examples: Examples) -> Truths:
    """A mask of the strings that a problem's models can read, with their targets if needed."""
    return problem.kind.lengths_read(examples) <= places(problem)


def evaluate(
    problem: Problem,
    weights: Sequence[Weights],
    *,
    engine: str = "auto",
    device: str = "auto",
) -> list[Evaluation]:
    """Tests the models of one group, in order.

    Args:
        problem: that of one model; all have the same `group_key`.
        weights: trained parameters of each model.
        engine: as for `seqcls.training.train_group`.
        device: likewise.
    """
    test = distinct_test_strings(problem.test)
    models = TrainedGroup(problem, weights, engine, device, fast_writing=True)
    answers = models.ask(Questions.about(test))
    evaluations = [evaluation_of(problem, test, answer) for answer in answers]
    # Validation strings are evaluated only if the test has too few of trained lengths.
    if not problem.config.knows_trained_lengths or all(x.ranges for x in evaluations):
        return evaluations
    judged = judge_validation(models)
    return [
        replace(
            evaluation,
            ranges=range_counts(
                problem,
                evaluation.lengths,
                evaluation.tested_by_length,
                evaluation.wrong_by_length,
                validated=validated,
            ),
        )
        for evaluation, validated in zip(evaluations, judged, strict=True)
    ]


LEAST_WITHIN = 100
"""Least number of test strings of trained lengths for an outcome; with fewer, validation strings
are used if there are more of them."""

Counts = Int64[np.ndarray, " length"]


def range_counts(
    problem: Problem,
    lengths: Counts,
    tested: Counts,
    wrong: Counts,
    *,
    validated: tuple[int, int] | None = None,
) -> RangeCounts | None:
    """Counts a model's errors on trained lengths, and beyond.

    Args:
        validated: numbers of validation strings of trained lengths, and of errors on them.

    Returns:
        None if the trained lengths are not known, or if `validated` is needed and missing.
    """
    if not problem.config.knows_trained_lengths:
        return None
    trained = problem.trained_lengths
    inside = (lengths >= trained[0]) & (lengths <= trained[-1])
    beyond = lengths > trained[-1]
    longer = int(tested[beyond].sum()), int(wrong[beyond].sum())
    counts = int(tested[inside].sum()), int(wrong[inside].sum())
    if counts[0] < LEAST_WITHIN:
        # Models are run again only if validation holds more of these strings than the test.
        if validated is None and problem.asking_trained_lengths.validation.epoch_size > counts[0]:
            return None
        if validated is not None and validated[0] > counts[0]:
            return RangeCounts(*validated, "validation", *longer)
    return RangeCounts(*counts, "test", *longer)


def judge_validation(models: TrainedGroup) -> list[tuple[int, int]]:
    """Evaluates the models of one group on validation strings of trained lengths.

    Returns:
        For each model the number of such strings that it can read, and of its errors on them.
    """
    examples = stream(models.problem.asking_trained_lengths.validation).epoch(0)
    if not len(examples):
        return [(0, 0)] * len(models.weights)
    answers = models.ask(Questions.about(examples))
    return [(int(answer.judged.sum()), int(answer.wrong.sum())) for answer in answers]


def evaluation_of(
    problem: Problem, test: DistinctStrings, answers: Answers, writer: Tokenizer | None = None
) -> Evaluation:
    """Makes an evaluation from one model's answers to the test strings.

    Args:
        writer: tokenizer of outputs that may have other tokens; by default the kind's texts.

    Raises:
        ConfigError: no input has an output.
    """
    lengths, times = test.strings.lengths, test.occurrences * answers.judged
    tested = np.unique(lengths[answers.judged])
    wrong = test.in_order(answers.wrong)
    cells = None
    if width := len(problem.kind.cells):
        # Kinds with cells have targets and answers of one bit.
        cell = width * lengths + 2 * answers.targets.astype(np.int64) + answers.predicted
        table = np.bincount(cell, times, width * (int(lengths.max()) + 1))
        cells = table.astype(np.int64).reshape(-1, width)[tested]
    tested_counts = _per_length(lengths, times, tested)
    wrong_counts = _per_length(lengths, test.occurrences * answers.wrong, tested)
    return Evaluation(
        lengths=tested,
        tested_by_length=tested_counts,
        wrong_by_length=wrong_counts,
        cells=cells,
        errors=StringErrors(test.numbers[wrong], answers.score[wrong]),
        solved_length=int(lengths[wrong].min()) - 1 if len(wrong) else problem.longest_tested,
        test_set=test.test_set.digest,
        outputs=_output_results(problem, test, answers, tested, writer)
        if isinstance(answers, OutputAnswers)
        else None,
        ranges=range_counts(problem, tested, tested_counts, wrong_counts),
    )


def _output_results(
    problem: Problem,
    test: DistinctStrings,
    answers: OutputAnswers,
    tested: Counts,
    writer: Tokenizer | None,
) -> OutputResults:
    if not len(tested):
        raise ConfigError(
            f"positions={problem.config.positions!r}: the models have places for no test string "
            "with its target; train on longer strings, or test shorter ones"
        )
    lengths, times = test.strings.lengths, test.occurrences * answers.judged
    order = np.argsort(test.numbers[answers.wrong])
    if writer is None:
        predicted = answers.predicted[test.in_order(answers.wrong)]
        texts = problem.kind.texts(problem.task, predicted) or ()
    else:
        outputs = answers.outputs
        texts = [writer.decode([FIRST_LETTER + x for x in outputs[error]]) for error in order]
    return OutputResults(
        right_length_given=_per_length(lengths, times * answers.right_length_given, tested),
        edits=_per_length(lengths, times * answers.edits, tested),
        target_tokens=_per_length(lengths, times * answers.target_lengths, tested),
        texts=texts,
        first_wrong=answers.first_wrong[order],
        error_kinds=[answers.error_kinds[error] for error in order],
    )


def _per_length(lengths: Lengths, times: Int64[np.ndarray, " string"], chosen: Counts) -> Counts:
    """Counts occurrences of strings of the chosen lengths."""
    # Weighted counts are floats, which hold whole numbers up to 2**53.
    every = np.bincount(lengths, times, int(lengths.max()) + 1).astype(np.int64)
    return np.asarray(every[chosen])


def drawn_test_set(problem: Problem) -> TestSet:
    """Draws the strings that a problem's models are tested on."""
    return distinct_test_strings(problem.test).test_set
