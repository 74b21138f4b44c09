"""Inputs of any task that is no language, of uniform lengths."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Int64

from seqcls.errors import ConfigError
from seqcls.kinds import Examples, examples_of
from seqcls.sampling.distinct import DrawnByLength, Letters, Training
from seqcls.strings.token_strings import NO_LETTER, TokenStrings
from seqcls.tasks.base import BulkInputs, InputTask
from seqcls.tasks.drawing import draw_many
from seqcls.tasks.places import AtEveryPlace


@dataclass(frozen=True)
class UniformInputs(DrawnByLength):
    """An input's length is uniform among those that have one; then the task draws it."""

    task: InputTask
    train_set: Literal["fresh", "fixed"] = "fresh"
    trained: Training | None = None
    """The training that shares no input with this set, for tests disjoint from training."""

    reads_of_part: ClassVar[Mapping[str, frozenset[str]]] = {
        "train": frozenset({"train_set", "lengths"}),
        "test": frozenset({"disjoint"}),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self._lengths):
            raise ConfigError(
                f"max_length={self.max_length}: no input has {self.min_length} to "
                f"{self.max_length} tokens; change the task or the lengths "
                f"({self.task.describe()})"
            )

    @property
    def lengths(self) -> range:
        return range(int(self._lengths[0]), int(self._lengths[-1]) + 1)

    @property
    def repeats(self) -> bool:
        return self.train_set == "fixed"

    @property
    def _lengths(self) -> Int64[np.ndarray, " length"]:
        return _lengths(self.task, self.min_length, self.max_length)

    def _epoch(self, rng: np.random.Generator) -> Examples:
        strings = self._draw(rng, self.size)
        if self.trained is not None:
            # As wide as any input: another that is drawn may be longer.
            letters = _pad_width(strings.letters, self.max_length)
            self.trained.replace_known(
                letters,
                lambda rows: _pad_width(self._draw(rng, len(rows)).letters, self.max_length),
                lambda _: "input",
                self,
            )
            lengths = (letters != NO_LETTER).sum(axis=1)
            strings = TokenStrings.of_letters(len(self.task.alphabet), letters, lengths)
        return examples_of(self.task, strings)

    def _draw(self, rng: np.random.Generator, size: int) -> TokenStrings:
        lengths = rng.choice(self._lengths, size=size)
        # Inputs with next symbols as targets are strings in the language, which it draws.
        if isinstance(self.task, AtEveryPlace):
            return draw_many(self.task.language, rng, lengths, True)
        if isinstance(self.task, BulkInputs):
            letters = self.task.draw_inputs(rng, lengths)
            return TokenStrings.of_letters(len(self.task.alphabet), letters, lengths)
        rows = [self.task.draw_input(rng, length).tolist() for length in lengths.tolist()]
        return TokenStrings.of_lists(len(self.task.alphabet), rows)


def _pad_width(letters: Letters, width: int) -> Letters:
    return np.pad(letters, ((0, 0), (0, width - letters.shape[1])), constant_values=NO_LETTER)


@lru_cache(maxsize=64)
def _lengths(task: InputTask, min_length: int, max_length: int) -> Int64[np.ndarray, " length"]:
    """The allowed lengths that have an input."""
    there = [length for length in range(min_length, max_length + 1) if task.has_input(length)]
    return np.array(there, dtype=np.int64)
