"""Strings as the tables' kernel reads them: letters by place, in tiles of strings."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int64, UInt8

from seqcls.caching.remembered import remembered
from seqcls.config import NetworkConfig
from seqcls.engines.fused.buffers import TILE
from seqcls.engines.fused.tables.places import Places, fixed_places, places_of, testing_places
from seqcls.sampling import Sampler
from seqcls.sampling.streams import stream
from seqcls.tokens.strings import NO_LETTER, TokenStrings


class LetterTiles(NamedTuple):
    """Strings in tiles, a batch's longest first; a batch begins with a new tile."""

    letters: UInt8[np.ndarray, "tile position string"]
    """From the reader on: backwards, where it stands at the end."""
    slots: Int64[np.ndarray, " tile"]
    """The letters of each tile's longest string."""
    factors: Float[np.ndarray, "tile string"]
    targets: Float[np.ndarray, "tile string"]
    weights: Float[np.ndarray, "tile string"]
    """One over the size of the batch; 0 where there is no string."""
    ends: Int64[np.ndarray, " batch"]
    """The number of the first tile after each batch."""


class Question(NamedTuple):
    """Strings that are answered at once, since they share their places."""

    tiles: LetterTiles
    places: Places
    strings: Int64[np.ndarray, " string"]
    """Which strings they are."""
    at: Int64[np.ndarray, " string"]
    """Where each of them stands in the tiles."""


def make_letter_tiles(
    config: NetworkConfig,
    strings: TokenStrings,
    labels: Bool[np.ndarray, " string"],
    batch_size: int,
) -> tuple[LetterTiles, Int64[np.ndarray, " string"]]:
    """Strings in tiles, and where in them each string stands."""
    number = len(strings)
    batches = np.arange(number) // batch_size
    order = np.lexsort((-strings.lengths, batches))
    sizes = np.bincount(batches) if number else np.zeros(0, np.int64)
    tiles = -(-sizes // TILE)
    firsts = np.cumsum(tiles) - tiles
    starts = np.cumsum(sizes) - sizes
    at = np.empty(number, np.int64)
    at[order] = np.repeat(firsts * TILE - starts, sizes) + np.arange(number)
    tiled_size = int(tiles.sum()) * TILE
    letters = np.full((tiled_size, strings.letters.shape[1]), NO_LETTER, np.uint8)
    letters[at] = _from_reader(config, strings)
    lengths, targets, weights = (
        np.zeros(tiled_size, np.int64),
        np.zeros(tiled_size),
        np.zeros(tiled_size),
    )
    lengths[at], targets[at], weights[at] = strings.lengths, labels, 1 / sizes[batches]
    scaled = config.attention_scale == "log_length"
    factors = np.log(lengths + 1) if scaled else np.ones(tiled_size)
    tiled = [x.reshape(-1, TILE).astype(config.precision) for x in (factors, targets, weights)]
    # Of empty strings alone there are tiles, but no letters to say how many.
    by_place = letters.reshape(tiled_size // TILE, TILE, letters.shape[1]).transpose(0, 2, 1)
    longest = lengths.reshape(-1, TILE).max(axis=1, initial=0)
    ends = np.cumsum(tiles)
    made = (np.ascontiguousarray(by_place), longest, tiled[0], tiled[1], tiled[2], ends)
    return LetterTiles(*made), at


def _from_reader(
    config: NetworkConfig, strings: TokenStrings
) -> UInt8[np.ndarray, "string position"]:
    letters = strings.letters
    if config.readout != "last" or letters.shape[1] == 0:
        return letters
    backwards = strings.lengths[:, None] - 1 - np.arange(letters.shape[1])
    reversed_letters = np.take_along_axis(letters, np.maximum(backwards, 0), axis=1)
    return np.where(backwards >= 0, reversed_letters, NO_LETTER).astype(np.uint8)


@remembered
def epoch_letter_tiles(config: NetworkConfig, sampler: Sampler, epoch: int) -> LetterTiles:
    """An epoch of a stream in tiles, made once for all members that read it."""
    drawn = stream(sampler).epoch(epoch)
    return make_letter_tiles(config, drawn.strings, drawn.labels, sampler.batch_size)[0]


@remembered
def validation_questions(config: NetworkConfig, sampler: Sampler) -> list[Question]:
    """The first epoch of a stream, to be answered, made once for all members that read it."""
    drawn = stream(sampler).epoch(0)
    return questions(config, drawn.strings, drawn.labels)


def questions(
    config: NetworkConfig, strings: TokenStrings, labels: Bool[np.ndarray, " string"]
) -> list[Question]:
    """Strings to be answered: at once, or where places are drawn, those of one length at once."""
    if not len(strings):
        return []
    everything = np.arange(len(strings))
    if not config.position_range:
        longest = int(strings.lengths.max())
        places = fixed_places(config, longest)
        return [_question(config, strings, labels, everything, places)]
    by_length = []
    for length in np.unique(strings.lengths).tolist():
        rows = everything[strings.lengths == length]
        places = testing_places(config, length)
        by_length.append(_question(config, strings.take(rows), labels[rows], rows, places))
    return by_length


def _question(
    config: NetworkConfig,
    strings: TokenStrings,
    labels: Bool[np.ndarray, " string"],
    rows: Int64[np.ndarray, " string"],
    places: Int64[np.ndarray, "1 place"],
) -> Question:
    tiles, at = make_letter_tiles(config, strings, labels, max(len(strings), 1))
    # No wider than the places: strings that were taken out may be shorter than their array.
    narrow = np.ascontiguousarray(tiles.letters[:, : places.shape[1] - 1])
    return Question(tiles._replace(letters=narrow), places_of(config, places), rows, at)
