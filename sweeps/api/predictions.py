"""Evaluation of predictions of models trained elsewhere.

A prediction is joined with its test string by its tokens, in any notation, or by the id of its row;
missing, repeated and contradictory ones are refused by name.
"""

import math
import re
import unicodedata
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np

from seqcls.errors import ConfigError, DatasetError, InvalidStringError
from seqcls.evaluation import DistinctStrings, distinct_test_strings, evaluation_of
from seqcls.kinds import kind_name
from seqcls.kinds.base import Answers, pad_to_one_width
from seqcls.kinds.transduction import OutputAnswers, WrongOutput, letter_rows
from seqcls.problem import Problem
from seqcls.results import Evaluation
from seqcls.strings.alphabets import NOTATION, compose
from seqcls.strings.datasets import SPLITS, Dataset
from seqcls.strings.token_strings import NO_LETTER, TokenStrings
from seqcls.strings.tokenizer import FIRST_LETTER, Tokenizer, unpack_array
from seqcls.text import count
from sweeps.datasets import label_of
from sweeps.datasets.predictions import Prediction, Predictions, is_missing
from sweeps.datasets.tables import refused_in
from sweeps.datasets.texts import written_list

UNWRITABLE = "\N{REPLACEMENT CHARACTER}"
"""Placeholder of a token that no text can have."""

NAMED_STRINGS = 5
"""Maximum number of missing strings that are listed."""

_AROUND = re.compile("^[\\s\0\ufeff\u200b-\u200f\u2060]+|[\\s\0\ufeff\u200b-\u200f\u2060]+$")
"""Blanks around an output, and invisible characters: a byte order mark, a zero byte."""

_MARKER = re.compile(
    r"<(?:/?s|[bes]os|pad|cls|sep|end)>|\[(?:[bes]os|pad|cls|sep|end)\]|<\|\w+\|>|"
    r"\b(?:[bes]os|pad)\b",
    re.IGNORECASE,
)
"""Usual tokens for beginnings, ends and padding."""

_FLOAT = re.compile(r"\s*-?[0-9]+(?:\.0|(?:\.[0-9]+)?e\+[0-9]+)\s*")
"""A whole number as a float, as in a column with a missing value."""


class TestedStrings:
    """The test strings of a problem, looked up by their tokens or by ids of a file's rows."""

    def __init__(self, problem: Problem) -> None:
        if problem.lacks("labels") and problem.lacks("outputs"):
            raise ConfigError(
                f"task={problem.config.task!r}: its answers are of the kind "
                f"{kind_name(problem.task)!r}; results are imported of languages, whose answers "
                "are labels, and of transductions, whose answers are strings"
            )
        self.problem = problem
        self.are_outputs = problem.lacks("outputs") is None
        """True if predictions are strings, and not labels."""
        self.test: DistinctStrings = distinct_test_strings(problem.test)
        self.tokenizer: Tokenizer = problem.tokenizer
        self._numbers = {token: number for number, token in enumerate(problem.task.alphabet)}
        strings = self.test.strings
        self.rows = {key: row for row, key in enumerate(_keys(strings))}
        """The row of each test string by its letters, or its counts; -1 where it is not tested,
        since its rows contradict each other."""
        self.rows_of_ids: dict[Hashable, int] = {}
        """The same by the ids of a file's rows, if it has any."""
        self._are_words = dict.fromkeys(("tokens", "target"), bool(self.tokenizer.separator))
        """True for each column whose texts are words separated by blanks; False where all tokens
        of a file's column are of one character, even if those of the other column are not."""
        if isinstance(content := getattr(problem.task, "content", None), Dataset):
            splits, against = content.splits, content.contradicted
            tested = np.full(len(content), True)
            if splits is not None:
                tested = splits == SPLITS.index("test")
            keys = list(_keys(content.strings))
            # Tested strings take precedence over contradicted rows with the same letters.
            self.rows = {**{keys[x]: -1 for x in np.flatnonzero(tested & against)}, **self.rows}
            if content.ids is not None:
                self.rows_of_ids = {
                    content.ids[x]: -1 if against[x] else self.rows[keys[x]]
                    for x in np.flatnonzero(tested).tolist()
                    if keys[x] in self.rows
                }
            is_long = np.array([len(token) > 1 for token in self._numbers])
            for name, letters in (("tokens", content.strings.letters), ("target", content.targets)):
                if letters is not None:
                    self._are_words[name] = bool(is_long[letters[letters != NO_LETTER]].any())

    def _readings(self, value: Any, column: str) -> Iterator[Sequence[str]]:
        """Yields the ways to read a string or an output: `aaab`, `a{3}b`, lists of tokens and of
        characters, texts of such lists.

        Raises:
            DatasetError: it is neither text nor a list of tokens.
        """
        separator, items = self.tokenizer.separator, list[str]()
        if isinstance(value := _whole(unpack_array(value)), list | tuple):
            items = self._items(value)
            value = self._text_of(items)
        elif not isinstance(value, str | int) or isinstance(value, bool):
            raise DatasetError(f"{value!r:.60}, expected text or a list of tokens")
        text = compose(_AROUND.sub("", str(value)))
        yield self._plain(text, column)
        # Where brackets are tokens, a text that looks like a list may be none.
        has_brackets = not self._numbers.keys().isdisjoint("[(")
        with suppress(*[DatasetError] * has_brackets):
            listed = [] if text in ("[]", "()") else written_list(text)
            if listed is not None and not (has_brackets and not listed):
                listed = self._items(listed)
                yield self._plain(text := self._text_of(listed), column)
                yield listed
        # The notation comes after plain readings, since its signs may be tokens.
        if any(sign in text for sign in NOTATION):
            text = text if separator else "".join(text.split())
            extended = self.tokenizer.with_tokens_of(text)
            with suppress(InvalidStringError):
                yield [extended.alphabet[x - FIRST_LETTER] for x in extended.encode(text)[1:]]
        if items:
            yield items

    def _plain(self, text: str, column: str) -> Sequence[str]:
        """Returns the words of a text, or its characters."""
        words = text.split()
        return words if len(words) > 1 or self._are_words[column] else text

    def _text_of(self, items: Sequence[str]) -> str:
        """Returns the text of which `list(text)` or `text.split()` made these."""
        return ("" if all(len(x) == 1 for x in items) else self.tokenizer.separator).join(items)

    def _items(self, given: Sequence[Any]) -> list[str]:
        """Returns the tokens of a list; a number is the token of these digits.

        Raises:
            DatasetError: a number is no token, such as padding of -1.
        """
        tokens = [_whole(unpack_array(token)) for token in given]
        for place, token in enumerate(tokens, start=1):
            is_token = isinstance(token, str) or (type(token) is int and token >= 0)
            if not is_token and str(token) not in self._numbers:
                raise DatasetError(
                    f"{list(given)!r:.60} has {token!r:.60} at place {place}, expected tokens; "
                    f"those of the task are {' '.join(self._numbers):.100}"
                )
        return [compose(str(token)) for token in tokens]

    def tokens(self, value: Any, column: str) -> tuple[str, ...]:
        """Returns the tokens of a given string or output, in the alphabet or not: of several ways
        to read it, the first whose tokens the alphabet has, else the last.

        Raises:
            DatasetError: it is neither text nor a list of tokens.
        """
        tokens: Sequence[str] = ()
        for tokens in self._readings(value, column):
            if self._numbers.keys() >= {*tokens}:
                break
        return tuple(tokens)

    def key(self, value: Any, *, by_id: bool) -> Hashable:
        """Returns the id of a test string, or its letters; counts where order does not matter.

        Raises:
            DatasetError: there is no such test string.
        """
        if by_id:
            text = str(unpack_array(value)).strip()
            # A frame has integers as 7.0 in a column with a missing value.
            key: Hashable = text if text in self.rows_of_ids else text.removesuffix(".0")
            if key not in self.rows_of_ids:
                raise DatasetError(f"id {text!r:.60} is not that of a test string")
            return key
        tokens = self.tokens("" if is_missing(value) else value, "tokens")
        letters = tuple(self._numbers.get(token, NO_LETTER) for token in tokens)
        is_counted = self.test.strings.is_counted and NO_LETTER not in letters
        key = tuple(map(letters.count, self._numbers.values())) if is_counted else letters
        if key not in self.rows:
            unknown = next((x for x in tokens if x not in self._numbers), None)
            why = "not a test string" if unknown is None else f"none: no token is {unknown!r:.60}"
            raise DatasetError(f"string {value!r:.60} is {why}")
        return key

    def answer(self, value: Any) -> Any:
        """Returns a label, or the tokens of an output, in the alphabet or not.

        Raises:
            DatasetError: it is none.
        """
        if is_missing(value):
            hint = "; the empty output is '', and not None or NaN" * self.are_outputs
            raise DatasetError(f"prediction is missing{hint}")
        if not self.are_outputs:
            return label_of(value, "prediction")
        with refused_in("prediction: "):
            return self.tokens(value, "target")


def _keys(strings: TokenStrings) -> Iterator[Hashable]:
    """Returns a key of each string: its counts, where nothing else is known, else its letters."""
    if strings.is_counted:
        return map(tuple, strings.counts.tolist())
    pairs = zip(strings.letters, strings.lengths.tolist(), strict=True)
    return (tuple(letters[:length].tolist()) for letters, length in pairs)


def _whole(value: Any) -> Any:
    """Converts a whole float to an integer: a frame has 6.0 in a column with a missing value.

    Raises:
        DatasetError: it is so large that a float may lack some of its digits.
    """
    if not isinstance(value, float) or not value.is_integer():
        return value
    # Beyond 2**53 not every whole number is a double.
    if abs(value) > 2**53:
        raise DatasetError(f"{value!r}: a float has no more than 15 digits; give text")
    return int(value)


def _score(value: Any) -> float:
    if is_missing(value) or (isinstance(value, str) and value.strip().lower() in ("", "nan")):
        return math.nan
    with suppress(TypeError, ValueError, OverflowError):
        score = float(value)
        # The word infinity is a logit or the logarithm of 0; digits are too large for a float.
        if not (math.isinf(score) and any(map(str.isdecimal, str(value)))):
            return score
    raise DatasetError(
        f"score is {value!r:.60}, expected a number from -1.798e+308 to 1.798e+308, inf or -inf"
    )


def evaluate_predictions(strings: TestedStrings, given: Predictions) -> Evaluation:
    """Evaluates predictions for every test string.

    Raises:
        DatasetError: strings are missing, unknown or repeated, or a prediction is none.
    """
    rows = strings.rows_of_ids if given.by_id else strings.rows
    if given.by_id and not rows:
        raise DatasetError("id: the test strings have none; give their tokens")
    outputs = [x.answer for x in given.rows if strings.are_outputs and not is_missing(x.answer)]
    # All outputs are numbers written as 18.0, and a point is no token.
    are_floats = all(isinstance(x, str) and _FLOAT.fullmatch(x) for x in outputs) and not any(
        "." in token for token in strings.problem.task.alphabet
    )
    seen_at: dict[Hashable, str] = {}
    by_row: dict[int, tuple[Prediction, Any, float]] = {}
    for prediction in given.rows:
        place, string, answer, _ = prediction
        with refused_in(f"{place}: "):
            key = strings.key(string, by_id=given.by_id)
            is_float = outputs and are_floats and not is_missing(answer)
            made = strings.answer(float(answer) if is_float else answer)
            row, score = rows[key], _score(prediction.score)
            # Predictions for contradicted strings are ignored.
            if row < 0:
                continue
            if (before := seen_at.setdefault(key, place)) != place:
                raise DatasetError(f"the string of {before} again; keep one of them")
            # Several ids may belong to one string.
            if row in by_row and by_row[row][1] != made:
                other = by_row[row][0].place
                raise DatasetError(f"the string of {other} again, with another prediction")
        by_row[row] = prediction, made, score
    required = [key for key, row in rows.items() if row >= 0]
    if missing := [key for key in required if key not in seen_at]:
        texts = strings.test.texts
        shown = [repr(x if given.by_id else texts[rows[x]])[:60] for x in missing[:NAMED_STRINGS]]
        more = f" and {len(missing) - NAMED_STRINGS:,} more" if len(missing) > NAMED_STRINGS else ""
        raise DatasetError(
            f"no prediction for {len(missing):,} of {count(len(required), 'test string')}: "
            f"{', '.join(shown)}{more}"
        )
    # In the order of the test strings.
    predictions, answers, scores = zip(*(by_row[row] for row in sorted(by_row)), strict=True)
    if not strings.are_outputs:
        made_of = _labels(strings.test, np.array(answers, dtype=bool), np.array(scores))
        return evaluation_of(strings.problem, strings.test, made_of, strings.tokenizer)
    _check_spelling(strings, predictions, answers)
    return _evaluate_outputs(strings, answers, np.array(scores))


def _labels(test: DistinctStrings, answers: np.ndarray, scores: np.ndarray) -> Answers:
    """Returns the answers of labels with their logits.

    Raises:
        DatasetError: scores cannot be logits of the answer 1.
    """
    no, yes = (scores[~np.isnan(scores) & (answers == label)] for label in (False, True))
    why = ""
    if (no > 0).any() or (yes < 0).any():
        # Minimum, threshold and maximum of other scales that scores may have.
        for scale, least, half, most in (
            ("as probabilities are", 0.0, 0.5, 1.0),
            ("as logarithms of probabilities are", -math.inf, math.log(0.5), 0.0),
        ):
            is_low = ((least <= no) & (no <= half)).all()
            why = f"lie {scale}" if is_low and ((half <= yes) & (yes <= most)).all() else why
        # Scores that are greater for 0 than for 1 are of the opposite answer.
        if len(yes) and len(no) and yes.max() < no.min():
            why = "of strings predicted 0 are above all of those predicted 1"
    if why:
        raise DatasetError(f"scores {why}; expected logits, log(p / (1 - p)), or no score")
    every = np.ones(len(answers), dtype=bool)
    return Answers(test.strings, test.targets, answers, scores, every, ~every)


def _targets(test: DistinctStrings) -> list[list[int]]:
    return [row[row != NO_LETTER].tolist() for row in test.targets]


def _check_spelling(
    strings: TestedStrings, given: Sequence[Prediction], answers: Sequence[tuple[str, ...]]
) -> None:
    """Checks that outputs are not wrong only by their spelling.

    Args:
        strings: the test strings with their targets.
        given: the predictions for them, in their order.
        answers: the tokens of each.

    Raises:
        DatasetError: numbers have lost leading zeros, no output has a token of the task, or more
            outputs are right up to capitals, foreign signs or end markers than are right.
    """
    alphabet = strings.problem.task.alphabet
    # Capitals and forms of letters are ignored where no two tokens become the same.
    fold = _fold if len({*map(_fold, alphabet)}) == len(alphabet) else str
    tokens = sorted(map(fold, alphabet), key=len, reverse=True)
    known = re.compile("|".join(map(re.escape, tokens)))
    targets = [tuple(alphabet[x] for x in target) for target in _targets(strings.test)]
    texts = [_text(x.answer) for x in given]
    otherwise = []
    for row, (text, answer, target) in enumerate(zip(texts, answers, targets, strict=True)):
        if answer != target:
            spelled = "".join(target)
            bare = known.findall(_MARKER.sub("", fold(text)))
            if bare == [*map(fold, target)] or (text and text.zfill(len(spelled)) == spelled):
                otherwise.append(row)
    # Numbers without leading zeros may have lost some.
    are_numbers = all(len(x) < 4_000 and x.isdecimal() and str(int(x)) == x for x in texts)
    right = 0 if are_numbers else sum(x == y for x, y in zip(answers, targets, strict=True))
    why = (
        f", as {len(otherwise):,} of {len(targets):,} outputs, is right but for zeros in front, "
        "capitals, or signs and markers of ends that no token has"
    )
    # One other spelling is an error of the model; many are a convention of the file.
    if len(otherwise) <= max(1, right):
        written = {token for answer in answers for token in answer}
        if not written or not written.isdisjoint(alphabet):
            return
        otherwise, why = [0], ": no output has a token of the task"
    row = otherwise[0]
    raise DatasetError(
        f"{given[row].place}: prediction {texts[row]!r:.60}{why}; "
        f"write {strings.tokenizer.separator.join(targets[row])!r:.60}"
    )


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _text(value: Any) -> str:
    """Returns an output as text, with blanks between the items of a list."""
    value = _whole(unpack_array(value))
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _evaluate_outputs(
    strings: TestedStrings, outputs: Sequence[tuple[str, ...]], scores: np.ndarray
) -> Evaluation:
    """Evaluates outputs; a token outside the alphabet is wrong, and is stored unchanged, or as
    U+FFFD where a text cannot have it, such as one with a space.
    """
    test, alphabet = strings.test, tuple(strings.problem.task.alphabet)
    tokens = [*dict.fromkeys((*alphabet, *chain.from_iterable(outputs)))]
    numbers = {token: number for number, token in enumerate(tokens)}
    letters = [[numbers[token] for token in output] for output in outputs]
    errors = {
        row: WrongOutput(output, target, True)
        for row, (output, target) in enumerate(zip(letters, _targets(test), strict=True))
        if output != target
    }
    # Tokens outside the alphabet may have numbers above a byte; any wrong letter serves.
    narrow = letter_rows([[min(x, NO_LETTER - 1) for x in output] for output in letters])
    expected, predicted = pad_to_one_width(test.targets, narrow)
    every = np.ones(len(outputs), dtype=bool)
    # The output at the target's length is known of right outputs alone.
    right = np.array([row not in errors for row in range(len(outputs))], dtype=bool)
    answers = OutputAnswers(test.strings, expected, predicted, scores, every, ~every, right, errors)
    is_one = re.compile(strings.tokenizer.pattern).fullmatch
    for place, token in enumerate(tokens):
        if not (is_one(token) and token.isprintable() and not token.isspace()):
            tokens[place] = UNWRITABLE
    return evaluation_of(strings.problem, test, answers, Tokenizer(tokens))
