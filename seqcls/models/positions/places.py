"""Positions ("places") of tokens: counted, drawn at random, or shared by tokens of one meaning.

With `position_range` n tokens get a sorted sample, without replacement, of so many places (Ruoss et
al. 2023). Training draws a new one for every batch. In testing a string's places depend only on its
length and on a separate seed, so they do not depend on the other strings of a test.

With `position_draw` `shifted` training moves each string's places by one offset, drawn anew every
time, uniform among those with which they still fit the table; testing moves none.

With `coupled` and `coupled_marks` digits of one weight share a place, as do an input token and its
copy (position coupling, Cho et al. 2024); the task defines which. Training moves these places too.

`CLS` has place 0 and is not moved. With `coupled_marks`, as in that paper, the marks of an input
are one place before the ones, and `SEP` is one step before the first token of the output; both are
moved with the others. With `coupled` they have place 0 like `CLS`; at `SEP` a model then cannot see
by how much the input was moved, and so not where to read the first token of its output.

Tests do not move `coupled`'s places: they use the offset at which training has moved the fewest
strings to each place. Those of `coupled_marks` are moved by one offset for all strings, into the
middle of the table, whose places training has seen equally in every role.
"""

import json
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int64, Integer
from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.models.positions import table_size
from seqcls.models.positions.numbers import draw_positions, tested_positions, training_generator
from seqcls.strings.tokenizer import FIRST_LETTER, PAD
from seqcls.tasks import TASKS


def tested_offset(coupling: str) -> int:
    """The offset by which validation and tests move shared places."""
    return _task(coupling).tested_offset


def move_positions(
    places: Int64[Tensor, "string position"], offsets: Int64[Tensor, "*string"]
) -> Int64[Tensor, "string position"]:
    """Moves each string's places by an offset; tokens that share no place stay at 0."""
    return places + offsets.unsqueeze(-1) * (places > 0)


def coupled_positions(
    coupling: str, ids: Integer[Tensor, "string position"]
) -> Int64[Tensor, "string position"]:
    """Computes the tokens' places before any offset; 0 for tokens that share none and for padding.

    Args:
        ids: token ids as a model reads them: `CLS`, an input, `SEP`, and some of its output.
    """
    task, moves_marks, _ = _task(coupling)
    separator = FIRST_LETTER + len(task.alphabet)
    places = np.zeros(tuple(ids.shape), dtype=np.int64)
    for row, tokens in zip(places, ids.cpu().numpy(), strict=True):
        (separators,) = np.nonzero(tokens == separator)
        middle, end = int(separators[0]), int((tokens != PAD).sum())
        letters = (tokens - FIRST_LETTER).astype(np.uint8)
        input_places, output_places = task.couples(letters[1:middle], letters[middle + 1 : end])
        if moves_marks:
            # Marks need places from 1 on too; output tokens beyond any target still have none.
            row[middle] = _separator_position(task, letters[1:middle]) + 1
            input_places, output_places = input_places + 1, output_places + (output_places > 0)
        row[1:middle], row[middle + 1 : end] = input_places, output_places
    return torch.from_numpy(places).to(ids.device)


def _separator_position(task: Any, input_letters: Any) -> int:
    # A task from outside may define `couples` alone.
    place = getattr(task, "separator_place", None)
    return 0 if place is None else int(place(input_letters))


class _Coupling(NamedTuple):
    """The contents of `NetworkConfig.coupling`."""

    task: Any
    moves_marks: bool
    tested_offset: int


@lru_cache(maxsize=16)
def _task(coupling: str) -> _Coupling:
    settings: dict[str, Any] = json.loads(coupling)
    made: Any = TASKS[settings.pop("task")]
    moves_marks, offset = settings.pop("marks", False), settings.pop("tested_offset", 0)
    return _Coupling(made(**settings), moves_marks, offset)


class TrainingPlaces:
    """The places of one batch after another, shared by the members of a group like its strings."""

    def __init__(self, config: NetworkConfig, seed: int) -> None:
        self._config = config
        self._rng = training_generator(seed)

    def draw(self, ids: Integer[Tensor, "string position"]) -> Int64[Tensor, "#string position"]:
        """Draws the places of the next batch, given its ids without needless padding."""
        config = self._config
        if config.position_range:
            # One sample for a batch, of which shorter strings take the first places.
            drawn = draw_positions(self._rng, config.position_range, ids.shape[1])
            return torch.from_numpy(drawn).unsqueeze(0)
        size = table_size(config)
        if config.coupling:
            assert size is not None
            places = coupled_positions(config.coupling, ids)
            # The farthest offset puts the string's last place into the table's last row.
            left = size - 1 - places.max(dim=1).values.numpy()
            offsets = self._rng.integers(0, left, endpoint=True)
            return move_positions(places, torch.from_numpy(offsets))
        places = positions_of(config, ids)
        if config.position_draw == "sorted":
            return places
        assert size is not None
        left = size - (ids != PAD).sum(dim=1).numpy()
        offsets = self._rng.integers(0, left, endpoint=True)
        return places + torch.from_numpy(offsets).unsqueeze(1)


def positions_of(
    config: NetworkConfig, ids: Integer[Tensor, "string position"]
) -> Int64[Tensor, "#string position"]:
    """Returns the tokens' places outside training; those of padding have no meaning."""
    if config.coupling:
        offset = torch.tensor(tested_offset(config.coupling), device=ids.device)
        return move_positions(coupled_positions(config.coupling, ids), offset)
    if not config.position_range:
        counted = torch.arange(ids.shape[1], device=ids.device).unsqueeze(0)
        # The largest place of a string gives its length.
        needs_lengths = config.positions == "fire" and config.attention_mask == "full"
        return counted * (ids != PAD) if needs_lengths else counted
    lengths = (ids != PAD).sum(dim=1)
    # Places depend on the length alone, so each length is drawn once.
    known, rows = lengths.unique(return_inverse=True)
    places = np.zeros((len(known), ids.shape[1]), dtype=np.int64)
    for row, length in zip(places, known.tolist(), strict=True):
        drawn = tested_positions(config.position_range, config.place_seed, length)
        row[: len(drawn)] = drawn
    return torch.from_numpy(places).to(ids.device)[rows]
