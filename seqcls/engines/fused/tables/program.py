"""Training and answering with tables of (token, place) rows."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from seqcls.config import NetworkConfig
from seqcls.engines.compiled.training import Flat, Update
from seqcls.engines.fused.buffers import TILE, Shape
from seqcls.engines.fused.learned import learned_places
from seqcls.engines.fused.packing import Packed
from seqcls.engines.fused.shapes import integers, shape_of, training_shape
from seqcls.engines.fused.tables.kernel import evaluate_table, train_table_epoch
from seqcls.engines.fused.tables.places import (
    ADDED,
    SCHEMES,
    Places,
    fixed_places,
    places_of,
    training_places,
)
from seqcls.engines.fused.tables.tiles import (
    LetterTiles,
    Question,
    epoch_letter_tiles,
    questions,
    validation_questions,
)
from seqcls.models.positions.numbers import training_generator
from seqcls.problem import Problem
from seqcls.tokens.strings import TokenStrings

COLUMNS = 32
"""Rows are filled up to a multiple of it, so that loops over them are whole vectors."""


class TableProgram(Packed):
    """One member's epochs and validation."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.network)
        self._shape = training_shape(problem)
        self._train = problem.train
        self._validation = validation_questions(self._network, problem.validation)
        self.rng = training_generator(problem.config.train_seed)
        self._scratch = np.empty(TILE, integers(self._network))

    def epoch(
        self, flat: Flat, moments: np.ndarray, steps: int, update: Update, number: int
    ) -> tuple[float, int]:
        """Trains for an epoch, in place; the sum of its losses, and how many steps it had."""
        tiles = epoch_letter_tiles(self._network, self._train, number)
        loss = train_table_epoch(
            flat,
            moments,
            steps,
            update,
            self._shape,
            rows_shape(self._network, self._shape, tiles.letters.shape[1]),
            SCHEMES[self._network.positions],
            self._scratch,
            *self._places(tiles),
            *tiles,
        )
        return loss, len(tiles.ends)

    def validation(self, flat: Flat) -> tuple[float, bool]:
        """Implements `Program.validation`."""
        logits = np.zeros(sum(len(each.strings) for each in self._validation), flat.dtype)
        losses = (answer(self._network, self._shape, flat, x, logits) for x in self._validation)
        return sum(losses), False

    def _places(self, tiles: LetterTiles) -> Places:
        most = tiles.letters.shape[1]
        if not self._network.position_range:
            return places_of(self._network, fixed_places(self._network, most))
        starts = np.concatenate([[0], tiles.ends[:-1]])
        longest = tiles.slots[starts].tolist()
        assert self.rng is not None
        drawn = training_places(self._network, self.rng, longest, most)
        return places_of(self._network, drawn)


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
        *question.places,
        *question.tiles[:5],
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
        places = config.position_range or learned_places(config)[0]
        known = np.flatnonzero(strings.lengths + 1 <= places)
    questions_of_known = questions(config, strings.take(known), np.zeros(len(known), bool))
    logits = np.full((len(flats), len(strings)), np.nan, config.precision)
    for row, flat in zip(logits, flats, strict=True):
        answered = np.empty(len(known), config.precision)
        for question in questions_of_known:
            answer(config, shape, flat, question, answered)
        row[known] = answered
    return logits
