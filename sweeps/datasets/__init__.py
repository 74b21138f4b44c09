"""A file of strings with labels or targets as a dataset; what is refused is named with its line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from seqcls.errors import DatasetError
from seqcls.interpretability.wording import percent
from seqcls.strings.alphabets import alphabet_obstacle, easily_confused, has_names
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
from sweeps.datasets.layouts import RawRow, RawRows, raw_rows, split_of
from sweeps.datasets.tables import refused_in
from sweeps.datasets.texts import Texts

__all__ = ["FileContent", "read_content", "read_dataset", "read_rows_or_automaton"]

MAX_LENGTH = 10_000
"""Tokens of one string at most."""

MAX_ID = 200
"""Characters of an id at most."""

ROWS_AT_ONCE = 10_000

MAX_PROBLEMS = 20
"""Rows that are refused, and named, before the rest is not looked at any more."""

LABELS: dict[Any, bool] = {
    **dict.fromkeys(("1", "true", "1.0", "yes", "positive"), True),
    **dict.fromkeys(("0", "false", "0.0", "no", "negative"), False),
}
"""Texts of labels; 1.0 is what pandas makes of 1 where a row of the column is empty."""


@dataclass
class FileNotes:
    """What is said of a file beside its content."""

    left_out: Sequence[str] = ()
    """Columns that mean nothing here."""
    read_as: Sequence[str] = ()
    """Sentences on what the tokens of each column are: characters, words or items of lists."""
    unread: Sequence[str] = ()
    """Files of a folder that belong to no split."""
    contradictions: Sequence[str] = ()
    """Sentences on rows that contradict others, the first of them with their lines."""


@dataclass
class FileContent(FileNotes):
    """What was read of a file: its dataset or automaton, or why there is none."""

    dataset: Content | None = None
    problems: Sequence[str] = ()
    """What is refused, each with its line; there is a dataset only where nothing is."""


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
    path = Path(path)
    name = "".join(x if x.isprintable() else "?" for x in name or path.resolve().name)[:MAX_NAME]
    try:
        if is_automaton(path):
            automaton = read_automaton(path, name)
            return FileContent(dataset=automaton, read_as=tuple(automaton.read_as))
        return _read_rows(raw_rows(path), name, most)
    except DatasetError as error:
        return FileContent(problems=[str(error)])


def _read_rows(raw: RawRows, name: str, most: int) -> FileContent:
    rows, damage = list[RawRow](), ""
    try:
        # One row more than allowed tells that there are too many; the rest is not read.
        rows.extend(islice(raw.rows, MAX_ROWS + 1))
        if not 0 < len(rows) <= MAX_ROWS:
            damage = f"{len(rows):,} rows, expected 1 to {MAX_ROWS:,}" if rows else "no rows"
    except DatasetError as error:
        # What is refused of the rows before it comes first.
        damage = str(error)
    tokens = Texts("tokens", [row.tokens for row in rows], raw.spaced)
    columns, sound_rows, known = {"tokens": tokens}, list[RawRow](), dict[str, str]()
    if "label" not in raw.columns:
        columns["target"] = target = Texts("target", [row.target for row in rows])
        # A column of nothing but `[1]` and `[]` has lists where the other one has some.
        for one, other in ((tokens, target), (target, tokens)):
            one.kind = one.kind or ("written" if other.has_lists else None)

    def problems() -> Iterator[str]:
        ids = set[str]()
        for row in rows:
            try:
                sound_rows.append(_sound(row, raw.columns, columns, ids))
            except DatasetError as error:
                yield f"{row.place}: {error}"
        if damage:
            yield damage
            return
        found.read_as = [x.settle([row.place for row in sound_rows]) for x in columns.values()]
        yield from _obstacles(sound_rows, columns, found.read_as, known)
        if not known and len(sound_rows) == len(rows):
            yield "every string is empty"

    found = FileContent(unread=raw.unread)
    # A generator, so that looking ends with the last problem that is named.
    found.problems = list(islice(problems(), most))
    found.left_out = tuple(raw.left_out)
    if not found.problems:
        alphabet = sorted(known)
        notes = [easily_confused(alphabet), _labels_read_as(rows) if "label" in raw.columns else ""]
        found.read_as = [*found.read_as, *filter(None, notes)]
        letters = {name: _letters(x, alphabet) for name, x in columns.items()}
        lengths = np.asarray((letters["tokens"] != NO_LETTER).sum(axis=1), dtype=np.int64)
        strings = TokenStrings(len(alphabet), lengths, letters["tokens"])
        labels = (
            None if "target" in columns else np.array([row.label for row in sound_rows], dtype=bool)
        )
        splits, border = [row.split for row in sound_rows], [row.border for row in sound_rows]
        found.dataset = Dataset(
            name,
            tuple(alphabet) if has_names(alphabet) else "".join(alphabet),
            strings,
            labels=labels,
            targets=letters.get("target"),
            splits=np.array(splits, dtype=np.uint8) if "split" in raw.columns else None,
            border=None if None in border else np.array(border, dtype=bool),
            ids=[row.id for row in sound_rows] if "id" in raw.columns else None,
        ).in_order()
        answers = letters["target"] if labels is None else labels
        against, wrong = contradictions(strings, answers)
        places = [sound_rows[row].place for row in np.flatnonzero(against)]
        found.contradictions = _contradictions(
            places, wrong / len(sound_rows), "target" if labels is None else "label"
        )
    return found


def _sound(row: RawRow, names: Sequence[str], columns: dict[str, Texts], ids: set[str]) -> RawRow:
    """A row with its label as a truth and its split as a number; its texts are in `columns`.

    Raises:
        DatasetError: a cell of it is refused.
    """
    label = label_of(row.label) if "label" in names else None
    split = SPLITS.index(split_of(row.split)) if "split" in names else None
    row_id = str(row.id).strip() if isinstance(row.id, str | int) else ""
    if "id" in names:
        if not 1 <= len(row_id) <= MAX_ID or not row_id.isprintable():
            raise DatasetError(f"id is {row.id!r:.60}, expected text of 1 to {MAX_ID} characters")
        if row_id in ids:
            raise DatasetError(f"id {row_id!r:.60} occurs twice; give each row its own")
    texts = [columns["tokens"].read(row.tokens)]
    if "target" in columns:
        with refused_in("target: "):
            texts.append(columns["target"].read(row.target))
    # Last, so that a refused row does not take its id from a later one.
    ids.add(row_id)
    for column, text in zip(columns.values(), texts, strict=True):
        column.texts.append(text)
    return RawRow(row.place, None, label, None, split, row_id, row.border)


def _obstacles(
    rows: Sequence[RawRow],
    columns: dict[str, Texts],
    read_as: Sequence[str],
    known: dict[str, str],
) -> Iterator[str]:
    """What is against the tokens of texts, and of all together; they are the alphabet.

    Args:
        known: is filled with the place where each token is first.
    """
    for number, row in enumerate(rows):
        for name, column in columns.items():
            tokens, what = column.split(column.texts[number]), f"{row.place}: {name}"
            if len(tokens) > MAX_LENGTH:
                yield f"{what} has {len(tokens):,} tokens, expected at most {MAX_LENGTH:,}"
            if not tokens and name == "tokens" and "target" in columns:
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
            f"different ones; there are {len(known):,} ({'; '.join(read_as)})"
        )


def _letters(column: Texts, alphabet: Sequence[str]) -> np.ndarray:
    """The numbers of the tokens of each text: (text, place)."""
    numbers = {token: x for x, token in enumerate(alphabet)}
    lengths = np.array([len(column.split(text)) for text in column.texts])
    width = int(lengths.max(initial=0))
    if width * len(lengths) > MAX_PLACES:
        raise DatasetError(
            f"{len(lengths):,} rows, of up to {width:,} tokens, expected at most {MAX_PLACES:,} in "
            "all, each row as long as the longest; take fewer or shorter rows"
        )
    letters = np.full((len(lengths), width), NO_LETTER, dtype=np.uint8)
    # Some rows at once, since what is made of them takes twice the room of their letters.
    for start in range(0, len(lengths), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        tokens = chain.from_iterable(map(column.split, column.texts[some]))
        is_one = np.arange(width) < lengths[some, None]
        letters[some][is_one] = np.fromiter(map(numbers.__getitem__, tokens), dtype=np.uint8)
    return letters


def _contradictions(places: Sequence[str], wrong: float, what: str) -> Sequence[str]:
    """Which rows contradict others, and how many could be answered right at most.

    Args:
        places: those of the rows.
        wrong: the share of all rows that a perfect model gets wrong.
        what: label or target.
    """
    if not (number := len(places)):
        return ()
    more = f" and {number - MAX_PROBLEMS:,} more" * (number > MAX_PROBLEMS)
    return (
        f"{count(number, 'row')} contradict{'s' * (number == 1)} others of the same string, "
        f"whose {what} is another: {', '.join(places[:MAX_PROBLEMS])}{more}",
        f"a perfect model could be right on {percent(1 - wrong, 1)} of the rows",
        f"what most rows of a string say is right; rows that say another {what}, or of which "
        "as many say each, are trained on and not tested",
    )


def _labels_read_as(rows: Sequence[RawRow]) -> str:
    """Which labels are words, and what each is read as; empty where all are 0 or 1."""
    words = sorted({str(row.label).strip() for row in rows} - {"0", "1"})
    return "label: " * bool(words) + ", ".join(f"{x} is read as {label_of(x):d}" for x in words)


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
