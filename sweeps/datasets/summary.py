"""What is in a file of strings, before anything is trained on it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from seqcls.strings.automata import StoredAutomaton
from seqcls.strings.datasets import SPLITS, Dataset, remember
from seqcls.strings.tokenizer import unpack_array
from seqcls.tasks.files import FromAutomaton
from seqcls.text import count
from seqcls.theory.classes import class_of
from sweeps.datasets import FileContent, read_content

SHOWN_TOKENS = 40
"""The most tokens of an alphabet that are told."""


@dataclass(frozen=True)
class SplitSummary:
    """The rows of a split, or of a label in it."""

    split: str
    """`all` where the file has no splits."""
    label: str
    """0 or 1; `target` of pairs."""
    rows: int
    shortest: int
    longest: int
    mean_length: float


@dataclass(frozen=True)
class Summary:
    """A file in numbers; of one that is refused only why."""

    path: str
    refused: Sequence[str]
    """Rows that are refused, each with its line and why; the first ones of many."""
    left_out: Sequence[str] = ()
    """Columns that mean nothing here."""
    task: str | None = None
    digest: str | None = None
    tokens: Sequence[str] = ()
    rows: int = 0
    parts: Sequence[SplitSummary] = ()
    duplicates: int = 0
    """Rows whose string stands in a row before them."""
    overlaps: Sequence[tuple[str, str, int]] = ()
    """Two splits, and how many distinct strings stand in both."""
    test_rows_trained_on: int | None = None
    """Rows of the split `test` whose string stands in `train`; None where either is missing."""
    read_as: Sequence[str] = ()
    """Sentences on what the tokens of each column are: characters, words or items of lists."""
    unread: Sequence[str] = ()
    """Files of a folder that belong to no split."""
    contradictions: Sequence[str] = ()
    """Sentences on rows that contradict others, the first of them with their lines."""
    states: int | None = None
    """Those of the minimal automaton, where the file is one; it has no rows."""
    language: str | None = None
    """The class of its language, in words."""

    @property
    def heading(self) -> str:
        """What it is, and how large."""
        number, noun = (self.rows, "row") if self.states is None else (self.states, "state")
        return f"{number:,} {noun}{'s' * (number != 1)}, task = {self.task!r}"

    @property
    def sentences(self) -> list[str]:
        """What is to be known besides the parts, one after another."""
        tokens, more = " ".join(self.tokens[:SHOWN_TOKENS]), len(self.tokens) - SHOWN_TOKENS
        of_tokens = (
            f"{count(len(self.tokens), 'token')}: {tokens}{f' and {more} more' if more > 0 else ''}"
        )
        if self.language is not None:
            return [of_tokens, *self.read_as, self.language]
        left_out = [name or "one without a name" for name in self.left_out]
        overlaps = [
            f"{count(n, 'string')} stand{'s' * (n == 1)} in {split} and in {other}"
            for split, other, n in self.overlaps
        ]
        known = self.test_rows_trained_on
        tested = sum(part.rows for part in self.parts if part.split == "test")
        trained_on = (
            [] if known is None else [f"{known:,} of the {tested:,} test rows are trained on too"]
        )
        repeating = f"{count(self.duplicates, 'row')} repeat{'s' * (self.duplicates == 1)}"
        return [
            of_tokens,
            *self.read_as,
            f"{repeating} the string of another",
            *self.contradictions,
            *overlaps,
            *trained_on,
            *([f"columns left out: {', '.join(left_out)[:200]}"] if left_out else []),
            *([f"files of no split, not read: {', '.join(self.unread)[:200]}"] * bool(self.unread)),
        ]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def summary(path: str | Path) -> Summary:
    """What is in a file or folder of strings, and what of it is refused."""
    return summary_of(read_content(path), str(path))


def summary_of(content: FileContent, path: str) -> Summary:
    """What is in a file that was read."""
    dataset = content.dataset
    if dataset is None:
        return Summary(path, content.problems, content.left_out, unread=content.unread)
    if isinstance(dataset, StoredAutomaton):
        known = class_of(FromAutomaton(remember(dataset), ""))
        return Summary(
            path, (), task=dataset.task, digest=dataset.digest, tokens=list(dataset.alphabet),
            read_as=content.read_as, states=len(dataset), language=known.describe(),
        )  # fmt: skip
    rows = _rows(dataset)
    by_split = rows.groupby("split", observed=True)["string"]
    distinct = {str(split): set(some) for split, some in by_split}
    pairs = [(a, b) for i, a in enumerate(distinct) for b in list(distinct)[i + 1 :]]
    tested = rows.loc[rows["split"] == "test", "string"]
    return Summary(
        path,
        (),
        content.left_out,
        dataset.task,
        dataset.digest,
        list(dataset.alphabet),
        len(dataset),
        _parts(rows),
        int(rows["string"].duplicated().sum()),
        [(a, b, len(common)) for a, b in pairs if (common := distinct[a] & distinct[b])],
        int(tested.isin(distinct["train"]).sum()) if {"train", "test"} <= distinct.keys() else None,
        content.read_as,
        content.unread,
        content.contradictions,
    )


def _rows(dataset: Dataset) -> pd.DataFrame:
    """The split, the answer, the length and a hash of the string of each row."""
    given, names = dataset.strings, pd.Index(SPLITS)
    splits = None if dataset.splits is None else dataset.splits.astype(np.int64)
    return pd.DataFrame(
        {
            "split": "all" if splits is None else pd.Categorical.from_codes(splits, names),
            "label": "target" if dataset.labels is None else dataset.labels.astype(int).astype(str),
            "length": given.lengths,
            "string": [hash(row.tobytes()) for row in given.letters],
        }
    )


def _parts(rows: pd.DataFrame) -> list[SplitSummary]:
    lengths = rows.groupby(["split", "label"], observed=True)["length"]
    parts = lengths.agg(["size", "min", "max", "mean"]).reset_index()
    return [SplitSummary(*map(unpack_array, part)) for part in parts.itertuples(index=False)]
