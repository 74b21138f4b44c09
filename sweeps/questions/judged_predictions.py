"""Predictions of models trained elsewhere, held against what is right of each test string."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from seqcls.datasets import Dataset
from seqcls.errors import DatasetError, InvalidStringError
from seqcls.evaluation import (
    DistinctStrings,
    distinct_test_strings,
    evaluation_of,
    judged_evaluation,
)
from seqcls.problem import Problem
from seqcls.results import Evaluation, StringErrors
from seqcls.tokens.strings import NO_LETTER
from seqcls.tokens.tokenizer import FIRST_LETTER, Tokenizer
from sweeps.datasets.reading import label_of

SHOWN = 5
"""Strings that are named at most where several are missing."""


@dataclass(frozen=True)
class Prediction:
    """One answer of a model, as it was given."""

    place: str
    """Such as `line 7`."""
    string: Any
    """Its tokens, or the id of its row."""
    answer: Any
    score: Any = None


class TestedStrings:
    """The strings that a test asks for, found by their tokens or by ids of a file's rows."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.test: DistinctStrings = distinct_test_strings(problem.test)
        self.tokenizer: Tokenizer = problem.tokenizer
        self._alphabet = {token: number for number, token in enumerate(problem.task.alphabet)}
        strings = self.test.strings
        if strings.is_counted:
            keys: list[Hashable] = [tuple(counts) for counts in strings.counts.tolist()]
        else:
            pairs = zip(strings.letters, strings.lengths.tolist(), strict=True)
            keys = [tuple(letters[:length].tolist()) for letters, length in pairs]
        self.rows = {key: row for row, key in enumerate(keys)}

    @cached_property
    def rows_of_ids(self) -> dict[str, int]:
        """The string of each id of the tested rows of a file."""
        task: Any = self.problem.task
        content: Dataset | None = getattr(task, "content", None)
        if content is None or content.ids is None:
            raise DatasetError("id: the test strings have none; give their tokens")
        test: Any = self.problem.test
        letters, lengths = content.strings.letters, content.strings.lengths
        return {
            content.ids[row]: self.rows[tuple(letters[row, : lengths[row]].tolist())]
            for row in test.rows.tolist()
        }

    def letters(self, value: Any) -> list[int]:
        """The letters of a string as it was given: a list of tokens, or text.

        Raises:
            DatasetError: it is no string of this alphabet.
        """
        if isinstance(value, float) and np.isnan(value):
            value = ""
        if isinstance(value, list | tuple | np.ndarray):
            tokens: Sequence[str] = [str(token) for token in value]
        elif isinstance(value, str | int) and not isinstance(value, bool):
            text = str(value).strip()
            tokens = text.split() if self.tokenizer.separator or " " in text else text
        else:
            raise DatasetError(f"{value!r:.60}, expected text or a list of tokens")
        if all(token in self._alphabet for token in tokens):
            return [self._alphabet[token] for token in tokens]
        try:
            ids = self.tokenizer.encode(str(value) if isinstance(value, str) else " ".join(tokens))
        except InvalidStringError as error:
            raise DatasetError(str(error)) from None
        return [number - FIRST_LETTER for number in ids[1:]]

    def row(self, value: Any) -> int | None:
        """Which test string is the one that was given; None where none is."""
        letters = self.letters(value)
        if self.test.strings.is_counted:
            counts = np.bincount(letters, minlength=len(self._alphabet))
            return self.rows.get(tuple(counts.tolist()))
        return self.rows.get(tuple(letters))

    def answer(self, value: Any) -> Any:
        """A label, or the letters of an output.

        Raises:
            DatasetError: it is none.
        """
        if self.problem.writes:
            try:
                return self.letters(value)
            except DatasetError as error:
                raise DatasetError(f"prediction: {error}") from None
        return label_of(value, "prediction")


def _score(value: Any) -> float:
    missing = value is None or value == "" or (isinstance(value, float) and np.isnan(value))
    if missing:
        return float("nan")
    try:
        score = float(value)
    except (TypeError, ValueError):
        raise DatasetError(f"score is {value!r:.60}, expected a number") from None
    if not np.isfinite(score) or abs(score) > 1e300:
        raise DatasetError(f"score is {value!r:.60}, expected a finite number")
    return score


def evaluated(strings: TestedStrings, given: Iterable[Prediction], *, by_id: bool) -> Evaluation:
    """Predictions for every test string, held against what is right.

    Raises:
        DatasetError: strings are missing, unknown or stand twice, or a prediction is none.
    """
    number = len(strings.test.texts)
    answers: list[Any] = [None] * number
    scores = np.full(number, np.nan)
    before: dict[Any, str] = {}
    answered: dict[int, str] = {}
    for prediction in given:
        try:
            key = _key(strings, prediction.string, by_id=by_id)
            answer, score = strings.answer(prediction.answer), _score(prediction.score)
        except DatasetError as error:
            raise DatasetError(f"{prediction.place}: {error}") from None
        row = strings.rows_of_ids[key] if by_id else key
        if key in before:
            raise DatasetError(
                f"{prediction.place}: the string of {before[key]} again; keep one of them"
            )
        if row in answered and answers[row] != answer:
            raise DatasetError(
                f"{prediction.place}: the string of {answered[row]} again, with another prediction"
            )
        before[key] = answered[row] = prediction.place
        answers[row], scores[row] = answer, score
    wanted: Any = strings.rows_of_ids if by_id else range(number)
    missing = [key for key in wanted if key not in before]
    if missing:
        shown = [repr(key if by_id else strings.test.texts[key])[:60] for key in missing[:SHOWN]]
        more = f" and {len(missing) - SHOWN:,} more" if len(missing) > SHOWN else ""
        raise DatasetError(
            f"no prediction for {len(missing):,} of {len(wanted):,} test strings: "
            f"{', '.join(shown)}{more}"
        )
    if strings.problem.writes:
        return _of_outputs(strings, answers, scores)
    return _of_labels(strings, np.array(answers, dtype=bool), scores)


def _key(strings: TestedStrings, value: Any, *, by_id: bool) -> Any:
    if by_id:
        text = str(value.item() if isinstance(value, np.generic) else value).strip()
        if text not in strings.rows_of_ids:
            raise DatasetError(f"id {text!r:.60} is not that of a test string")
        return text
    row = strings.row(value)
    if row is None:
        raise DatasetError(f"string {value!r:.60} is not a test string")
    return row


def _of_labels(strings: TestedStrings, answers: np.ndarray, scores: np.ndarray) -> Evaluation:
    test = strings.test
    evaluation = evaluation_of(strings.problem, test, np.where(answers, 1.0, -1.0))
    by_number = np.empty(len(scores))
    by_number[test.numbers] = scores
    errors = StringErrors(evaluation.errors.numbers, by_number[evaluation.errors.numbers])
    return Evaluation(**{**vars(evaluation), "errors": errors})


def _of_outputs(strings: TestedStrings, answers: list[list[int]], scores: np.ndarray) -> Evaluation:
    from seqcls.decoding.judging import Judged
    from seqcls.decoding.measures import edits, error_kind, first_wrong

    targets = [row[row != NO_LETTER].tolist() for row in strings.test.targets]
    is_wrong = np.array([a != b for a, b in zip(answers, targets, strict=True)], dtype=bool)
    pairs = [(answers[row], targets[row]) for row in np.flatnonzero(is_wrong).tolist()]
    distances = np.zeros(len(answers), dtype=np.int64)
    distances[is_wrong] = [edits(said, target) for said, target in pairs]
    judged = Judged(
        is_wrong,
        # What would have been written at the target's length is known of right outputs alone.
        ~is_wrong,
        scores,
        distances,
        [said for said, _ in pairs],
        np.array([first_wrong(said, target) for said, target in pairs], dtype=np.int64),
        [error_kind(said, target, ended=True) for said, target in pairs],
    )
    return judged_evaluation(strings.problem, strings.test, np.arange(len(answers)), judged)
