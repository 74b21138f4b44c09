"""What trained models write for inputs, held against the targets.

Teacher forcing tells at once which outputs of greedy decoding are right: those of which every token
has the highest output after the target's tokens before it. Only the others are written.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64

from seqcls.cancellation import check, checked
from seqcls.decoding.measures import edits, error_kind, first_wrong
from seqcls.decoding.searching import beam, greedy
from seqcls.engines.base import Scored, Writer, Written
from seqcls.engines.strings.flat_group import FlatGroup
from seqcls.engines.strings.one_by_one import OneByOne
from seqcls.kinds import Examples
from seqcls.kinds.transduction import Transduction, end_id, separator_id, target_lengths
from seqcls.models.base import Classifier
from seqcls.models.initialization import make_model
from seqcls.models.positions import longest_readable
from seqcls.models.two_streams.pictures import pictures_at_once
from seqcls.problem import Problem
from seqcls.results import ErrorKind, Weights
from seqcls.tokens.strings import NO_LETTER, TokenStrings
from seqcls.tokens.tokenizer import CLS, FIRST_LETTER, PAD

NUMBERS_AT_ONCE = 2**24
"""Numbers in the cache of the strings that are written at once."""


@dataclass(frozen=True, eq=False)
class Judged:
    """What one model makes of inputs."""

    is_wrong: Bool[np.ndarray, " string"]
    right_length_given: Bool[np.ndarray, " string"]
    log_probability: Float[np.ndarray, " string"]
    """The log-probability of the target and `END`, teacher forced, in nats."""
    edits: Int64[np.ndarray, " string"]
    outputs: Sequence[Sequence[int]]
    """The wrong outputs in their order, as letters."""
    first_wrong: Int64[np.ndarray, " wrong"]
    error_kinds: Sequence[ErrorKind]


def readable_inputs(problem: Problem, examples: Examples) -> Bool[np.ndarray, " string"]:
    """Which inputs models have places for, with their targets: all, or the shorter ones."""
    end = longest_readable(problem.network)
    lengths = examples.strings.lengths + 1 + target_lengths(examples.targets)
    return np.asarray(lengths <= (np.inf if end is None else end))


def judge(
    problem: Problem, weights: Weights, examples: Examples, writer: Writer | None = None
) -> Judged:
    """Asks a model about inputs that it has places for.

    Args:
        problem: what it was trained for: a transduction.
        weights: its parameters.
        examples: inputs and their targets.
        writer: what scores and writes; by default PyTorch.
    """
    scored = (writer or _PYTORCH).score(problem, weights, examples)
    targets = _letters_of(examples.targets)
    rows = np.flatnonzero(~scored.right)
    if problem.config.decoding == "beam":
        rows = np.arange(len(examples))
    written = best_written(problem, weights, examples.strings.take(rows), writer)
    is_wrong = np.zeros(len(examples), dtype=bool)
    distances = np.zeros(len(examples), dtype=np.int64)
    wrong: list[tuple[list[int], int, ErrorKind]] = []
    for row, output in zip(rows.tolist(), written, strict=True):
        said, target = [token - FIRST_LETTER for token in output.tokens], targets[row]
        if said == target and output.ended and not math.isnan(output.log_probability):
            continue
        is_wrong[row] = True
        distances[row] = edits(said, target)
        kind = error_kind(said, target, ended=output.ended)
        wrong.append((said, first_wrong(said, target), kind))
    return Judged(
        is_wrong,
        scored.right_length_given,
        scored.log_probability,
        distances,
        [said for said, _, _ in wrong],
        np.array([place for _, place, _ in wrong], dtype=np.int64),
        [kind for _, _, kind in wrong],
    )


def score(problem: Problem, weights: Weights, examples: Examples) -> Scored:
    """Has a model read inputs with their targets."""
    kind = problem.kind
    assert isinstance(kind, Transduction)
    network = problem.network.model_copy(update={"head": "output"})
    device = torch.device("cpu")
    model = OneByOne(FlatGroup([weights], device), network, len(examples), device)
    targets = torch.from_numpy(kind.encoded(problem.task, examples, network))
    right, length_given = np.zeros((2, len(examples)), dtype=bool)
    log_probability = np.zeros(len(examples))
    for rows, piece in checked(model.pieces(kind.reading(problem.task, examples))):
        outputs, wanted = model.logits(piece)[0], targets[torch.from_numpy(rows)]
        right[rows] = kind.are_right(outputs, wanted).numpy()
        length_given[rows] = kind.are_right_length_given(outputs, wanted).numpy()
        log_probability[rows] = -kind.losses(outputs, wanted, "default").numpy()
    return Scored(right, length_given, log_probability).answered()


def best_written(
    problem: Problem, weights: Weights, inputs: TokenStrings, writer: Writer | None = None
) -> list[Written]:
    """The output for each input, by the decoding of the configuration."""
    if problem.config.decoding == "beam":
        beams = written_beams(problem, weights, inputs, problem.config.beam_width)
        return [outputs[0] for outputs in beams]
    limits = output_limits(problem, inputs)
    return (writer or _PYTORCH).write(problem, weights, inputs, limits)


class _PyTorch:
    """A `Writer` for any model."""

    def score(self, problem: Problem, weights: Weights, examples: Examples) -> Scored:
        """Implements `Writer.score`."""
        return score(problem, weights, examples)

    def write(
        self,
        problem: Problem,
        weights: Weights,
        inputs: TokenStrings,
        limits: Int64[np.ndarray, " string"],
    ) -> list[Written]:
        """Implements `Writer.write`; the limits are those of `written_beams`."""
        del limits
        return [outputs[0] for outputs in written_beams(problem, weights, inputs, None)]


_PYTORCH = _PyTorch()


def written_beams(
    problem: Problem, weights: Weights, inputs: TokenStrings, width: int | None
) -> list[list[Written]]:
    """The outputs for each input, the likeliest first.

    Args:
        problem: what it was trained for: a transduction.
        weights: its parameters.
        inputs: strings that the model has places for.
        width: of the beam; None for greedy decoding.
    """
    model = _model(problem, weights)
    limits = output_limits(problem, inputs)
    ids = beginnings(problem, inputs)
    written: list[list[Written]] = [[] for _ in range(len(inputs))]
    order = np.argsort(inputs.lengths, kind="stable")
    for rows in _pieces(problem, inputs.lengths[order] + 2 + limits[order], width or 1):
        check()
        piece = order[rows]
        wide = int(inputs.lengths[piece].max(initial=0)) + 2
        settings = (model, ids[piece, :wide], torch.from_numpy(limits[piece]))
        end = end_id(problem.network)
        with torch.no_grad():
            outputs = (
                [[output] for output in greedy(*settings, end)]
                if width is None
                else beam(*settings, end, width)
            )
        for row, output in zip(piece.tolist(), outputs, strict=True):
            written[row] = output
    return written


def output_limits(problem: Problem, inputs: TokenStrings) -> Int64[np.ndarray, " string"]:
    """Tokens that are written at most: twice the longest target that so long an input may have, or
    what the model has places for.
    """
    end = longest_readable(problem.network)
    lengths, rows = np.unique(inputs.lengths, return_inverse=True)
    longest = [2 * max(problem.longest_target(length), 1) for length in lengths.tolist()]
    limits = np.array(longest, dtype=np.int64)[rows]
    if end is not None:
        # The last token that is written need not be read.
        limits = np.minimum(limits, end - inputs.lengths)
    return np.maximum(limits, 1)


def beginnings(problem: Problem, inputs: TokenStrings) -> torch.Tensor:
    """What is read before an output is written: `CLS`, the input and `SEP`."""
    ids = np.pad(inputs.ids, ((0, 0), (1, 1)), constant_values=PAD)
    ids[:, 0] = CLS
    ids[np.arange(len(inputs)), inputs.lengths + 1] = separator_id(problem.network)
    return torch.from_numpy(ids.astype(np.int64))


def _model(problem: Problem, weights: Weights) -> Classifier:
    config = problem.without_dropout.network
    model = make_model(config).to(dtype=getattr(torch, config.precision))
    model.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    return model.eval()


def _pieces(problem: Problem, widths: np.ndarray, beams: int) -> list[slice]:
    """Pieces of strings in the order of their widths, whose caches fit in memory."""
    config = problem.network
    a_token = (
        2
        * config.num_blocks
        * max(config.num_attention_heads * config.attention_head_size, config.hidden_size)
    )
    pieces, start = [], 0
    while start < len(widths):
        fits = np.arange(1, len(widths) - start + 1) * widths[start:] * beams * a_token
        fitting = int(np.searchsorted(fits, NUMBERS_AT_ONCE, "right"))
        end = start + max(min(fitting, pictures_at_once(config)), 1)
        pieces.append(slice(start, end))
        start = end
    return pieces


def _letters_of(targets: np.ndarray) -> list[list[int]]:
    lengths = target_lengths(targets).tolist()
    return [row[:length] for row, length in zip(targets.tolist(), lengths, strict=True)]


def letter_rows(outputs: Sequence[Sequence[int]]) -> np.ndarray:
    """Outputs as targets are written: letters, `NO_LETTER` after each end."""
    width = max(map(len, outputs), default=0)
    rows = np.full((len(outputs), width), NO_LETTER, dtype=np.uint8)
    for row, output in zip(rows, outputs, strict=True):
        row[: len(output)] = output
    return rows
