"""The rows of a file by split: its own, or splits that are drawn."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Annotated, Any, ClassVar

import numpy as np

from seqcls.declarations import STRING_PARTS, About, Fields, Share
from seqcls.errors import ConfigError
from seqcls.kinds.base import DRAWN, Examples
from seqcls.strings.datasets import Dataset
from seqcls.strings.token_strings import Rows
from seqcls.tasks.files import content_of


class ShareFields(Fields):
    """validation_share: The share of a file's distinct strings, where it has no split of that name.
    test_share: The share for testing, like `validation_share`.
    """

    validation_share: Annotated[Share, About("Strings", 7)] = 0.1
    test_share: Annotated[Share, About("Strings", 8)] = 0.2


@dataclass(frozen=True)
class DatasetRows:
    """All rows of a split, in every epoch; those of training in an order drawn for each.

    A split that the file lacks is drawn from its rows for training: a share of the distinct
    strings, as equal as possible for each label and length. Contradicted rows
    (`Dataset.contradicted`) are trained on unchanged, and are in no validation and no test.
    """

    task: Any
    part: str
    batch_size: int
    train_seed: int
    validation_share: float
    test_share: float

    reads_of_part: ClassVar[Mapping[str, frozenset[str]]] = {}
    repeats = True

    def __post_init__(self) -> None:
        if self.validation_share + self.test_share >= 1:
            raise ConfigError(
                f"validation_share={self.validation_share}: with test_share={self.test_share} "
                "nothing is left to train on; their sum has to be less than 1"
            )
        splits, train = self.task.content.splits, STRING_PARTS.index("train")
        if self.part != "test" and splits is not None and not (splits == train).any():
            raise ConfigError(f"dataset={self.task.content.name!r}: no row has the split 'train'")
        if not len(self.rows):
            share = "lower validation_share or test_share"
            if self.part != "train":
                share = f"a larger {self.part}_share"
            raise ConfigError(
                f"dataset={self.task.content.name!r}: no row is left for {self.part}; give more "
                f"rows, a split of that name, or {share}"
            )

    @property
    def rows(self) -> Rows:
        """The rows of the part, in the order of the dataset."""
        shares = (self.validation_share, self.test_share)
        return _split_rows(self.task.dataset, self.train_seed, *shares)[self.part]

    @property
    def lengths(self) -> range:
        lengths = self.task.content.strings.lengths[self.rows]
        return range(int(lengths.min()), int(lengths.max()) + 1)

    @property
    def epoch_size(self) -> int:
        return len(self.rows)

    def epochs(self) -> Iterator[Examples]:
        """Epochs of all the rows."""
        content = self.task.content
        answers = content.targets if content.labels is None else content.labels
        for epoch in count():
            rows = self.rows
            if self.part == "train":
                seeds = [self.train_seed, STRING_PARTS.index(self.part), epoch]
                rows = np.random.default_rng(seeds).permutation(rows)
            drawn = None
            if content.border is not None and content.labels is not None:
                positive, uniform, border = map(DRAWN.index, ("positive", "uniform", "border"))
                ways = np.where(content.labels[rows], positive, uniform)
                drawn = np.where(content.border[rows], border, ways).astype(np.uint8)
            yield Examples(content.strings.take(rows), answers[rows], drawn=drawn)


@lru_cache(maxsize=16)
def _split_rows(
    digest: str, train_seed: int, validation_share: float, test_share: float
) -> dict[str, Rows]:
    """The rows of each part."""
    dataset = content_of(digest, Dataset)
    splits = dataset.splits
    given = {
        part: np.flatnonzero(splits == number) if splits is not None else np.empty(0, np.int64)
        for number, part in enumerate(STRING_PARTS)
    }
    left = given["train"] if splits is not None else np.arange(len(dataset))
    whole = np.count_nonzero(_are_new(dataset, left))
    # No part has this number, so splits have a separate stream.
    rng = np.random.default_rng([train_seed, len(STRING_PARTS)])
    # The test comes first, so that it does not depend on the share for validation.
    for part, share in (("test", test_share), ("validation", validation_share)):
        if not len(given[part]) and len(left):
            # Shares are of all strings that splits are drawn from.
            strings = np.count_nonzero(_are_new(dataset, left))
            drawn = _draw_rows(dataset, left, share * whole / strings, rng)
            given[part], left = left[drawn], left[~drawn]
    judged = {part: given[part][~dataset.contradicted[given[part]]] for part in STRING_PARTS[1:]}
    return {**judged, "train": left}


def _are_new(dataset: Dataset, rows: Rows) -> np.ndarray:
    """True for rows whose string differs from that of the row before."""
    letters = dataset.strings.letters[rows]
    is_new = np.ones(len(rows), dtype=bool)
    # Rows of a split are sorted by their tokens, so that equal strings are adjacent.
    is_new[1:] = (letters[1:] != letters[:-1]).any(axis=1)
    return is_new


def _draw_rows(dataset: Dataset, rows: Rows, share: float, rng: np.random.Generator) -> np.ndarray:
    """True for the rows of a share: equal strings together, stratified by label and length."""
    is_new = _are_new(dataset, rows)
    first = rows[is_new]
    labels = np.zeros(len(first)) if dataset.labels is None else dataset.labels[first]
    order = np.lexsort((rng.random(len(first)), dataset.strings.lengths[first], labels))
    # At regular intervals, so that each label and length has its share.
    places = np.floor((np.arange(len(first) + 1)) * share + rng.random())
    chosen = np.zeros(len(first), dtype=bool)
    chosen[order] = np.diff(places) > 0
    return np.asarray(chosen[np.cumsum(is_new) - 1])
