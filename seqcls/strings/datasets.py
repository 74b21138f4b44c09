"""Sets of strings with labels or targets: as values, as bytes, and by digest.

A dataset's content has a canonical form, whose hash is its digest. A process remembers datasets,
and automata, by digest, and looks others up in registered sources.
"""

import json
import threading
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from itertools import chain
from typing import Any, Self

import numpy as np
from jaxtyping import Bool, Int64, UInt8

from seqcls.cache import Memory
from seqcls.errors import ConfigError, DatasetError, SeqclsError
from seqcls.strings.alphabets import alphabet_obstacle, has_names
from seqcls.strings.automata import VERSION, ContentAddressed, StoredAutomaton
from seqcls.strings.token_strings import NO_LETTER, TokenStrings
from seqcls.text import canonical_json

MAX_TOKENS = 250
"""The most tokens of a dataset: their ids fit a byte, with four more for special tokens."""

MAX_ROWS = 2_000_000

MAX_PLACES = 400_000_000
"""The most rows times tokens of the longest string, for inputs and for targets."""

MAX_CONTENT = 950_000_000
"""The most bytes of a dataset's content: every database can store a value of that size."""


def unpack(packed: bytes, name: str = "") -> "Content":
    """The dataset or the automaton of compressed content.

    Raises:
        DatasetError: the bytes are malformed.
    """
    try:
        reader = zlib.decompressobj()
        # A few bytes can decompress to any number, so the output is limited.
        content = reader.decompress(packed, MAX_CONTENT)
        if not reader.eof or reader.unused_data:
            raise ValueError("it is cut off, or too long")
        line, _, rest = content.partition(b"\n")
        head = json.loads(line)
        tokens = tuple(head["alphabet"])
        alphabet = tokens if has_names(tokens) else "".join(tokens)
        if head["version"] != VERSION:
            raise ValueError(f"version {head['version']!r}, expected {VERSION}")
        if obstacle := alphabet_obstacle(alphabet, notation=True):
            raise ValueError(obstacle)
        kind = StoredAutomaton if head["task"] == StoredAutomaton.task else Dataset
        return kind.of_content(name, alphabet, head, rest)
    except (ValueError, KeyError, TypeError, zlib.error, RecursionError) as error:
        raise DatasetError(f"a dataset's rows cannot be unpacked: {error}") from None


def _read_bytes(content: BytesIO, number: int, limit: int) -> np.ndarray:
    """The next bytes of a content, each below a limit."""
    # Copied: an array of bytes is read-only.
    taken = np.frombuffer(content.read(number), np.uint8, number).copy()
    if taken.max(initial=0) >= limit:
        raise ValueError(f"a value {taken.max()}, expected less than {limit}")
    return taken


def _read_strings(content: BytesIO, rows: int, num_letters: int) -> TokenStrings:
    """The next strings of a content."""
    lengths = np.frombuffer(content.read(4 * rows), "<u4", rows).astype(np.int64)
    width = int(lengths.max(initial=0))
    # Checked before an array of that size is allocated.
    if rows * width > MAX_PLACES:
        raise ValueError(f"{rows:,} strings of up to {width:,} tokens")
    letters = np.full((rows, width), NO_LETTER, dtype=np.uint8)
    there = np.arange(width) < lengths[:, None]
    letters[there] = _read_bytes(content, int(lengths.sum()), num_letters)
    return TokenStrings(num_letters, lengths, letters)


def _pack(column: np.ndarray | None) -> Iterator[bytes]:
    """The bytes of a column; of strings their lengths and their letters; none of None."""
    if column is not None:
        there = column != NO_LETTER
        if column.ndim > 1:
            yield there.sum(axis=1).astype("<u4").tobytes()
        yield column[there].astype(np.uint8, copy=False).tobytes()


SPLITS = ("train", "validation", "test")

MAX_NAME = 200
"""The most characters of a dataset's name."""


@dataclass(frozen=True, eq=False)
class Dataset(ContentAddressed):
    """Strings with labels (`task = "file"`) or targets (`task = "pairs"`).

    Rows are sorted by (split, tokens, label or target, border, id), whatever their order in a file,
    so that one content has one digest. The name is not part of it.
    """

    name: str
    alphabet: Sequence[str]
    """The tokens, sorted: text where all are of one character, else a tuple."""
    strings: TokenStrings
    labels: Bool[np.ndarray, " row"] | None = None
    """None where the rows have targets."""
    targets: UInt8[np.ndarray, "row target_position"] | None = None
    """Letters, `NO_LETTER` after each end; None where the rows have labels."""
    splits: UInt8[np.ndarray, " row"] | None = None
    """Indices into `SPLITS`; None where the file has none."""
    border: Bool[np.ndarray, " row"] | None = None
    """True for strings of border pairs; None where the file has no such column."""
    ids: Sequence[str] | None = None

    def in_order(self) -> "Dataset":
        """The same rows, sorted."""
        order = self._order()
        columns = {x: getattr(self, x) for x in ("labels", "targets", "splits", "border")}
        return replace(
            self,
            name=self.name[:MAX_NAME],
            strings=self.strings.take(order),
            ids=self.ids and [self.ids[row] for row in order.tolist()],
            **{x: column[order] for x, column in columns.items() if column is not None},
        )

    def _order(self) -> Int64[np.ndarray, " row"]:
        # `NO_LETTER` plus 1 wraps around to 0, below all letters.
        targets = None if self.targets is None else self.targets + np.uint8(1)
        letters = self.strings.letters + np.uint8(1)
        columns = (self.splits, letters, self.labels, targets, self.border)
        keys = np.column_stack([column for column in columns if column is not None])
        rows = [row.tobytes() for row in keys.astype(np.uint8)]
        ids = self.ids or [""] * len(rows)
        return np.array(sorted(range(len(rows)), key=lambda x: (rows[x], ids[x])), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.strings)

    @property
    def task(self) -> str:
        """The task with these answers: `file` or `pairs`."""
        return "file" if self.labels is not None else "pairs"

    @property
    def holds(self) -> str:
        """A description of its rows, for a message."""
        return f"its rows have {'labels' if self.labels is not None else 'targets'}"

    @property
    def content(self) -> bytes:
        """All of it but its name, in a canonical form.

        A line of JSON; lengths of strings, four bytes each, little-endian; their letters; splits;
        labels, or lengths and letters of targets; `border`, where it is known; ids as JSON.
        """
        columns = (self.strings.letters, self.splits, self.labels, self.targets, self.border)
        parts = list(chain.from_iterable(map(_pack, columns)))
        if self.ids is not None:
            parts.append(canonical_json(list(self.ids)).encode())
        head = {
            "version": VERSION,
            "task": self.task,
            "alphabet": list(self.alphabet),
            "rows": len(self),
            "splits": self.splits is not None,
            "ids": self.ids is not None,
            # Without a border, contents are equal to those from before that field existed.
            **({} if self.border is None else {"border": True}),
        }
        return b"\n".join([canonical_json(head).encode(), b"".join(parts)])

    @classmethod
    def of_content(
        cls, name: str, alphabet: Sequence[str], head: Mapping[str, Any], rest: bytes
    ) -> Self:
        """The dataset of a content, given its first line and the bytes after it.

        Raises:
            ValueError, KeyError, TypeError: the content is malformed.
        """
        number, size, content = head["rows"], len(alphabet), BytesIO(rest)
        if type(number) is not int or not 0 <= number <= MAX_ROWS:
            raise ValueError(f"{number!r} rows")
        # Read in the order of `content`.
        strings = _read_strings(content, number, size)
        splits = _read_bytes(content, number, len(SPLITS)) if head["splits"] else None
        is_file = head["task"] == "file"
        labels = _read_bytes(content, number, 2).astype(bool) if is_file else None
        targets = None if is_file else _read_strings(content, number, size).letters
        border = _read_bytes(content, number, 2).astype(bool) if head.get("border") else None
        ids = json.loads(content.read()) if head["ids"] else None
        if ids is not None and (len(ids) != number or not all(isinstance(x, str) for x in ids)):
            raise ValueError("not one id for each row")
        if content.read():
            raise ValueError("bytes after its end")
        return cls(name, alphabet, strings, labels, targets, splits, border, ids)

    @cached_property
    def contradictions(self) -> tuple[Bool[np.ndarray, " row"], int]:
        """Its contradicted rows, and the number of rows that every model gets wrong."""
        answers = self.targets if self.labels is None else self.labels
        assert answers is not None
        return contradictions(self.strings, answers)

    @property
    def contradicted(self) -> Bool[np.ndarray, " row"]:
        """Rows whose label or target is not that of most rows of their string."""
        return self.contradictions[0]

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        targets = 0 if self.targets is None else self.targets.nbytes
        return int(self.strings.letters.nbytes + targets)


def contradictions(
    strings: TokenStrings, answers: np.ndarray
) -> tuple[Bool[np.ndarray, " row"], int]:
    """Rows whose answer is not the majority of their string; the number every model gets wrong.

    Where the most frequent answers of a string are tied, none is right: all its rows contradict
    each other, and a model is right on those with one of the answers.
    """
    # Most strings occur once: only strings with equal sums of random weights are compared.
    weights = np.random.default_rng(0).integers(2**63, size=strings.letters.shape[1])
    starts = range(0, max(1, len(strings)), 100_000)
    sums = [strings.letters[at : at + 100_000].astype(np.int64) @ weights for at in starts]
    _, place, number = np.unique(np.concatenate(sums), return_inverse=True, return_counts=True)
    rows_by_string: dict[bytes, list[int]] = {}
    for row in np.flatnonzero(number[place] > 1).tolist():
        rows_by_string.setdefault(strings.letters[row].tobytes(), []).append(row)
    found, wrong = np.zeros(len(strings), dtype=bool), 0
    for rows in rows_by_string.values():
        ranked = Counter(answers[row].tobytes() for row in rows).most_common(2)
        if len(ranked) > 1:
            wrong += len(rows) - ranked[0][1]
            right = ranked[0][0] if ranked[0][1] > ranked[1][1] else None
            found[rows] = [answers[row].tobytes() != right for row in rows]
    return found, wrong


MIN_UNPACKED = 16
"""Number of datasets held unpacked whatever their size; more, within `MOST_BYTES`."""

MOST_BYTES = 500_000_000

MOST_PACKED = 2_000_000_000
"""The most bytes of compressed datasets, which may be the only copies of a file's rows."""

MOST_SOURCES = 1_000
"""The most sources of datasets; an idle one holds no connection."""

Content = Dataset | StoredAutomaton
"""The content with a digest."""

Source = Callable[[str], Content | None]

_unpacked = Memory(MOST_BYTES, MIN_UNPACKED)
_packed = Memory(MOST_PACKED)
"""Compressed contents and names, by digest."""
_lock = threading.Lock()
_sources: OrderedDict[str, Source] = OrderedDict()


def remember(dataset: Content) -> str:
    """Remember a dataset, to be found by its digest, which is returned.

    A sweep may name any number of files: those least recently used are compressed.
    """
    # Compressing takes a while, during which others may look datasets up.
    for digest, old in _unpacked.keep(dataset.digest, dataset).items():
        _packed.keep(digest, (old.packed, old.name))
    return dataset.digest


def add_source(name: str, source: Source) -> None:
    """Register a source of datasets, such as a database, by name; a name's last source counts."""
    with _lock:
        _sources[name] = source
        _sources.move_to_end(name)
        while len(_sources) > MOST_SOURCES:
            _sources.popitem(last=False)


def is_known(digest: str) -> bool:
    """True if a dataset is in memory."""
    return any(memory.get(digest) is not None for memory in (_unpacked, _packed))


def dataset_of(digest: str) -> Content:
    """The dataset or the automaton with a digest.

    Raises:
        ConfigError: no source has it.
    """
    known: Content | None = _unpacked.get(digest)
    if known is not None:
        return known
    if (packed := _packed.get(digest)) is not None:
        dataset = unpack(*packed)
        remember(dataset)
        return dataset
    if not digest:
        raise ConfigError(
            "dataset='': expected strings; name a file as path='data.csv' in a specification, or "
            "as the task: `seqcls try data.csv`"
        )
    reason = "no file that was read and no database that is open has it"
    with _lock:
        # The source added last comes first, called without the lock: it may remember a dataset.
        sources = list(reversed(_sources.values()))
    for source in sources:
        try:
            found = source(digest)
        except SeqclsError as error:
            reason = str(error)
            continue
        if found is not None:
            remember(found)
            return found
    raise ConfigError(f"dataset='{digest[:12]}…': {reason}")
