"""One block whose tokens differ by their places: keys and values of every (token, place)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int64, UInt8

from seqcls.cache import remembered
from seqcls.config import NetworkConfig
from seqcls.engines.compiled.engine import EpochPart, Flat, Steps, all_classified, some_batches
from seqcls.engines.fused.buffers import TILE, Shape
from seqcls.engines.fused.packing import (
    ADDED,
    SCHEMES,
    Packed,
    PositionTerms,
    fixed_positions,
    learned_positions,
    position_terms,
    testing_positions,
    training_positions,
)
from seqcls.engines.fused.table_kernel import evaluate_table, train_table_epoch
from seqcls.engines.fused.tiles import integers, shape_of, training_shape
from seqcls.models.positions.numbers import training_generator
from seqcls.problem import Problem
from seqcls.sampling import Sampler
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import NO_LETTER, TokenStrings

# Strings as the tables' kernel reads them: letters by place, in tiles of strings.


class LetterTiles(NamedTuple):
    """Strings in tiles, a batch's longest first; a batch begins with a new tile."""

    letters: UInt8[np.ndarray, "tile position string"]
    """From the reader on: backwards, where it stands at the end; else `NO_LETTER`."""
    slots: Int64[np.ndarray, " tile"]
    """The letters of each tile's longest string."""
    factors: Float[np.ndarray, "tile string"]
    """What scores are multiplied with, biases not."""
    targets: Float[np.ndarray, "tile string"]
    """1 for positive strings, else 0."""
    weights: Float[np.ndarray, "tile string"]
    """One over the size of the batch; 0 where there is no string."""
    ends: Int64[np.ndarray, " batch"]
    """The number of the first tile after each batch."""


class Question(NamedTuple):
    """Strings that are answered at once, since they share their places."""

    tiles: LetterTiles
    places: PositionTerms
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
        places = fixed_positions(config, longest)
        return [_question(config, strings, labels, everything, places)]
    by_length = []
    for length in np.unique(strings.lengths).tolist():
        rows = everything[strings.lengths == length]
        places = testing_positions(config, length)
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
    return Question(tiles._replace(letters=narrow), position_terms(config, places), rows, at)


# Training and answering with tables of (token, place) rows.

COLUMNS = 32
"""Rows are filled up to a multiple of it, so that loops over them are whole vectors."""


class TableProgram(Packed):
    """One member's epochs and validation."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.network)
        self._problem = problem
        self._shape = training_shape(problem)
        self._train = problem.train
        self._validation = validation_questions(self._network, problem.validation)
        self.rng = training_generator(problem.config.train_seed)
        self._scratch = np.empty(TILE, integers(self._network))

    def epoch(self, flat: Flat, steps: Steps, part: EpochPart) -> tuple[float, int]:
        number, first, last = part
        whole = epoch_letter_tiles(self._network, self._train, number)
        if first == 0:
            self._places = self._positions(whole)
        tiles, places = some_batches(whole, first, last), self._places
        if self._network.position_range:
            places = PositionTerms(*(x[first:last] for x in places))
        loss = train_table_epoch(
            flat,
            *steps,
            self._shape,
            rows_shape(self._network, self._shape, tiles.letters.shape[1]),
            SCHEMES[self._network.positions],
            self._scratch,
            places,
            tiles,
        )
        return loss, len(tiles.ends)

    def validation(self, flat: Flat) -> tuple[float, bool]:
        logits = np.zeros(sum(len(each.strings) for each in self._validation), flat.dtype)
        losses = (answer(self._network, self._shape, flat, x, logits) for x in self._validation)
        return sum(losses), all_classified(self._problem, logits)

    def _positions(self, tiles: LetterTiles) -> PositionTerms:
        most = tiles.letters.shape[1]
        if not self._network.position_range:
            return position_terms(self._network, fixed_positions(self._network, most))
        starts = np.concatenate([[0], tiles.ends[:-1]])
        longest = tiles.slots[starts].tolist()
        assert self.rng is not None
        drawn = training_positions(self._network, self.rng, longest, most)
        return position_terms(self._network, drawn)


def rows_shape(config: NetworkConfig, shape: Shape, places: int) -> Shape:
    """The shape with as many token types as (token, place) rows of so many letters' places."""
    if config.positions not in ADDED:
        return shape
    rows = 1 + places * config.num_letters
    return shape._replace(token_types=-(-rows // COLUMNS) * COLUMNS)


def answer(
    config: NetworkConfig, shape: Shape, flat: np.ndarray, question: Question, logits: np.ndarray
) -> float:
    """Writes the logits of a question's strings where they belong; the sum of their losses."""
    by_tile = np.empty_like(question.tiles.targets)
    loss: float = evaluate_table(
        flat,
        shape,
        rows_shape(config, shape, question.tiles.letters.shape[1]),
        SCHEMES[config.positions],
        np.empty(TILE, integers(config)),
        question.places,
        question.tiles,
        by_tile,
    )
    logits[question.strings] = by_tile.reshape(-1)[question.at]
    return loss


def table_logits(
    config: NetworkConfig, flats: Sequence[np.ndarray], strings: TokenStrings
) -> Float[np.ndarray, "member string"]:
    """Logits of models of one shape; NaN for strings with more tokens than learned places."""
    shape = shape_of(config)
    known = np.arange(len(strings))
    if config.positions == "learned" or config.position_range:
        places = config.position_range or learned_positions(config)[0]
        known = np.flatnonzero(strings.lengths + 1 <= places)
    questions_of_known = questions(config, strings.take(known), np.zeros(len(known), bool))
    logits = np.full((len(flats), len(strings)), np.nan, config.precision)
    for row, flat in zip(logits, flats, strict=True):
        answered = np.empty(len(known), config.precision)
        for question in questions_of_known:
            answer(config, shape, flat, question, answered)
        row[known] = answered
    return logits
