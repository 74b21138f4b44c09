"""Summary of a file of strings, before anything is trained on it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd

from seqcls.interpretability.wording import percent
from seqcls.sampling.dataset_rows import ShareFields
from seqcls.strings.automata import StoredAutomaton
from seqcls.strings.datasets import SPLITS, remember
from seqcls.tasks.files import FromAutomaton
from seqcls.text import count
from seqcls.theory.classes import class_of
from sweeps.datasets import FileContent, FileNotes, read_content

SHOWN_TOKENS = 40
"""The number of tokens of an alphabet that are listed."""


@dataclass(kw_only=True)
class Summary(FileNotes):
    """The contents of a file in numbers; of a refused one only the refusals."""

    path: str
    refused: Sequence[str] = ()
    """The first refusals of rows, each with its line."""
    task: str | None = None
    digest: str | None = None
    tokens: Sequence[str] = ()
    rows: int = 0
    parts: Sequence[Mapping[Any, Any]] = ()
    """Rows, and their shortest, longest and mean length, by `split` (`all` if the file has none)
    and `label` (0 or 1; `target` for pairs)."""
    duplicates: int = 0
    """Number of rows whose string occurs in an earlier row."""
    overlaps: Sequence[tuple[str, str, int]] = ()
    """Two splits, and the number of distinct strings that occur in both."""
    test_rows_trained_on: int | None = None
    """Number of rows of `test` whose string occurs in `train`; None if either is missing."""
    states: int | None = None
    """Number of states of the minimal automaton, if the file is one; it has no rows."""
    language: str | None = None
    """The class of its language, in words."""

    @property
    def heading(self) -> str:
        """The size and the task."""
        number, noun = (self.rows, "row") if self.states is None else (self.states, "state")
        return f"{count(number, noun)}, task = {self.task!r}"

    @property
    def sentences(self) -> list[str]:
        """Notes besides the parts."""
        more = len(self.tokens) - SHOWN_TOKENS
        of_tokens = f"{count(len(self.tokens), 'token')}: {' '.join(self.tokens[:SHOWN_TOKENS])}"
        sentences = [of_tokens + (f" and {more} more" if more > 0 else ""), *self.read_as]
        if self.language is not None:
            return [*sentences, self.language]
        repeat = "repeats" if self.duplicates == 1 else "repeat"
        sentences += [f"{count(self.duplicates, 'row')} {repeat} the string of another"]
        sentences += self.contradictions
        if self.parts[0]["split"] == "all":
            test, validation = ShareFields.test_share, ShareFields.validation_share
            sentences.append(
                f"no column split: {percent(test)} of the strings are drawn for the test, and "
                f"{percent(validation)} for validation; to see whether models generalize, say "
                "split = test of longer strings"
            )
        for split, other, number in self.overlaps:
            sentences.append(f"{count(number, 'string')} in both {split} and {other}")
        if (known := self.test_rows_trained_on) is not None:
            tested = sum(part["rows"] for part in self.parts if part["split"] == "test")
            sentences.append(f"{known:,} of the {tested:,} test rows are also trained on")
        left_out = ", ".join(name or "one without a name" for name in self.left_out)
        for what, names in (
            ("columns ignored", left_out),
            ("files ignored, of no split", ", ".join(self.unread)),
        ):
            sentences += [f"{what}: {names[:200]}"] if names else []
        return sentences

    def record(self) -> dict[str, Any]:
        """The summary as JSON values."""
        return asdict(self)


def summary(path: str | Path) -> Summary:
    """Reads a file or folder of strings and summarizes it."""
    return summary_of(read_content(path), str(path))


def summary_of(content: FileContent, path: str) -> Summary:
    """Summarizes a file that was read."""
    dataset = content.dataset
    notes = {field.name: getattr(content, field.name) for field in fields(FileNotes)}
    found = Summary(path=path, refused=content.problems, **notes)
    if dataset is None:
        return found
    found.task, found.digest = dataset.task, dataset.digest
    found.tokens = list(dataset.alphabet)
    if isinstance(dataset, StoredAutomaton):
        found.states = len(dataset)
        found.language = class_of(FromAutomaton(remember(dataset), "")).describe()
        return found
    splits, labels = dataset.splits, dataset.labels
    rows = pd.DataFrame(
        {
            "split": "all" if splits is None else pd.Index(SPLITS)[splits],
            "label": "target" if labels is None else labels.astype(int).astype(str),
            "length": dataset.strings.lengths,
            # Hashes of 64 bits replace the strings, which are only counted and compared.
            "string": [hash(row.tobytes()) for row in dataset.strings.letters],
        }
    )
    by_split = {x: rows.loc[rows["split"] == x, "string"] for x in ("all", *SPLITS)}
    distinct = {split: set(some) for split, some in by_split.items() if len(some)}
    common = ((a, b, len(distinct[a] & distinct[b])) for a, b in combinations(distinct, 2))
    groups = rows.groupby(["split", "label"])["length"].agg(["size", "min", "max", "mean"])
    groups = groups.set_axis(["rows", "shortest", "longest", "mean_length"], axis=1)
    # In the order of the splits, as they are above.
    groups = groups.loc[[x for x in by_split if x in distinct]].reset_index()
    found.rows = len(dataset)
    found.parts = groups.to_dict("records")
    found.duplicates = int(rows["string"].duplicated().sum())
    found.overlaps = [x for x in common if x[2]]
    if {"train", "test"} <= distinct.keys():
        found.test_rows_trained_on = int(by_split["test"].isin(distinct["train"]).sum())
    return found
