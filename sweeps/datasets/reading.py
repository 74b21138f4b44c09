"""A file of strings as a dataset; what is refused of it is named with its line."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from seqcls.datasets import SPLITS, Dataset
from seqcls.datasets.content import MAX_PLACES, MAX_ROWS, MAX_TOKENS
from seqcls.datasets.dataset import MAX_NAME
from seqcls.errors import DatasetError
from seqcls.tokens.alphabets import alphabet_obstacle, has_names
from seqcls.tokens.strings import NO_LETTER, TokenStrings
from sweeps.datasets.formats import SPLIT_NAMES, RawRow, RawRows, raw_rows

MAX_LENGTH = 10_000
"""Tokens of one string at most."""

MAX_ID = 200
"""Characters of an id at most."""

MAX_PROBLEMS = 20
"""Rows that are refused, and named, before the rest is not looked at any more."""

LABELS: dict[Any, bool] = {"0": False, "1": True, "false": False, "true": True}


@dataclass
class FileContent:
    """What was read of a file: its dataset, or why there is none."""

    dataset: Dataset | None
    problems: list[str] = field(default_factory=list)
    """What is refused, each with its line; there is a dataset only where nothing is."""
    left_out: tuple[str, ...] = ()
    """Columns that mean nothing here."""


def read_dataset(path: str | Path, name: str | None = None) -> Dataset:
    """The dataset in a file or folder.

    Raises:
        DatasetError: it cannot be read, or a row of it is refused: with the line named.
    """
    content = read_content(path, name, most=1)
    if content.dataset is None:
        raise DatasetError(f"{_shown(path)}: {content.problems[0]}")
    return content.dataset


def read_content(
    path: str | Path, name: str | None = None, *, most: int = MAX_PROBLEMS
) -> FileContent:
    """What is in a file or folder, with the first rows that are refused."""
    path = Path(path)
    rows = _Rows(most)
    left_out: tuple[str, ...] = ()
    try:
        raw = raw_rows(path)
        left_out = raw.left_out
        rows.read(raw)
        dataset = rows.dataset(_name(path, name))
    except DatasetError as error:
        dataset = None
        rows.problems.append(str(error))
    except _TooManyError:
        dataset = None
    return FileContent(None if rows.problems else dataset, rows.problems, left_out)


def _name(path: Path, name: str | None) -> str:
    text = name or path.resolve().name
    return "".join(x if x.isprintable() else "?" for x in text)[:MAX_NAME]


def _shown(path: str | Path) -> str:
    return repr(str(path))[:200]


class _TooManyError(Exception):
    """So many rows are refused that the rest need not be read."""


class _Texts:
    """Texts of one column, as tokens: characters, or words where any text has several."""

    def __init__(self, spaced: bool | None) -> None:
        self.texts: list[str] = []
        self._spaced = spaced
        self._are_lists: bool | None = None

    def add(self, value: Any) -> None:
        """Keeps a text, or a list of tokens as one."""
        if not isinstance(value, str | list):
            raise DatasetError(f"{value!r:.60}, expected text or a list of tokens")
        is_list = isinstance(value, list)
        if self._are_lists not in (None, is_list):
            raise DatasetError("texts and lists of tokens stand in one column; use one of them")
        self._are_lists = is_list
        if is_list:
            value = [str(x) if type(x) is int else x for x in value]
            if any(not isinstance(x, str) or not x or any(map(str.isspace, x)) for x in value):
                raise DatasetError(f"{value!r:.60} has a token that is no text without spaces")
        text = " ".join(value) if is_list else value.strip()
        if not text.isprintable() and not all(x.isprintable() or x in " \t" for x in text):
            raise DatasetError(f"{text!r:.60} has a control character")
        self.texts.append(text)

    @property
    def is_spaced(self) -> bool:
        """Whether tokens are the words of texts, and not their characters."""
        if self._spaced is None:
            self._spaced = bool(self._are_lists) or any(" " in x or "\t" in x for x in self.texts)
        return self._spaced

    def tokens(self, row: int) -> Sequence[str]:
        """The tokens of one text."""
        return self.texts[row].split() if self.is_spaced else self.texts[row]


class _Rows:
    """Rows as they are read, and what is refused of them."""

    def __init__(self, most: int) -> None:
        self.problems: list[str] = []
        self._most = most
        self._places: list[str] = []
        self._labels = bytearray()
        self._splits = bytearray()
        self._ids: list[str] = []
        self._known_ids: set[str] = set()

    def read(self, raw: RawRows) -> None:
        """Keeps every row of a file."""
        self._columns = raw.columns
        self._tokens, self._targets = _Texts(raw.spaced), _Texts(None)
        for row in raw.rows:
            if len(self._places) == MAX_ROWS:
                raise DatasetError(f"{row.place}: expected at most {MAX_ROWS:,} rows")
            try:
                self._add(row)
            except DatasetError as error:
                self._refuse(row.place, str(error))
        if not self._places and not self.problems:
            raise DatasetError("no rows")

    def _refuse(self, place: str, why: str) -> None:
        self.problems.append(f"{place}: {why}")
        if len(self.problems) >= self._most:
            raise _TooManyError

    def _add(self, row: RawRow) -> None:
        label = label_of(row.label) if "label" in self._columns else None
        split = _split(row.split) if "split" in self._columns else None
        row_id = self._id(row.id) if "id" in self._columns else None
        self._tokens.add(row.tokens)
        if label is None:
            try:
                self._targets.add(row.target)
            except DatasetError as error:
                self._tokens.texts.pop()
                raise DatasetError(f"target is {error}") from None
        else:
            self._labels.append(label)
        if split is not None:
            self._splits.append(split)
        if row_id is not None:
            self._known_ids.add(row_id)
            self._ids.append(row_id)
        self._places.append(row.place)

    def _id(self, value: Any) -> str:
        text = str(value).strip() if isinstance(value, str | int) else ""
        if not 1 <= len(text) <= MAX_ID or not text.isprintable():
            raise DatasetError(f"id is {value!r:.60}, expected text of 1 to {MAX_ID} characters")
        if text in self._known_ids:
            raise DatasetError(f"id {text!r:.60} stands before it already")
        return text

    def dataset(self, name: str) -> Dataset | None:
        """The dataset of the rows; None where one of them is refused."""
        alphabet = self._alphabet()
        if self.problems:
            return None
        numbers = {token: number for number, token in enumerate(alphabet)}
        letters = self._letters(self._tokens, numbers)
        strings = TokenStrings(len(alphabet), _lengths(letters), letters)
        labels = targets = None
        if "label" in self._columns:
            answers = labels = np.frombuffer(bytes(self._labels), np.uint8).astype(bool)
        else:
            answers = targets = self._letters(self._targets, numbers)
        self._refuse_two_answers(strings, answers)
        if self.problems:
            return None
        splits = np.frombuffer(bytes(self._splits), np.uint8) if self._splits else None
        ids = self._ids or None
        tokens = alphabet if has_names(alphabet) else "".join(alphabet)
        return Dataset.of(
            name, tokens, strings, labels=labels, targets=targets, splits=splits, ids=ids
        )

    def _alphabet(self) -> tuple[str, ...]:
        known: set[str] = set()
        columns = [("tokens", self._tokens), ("target", self._targets)]
        for row, place in enumerate(self._places):
            for name, column in columns:
                if row >= len(column.texts):
                    continue
                tokens = column.tokens(row)
                if len(tokens) > MAX_LENGTH:
                    self._refuse(
                        place,
                        f"{name} has {len(tokens):,} tokens, expected at most {MAX_LENGTH:,}",
                    )
                if not tokens and self._targets.texts and name == "tokens":
                    self._refuse(place, "tokens is empty: a pair needs an input")
                if new := set(tokens) - known:
                    if obstacle := _unfit(new, len(known)):
                        self._refuse(place, f"{name}: {obstacle}")
                    else:
                        known |= new
        if not known and not self.problems:
            raise DatasetError("every string is empty")
        return tuple(sorted(known))

    def _letters(self, column: _Texts, numbers: Mapping[str, int]) -> np.ndarray:
        rows = range(len(self._places))
        width = max((len(column.tokens(row)) for row in rows), default=0)
        if width * len(rows) > MAX_PLACES:
            raise DatasetError(
                f"{len(rows):,} rows, of up to {width:,} tokens, expected at most {MAX_PLACES:,} "
                "in all, each row as long as the longest; take fewer or shorter rows"
            )
        letters = np.full((len(rows), width), NO_LETTER, dtype=np.uint8)
        for row in rows:
            tokens = column.tokens(row)
            letters[row, : len(tokens)] = [numbers[token] for token in tokens]
        column.texts.clear()
        return letters

    def _refuse_two_answers(self, strings: TokenStrings, answers: np.ndarray) -> None:
        first: dict[int, int] = {}
        for row, letters in enumerate(strings.letters):
            content = letters.tobytes()
            before = first.setdefault(hash(content), row)
            same = before != row and strings.letters[before].tobytes() == content
            if same and (answers[before] != answers[row]).any():
                what = "label" if "label" in self._columns else "target"
                self._refuse(
                    self._places[row],
                    f"the string of {self._places[before]} again, with another {what}; keep one",
                )


def _unfit(tokens: Iterable[str], known: int) -> str | None:
    for number, token in enumerate(sorted(tokens), known + 1):
        if obstacle := alphabet_obstacle((token,)):
            return obstacle
        if number > MAX_TOKENS:
            return f"token {token!r} is one too many, expected at most {MAX_TOKENS} different ones"
    return None


def _lengths(letters: np.ndarray) -> np.ndarray:
    return np.asarray((letters != NO_LETTER).sum(axis=1), dtype=np.int64)


def label_of(value: Any, column: str = "label") -> bool:
    """A cell that says yes or no.

    Raises:
        DatasetError: it says neither.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool) or (type(value) in (int, float) and value in (0, 1)):
        return bool(value)
    label = LABELS.get(value.strip().lower()) if isinstance(value, str) else None
    if label is None:
        raise DatasetError(f"{column} is {value!r:.60}, expected 0 or 1, or false or true")
    return label


def _split(value: Any) -> int:
    split = SPLIT_NAMES.get(value.strip().lower()) if isinstance(value, str) else None
    if split is None:
        raise DatasetError(f"split is {value!r:.60}, expected one of {', '.join(SPLITS)}")
    return SPLITS.index(split)
