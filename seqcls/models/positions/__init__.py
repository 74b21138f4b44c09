"""Descriptions of position schemes, the number of positions, and the tokens that a model reads."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import UInt8

from seqcls.config import NetworkConfig
from seqcls.network import DrawnPlaces, LearnedPlaces
from seqcls.plugins import Loadable, Registry, UnfitError
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, PAD

__all__ = ["POSITIONS", "longest_readable", "read_ids", "special_tokens", "table_size"]


class Scheme(Loadable):
    """Description of one scheme of positions, known before it is loaded.

    A class of `seqcls.models.positions.schemes.Positions` is one itself: a scheme from outside
    describes itself in its class, ours in the classes here.
    """

    reads: ClassVar[frozenset[str]] = frozenset()
    """The settings that it reads beside the network's sizes; `position_range` where its places may
    be drawn at random."""

    @classmethod
    def obstacle(cls, config: NetworkConfig) -> str | None:
        """The reason why a network cannot have these positions; None if it can."""
        return None

    @classmethod
    def not_compiled(cls, config: NetworkConfig) -> str | None:
        """The reason why networks with these positions are not compiled; None if they are."""
        # One from outside is in no program.
        if not cls.path:
            return f"positions={config.positions!r} are not compiled"
        if config.head != "string" and config.position_range:
            return (
                f"position_range={config.position_range} is compiled only where one token is read"
            )
        return None

    @classmethod
    def table_size(cls, config: NetworkConfig) -> int | None:
        """Number of positions; None if unlimited."""
        return None


def _scheme(name: str, reads: frozenset[str] = frozenset()) -> type[Scheme]:
    """Describes a scheme for any network, by the name of its class in `schemes`."""
    path = f"seqcls.models.positions.schemes:{name}"
    return type(name, (Scheme,), {"path": path, "reads": reads})


class Learned(Scheme):
    """A table whose rows are added to embeddings."""

    path = "seqcls.models.positions.schemes:Learned"
    reads = LearnedPlaces.reads

    @classmethod
    def obstacle(cls, config: NetworkConfig) -> str | None:
        if config.position_range and config.position_draw == "shifted":
            return (
                f"position_range={config.position_range} with position_draw='shifted': places are "
                "drawn one way or the other; leave one out"
            )
        return None

    @classmethod
    def table_size(cls, config: NetworkConfig) -> int:
        # The length of tested strings is known only if training shifts positions to theirs.
        return max(config.trained_length, config.tested_length) + special_tokens(config)


class Coupled(Learned):
    """Positions shared by tokens of input and output."""

    reads = frozenset()

    @classmethod
    def obstacle(cls, config: NetworkConfig) -> str | None:
        if not config.writes:
            return (
                f"positions={config.positions!r}: tokens of input and output share places, and the "
                "strings of a language have no output"
            )
        # Architectures import positions, so these can compare names alone.
        if config.architecture != "transformer":
            return (
                f"positions={config.positions!r} with architecture={config.architecture!r}: places "
                "are shared in one stream; use 'transformer'"
            )
        return None


class Rotary(Scheme):
    """Rotations of queries and keys."""

    path = "seqcls.models.positions.schemes:Rotary"
    reads = DrawnPlaces.reads

    @classmethod
    def obstacle(cls, config: NetworkConfig) -> str | None:
        if config.attention_head_size % 2 == 0:
            return None
        return (
            "positions='rotary' turns pairs: "
            f"attention_head_size={config.attention_head_size}: expected an even number"
        )


class Fire(Scheme):
    """A learned function of distances."""

    path = "seqcls.models.positions.schemes:Fire"

    @classmethod
    def obstacle(cls, config: NetworkConfig) -> str | None:
        # Names alone, as above.
        if config.architecture in ("encoder_decoder", "paragraph_reader"):
            return (
                f"positions='fire' with architecture={config.architecture!r}: distances are shares "
                "of what is read in one stream; use 'transformer', or positions='relative'"
            )
        return None


_OWN: Mapping[str, type[Scheme]] = {
    "none": _scheme("Positions"),
    "sinusoidal": _scheme("Sinusoidal", DrawnPlaces.reads),
    "learned": Learned,
    "coupled_marks": Coupled,
    "coupled": Coupled,
    "rotary": Rotary,
    "alibi": _scheme("Alibi", DrawnPlaces.reads),
    "relative": _scheme("Relative"),
    "fire": Fire,
}

POSITIONS: Registry[type[Scheme]] = Registry("seqcls.positions", _OWN, base=Scheme)


def table_size(config: NetworkConfig) -> int | None:
    """Number of positions of a network's tokens; None if unlimited."""
    if config.position_range:
        return config.position_range
    with POSITIONS.wrap_errors(config.positions):
        size = POSITIONS[config.positions].table_size(config)
        if not isinstance(size, int | None):
            raise UnfitError(f"has table_size {size!r:.60}, expected a whole number or None")
    return size


def longest_readable(config: NetworkConfig) -> int | None:
    """Number of tokens of the longest string that a network can read; None if unlimited."""
    size = table_size(config)
    return None if size is None else size - special_tokens(config)


Readout = Literal["first", "last", "mean", "last_letter"]

LETTERS_ALONE = ("mean", "last_letter")
"""Readouts of models that read no special token."""


def read_ids(strings: TokenStrings, readout: Readout) -> UInt8[np.ndarray, "string position"]:
    """Returns the token ids that a model reads, with `PAD` after each string's end.

    With the readout `first`, `CLS` comes before the letters; with `last`, the same token comes
    after them, as an end token; with `LETTERS_ALONE` there are only the letters.
    """
    ids = strings.ids
    if readout in LETTERS_ALONE:
        return ids
    if readout == "first":
        return np.insert(ids, 0, CLS, axis=1)
    ended = np.pad(ids, ((0, 0), (0, 1)), constant_values=PAD)
    ended[np.arange(len(strings)), strings.lengths] = CLS
    return ended


def special_tokens(config: NetworkConfig) -> int:
    """Number of tokens that a model reads beside the letters: one, or none."""
    return 0 if config.readout in LETTERS_ALONE else 1
