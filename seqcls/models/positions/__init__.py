"""How tokens differ by their places, how many places there are, and what tokens a model reads."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
from jaxtyping import UInt8

from seqcls.config import NetworkConfig
from seqcls.models.entries import Entry, entry_of
from seqcls.network import DrawnPlaces, LearnedPlaces
from seqcls.plugins import Registry, UnfitError
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, PAD

__all__ = ["POSITIONS", "longest_readable", "read_ids", "special_tokens", "table_size"]


def _even_head_size(config: NetworkConfig) -> str | None:
    if config.attention_head_size % 2 == 0:
        return None
    return (
        f"positions='rotary' turns pairs: attention_head_size={config.attention_head_size}: "
        "expected an even number"
    )


def _drawn_once(config: NetworkConfig) -> str | None:
    if config.position_range and config.position_draw == "shifted":
        return (
            f"position_range={config.position_range} with position_draw='shifted': places are "
            "drawn one way or the other; leave one out"
        )
    return None


def _longest(config: NetworkConfig) -> int:
    # Of tested strings the length is known only where training shifts places to theirs.
    return max(config.trained_length, config.tested_length) + special_tokens(config)


def _no_coupling(config: NetworkConfig) -> str | None:
    if not config.writes:
        return (
            f"positions={config.positions!r}: tokens of input and output share places, and the "
            "strings of a language have no output"
        )
    # Architectures lean on positions, so that these know them by their names alone.
    if config.architecture != "transformer":
        return (
            f"positions={config.positions!r} with architecture={config.architecture!r}: places are "
            "shared in one stream; use 'transformer'"
        )
    return None


def _two_streams(config: NetworkConfig) -> str | None:
    # By their names, as above.
    if config.architecture in ("encoder_decoder", "paragraph_reader"):
        return (
            f"positions='fire' with architecture={config.architecture!r}: distances are shares of "
            "what is read in one stream; use 'transformer', or positions='relative'"
        )
    return None


_COUPLED = Entry(
    "seqcls.models.positions.places:Coupled", obstacle=_no_coupling, table_size=_longest
)

_OWN: Mapping[str, Entry] = {
    "none": Entry("seqcls.models.positions.schemes:Positions"),
    "sinusoidal": Entry("seqcls.models.positions.schemes:Sinusoidal", DrawnPlaces.reads),
    "learned": Entry(
        "seqcls.models.positions.schemes:Learned",
        LearnedPlaces.reads,
        _drawn_once,
        _longest,
    ),
    "coupled_marks": _COUPLED,
    "coupled": _COUPLED,
    "rotary": Entry("seqcls.models.positions.schemes:Rotary", DrawnPlaces.reads, _even_head_size),
    "alibi": Entry("seqcls.models.positions.schemes:Alibi", DrawnPlaces.reads),
    "relative": Entry("seqcls.models.positions.schemes:Relative"),
    "fire": Entry("seqcls.models.positions.schemes:Fire", obstacle=_two_streams),
}

POSITIONS: Registry[Entry] = Registry("seqcls.positions", _OWN, entry_of)


def table_size(config: NetworkConfig) -> int | None:
    """How many places a network's tokens may have; None where there is no end to them."""
    if config.position_range:
        return config.position_range
    with POSITIONS.wrap_errors(config.positions):
        size = POSITIONS[config.positions].table_size(config)
        if not isinstance(size, int | None):
            raise UnfitError(f"has table_size {size!r:.60}, expected a whole number or None")
    return size


def longest_readable(config: NetworkConfig) -> int | None:
    """Tokens of the longest string that a network can be asked about; None for any."""
    size = table_size(config)
    return None if size is None else size - special_tokens(config)


Readout = Literal["first", "last", "mean", "last_letter"]

LETTERS_ALONE = ("mean", "last_letter")
"""Readouts of models that read no special token."""


def read_ids(strings: TokenStrings, readout: Readout) -> UInt8[np.ndarray, "string position"]:
    """The token ids that a model reads, `PAD` after each string's end.

    With the readout `first`, `CLS` stands before the letters; with `last`, the same token stands
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
    """How many tokens a model reads beside a string's own: one, or none."""
    return 0 if config.readout in LETTERS_ALONE else 1
