"""A file of strings with labels or targets as a dataset; what is refused is named with its line."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
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
from seqcls.text import count
from sweeps.datasets.automata import is_automaton, read_automaton
from sweeps.datasets.layouts import SPLIT_NAMES, RawRow, RawRows, raw_rows
from sweeps.datasets.tables import ROWS_AT_ONCE, refused_in
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

    dataset: Content | None = None
    problems: list[str] = field(default_factory=list)
    """What is refused, each with its line; there is a dataset only where nothing is."""
    left_out: Sequence[str] = ()
    """Columns that mean nothing here."""
    read_as: Sequence[str] = ()
    """Sentences on what the tokens of each column are: characters, words or items of lists."""
    unread: Sequence[str] = ()
    """Files of a folder that belong to no split."""
    contradictions: Sequence[str] = ()
    """Sentences on rows that contradict others; none where there are none."""


def read_dataset(path: str | Path, name: str | None = None) -> Dataset:
    """The dataset in a file or folder.

    Raises:
        DatasetError: it cannot be read, or a row of it is refused: with the line named.
    """
    content = read_rows_or_automaton(path, name)
    if not isinstance(content, Dataset):
        raise DatasetError(f"{str(path)!r:.200}: {content.holds}, expected rows of strings")
    return content


def read_rows_or_automaton(path: str | Path, name: str | None = None) -> Content:
    """The dataset in a file or folder, or the automaton in a file. Raises as `read_dataset`."""
    content = read_content(path, name, most=1)
    if content.dataset is None:
        raise DatasetError(f"{str(path)!r:.200}: {content.problems[0]}")
    return content.dataset


def read_content(
    path: str | Path, name: str | None = None, *, most: int = MAX_PROBLEMS
) -> FileContent:
    """What is in a file or folder, with the first rows that are refused."""
    path, found = Path(path), FileContent()
    name = "".join(x if x.isprintable() else "?" for x in name or path.resolve().name)[:MAX_NAME]
    try:
        if is_automaton(path):
            found.dataset = automaton = read_automaton(path, name)
            found.read_as = tuple(automaton.read_as)
        else:
            raw = raw_rows(path)
            rows = _Rows(raw)
            found.problems += islice(rows.problems(), most)
            found.left_out, found.unread = tuple(raw.left_out), raw.unread
            found.read_as = tuple(rows.read_as)
            if not found.problems:
                found.dataset = rows.dataset(name)
                found.contradictions = rows.contradictions()
    except DatasetError as error:
        found.problems.append(str(error))
    return found


class _Texts:
    """Texts of one column, as tokens: characters, or words where any text has several."""

    def __init__(self, name: str, values: Iterable[Any], spaced: bool | None) -> None:
        self.name = name
        self.texts: list[str] = []
        self.composed: list[int] = []
        """Rows with letters that were written in another form."""
        self.spaced = spaced
        kinds = Counter[str | None]()
        for value in values:
            with suppress(DatasetError):
                kinds[_items_of(value)[1]] += 1
        del kinds[None]
        self.kind = max(kinds, key=lambda kind: kinds[kind], default=None)
        """How most values are written of which it is certain."""

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
            text = " ".join(_check_tokens(value, items or []))
        else:
            text = value.strip(SPACES)
            plain = text.isascii() and text.isprintable()
            if not plain and (unseen := unseen_character(text, allowed="\t")):
                raise DatasetError(f"{text!r:.60} has {unseen}")
        if not text.isascii() and (composed := compose(text)) != text:
            self.composed.append(row)
            return composed
        return text

    def settle(self) -> None:
        """Finds out what tokens are, when all texts are known."""
        self.words = [row for row, text in enumerate(self.texts) if " " in text or "\t" in text]
        if self.spaced is None:
            self.spaced = self.has_lists or bool(self.words)

    def split(self, text: str) -> Sequence[str]:
        """The tokens of a text."""
        return text.split() if self.spaced else text

    def read_as(self, rows: Sequence[RawRow]) -> str:
        """What the tokens are, and which text says so."""
        number, words = len(self.texts), self.words
        if self.has_lists:
            said = f"{self.name}: read as lists" + " written as text" * (self.kind == "written")
        elif not self.spaced:
            said = f"{self.name}: read as characters, since no text has a space"
        elif not words or len(words) == number:
            said = f"{self.name}: read as words, with spaces between"
        else:
            advice = "; remove it there if characters are tokens" * (len(words) <= number / 2)
            said = (
                f"{self.name}: read as words, since {len(words):,} of {number:,} texts "
                f"{'has' if len(words) == 1 else 'have'} a space, first {rows[words[0]].place}, "
                f"{self.texts[words[0]]!r:.60}{advice}"
            )
        if not self.composed:
            return said
        place, some = self.composed[0], count(len(self.composed), "text")
        return (
            f"{said}; {some} {'has' if len(self.composed) == 1 else 'have'} letters in another "
            f"form, read as NFC has them, first {rows[place].place}, {self.texts[place]!r:.60}"
        )


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


def _check_tokens(value: Any, items: Sequence[Any]) -> list[str]:
    """The tokens in a list.

    Raises:
        DatasetError: one of them is none, or two side by side are read as one letter.
    """
    plain = {*map(type, items)} <= {str, int}
    for token in dict.fromkeys(items) if plain else items:
        if type(token) is int:
            continue
        if not isinstance(token, str) or not token or any(map(str.isspace, token)):
            raise DatasetError(
                f"{value!r:.60} has a token that is no text without spaces: {token!r:.40}"
            )
        if unseen := unseen_character(token):
            raise DatasetError(f"{value!r:.60} has {unseen}")
    tokens = list(map(str, items))
    if "".join(tokens).isascii():
        return tokens
    text = "".join(x if len(x) == 1 else " " for x in tokens)
    if compose(text) != text:
        letter = next(x for x, y in zip(compose(text), text, strict=False) if x != y)
        raise DatasetError(
            f"tokens side by side are the letter {letter!r} (U+{ord(letter):04X}); write it as one"
        )
    return tokens


class _Rows:
    """The rows of a file, of which those that are sound are kept, with labels as numbers."""

    def __init__(self, raw: RawRows) -> None:
        self._raw = raw
        self.kept: list[RawRow] = []
        self.read_as: list[str] = []
        self._has = {name: name in raw.columns for name in ("label", "split", "id")}

    def problems(self) -> Iterator[str]:
        """Reads all rows, and says which are refused and why."""
        rows, damage = list[RawRow](), ""
        try:
            rows.extend(islice(self._raw.rows, MAX_ROWS + 1))
            if not 0 < len(rows) <= MAX_ROWS:
                damage = (
                    f"{rows[-1].place}: expected at most {MAX_ROWS:,} rows" if rows else "no rows"
                )
        except DatasetError as error:
            # What is refused of the rows before it comes first.
            damage = str(error)
        targets = [] if self._has["label"] else [row.target for row in rows]
        self._tokens = _Texts("tokens", (row.tokens for row in rows), self._raw.spaced)
        self._targets = _Texts("target", targets, None)
        self._columns = (self._tokens, self._targets)[: 2 - self._has["label"]]
        # A column of nothing but `[1]` and `[]` has lists where the other one has some.
        for one, other in ((self._tokens, self._targets), (self._targets, self._tokens)):
            one.kind = one.kind or ("written" if other.has_lists else None)
        ids = set[str]()
        for row in rows:
            try:
                self.kept.append(self._sound(row, ids))
            except DatasetError as error:
                yield f"{row.place}: {error}"
        if damage:
            yield damage
        else:
            yield from self._obstacles(is_whole=len(self.kept) == len(rows))

    def _sound(self, row: RawRow, ids: set[str]) -> RawRow:
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
        number = len(self.kept)
        text = self._tokens.read(number, row.tokens)
        if not self._has["label"]:
            with refused_in("target: "):
                self._targets.texts.append(self._targets.read(number, row.target))
        self._tokens.texts.append(text)
        ids.add(row_id)
        return RawRow(row.place, None, label, None, split, row_id, row.border)

    def _obstacles(self, *, is_whole: bool) -> Iterator[str]:
        """What is against the tokens of texts, and of all together; they are the alphabet."""
        known: dict[str, str] = {}
        """The place where each token is first."""
        for column in self._columns:
            column.settle()
            self.read_as += [column.read_as(self.kept)] * is_whole
        for number, row in enumerate(self.kept):
            for column in self._columns:
                tokens, what = column.split(column.texts[number]), f"{row.place}: {column.name}"
                if len(tokens) > MAX_LENGTH:
                    yield f"{what} has {len(tokens):,} tokens, expected at most {MAX_LENGTH:,}"
                if not tokens and len(self._columns) > 1 and column is self._tokens:
                    yield f"{what} is empty: a pair needs an input"
                for token in sorted({*tokens} - known.keys()):
                    if obstacle := alphabet_obstacle((token,), notation=True):
                        yield f"{what}: {obstacle}"
                    else:
                        known[token] = row.place
        if len(known) > MAX_TOKENS:
            token, place = list(known.items())[MAX_TOKENS]
            yield (
                f"{place}: token {token!r} is one too many, expected at most {MAX_TOKENS} "
                f"different ones; there are {len(known):,} ({'; '.join(self.read_as)})"
            )
        if not known and is_whole:
            yield "every string is empty"
        self.alphabet = tuple(sorted(known))
        self.read_as += [confused] if (confused := easily_confused(self.alphabet)) else []

    def dataset(self, name: str) -> Dataset:
        """The dataset of the rows, of which none is refused."""
        letters = self._letters(self._tokens)
        lengths = np.asarray((letters != NO_LETTER).sum(axis=1), dtype=np.int64)
        self.strings = TokenStrings(len(self.alphabet), lengths, letters)
        labels = targets = None
        if self._has["label"]:
            self.answers = labels = np.array([row.label for row in self.kept], dtype=bool)
        else:
            self.answers = targets = self._letters(self._targets)
        splits, border = [row.split for row in self.kept], [row.border for row in self.kept]
        return Dataset.of(
            name,
            self.alphabet if has_names(self.alphabet) else "".join(self.alphabet),
            self.strings,
            labels=labels,
            targets=targets,
            splits=np.array(splits, dtype=np.uint8) if self._has["split"] else None,
            border=None if None in border else np.array(border, dtype=bool),
            ids=[row.id for row in self.kept] if self._has["id"] else None,
        )

    def _letters(self, column: _Texts) -> np.ndarray:
        numbers = {token: x for x, token in enumerate(self.alphabet)}
        lengths = np.array([len(column.split(text)) for text in column.texts])
        width = int(lengths.max(initial=0))
        if width * len(lengths) > MAX_PLACES:
            raise DatasetError(
                f"{len(lengths):,} rows, of up to {width:,} tokens, expected at most "
                f"{MAX_PLACES:,} in all, each row as long as the longest; take fewer or shorter "
                "rows"
            )
        letters = np.full((len(lengths), width), NO_LETTER, dtype=np.uint8)
        # Some rows at once, since what is made of them takes twice the room of their letters.
        for start in range(0, len(lengths), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            tokens = chain.from_iterable(map(column.split, column.texts[some]))
            is_one = np.arange(width) < lengths[some, None]
            letters[some][is_one] = np.fromiter(map(numbers.__getitem__, tokens), dtype=np.uint8)
        return letters

    def contradictions(self) -> Sequence[str]:
        """Which rows contradict others, and how many could be answered right at most."""
        found, wrong = contradictions(self.strings, self.answers)
        if not (number := int(found.sum())):
            return ()
        what = "label" if self._has["label"] else "target"
        places = [self.kept[row].place for row in np.flatnonzero(found)[:MAX_PROBLEMS]]
        more = f" and {number - len(places):,} more" * (number > len(places))
        return (
            f"{count(number, 'row')} contradict{'s' * (number == 1)} others of the same string, "
            f"whose {what} is another: {', '.join(places)}{more}",
            f"a perfect model could be right on {percent(1 - wrong / len(found), 1)} of the rows",
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
