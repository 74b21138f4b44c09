"""The base class of samplers of `size` strings an epoch, of lengths within bounds, and tests that
are disjoint from training.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Bool, UInt8, UInt64
from pydantic import BeforeValidator, Field

from seqcls.cache import remembered
from seqcls.curricula import stages_as_json
from seqcls.declarations import STRING_PARTS, About, Fields, Text
from seqcls.errors import ConfigError
from seqcls.kinds import Examples
from seqcls.sampling.streams import Sampler, stream
from seqcls.strings.token_strings import Rows

Letters = UInt8[np.ndarray, "string *several position"]

MAX_TOKENS = 2**30
"""The most tokens of an epoch's strings, each counted as long as the longest."""

MAX_REPEATED_DRAWS = 200
"""The most draws of a test string that is not trained on."""

MAX_TRAINED = 10**9
"""The most training strings, of all epochs, that a test can exclude: 8 bytes each, and a copy."""

LeastLength = Annotated[int, Field(ge=0, le=10_000)]


class DrawnFields(Fields):
    """min_length: Tokens of the shortest {} string.
    train_lengths: Stages of training on longer and longer strings, the longest length of each and
        the share of training at which it ends: `[[8, 0.2], [16, 0.5], [40, 1.0]]`, where the last
        length is `train_max_length`. Nothing: all lengths from the start.
    train_set: Whether `balanced_strings` draws new strings for every epoch, or shuffles the
        first's.
    disjoint: Whether strings that were trained on are kept out of a test set of `balanced_strings`
        or `uniform_inputs`.
    """

    train_min_length: Annotated[LeastLength, About("Strings", 10)] = 0
    validation_min_length: Annotated[LeastLength, About("Strings", 18)] = 0
    test_min_length: Annotated[LeastLength, About("Strings", 24)] = 0
    train_lengths: Annotated[Text, BeforeValidator(stages_as_json), About("Strings", 31)] = ""
    train_set: Annotated[Literal["fresh", "fixed"], About("Strings", 5)] = "fresh"
    disjoint: Annotated[bool, About("Strings", 6)] = False


@dataclass(frozen=True)
class Training:
    """The training strings of a model: some epochs of a sampler."""

    sampler: Sampler
    epochs: int

    def __post_init__(self) -> None:
        if self.size > MAX_TRAINED:
            raise ConfigError(
                f"max_num_epochs={self.epochs}: with disjoint=True the {self.size:,} strings of "
                f"all epochs are kept out of the test, expected at most {MAX_TRAINED:,}; lower "
                "max_num_epochs or train_size, or leave disjoint out"
            )

    @property
    def size(self) -> int:
        """Number of strings; epochs that repeat the first count once."""
        return self._distinct_epochs * self.sampler.epoch_size

    @property
    def _distinct_epochs(self) -> int:
        return 1 if self.sampler.repeats else self.epochs

    @property
    @remembered
    def fingerprints(self) -> UInt64[np.ndarray, " string"]:
        """Fingerprints of the strings of all epochs, in ascending order."""
        drawn = stream(self.sampler)
        epochs = range(self._distinct_epochs)
        trained = [fingerprints(drawn.epoch(epoch).strings.letters) for epoch in epochs]
        return np.unique(np.concatenate(trained))

    def replace_known(
        self,
        letters: Letters,
        draw: Callable[[Rows], Letters],
        describe: Callable[[int], str],
        lengths: "DrawnByLength",
    ) -> None:
        """Replace the strings that are trained on, in place.

        Args:
            letters: the strings, or several a row: all of a row are replaced where one is known.
            draw: draws other strings for some rows, of the same width.
            describe: the name of a row's string in the message where no other is found.
            lengths: the sampler of these strings.

        Raises:
            ConfigError: nearly all strings of the allowed lengths are trained on.
        """

        def are_known(letters: Letters) -> Bool[np.ndarray, " row"]:
            hashes = fingerprints(letters.reshape(-1, letters.shape[-1]))
            known = np.isin(hashes, self.fingerprints).reshape(len(letters), -1)
            return np.asarray(known.any(axis=1))

        rows = np.flatnonzero(are_known(letters))
        for _ in range(MAX_REPEATED_DRAWS):
            if not len(rows):
                return
            letters[rows] = draw(rows)
            # Only new strings are looked up again.
            rows = rows[are_known(letters[rows])]
        if len(rows):
            raise ConfigError(
                f"disjoint=True: in {MAX_REPEATED_DRAWS} draws no {describe(int(rows[0]))} of "
                f"{lengths.min_length} to {lengths.max_length} tokens was found that is not "
                "trained on; raise test_max_length, or train on fewer strings"
            )


@dataclass(frozen=True)
class DrawnByLength(ABC):
    """Epochs of `size` strings, drawn anew for each epoch, or once and shuffled.

    The streams of training, validation and test differ even with equal settings.
    """

    task: Any
    part: str
    min_length: int
    max_length: int
    size: int
    batch_size: int
    seed: int

    def __post_init__(self) -> None:
        if self.min_length > self.max_length:
            raise ConfigError(
                f"min_length={self.min_length}: expected at most max_length={self.max_length}"
            )
        if self.size * self.max_length > MAX_TOKENS:
            raise ConfigError(
                f"size={self.size}: {self.size:,} strings of up to {self.max_length:,} tokens take "
                f"more memory than {MAX_TOKENS:,} tokens; lower size or max_length"
            )

    @property
    def epoch_size(self) -> int:
        return self.size

    @property
    @abstractmethod
    def repeats(self) -> bool:
        """Implements `Sampler.repeats`."""

    def epochs(self) -> Iterator[Examples]:
        """Epochs of `size` strings.

        Raises:
            ConfigError: of a test disjoint from training, which has nearly all strings of these
                lengths.
        """
        if not self.repeats:
            for epoch in count():
                yield self._epoch(self._generator(epoch))
        # A fixed set is drawn once; generators of later epochs only shuffle it.
        first = self._epoch(self._generator(0))
        yield first
        for epoch in count(1):
            yield first.take(self._generator(epoch).permutation(self.size))

    def _generator(self, epoch: int) -> np.random.Generator:
        # The index of the part separates streams of one seed.
        return np.random.default_rng([self.seed, STRING_PARTS.index(self.part), epoch])

    @abstractmethod
    def _epoch(self, rng: np.random.Generator) -> Examples:
        """The strings of one epoch."""


def fingerprints(letters: Letters) -> UInt64[np.ndarray, " string"]:
    """A hash of 64 bits for each string, independent of the padding.

    A sum of products with odd factors, one for each place: a billion different strings have a
    collision with a probability of about one in forty, and then a string is drawn again in vain.
    """
    factors = np.random.default_rng(0).integers(
        2**64, size=letters.shape[1], dtype=np.uint64, endpoint=False
    )
    # Padding has the value 0, so that strings in arrays of different widths compare.
    values = (letters + np.uint8(1)).astype(np.uint64)
    # An odd factor has an inverse modulo 2**64: different letters at a place differ in product.
    values *= factors | np.uint64(1)
    return np.asarray(values.sum(axis=1, dtype=np.uint64))
