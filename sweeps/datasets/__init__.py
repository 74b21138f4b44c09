"""Reading a file of strings with labels or targets as a dataset; errors name the line."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, permutations
from pathlib import Path
from typing import Any

import numpy as np

from seqcls.errors import DatasetError
from seqcls.interpretability.wording import percent
from seqcls.strings.alphabets import alphabet_obstacle, easily_confused, has_names
from seqcls.strings.datasets import (
    MAX_NAME,
    MAX_PLACES,
    MAX_TOKENS,
    SPLITS,
    Content,
    Dataset,
    contradictions,
)
from seqcls.strings.token_strings import NO_LETTER, TokenStrings
from seqcls.text import count
from sweeps.datasets.automata import is_automaton, read_automaton
from sweeps.datasets.layouts import read_table, split_of
from sweeps.datasets.tables import Table, refused_in
from sweeps.datasets.texts import Texts

__all__ = ["FileContent", "read_content", "read_dataset", "read_rows_or_automaton"]

MAX_LENGTH = 10_000
"""The maximum of tokens in a string."""

MAX_ID = 200
"""The maximum of characters in an id."""

ROWS_AT_ONCE = 10_000

MAX_PROBLEMS = 20
"""The number of refused rows after which reading stops."""

LABELS: dict[Any, bool] = {
    **dict.fromkeys(("1", "true", "1.0", "yes", "positive"), True),
    **dict.fromkeys(("0", "false", "0.0", "no", "negative"), False),
}
"""Labels by their texts; pandas writes 1 as 1.0 if a row of the column is empty."""


@dataclass
class FileNotes:
    """Notes on a file beside its content."""

    left_out: Sequence[str] = ()
    """Columns that are ignored."""
    read_as: Sequence[str] = ()
    """Sentences on the tokens of each column: characters, words or items of lists."""
    unread: Sequence[str] = ()
    """Files of a folder that belong to no split."""
    contradictions: Sequence[str] = ()
    """Sentences on rows that contradict others, the first of them with their lines."""


@dataclass
class FileContent(FileNotes):
    """The dataset or automaton in a file, or the problems that prevent it."""

    dataset: Content | None = None
    problems: Sequence[str] = ()
    """Refusals, each with its line; there is a dataset only without any."""


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
    content = read_content(path, name)
    if content.dataset is None:
        raise DatasetError(f"{str(path)!r:.200}: {content.problems[0]}")
    return content.dataset


def read_content(path: str | Path, name: str | None = None) -> FileContent:
    """Reads a file or folder; refused rows are among the problems of the result."""
    path = Path(path)
    name = "".join(x if x.isprintable() else "?" for x in name or path.resolve().name)[:MAX_NAME]
    try:
        if is_automaton(path):
            automaton = read_automaton(path, name)
            return FileContent(dataset=automaton, read_as=tuple(automaton.read_as))
        return _read_rows(read_table(path), name)
    except DatasetError as error:
        return FileContent(problems=[str(error)])


def _read_rows(table: Table, name: str) -> FileContent:
    given, found = table.columns, FileContent(left_out=table.left_out, unread=table.unread)
    texts: dict[str, Texts] = {
        x: Texts(x, given[x], table.spaced) for x in ("tokens", "target") if x in given
    }
    # A column of only `[1]` and `[]` has lists if the other one has some.
    for one, other in permutations(texts.values(), 2):
        one.kind = one.kind or ("written" if other.has_lists else None)
    labels, splits, ids = list[bool](), list[int](), dict[str, None]()
    readers: dict[str, Callable[[Any], None]] = {
        "label": lambda cell: labels.append(label_of(cell)),
        "split": lambda cell: splits.append(SPLITS.index(split_of(cell))),
        "id": lambda cell: _add_id(ids, cell),
        **{column: text.add for column, text in texts.items()},
    }
    refused: dict[int, str] = {}
    for column, add in readers.items():
        for row, cell in enumerate(given.get(column, ())):
            try:
                if cell is None:
                    raise DatasetError(f"no {column!r}; every row or none has one")
                with refused_in("target: " * (column == "target")):
                    add(cell)
            except DatasetError as error:
                refused.setdefault(row, f"{table.places[row]}: {error}")
    found.problems = [refused[row] for row in sorted(refused)]
    # Damage ends the reading, so that refused rows come before it.
    found.problems += [table.damage] if table.damage else []
    known: dict[str, str] = {}
    if not found.problems:
        found.read_as = [text.settle(table.places) for text in texts.values()]
        # A generator, so that the search ends with the last problem that is named.
        obstacles = _obstacles(table.places, texts, found.read_as, known)
        found.problems = list(islice(obstacles, MAX_PROBLEMS))
    found.problems = found.problems[:MAX_PROBLEMS]
    if found.problems:
        return found
    # Sorted, so that the numbers of letters do not depend on the order of the rows.
    alphabet = sorted(known)
    notes = easily_confused(alphabet), _labels_read_as(given.get("label", ()))
    found.read_as = [*found.read_as, *filter(None, notes)]
    letters = {x: _letters(text, alphabet) for x, text in texts.items()}
    lengths = np.asarray((letters["tokens"] != NO_LETTER).sum(axis=1), dtype=np.int64)
    strings = TokenStrings(len(alphabet), lengths, letters["tokens"])
    found.dataset = Dataset(
        name,
        tuple(alphabet) if has_names(alphabet) else "".join(alphabet),
        strings,
        labels=np.array(labels, dtype=bool) if labels else None,
        targets=letters.get("target"),
        splits=np.array(splits, dtype=np.uint8) if splits else None,
        border=np.array(given["border"], dtype=bool) if "border" in given else None,
        ids=list(ids) if ids else None,
    ).in_order()
    against, wrong = contradictions(strings, letters.get("target", np.array(labels, dtype=bool)))
    places = [table.places[row] for row in np.flatnonzero(against)]
    what = "label" if labels else "target"
    found.contradictions = _contradictions(places, wrong / len(strings), what)
    return found


def _add_id(ids: dict[str, None], cell: Any) -> None:
    """Adds an id to those of the previous rows."""
    row_id = str(cell).strip() if isinstance(cell, str | int) else ""
    if not 1 <= len(row_id) <= MAX_ID or not row_id.isprintable():
        raise DatasetError(f"id is {cell!r:.60}, expected text of 1 to {MAX_ID} characters")
    if row_id in ids:
        raise DatasetError(f"id {row_id!r:.60} occurs twice; give each row its own")
    ids[row_id] = None


def _obstacles(
    places: Sequence[str], texts: dict[str, Texts], read_as: Sequence[str], known: dict[str, str]
) -> Iterator[str]:
    """Yields problems of the tokens of texts, and of their alphabet.

    Args:
        known: filled with the place of each token's first occurrence.
    """
    for row, place in enumerate(places):
        for name, column in texts.items():
            tokens, what = column.split(column.texts[row]), f"{place}: {name}"
            if len(tokens) > MAX_LENGTH:
                yield f"{what} has {len(tokens):,} tokens, expected at most {MAX_LENGTH:,}"
            if not tokens and name == "tokens" and "target" in texts:
                yield f"{what} is empty: a pair needs an input"
            for token in sorted({*tokens} - known.keys()):
                if obstacle := alphabet_obstacle((token,), notation=True):
                    yield f"{what}: {obstacle}"
                else:
                    known[token] = place
    if len(known) > MAX_TOKENS:
        token, place = list(known.items())[MAX_TOKENS]
        yield (
            f"{place}: token {token!r} is one too many, expected at most {MAX_TOKENS} "
            f"different ones; there are {len(known):,} ({'; '.join(read_as)})"
        )
    if not known:
        yield "every string is empty"


def _letters(column: Texts, alphabet: Sequence[str]) -> np.ndarray:
    """The numbers of the tokens of each text, of shape (text, position)."""
    numbers = {token: x for x, token in enumerate(alphabet)}
    lengths = np.array([len(column.split(text)) for text in column.texts])
    width = int(lengths.max(initial=0))
    if width * len(lengths) > MAX_PLACES:
        raise DatasetError(
            f"{len(lengths):,} rows, of up to {width:,} tokens, expected at most {MAX_PLACES:,} in "
            "all, each row as long as the longest; take fewer or shorter rows"
        )
    letters = np.full((len(lengths), width), NO_LETTER, dtype=np.uint8)
    # In chunks, since the intermediate arrays take twice the memory of their letters.
    for start in range(0, len(lengths), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        tokens = chain.from_iterable(map(column.split, column.texts[some]))
        is_one = np.arange(width) < lengths[some, None]
        letters[some][is_one] = np.fromiter(map(numbers.__getitem__, tokens), dtype=np.uint8)
    return letters


def _contradictions(places: Sequence[str], wrong: float, what: str) -> Sequence[str]:
    """Sentences on rows that contradict others, and on the best possible accuracy.

    Args:
        places: the places of these rows.
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


def _labels_read_as(labels: Sequence[Any]) -> str:
    """A sentence on labels that are words, and their values; empty if all are 0 or 1."""
    words = sorted({str(label).strip() for label in labels} - {"0", "1"})
    return "label: " * bool(words) + ", ".join(f"{x} is read as {label_of(x):d}" for x in words)


def label_of(value: Any, column: str = "label") -> bool:
    """The truth value of a cell.

    Raises:
        DatasetError: it is no truth value.
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
