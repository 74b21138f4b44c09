"""A file of strings with labels or targets as a dataset; what is refused is named with its line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from seqcls.errors import DatasetError
from seqcls.interpretability.wording import percent
from seqcls.strings.alphabets import (
    alphabet_obstacle,
    compose,
    easily_confused,
    has_names,
    unseen_character,
)
from seqcls.strings.datasets import (
    MAX_NAME,
    MAX_PLACES,
    MAX_ROWS,
    MAX_TOKENS,
    SPLITS,
    Content,
    Dataset,
    contradictions,
)
from seqcls.strings.token_strings import NO_LETTER, TokenStrings
from sweeps.datasets.automata import is_automaton, read_automaton
from sweeps.datasets.formats import SPLIT_NAMES
from sweeps.datasets.layouts import RawRow, RawRows, raw_rows
from sweeps.datasets.written_lists import ANY_TEXT, written_list

__all__ = ["FileContent", "read_content", "read_dataset", "read_rows_or_automaton"]

MAX_LENGTH = 10_000
"""Tokens of one string at most."""

MAX_ID = 200
"""Characters of an id at most."""

MAX_PROBLEMS = 20
"""Rows that are refused, and named, before the rest is not looked at any more."""

LABELS: dict[Any, bool] = {
    **dict.fromkeys(("1", "true", "1.0", "yes", "positive"), True),
    **dict.fromkeys(("0", "false", "0.0", "no", "negative"), False),
}
"""Texts of labels; 1.0 is what pandas makes of 1 where a row of the column is empty."""

SPACES = " \t\r\n"
"""What may stand at the ends of a text and is no part of it."""


@dataclass
class FileContent:
    """What was read of a file: its dataset or automaton, or why there is none."""

    dataset: Content | None
    problems: list[str] = field(default_factory=list)
    """What is refused, each with its line; there is a dataset only where nothing is."""
    left_out: tuple[str, ...] = ()
    """Columns that mean nothing here."""
    read_as: tuple[str, ...] = ()
    """Sentences on what the tokens of each column are: characters, words or items of lists."""
    unread: tuple[str, ...] = ()
    """Files of a folder that belong to no split."""
    contradictions: tuple[str, ...] = ()
    """Sentences on rows that contradict others; none where there are none."""


def read_dataset(path: str | Path, name: str | None = None) -> Dataset:
    """The dataset in a file or folder.

    Raises:
        DatasetError: it cannot be read, or a row of it is refused: with the line named.
    """
    content = read_rows_or_automaton(path, name)
    if not isinstance(content, Dataset):
        raise DatasetError(f"{_display_path(path)}: {content.holds}, expected rows of strings")
    return content


def read_rows_or_automaton(path: str | Path, name: str | None = None) -> Content:
    """The dataset in a file or folder, or the automaton in a file. Raises as `read_dataset`."""
    content = read_content(path, name, most=1)
    if content.dataset is None:
        raise DatasetError(f"{_display_path(path)}: {content.problems[0]}")
    return content.dataset


def read_content(
    path: str | Path, name: str | None = None, *, most: int = MAX_PROBLEMS
) -> FileContent:
    """What is in a file or folder, with the first rows that are refused."""
    path = Path(path)
    if is_automaton(path):
        try:
            automaton = read_automaton(path, _name(path, name))
        except DatasetError as error:
            return FileContent(None, [str(error)])
        return FileContent(automaton, read_as=tuple(automaton.read_as))
    rows = _Rows(most)
    raw: RawRows | None = None
    dataset = None
    try:
        raw = raw_rows(path)
        rows.read(raw)
        dataset = rows.dataset(_name(path, name))
    except DatasetError as error:
        rows.problems.append(str(error))
    except OSError as error:
        rows.problems.append(f"cannot be read: {error.strerror or error}")
    except _TooManyError:
        pass
    return FileContent(
        None if rows.problems else dataset,
        rows.problems,
        () if raw is None else tuple(raw.left_out),
        rows.read_as,
        () if raw is None else raw.unread,
        rows.contradictions,
    )


def _name(path: Path, name: str | None) -> str:
    text = name or path.resolve().name
    return "".join(x if x.isprintable() else "?" for x in text)[:MAX_NAME]


def _display_path(path: str | Path) -> str:
    return repr(str(path))[:200]


class _TooManyError(Exception):
    """So many rows are refused that the rest need not be read."""


class _Texts:
    """Texts of one column, as tokens: characters, or words where any text has several."""

    def __init__(self, name: str, spaced: bool | None) -> None:
        self.name = name
        self.texts: list[str] = []
        self._spaced = spaced
        self._kind: str | None = None
        """`text`, `list`, or `written` of lists that are written as text."""
        self._undecided: dict[int, list[str]] = {}
        """Rows whose texts may be written lists too, with the items."""
        self._with_space: list[int] = []
        """Rows whose text has several words."""
        self._composed: list[int] = []
        """Rows with letters that were written in another form."""

    def add(self, value: Any) -> None:
        """Keeps a text, or a list of tokens as one."""
        if not isinstance(value, str | list):
            raise DatasetError(f"{value!r:.60}, expected text or a list of tokens")
        text, kind = "", "list" if isinstance(value, list) else None
        items = value if isinstance(value, list) else None
        if isinstance(value, str):
            text = value.strip(SPACES)
            items = written_list(text)
            if not ANY_TEXT.fullmatch(text):
                kind = "text" if items is None else "written"
            elif self._kind != "list":
                kind = self._kind
            else:
                kind = "text"
        if None not in (kind, self._kind) and kind != self._kind:
            raise DatasetError(
                f"texts and lists of tokens stand in one column, but {value!r:.60} is "
                f"{'a list' if items is not None else 'none'}; write all alike, and where brackets "
                "are tokens a space around every token"
            )
        tokens = None if items is None else _check_tokens(value, items)
        if kind is None:
            self._undecided[len(self.texts)] = tokens or []
        elif self._kind is None:
            self._kind = kind
            if kind == "written":
                self._read_undecided()
        if kind in ("list", "written"):
            text = " ".join(map(compose, tokens or []))
            if not text.isascii() and text.split() != tokens:
                self._composed.append(len(self.texts))
        elif unseen := unseen_character(text, allowed="\t"):
            raise DatasetError(f"{text!r:.60} has {unseen}")
        else:
            if " " in text or "\t" in text:
                self._with_space.append(len(self.texts))
            if (other := compose(text)) != text:
                self._composed.append(len(self.texts))
                text = other
        self.texts.append(text)

    def settle(self, other: "_Texts") -> None:
        """Reads a column of nothing but `[1]` and `[]` as lists where the other one has some."""
        if self._kind is None and other.has_lists and len(self._undecided) == len(self.texts):
            self._kind = "written"
            self._read_undecided()

    def _read_undecided(self) -> None:
        for row, items in self._undecided.items():
            self.texts[row] = " ".join(items)

    @property
    def has_lists(self) -> bool:
        """Whether its texts are lists."""
        return self._kind in ("list", "written")

    @property
    def is_spaced(self) -> bool:
        """Whether tokens are the words of texts, and not their characters."""
        if self._spaced is None:
            self._spaced = self.has_lists or bool(self._with_space)
        return self._spaced

    def tokens(self, row: int) -> Sequence[str]:
        """The tokens of one text."""
        return self.texts[row].split() if self.is_spaced else self.texts[row]

    def read_as(self, places: Sequence[str]) -> str:
        """What the tokens are, and which text says so."""
        if not (rows := self._composed):
            return self._kind_of_tokens(places)
        some = "1 text has" if len(rows) == 1 else f"{len(rows):,} texts have"
        return (
            f"{self._kind_of_tokens(places)}; {some} letters in another form, read as NFC has "
            f"them, first {places[rows[0]]}, {self.texts[rows[0]]!r:.60}"
        )

    def _kind_of_tokens(self, places: Sequence[str]) -> str:
        if self.has_lists:
            return f"{self.name}: read as lists" + " written as text" * (self._kind == "written")
        if not self.is_spaced:
            return f"{self.name}: read as characters, since no text has a space"
        rows, number = self._with_space, len(self.texts)
        if not rows or len(rows) == number:
            return f"{self.name}: read as words, with spaces between"
        some = f"{len(rows):,} of {number:,} texts {'has' if len(rows) == 1 else 'have'} a space"
        first = f"{places[rows[0]]}, {self.texts[rows[0]]!r:.60}"
        advice = "; remove it there if characters are tokens" if len(rows) <= number / 2 else ""
        return f"{self.name}: read as words, since {some}, first {first}{advice}"


def _check_tokens(value: Any, items: Sequence[Any]) -> list[str]:
    """The tokens in a list.

    Raises:
        DatasetError: one of them is none.
    """
    tokens = [str(x) if type(x) is int else x for x in items]
    for token in tokens:
        if not isinstance(token, str) or not token or any(map(str.isspace, token)):
            raise DatasetError(
                f"{value!r:.60} has a token that is no text without spaces: {token!r:.40}"
            )
        if unseen := unseen_character(token):
            raise DatasetError(f"{value!r:.60} has {unseen}")
    return tokens


def _split_letter(tokens: Sequence[str]) -> str | None:
    """Why neighbors of one character look like one; None where none do."""
    text = "".join(x if len(x) == 1 else " " for x in tokens)
    if text.isascii() or compose(text) == text:
        return None
    letter = next(x for x, y in zip(compose(text), text, strict=False) if x != y)
    return f"tokens side by side are the letter {letter!r} (U+{ord(letter):04X}); write it as one"


class _Rows:
    """Rows as they are read, and what is refused of them."""

    def __init__(self, most: int) -> None:
        self.problems: list[str] = []
        self.read_as: tuple[str, ...] = ()
        self.contradictions: tuple[str, ...] = ()
        self._most = most
        self._places: list[str] = []
        self._labels = bytearray()
        self._splits = bytearray()
        self._border = bytearray()
        self._ids: list[str] = []
        self._known_ids: set[str] = set()

    def read(self, raw: RawRows) -> None:
        """Keeps every row of a file."""
        self._columns = raw.columns
        self._tokens, self._targets = _Texts("tokens", raw.spaced), _Texts("target", None)
        for row in raw.rows:
            if len(self._places) == MAX_ROWS:
                raise DatasetError(f"{row.place}: expected at most {MAX_ROWS:,} rows")
            try:
                self._add(row)
            except DatasetError as error:
                self._refuse(row.place, str(error))
        self._tokens.settle(self._targets)
        self._targets.settle(self._tokens)
        if not self._places and not self.problems:
            raise DatasetError("no rows")

    def _refuse(self, place: str, why: str) -> None:
        self.problems.append(f"{place}: {why}")
        if len(self.problems) >= self._most:
            raise _TooManyError

    def _add(self, row: RawRow) -> None:
        label = label_of(row.label) if "label" in self._columns else None
        split = _split_number(row.split) if "split" in self._columns else None
        row_id = self._id(row.id) if "id" in self._columns else None
        self._tokens.add(row.tokens)
        if label is None:
            try:
                self._targets.add(row.target)
            except DatasetError as error:
                self._tokens.texts.pop()
                raise DatasetError(f"target: {error}") from None
        else:
            self._labels.append(label)
        if split is not None:
            self._splits.append(split)
        if row.border is not None:
            self._border.append(row.border)
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
        lengths = np.asarray((letters != NO_LETTER).sum(axis=1), dtype=np.int64)
        strings = TokenStrings(len(alphabet), lengths, letters)
        labels = targets = None
        if "label" in self._columns:
            answers = labels = np.frombuffer(bytes(self._labels), np.uint8).astype(bool)
        else:
            answers = targets = self._letters(self._targets, numbers)
        self._find_contradictions(strings, answers)
        splits = np.frombuffer(bytes(self._splits), np.uint8) if self._splits else None
        border = np.frombuffer(bytes(self._border), np.uint8).astype(bool) if self._border else None
        ids = self._ids or None
        tokens = alphabet if has_names(alphabet) else "".join(alphabet)
        return Dataset.of(
            name,
            tokens,
            strings,
            labels=labels,
            targets=targets,
            splits=splits,
            border=border,
            ids=ids,
        )

    def _alphabet(self) -> tuple[str, ...]:
        known: set[str] = set()
        columns = [column for column in (self._tokens, self._targets) if column.texts]
        if not self.problems:
            self.read_as = tuple(column.read_as(self._places) for column in columns)
        beyond: tuple[str, str] | None = None
        for row, place in enumerate(self._places):
            for column in columns:
                tokens = column.tokens(row)
                if len(tokens) > MAX_LENGTH:
                    self._refuse(
                        place,
                        f"{column.name} has {len(tokens):,} tokens, expected at most "
                        f"{MAX_LENGTH:,}",
                    )
                if not tokens and self._targets.texts and column is self._tokens:
                    self._refuse(place, "tokens is empty: a pair needs an input")
                if column.is_spaced and (obstacle := _split_letter(tokens)):
                    self._refuse(place, f"{column.name}: {obstacle}")
                for token in sorted(set(tokens) - known):
                    if obstacle := alphabet_obstacle((token,), notation=True):
                        self._refuse(place, f"{column.name}: {obstacle}")
                        continue
                    known.add(token)
                    if len(known) == MAX_TOKENS + 1:
                        beyond = place, token
        if beyond is not None:
            place, token = beyond
            self._refuse(
                place,
                f"token {token!r} is one too many, expected at most {MAX_TOKENS} different ones; "
                f"there are {len(known):,} ({'; '.join(self.read_as)})",
            )
        if not known and not self.problems:
            raise DatasetError("every string is empty")
        alphabet = tuple(sorted(known))
        if confused := easily_confused(alphabet):
            self.read_as += (confused,)
        return alphabet

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

    def _find_contradictions(self, strings: TokenStrings, answers: np.ndarray) -> None:
        """Says which rows contradict others, and how many could be answered right at most."""
        found, wrong = contradictions(strings, answers)
        if not (number := int(found.sum())):
            return
        what = "label" if "label" in self._columns else "target"
        places = [self._places[row] for row in np.flatnonzero(found)[:MAX_PROBLEMS]]
        more = f" and {number - len(places):,} more" * (number > len(places))
        rows = "1 row contradicts" if number == 1 else f"{number:,} rows contradict"
        self.contradictions = (
            f"{rows} others of the same string, whose {what} is another: {', '.join(places)}{more}",
            f"a perfect model could be right on {percent(1 - wrong / len(strings), 1)} of the rows",
            f"what most rows of a string say is right; rows that say another {what}, or of which "
            "as many say each, are trained on and not tested",
        )


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
        raise DatasetError(
            f"{column} is {value!r:.60}, expected 0 or 1 (or false or true, no or yes, negative or "
            "positive)"
        )
    return label


def _split_number(value: Any) -> int:
    split = SPLIT_NAMES.get(value.strip().lower()) if isinstance(value, str) else None
    if split is None:
        raise DatasetError(f"split is {value!r:.60}, expected one of {', '.join(SPLITS)}")
    return SPLITS.index(split)
