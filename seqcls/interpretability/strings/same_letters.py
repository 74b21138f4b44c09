"""Strings that a function of letter counts cannot tell apart, though the language does."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from seqcls.config import RunConfig
from seqcls.counts.invariance import counts_suffice
from seqcls.data import task_of
from seqcls.interpretability.strings.asked import Letters
from seqcls.strings import TokenStrings

DRAWN = 32
"""Strings of the other label, and as many orders of the same letters, that are tried."""


def sees_counts_alone(config: RunConfig) -> bool:
    """Whether the order of tokens decides in the language, and not in the model's answer."""
    order_matters = task_of(config).order_sensitive
    return order_matters and counts_suffice(config, training=False) is None


def same_letters_other_label(config: RunConfig, letters: Sequence[int]) -> Letters | None:
    """A string with the same letters and the other label, where one is found.

    A model that sees counts alone answers both alike, so it is wrong on one of them, whatever it
    has learned. None says only that none was found among `DRAWN` strings of the other label and as
    many orders of these letters.
    """
    task, alphabet = task_of(config), len(task_of(config).alphabet)
    own = TokenStrings.of_lists(alphabet, [letters])
    label = bool(task.labels(own)[0])
    generator = np.random.default_rng(0)
    shuffled = [tuple(generator.permutation(letters).tolist()) for _ in range(DRAWN)]
    others = [*_of_label(config, len(letters), not label), *shuffled]
    found = TokenStrings.of_lists(alphabet, others)
    meant = (found.counts == own.counts).all(axis=1) & (task.labels(found) != label)
    return others[int(meant.argmax())] if meant.any() else None


@lru_cache(maxsize=1024)
def _of_label(config: RunConfig, length: int, positive: bool) -> tuple[Letters, ...]:
    task = task_of(config)
    if not task.has(length, positive):
        return ()
    generator = np.random.default_rng(1)
    drawn = (task.draw(generator, length, positive) for _ in range(DRAWN))
    return tuple({tuple(own.tolist()): None for own in drawn})
