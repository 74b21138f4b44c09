"""A file of strings with labels or targets as a dataset; what is refused is named with its line."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
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
from sweeps.datasets.layouts import SPLIT_NAMES, RawRow, RawRows, raw_rows
from sweeps.datasets.tables import refused_in
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


def _items_of(value: Any) -> tuple[list[Any] | None, str | None]:
    """The items of a list, or of a text that is one, and how it was written: `list`, `written` as
    text, `text`; None of what may be either of these two.
    """
    if isinstance(value, list):
        return value, "list"
    if not isinstance(value, str):
        raise DatasetError(f"{value!r:.60}, expected text or a list of tokens")
    items = written_list(text := value.strip(SPACES))
    return items, None if ANY_TEXT.fullmatch(text) else "text" if items is None else "written"


def _usual_kind(values: Iterable[Any]) -> str | None:
    """How most values are written of which it is certain."""
    kinds = Counter[str]()
    for value in values:
        with suppress(DatasetError):
            if kind := _items_of(value)[1]:
                kinds[kind] += 1
    return max(kinds, key=lambda kind: kinds[kind], default=None)


class _Texts:
    """Texts of one column, as tokens: characters, or words where any text has several."""

    def __init__(self, name: str, values: Iterable[Any], spaced: bool | None) -> None:
        self.name = name
        self.kind = _usual_kind(values)
        self.texts: list[str] = []
        self._spaced = spaced
        self._composed: list[int] = []
        """Rows with letters that were written in another form."""

    @property
    def has_lists(self) -> bool:
        """Whether its texts are lists."""
        return self.kind in ("list", "written")

    def read(self, row: int, value: Any) -> str:
        """A text, or the tokens of a list with spaces between."""
        items, kind = _items_of(value)
        # What is a list beside other lists may be a text too, unless it is no text at all.
        if kind not in (None, self.kind) or (kind is None and self.kind == "list"):
            raise DatasetError(
                f"texts and lists of tokens stand in one column, but {value!r:.60} is "
                f"{'none' if items is None else 'a list'}; write all alike, and where brackets are "
                "tokens a space around every token"
            )
        if self.has_lists:
            given: Any = _check_tokens(value, items or [])
            text = " ".join(map(compose, given))
            is_composed = text.split() != given
        else:
            given = value.strip(SPACES)
            plain = given.isascii() and given.isprintable()
            if not plain and (unseen := unseen_character(given, allowed="\t")):
                raise DatasetError(f"{given!r:.60} has {unseen}")
            text = compose(given)
            is_composed = text != given
        if is_composed:
            self._composed.append(row)
        return text

    @cached_property
    def _with_space(self) -> list[int]:
        """Rows whose text has several words."""
        return [row for row, text in enumerate(self.texts) if " " in text or "\t" in text]

    @cached_property
    def is_spaced(self) -> bool:
        """Whether tokens are the words of texts, and not their characters."""
        return (
            self._spaced if self._spaced is not None else self.has_lists or bool(self._with_space)
        )

    def tokens(self, row: int) -> Sequence[str]:
        """The tokens of one text."""
        return self.texts[row].split() if self.is_spaced else self.texts[row]

    def read_as(self, places: Sequence[str]) -> str:
        """What the tokens are, and which text says so."""
        rows, number = self._with_space, len(self.texts)
        if self.has_lists:
            said = f"{self.name}: read as lists" + " written as text" * (self.kind == "written")
        elif not self.is_spaced:
            said = f"{self.name}: read as characters, since no text has a space"
        elif not rows or len(rows) == number:
            said = f"{self.name}: read as words, with spaces between"
        else:
            some = f"{len(rows):,} of {number:,} texts {'has' if len(rows) == 1 else 'have'}"
            advice = "; remove it there if characters are tokens" * (len(rows) <= number / 2)
            said = (
                f"{self.name}: read as words, since {some} a space, first {places[rows[0]]}, "
                f"{self.texts[rows[0]]!r:.60}{advice}"
            )
        if not (rows := self._composed):
            return said
        some = "1 text has" if len(rows) == 1 else f"{len(rows):,} texts have"
        return (
            f"{said}; {some} letters in another form, read as NFC has them, first "
            f"{places[rows[0]]}, {self.texts[rows[0]]!r:.60}"
        )


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
        self._kept: list[RawRow] = []
        """Those that are sound, with labels and splits as numbers."""

    def read(self, raw: RawRows) -> None:
        """Keeps every row of a file that is sound; the others are refused."""
        rows = list[RawRow]()
        damage: DatasetError | None = None
        try:
            for row in raw.rows:
                if len(rows) == MAX_ROWS:
                    raise DatasetError(f"{row.place}: expected at most {MAX_ROWS:,} rows")
                rows.append(row)
            if not rows:
                raise DatasetError("no rows")
        except DatasetError as error:
            # What is refused of the rows before it comes first.
            damage = error
        self._has = {name: name in raw.columns for name in ("label", "split", "id")}
        targets = [] if self._has["label"] else [row.target for row in rows]
        self._tokens = _Texts("tokens", (row.tokens for row in rows), raw.spaced)
        self._targets = _Texts("target", targets, None)
        # A column of nothing but `[1]` and `[]` has lists where the other one has some.
        for one, other in ((self._tokens, self._targets), (self._targets, self._tokens)):
            one.kind = one.kind or ("written" if other.has_lists else None)
        ids = set[str]()
        for number, row in enumerate(rows):
            try:
                self._add(number, row, ids)
            except DatasetError as error:
                self._refuse(row.place, str(error))
        if damage is not None:
            raise damage

    def _refuse(self, place: str, why: str) -> None:
        self.problems.append(f"{place}: {why}")
        if len(self.problems) >= self._most:
            raise _TooManyError

    def _add(self, number: int, row: RawRow, ids: set[str]) -> None:
        label = label_of(row.label) if self._has["label"] else None
        split = _split_number(row.split) if self._has["split"] else None
        row_id = str(row.id).strip() if isinstance(row.id, str | int) else ""
        if self._has["id"]:
            if not 1 <= len(row_id) <= MAX_ID or not row_id.isprintable():
                raise DatasetError(
                    f"id is {row.id!r:.60}, expected text of 1 to {MAX_ID} characters"
                )
            if row_id in ids:
                raise DatasetError(f"id {row_id!r:.60} stands before it already")
        text = self._tokens.read(number, row.tokens)
        if not self._has["label"]:
            with refused_in("target: "):
                self._targets.texts.append(self._targets.read(number, row.target))
        self._tokens.texts.append(text)
        ids.add(row_id)
        self._kept.append(RawRow(row.place, None, label, None, split, row_id, row.border))

    def dataset(self, name: str) -> Dataset | None:
        """The dataset of the rows; None where one of them is refused."""
        alphabet = self._alphabet()
        if self.problems:
            return None
        letters = self._letters(self._tokens, alphabet)
        lengths = np.asarray((letters != NO_LETTER).sum(axis=1), dtype=np.int64)
        strings = TokenStrings(len(alphabet), lengths, letters)
        labels = targets = None
        if self._has["label"]:
            answers = labels = np.array([row.label for row in self._kept], dtype=bool)
        else:
            answers = targets = self._letters(self._targets, alphabet)
        self._find_contradictions(strings, answers)
        splits, border = [row.split for row in self._kept], [row.border for row in self._kept]
        return Dataset.of(
            name,
            alphabet if has_names(alphabet) else "".join(alphabet),
            strings,
            labels=labels,
            targets=targets,
            splits=np.array(splits, dtype=np.uint8) if self._has["split"] else None,
            border=None if None in border else np.array(border, dtype=bool),
            ids=[row.id for row in self._kept] if self._has["id"] else None,
        )

    def _alphabet(self) -> tuple[str, ...]:
        known: dict[str, str] = {}
        """The place where each token is first."""
        columns = [column for column in (self._tokens, self._targets) if column.texts]
        if not self.problems:
            places = [row.place for row in self._kept]
            self.read_as = tuple(column.read_as(places) for column in columns)
        for number, row in enumerate(self._kept):
            for column in columns:
                for why in self._obstacles(column, column.tokens(number), row.place, known):
                    self._refuse(row.place, f"{column.name}{why}")
        if len(known) > MAX_TOKENS:
            token, place = list(known.items())[MAX_TOKENS]
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

    def _obstacles(
        self, column: _Texts, tokens: Sequence[str], place: str, known: dict[str, str]
    ) -> Iterator[str]:
        """What is against the tokens of one text; new tokens become known."""
        if len(tokens) > MAX_LENGTH:
            yield f" has {len(tokens):,} tokens, expected at most {MAX_LENGTH:,}"
        if not tokens and self._targets.texts and column is self._tokens:
            yield " is empty: a pair needs an input"
        if column.is_spaced and (obstacle := _split_letter(tokens)):
            yield f": {obstacle}"
        for token in sorted(set(tokens) - known.keys()):
            if obstacle := alphabet_obstacle((token,), notation=True):
                yield f": {obstacle}"
            else:
                known[token] = place

    def _letters(self, column: _Texts, alphabet: Sequence[str]) -> np.ndarray:
        numbers, rows = {token: x for x, token in enumerate(alphabet)}, range(len(self._kept))
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
        return letters

    def _find_contradictions(self, strings: TokenStrings, answers: np.ndarray) -> None:
        """Says which rows contradict others, and how many could be answered right at most."""
        found, wrong = contradictions(strings, answers)
        if not (number := int(found.sum())):
            return
        what = "label" if self._has["label"] else "target"
        places = [self._kept[row].place for row in np.flatnonzero(found)[:MAX_PROBLEMS]]
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
