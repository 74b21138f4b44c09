"""Predictions of models trained elsewhere, held against what is right of each test string.

A prediction is joined with its test string by its tokens, whichever way they are written, or by the
id of its row; those that are missing, stand twice or contradict others are named.
"""

import math
import re
import sys
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from seqcls.errors import ConfigError, DatasetError, InvalidStringError
from seqcls.evaluation import DistinctStrings, distinct_test_strings, evaluation_of
from seqcls.kinds import kind_name
from seqcls.kinds.base import Answers, of_one_width
from seqcls.kinds.transduction import OutputAnswers, WrongOutput, letter_rows
from seqcls.problem import Problem
from seqcls.results import Evaluation
from seqcls.strings.alphabets import NOTATION, compose
from seqcls.strings.datasets import SPLITS, Dataset
from seqcls.strings.token_strings import NO_LETTER
from seqcls.strings.tokenizer import FIRST_LETTER, Tokenizer, unpack_array
from seqcls.text import count
from sweeps.datasets import label_of
from sweeps.datasets.predictions import Prediction, is_missing
from sweeps.datasets.tables import refused_in
from sweeps.datasets.written_lists import written_list

UNWRITABLE = "\N{REPLACEMENT CHARACTER}"
"""Stands for a token that no text can have."""

SHOWN = 5
"""Strings that are named at most where several are missing."""


class TestedStrings:
    """The strings that a test asks for, found by their tokens or by ids of a file's rows."""

    def __init__(self, problem: Problem) -> None:
        if problem.lacks("labels") and problem.lacks("outputs"):
            raise ConfigError(
                f"task={problem.config.task!r}: its answers are of the kind "
                f"{kind_name(problem.task)!r}; results are imported of languages, whose answers "
                "are labels, and of transductions, whose answers are strings"
            )
        self.problem = problem
        self.are_outputs = problem.lacks("outputs") is None
        """Whether predictions are strings, and not labels."""
        self.test: DistinctStrings = distinct_test_strings(problem.test)
        self.tokenizer: Tokenizer = problem.tokenizer
        self._alphabet = {token: number for number, token in enumerate(problem.task.alphabet)}
        self._others: dict[str, int] = {}
        """The tokens of outputs that the alphabet does not have, with numbers beyond its own."""
        strings = self.test.strings
        if strings.is_counted:
            keys: list[Hashable] = [tuple(counts) for counts in strings.counts.tolist()]
        else:
            pairs = zip(strings.letters, strings.lengths.tolist(), strict=True)
            keys = [tuple(letters[:length].tolist()) for letters, length in pairs]
        self.rows = {key: row for row, key in enumerate(keys)}

    @cached_property
    def _content(self) -> Dataset | None:
        """The file that the strings are of; None where they are drawn."""
        content = getattr(self.problem.task, "content", None)
        return content if isinstance(content, Dataset) else None

    @cached_property
    def _contradicted(self) -> dict[int, tuple[int, ...]]:
        """The letters of the rows of a test that contradict others, and so are not asked.

        Of models that answer them all the same, their answers are left out.
        """
        if (content := self._content) is None:
            return {}
        is_tested = content.splits is None or content.splits == SPLITS.index("test")
        rows = np.flatnonzero(content.contradicted & is_tested).tolist()
        return {row: self._letters_of(content, row) for row in rows}

    @cached_property
    def rows_of_strings(self) -> dict[Hashable, int]:
        """The row of each test string by its letters, or its counts; -1 where it is not asked."""
        return {**dict.fromkeys(self._contradicted.values(), -1), **self.rows}

    @cached_property
    def rows_of_ids(self) -> dict[Hashable, int]:
        """The row of the string of each id of a file's tested rows; -1 where it is not asked."""
        content, test = self._content, self.problem.test
        if content is None or content.ids is None:
            raise DatasetError("id: the test strings have none; give their tokens")
        tested: np.ndarray = getattr(test, "rows")  # noqa: B009
        of_row = {row: self.rows[self._letters_of(content, row)] for row in tested.tolist()}
        known = {**dict.fromkeys(self._contradicted, -1), **of_row}
        return {content.ids[row]: place for row, place in known.items()}

    def _letters_of(self, content: Dataset, row: int) -> tuple[int, ...]:
        strings = content.strings
        return tuple(strings.letters[row, : strings.lengths[row]].tolist())

    @cached_property
    def _spelled_without_spaces(self) -> frozenset[str]:
        """The columns of a file, `tokens` and `target`, whose tokens are all of one character.

        A text of such a column may be written without spaces, as it may stand in the file, though
        tokens of the other column have names.
        """
        if (content := self._content) is None or not self.tokenizer.separator:
            return frozenset()
        columns = {"tokens": content.strings.letters, "target": content.targets}
        short = [len(token) == 1 for token in self.problem.task.alphabet]
        return frozenset(
            name
            for name, letters in columns.items()
            if letters is not None and all(short[x] for x in np.unique(letters) if x != NO_LETTER)
        )

    @cached_property
    def _has_numbers(self) -> bool:
        """Whether any token is a whole number."""
        return any(map(str.isdecimal, self._alphabet))

    @cached_property
    def _has_brackets(self) -> bool:
        """Whether brackets are tokens, so that no text is a list that was written."""
        return not self._alphabet.keys().isdisjoint("[(")

    def _tokens(self, value: Any, column: str) -> Sequence[str]:
        """The tokens of a string or an output as it was given, in the alphabet or not.

        Of several ways to read it, the first whose tokens the alphabet has: `aaab`, `a{3}b`, lists
        of tokens and of characters, texts of such lists.

        Raises:
            DatasetError: it is neither text nor a list of tokens.
        """
        value = _whole(value)
        if isinstance(value, list | tuple | np.ndarray):
            items = self._of_list(value)
            ways = chain([items], self._ways_to_read(self._text_of(items), column))
            return next(filter(self._are_known, ways), items)
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise DatasetError(f"{value!r:.60}, expected text or a list of tokens")
        readings = list(self._ways_to_read(str(value), column))
        return next(filter(self._are_known, readings), readings[-1])

    def _text_of(self, items: Sequence[str]) -> str:
        """The text of which `list(text)` or `text.split()` made these."""
        return ("" if all(len(x) == 1 for x in items) else self.tokenizer.separator).join(items)

    def _plain_tokens(self, text: str, column: str) -> Sequence[str]:
        """The words of a text, or its characters."""
        words = text.split()
        are_words = self.tokenizer.separator and column not in self._spelled_without_spaces
        return words if len(words) > 1 or are_words else text

    def _ways_to_read(self, text: str, column: str) -> Iterator[Sequence[str]]:
        text = compose(_AROUND.sub("", text))
        yield self._plain_tokens(text, column)
        # What was shortened when it was written is refused where brackets are no tokens.
        with suppress(*[DatasetError] * self._has_brackets):
            items = [] if text in ("[]", "()") else written_list(text)
            if items is not None and not (self._has_brackets and text in ("[]", "()")):
                tokens = self._of_list(items)
                text = self._text_of(tokens)
                yield self._plain_tokens(text, column)
                yield tokens
        if any(x in text for x in NOTATION):
            text = text if self.tokenizer.separator else "".join(text.split())
            extended = self.tokenizer.with_tokens_of(text)
            with suppress(InvalidStringError):
                ids = extended.encode(text)[1:]
                yield [extended.alphabet[number - FIRST_LETTER] for number in ids]

    def _are_known(self, tokens: Sequence[str]) -> bool:
        return all(token in self._alphabet for token in tokens)

    def _of_list(self, given: Sequence[Any] | np.ndarray) -> list[str]:
        """The tokens of a list; a number is the token that is written so.

        Raises:
            DatasetError: there is a number that is no token's, as padding of -1, or an id where
                no token is a number.
        """
        tokens = [_whole(unpack_array(token)) for token in given]
        for place, token in enumerate(tokens, start=1):
            is_count = isinstance(token, int) and not isinstance(token, bool) and token >= 0
            is_count &= self._has_numbers
            if not isinstance(token, str) and not is_count and str(token) not in self._alphabet:
                known = " ".join(self.problem.task.alphabet)
                raise DatasetError(
                    f"{list(given)!r:.60} has {token!r:.60} at place {place}, expected tokens; "
                    f"those of the task are {known:.100}"
                )
        return [compose(str(token)) for token in tokens]

    def key(self, value: Any, *, by_id: bool) -> Hashable:
        """The id of a test string, or its letters; counts where their order does not matter.

        Raises:
            DatasetError: it is that of no test string.
        """
        if by_id:
            text = str(unpack_array(value)).strip()
            if text not in self.rows_of_ids:
                # A frame has whole numbers so where another one of the column was missing.
                text = text.removesuffix(".0")
            if text not in self.rows_of_ids:
                raise DatasetError(f"id {text!r:.60} is not that of a test string")
            return text
        tokens = self._tokens("" if is_missing(value) else value, "tokens")
        if not self._are_known(tokens):
            text = value if isinstance(value, str) else self.tokenizer.separator.join(tokens)
            try:
                self.tokenizer.encode(text.strip())
            except InvalidStringError as error:
                raise DatasetError(str(error)) from None
            raise DatasetError(f"{value!r:.60}, expected a string of the alphabet")
        letters = tuple(self._alphabet[token] for token in tokens)
        if self.test.strings.is_counted:
            letters = tuple(map(letters.count, range(len(self._alphabet))))
        if letters not in self.rows_of_strings:
            raise DatasetError(f"string {value!r:.60} is not a test string")
        return letters

    def answer(self, value: Any) -> Any:
        """A label, or the letters of an output; a token that the alphabet does not have is a number
        beyond those of letters.

        Raises:
            DatasetError: it is none.
        """
        if is_missing(value):
            said = "; the empty output is '', and not None or NaN" * self.are_outputs
            raise DatasetError(f"prediction is missing{said}")
        if not self.are_outputs:
            return label_of(value, "prediction")
        try:
            tokens = self._tokens(value, "target")
        except DatasetError as error:
            raise DatasetError(f"prediction: {error}") from None
        if not self._are_known(tokens):
            for marker in _MARKER.findall(_text(value)):
                if marker not in self._alphabet and not self._are_known(marker):
                    raise DatasetError(
                        f"prediction: {value!r:.60} has {marker!r}, which marks an end or padding "
                        "and is no token of the task; cut outputs there"
                    )
        known, others = self._alphabet, self._others
        return tuple(
            known[x] if x in known else others.setdefault(x, len(known) + len(others))
            for x in tokens
        )

    def check_spelling(self, answers: Sequence[Prediction]) -> None:
        """Looks whether outputs are wrong for how they were written, and for nothing else.

        Args:
            answers: those to all test strings, in their order; each a text and its letters.

        Raises:
            DatasetError: numbers have lost zeros in front, all are ids of tokens, or more are right
                but for what no token has than are right.
        """
        alphabet = self.problem.task.alphabet
        targets = [tuple(row[row != NO_LETTER].tolist()) for row in self.test.targets]
        pairs = zip(answers, targets, strict=True)
        wrong = [row for row, (answer, target) in enumerate(pairs) if answer.string != target]
        texts = [_text(x.answer) for x in answers]

        def refuse(row: int, why: str) -> NoReturn:
            right = self.tokenizer.decode(FIRST_LETTER + x for x in targets[row])
            raise DatasetError(
                f"{answers[row].place}: prediction: {texts[row]!r:.60} {why}; write {right!r:.60}"
            )

        spelled = {row: "".join(alphabet[x] for x in targets[row]) for row in wrong}
        cut = [row for row, x in spelled.items() if texts[row] == (x.lstrip("0") or "0") != x]
        if len(cut) > 1 and all(map(_NUMBER.fullmatch, texts)):
            refuse(
                cut[0],
                "has no zeros in front, which numbers lack, and all outputs are written as "
                "numbers; give texts (dtype=str, where pandas reads them)",
            )
        # Capitals and forms of letters are let go where no two tokens are then the same.
        fold = _fold if len({*map(_fold, alphabet)}) == len(alphabet) else str
        folded = {fold(token): number for number, token in enumerate(alphabet)}
        token = re.compile("|".join(map(re.escape, sorted(folded, key=len, reverse=True))))
        written = [
            row
            for row in wrong
            if max(answers[row].string, default=0) >= len(alphabet)
            and tuple(folded[x] for x in token.findall(fold(texts[row]))) == targets[row]
        ]
        if len(written) > max(1, len(targets) - len(wrong)):
            refuse(
                written[0],
                "is right but for signs or capitals that no token has, as "
                f"{len(written):,} of {len(targets):,} outputs are",
            )
        is_foreign = min(chain(*(x.string for x in answers)), default=0) >= len(alphabet)
        if is_foreign and all(map(_IDS.fullmatch, texts)):
            refuse(0, "and all others are numbers that are no tokens of the task")

    @property
    def writer(self) -> Tokenizer:
        """What writes outputs, those with tokens that the alphabet does not have too.

        A token that a text cannot have, such as one with a space, is written as U+FFFD.
        """
        is_one = re.compile(self.tokenizer.pattern).fullmatch
        others = [
            x if is_one(x) and x.isprintable() and not x.isspace() else UNWRITABLE
            for x in self._others
        ]
        return Tokenizer((*self.problem.task.alphabet, *others))


_AROUND = re.compile("^[\\s\0\ufeff\u200b-\u200f\u2060]+|[\\s\0\ufeff\u200b-\u200f\u2060]+$")
"""Blanks around an output, and what nobody sees: a byte order mark, a zero byte."""

_MARKER = re.compile(
    r"(?i:<(?:/?s|[bes]os|pad|cls|sep|end)>|\[(?:[bes]os|pad|cls|sep|end)\]|<\|\w+\|>)|"
    r"(?:[BES]OS|PAD)\b"
)
"""What tokenizers have for beginnings, ends and padding."""

_NUMBER = re.compile("0|[1-9][0-9]*", re.ASCII)
"""A whole number as Python writes it."""

_IDS = re.compile(r"[\W\d]*\d[\W\d]*")


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _text(value: Any) -> str:
    """An output as text, with blanks between the items of a list."""
    value = _whole(unpack_array(value))
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _whole(value: Any) -> Any:
    """A whole number as one, which a frame has as 6.0 where another of its column is missing.

    Raises:
        DatasetError: it is so large that a float need not have all its digits.
    """
    if not isinstance(value, float) or not value.is_integer():
        return value
    if abs(value) > 2**53:
        raise DatasetError(f"{value!r}: a float has no more than 15 digits; give text")
    return int(value)


def _score(value: Any) -> float:
    if is_missing(value) or (isinstance(value, str) and value.strip().lower() in ("", "nan")):
        return float("nan")
    try:
        score = float(value)
    except OverflowError:
        value, score = "a whole number of more than 308 digits", math.inf
    except (TypeError, ValueError):
        raise DatasetError(f"score is {value!r:.60}, expected a number") from None
    # Spelled out, infinity is a logit or the logarithm of 0; digits are a number that no float is.
    if math.isinf(score) and isinstance(value, str) and any(map(str.isdecimal, value)):
        raise DatasetError(
            f"score is {value:.60}, expected a number from {-sys.float_info.max:.4g} to "
            f"{sys.float_info.max:.4g}, inf or -inf"
        )
    return score


def evaluate_predictions(
    strings: TestedStrings, given: Iterable[Prediction], *, by_id: bool
) -> Evaluation:
    """Predictions for every test string, held against what is right.

    Raises:
        DatasetError: strings are missing, unknown or stand twice, or a prediction is none.
    """
    rows = strings.rows_of_ids if by_id else strings.rows_of_strings
    places: dict[Hashable, str] = {}
    by_row: dict[int, Prediction] = {}
    for place, string, answer, score in _without_points(strings, list(given)):
        with refused_in(f"{place}: "):
            key = strings.key(string, by_id=by_id)
            row, letters = rows[key], strings.answer(answer)
            made = Prediction(place, letters, answer, _score(score))
            if row < 0:
                continue
            # Several ids may be those of one string.
            first = by_row.get(row, made)
            if (other := places.setdefault(key, place)) != place:
                raise DatasetError(f"the string of {other} again; keep one of them")
            if first.string != letters:
                raise DatasetError(f"the string of {first.place} again, with another prediction")
        by_row[row] = made
    wanted = [key for key, row in rows.items() if row >= 0]
    if missing := [key for key in wanted if key not in places]:
        shown = [repr(x if by_id else strings.test.texts[rows[x]])[:60] for x in missing[:SHOWN]]
        more = f" and {len(missing) - SHOWN:,} more" if len(missing) > SHOWN else ""
        raise DatasetError(
            f"no prediction for {len(missing):,} of {count(len(wanted), 'test string')}: "
            f"{', '.join(shown)}{more}"
        )
    answers = [by_row[row] for row in sorted(by_row)]
    scores = np.array([x.score for x in answers], dtype=float)
    if strings.are_outputs:
        strings.check_spelling(answers)
    of_kind = _outputs if strings.are_outputs else _labels
    made_of = of_kind(strings, [x.string for x in answers], scores)
    return evaluation_of(strings.problem, strings.test, made_of, strings.writer)


def _without_points(strings: TestedStrings, given: list[Prediction]) -> list[Prediction]:
    """Outputs that are all whole numbers and were written as 18.0, as those of a column are where
    one is missing; where a point is no token.
    """
    said = [x.answer for x in given if not is_missing(x.answer)]
    are_floats = said and all(isinstance(x, str) and _FLOAT.fullmatch(x.strip()) for x in said)
    if not strings.are_outputs or not are_floats or "." in "".join(strings.problem.task.alphabet):
        return given
    return [x if is_missing(x.answer) else x._replace(answer=float(x.answer)) for x in given]


_FLOAT = re.compile(r"-?[0-9]+(?:\.0|(?:\.[0-9]+)?e\+[0-9]+)")


_SCALES = (
    ("probabilities", 0.0, 0.5, 1.0, "0 to 0.5", "0.5 to 1"),
    ("logarithms of probabilities", -np.inf, np.log(0.5), 0.0, "log(0.5) down", "log(0.5) to 0"),
)
"""What scores may be instead of logits: the least, that of the threshold, the largest."""


def _labels(strings: TestedStrings, labels: list[bool], scores: np.ndarray) -> Answers:
    """Labels with their logits.

    Raises:
        DatasetError: scores cannot be logits of the answer 1.
    """
    answers, known = np.array(labels, dtype=bool), ~np.isnan(scores)
    yes, no = scores[known & answers], scores[known & ~answers]
    said = []
    if not ((no <= 0).all() and (yes >= 0).all()):
        said = [
            f"those of strings predicted 0 are from {below} and those of others from {above}, as "
            f"{name} are"
            for name, least, half, most, below, above in _SCALES
            if (np.clip(no, least, half) == no).all() and (np.clip(yes, half, most) == yes).all()
        ]
        if len(yes) and len(no) and yes.max() < no.min():
            said = ["each of a string predicted 0 is above all of those predicted 1"]
    if said:
        raise DatasetError(f"score: {said[0]}; expected logits, log(p / (1 - p)), or no score")
    test, every = strings.test, np.ones(len(answers), dtype=bool)
    return Answers(test.strings, test.targets, answers, scores, every, ~every)


def _outputs(
    strings: TestedStrings, outputs: list[tuple[int, ...]], scores: np.ndarray
) -> OutputAnswers:
    test, every = strings.test, np.ones(len(outputs), dtype=bool)
    targets = [row[row != NO_LETTER].tolist() for row in test.targets]
    errors = {
        row: WrongOutput([*output], target, True)
        for row, (output, target) in enumerate(zip(outputs, targets, strict=True))
        if [*output] != target
    }
    # A token beyond the alphabet is none of any target, whichever it is.
    letters = letter_rows([[min(x, NO_LETTER - 1) for x in output] for output in outputs])
    expected, predicted = of_one_width(test.targets, letters)
    # What would have been written at the target's length is known of right outputs alone.
    right = np.array([row not in errors for row in range(len(outputs))], dtype=bool)
    return OutputAnswers(test.strings, expected, predicted, scores, every, ~every, right, errors)
