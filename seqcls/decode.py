"""Decoding: writing outputs token by token, each from the input and the tokens before it.

Any model can write: it caches the tokens before (`stepping`), and a beam finds outputs; with width
1 it is greedy. `seqcls.kinds.transduction.TransductionKind.ask` evaluates the outputs.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from seqcls.cancellation import check, check_each
from seqcls.config import NetworkConfig
from seqcls.engines.base import Writer
from seqcls.engines.pytorch.members import testing_pieces
from seqcls.kinds import Examples
from seqcls.kinds.base import Scored, Written
from seqcls.kinds.transduction import TransductionKind, end_id, separator_id, writable
from seqcls.models.base import Classifier, Ids
from seqcls.models.batches import compute
from seqcls.models.forms import Cached, Scores, Stepping, Tokens, form, map_cached
from seqcls.models.initialization import load_parameters, make_model
from seqcls.models.pictures import pictures_at_once
from seqcls.models.positions import longest_readable
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, PAD


class Anew:
    """Adapter of any model to `Stepping`: it caches tokens alone and reruns the model for each.

    Args:
        model: a model that predicts at every token, without dropout.
    """

    def __init__(self, model: Classifier) -> None:
        self._model = model

    def begin(self, ids: Ids, most_tokens: int) -> tuple[Scores, Cached]:
        # There is room for all tokens from the start, so that each is written in place.
        wide = torch.nn.functional.pad(ids, (0, most_tokens), value=PAD)
        return self._read(wide, (ids != PAD).sum(dim=1))

    def step(self, tokens: Tokens, cached: Cached) -> tuple[Scores, Cached]:
        written, lengths = cached
        written[torch.arange(len(tokens)), lengths] = tokens.to(written.dtype)
        return self._read(written, lengths + 1)

    def _read(self, written: Ids, lengths: Tensor) -> tuple[Scores, Cached]:
        outputs: Tensor = self._model(written[:, : int(lengths.max())])
        return outputs[torch.arange(len(written)), lengths - 1], (written, lengths)


def stepping(model: Classifier) -> Stepping:
    """Returns the model as `Stepping`, by its forms if it has them."""
    has_forms = None not in (form(model, "begin"), form(model, "step"))
    return model if has_forms and isinstance(model, Stepping) else Anew(model)


def beam(
    model: Stepping, ids: Ids, limits: Int64[Tensor, " string"], end: int, width: int
) -> list[list[Written]]:
    """Finds the likeliest outputs of each string by beam search, the likeliest first.

    At every position the `width` likeliest continuations of all outputs remain; one with `END` is
    done. The search ends when no open output is likelier than the likeliest one done, since no
    continuation is likelier than its beginning. Width 1 takes the likeliest token each time.

    Args:
        model: from `stepping`, without dropout.
        ids: tokens read first, with `PAD` after each string.
        limits: most tokens of each output, at least 1.
        width: number of outputs that remain.

    Returns:
        The outputs of each string; if the model gives NaN, an empty output that has not ended,
        with log-probability NaN.
    """
    outputs, cached = model.begin(ids, int(limits.max()))
    rows = torch.arange(len(ids))
    open_scores = outputs.new_zeros(len(ids), 1)
    tokens = torch.zeros(len(ids), 1, 0, dtype=torch.long)
    done: list[list[Written]] = [[] for _ in range(len(ids))]
    best = outputs.new_full((len(ids),), -torch.inf)
    place = 0
    while True:
        check()
        continued = _extend_beams(open_scores, outputs, width)
        place += 1
        tokens = torch.cat(
            [
                tokens.gather(1, continued.parent[:, :, None].expand(-1, -1, place - 1)),
                continued.token[:, :, None],
            ],
            dim=2,
        )
        is_open = continued.score > -torch.inf
        ends = is_open & (continued.token == end)
        at_limit = is_open & ~ends & (limits[rows] <= place)[:, None]
        for row, column in (ends | at_limit).nonzero().tolist():
            output, ended = tokens[row, column].tolist(), bool(ends[row, column])
            score = float(continued.score[row, column])
            done[int(rows[row])].append(Written(output[:-1] if ended else output, ended, score))
        is_done = ends | at_limit
        scores = continued.score.masked_fill(is_done, -torch.inf)
        likeliest = continued.score.masked_fill(~is_done, -torch.inf).max(dim=1).values
        best[rows] = torch.maximum(best[rows], likeliest)
        goes_on = (scores.max(dim=1).values > best[rows]).nonzero()[:, 0]
        if not len(goes_on):
            break
        # At first a string has one beam, later as many as the width.
        beams = outputs.shape[0] // len(rows)
        # Beams of all strings are concatenated, in the order of the strings.
        parents = (goes_on * beams)[:, None] + continued.parent[goes_on]
        cached = map_cached(partial(torch.index_select, dim=0, index=parents.flatten()), cached)
        rows, tokens, open_scores = rows[goes_on], tokens[goes_on], scores[goes_on]
        outputs, cached = model.step(continued.token[goes_on].flatten(), cached)
    return [
        sorted(some, key=lambda x: -x.log_probability)[:width] or [Written([], False, math.nan)]
        for some in done
    ]


class _Continued(NamedTuple):
    """The likeliest continuations of each string's outputs."""

    score: Float[Tensor, "string beam"]
    parent: Int64[Tensor, "string beam"]
    """Index of the continued output."""
    token: Int64[Tensor, "string beam"]


def _extend_beams(
    open_scores: Float[Tensor, "string beam"],
    outputs: Float[Tensor, "string_beam output"],
    width: int,
) -> _Continued:
    beams, size = open_scores.shape[1], outputs.shape[1]
    # Probabilities are those of training, in which any token may follow.
    scores = outputs.log_softmax(dim=1).where(writable(outputs) > -torch.inf, -torch.inf)
    # An output with NaN is not continued.
    scores = scores.masked_fill(scores.isnan(), -torch.inf)
    scores = open_scores[:, :, None] + scores.view(-1, beams, size)
    best = scores.flatten(1).topk(min(width, beams * size), dim=1)
    return _Continued(best.values, best.indices // size, best.indices % size)


# Scoring of targets by teacher forcing, and writing of outputs, for any model.

NUMBERS_AT_ONCE = 2**24
"""Most numbers in the cache of strings that are written together."""


def score(
    problem: Problem, weights: Weights, examples: Examples, writer: Writer | None = None
) -> Scored:
    """Scores targets by teacher forcing.

    Args:
        writer: the engine; None for PyTorch, which also scores what is NaN to an engine, as sums
            in another order may overflow where PyTorch's do not.
    """
    if writer is None:
        return _score(problem, weights, examples).without_nan()
    scored = writer.score(problem, weights, examples)
    unknown = np.flatnonzero(np.isnan(scored.log_probability))
    if len(unknown):
        readable = _score(problem, weights, examples.take(unknown))
        for name in ("right", "right_length_given", "log_probability"):
            getattr(scored, name)[unknown] = getattr(readable, name)
    return scored.without_nan()


@torch.no_grad()
def _score(problem: Problem, weights: Weights, examples: Examples) -> Scored:
    kind = problem.kind
    assert isinstance(kind, TransductionKind)
    # A head that was also trained on inputs is evaluated on outputs alone.
    network = problem.network.model_copy(update={"head": "output"})
    model = _model(network, weights)
    targets = torch.from_numpy(kind.encoded(problem.task, examples, network))
    right, length_given = np.zeros((2, len(examples)), dtype=bool)
    log_probability = np.zeros(len(examples))
    strings = kind.reading(problem.task, examples)
    for rows, piece in check_each(testing_pieces(network, strings, torch.device("cpu"))):
        outputs, piece_targets = compute(model, piece), targets[torch.from_numpy(rows)]
        right[rows] = kind.are_right(outputs, piece_targets).numpy()
        length_given[rows] = kind.are_right_length_given(outputs, piece_targets).numpy()
        log_probability[rows] = -kind.losses(outputs, piece_targets, "default").numpy()
    return Scored(right, length_given, log_probability)


def best_written(
    problem: Problem, weights: Weights, inputs: TokenStrings, writer: Writer | None = None
) -> list[Written]:
    """Writes the output for each input, by the decoding of the configuration.

    Args:
        writer: the engine for greedy decoding; None for PyTorch, which also writes what is NaN to
            an engine, as in `score`.
    """
    is_greedy = problem.config.decoding == "greedy"
    if writer is None or not is_greedy:
        width = 1 if is_greedy else problem.config.beam_width
        return [outputs[0] for outputs in written_beams(problem, weights, inputs, width)]
    written = writer.write(problem, weights, inputs, output_limits(problem, inputs))
    unknown = [row for row, output in enumerate(written) if math.isnan(output.log_probability)]
    if unknown:
        rows = np.array(unknown)
        for row, output in zip(
            unknown, best_written(problem, weights, inputs.take(rows)), strict=True
        ):
            written[row] = output
    return written


def written_beams(
    problem: Problem, weights: Weights, inputs: TokenStrings, width: int
) -> list[list[Written]]:
    """Writes outputs for each input by beam search, the likeliest first."""
    model = _model(problem.network, weights)
    limits = output_limits(problem, inputs)
    ids = beginnings(problem, inputs)
    written: list[list[Written]] = [[] for _ in range(len(inputs))]
    # Strings of similar lengths are written together to save padding.
    order = np.argsort(inputs.lengths, kind="stable")
    for rows in _pieces(problem, inputs.lengths[order] + 2 + limits[order], width):
        check()
        piece = order[rows]
        wide = int(inputs.lengths[piece].max(initial=0)) + 2
        settings = (stepping(model), ids[piece, :wide], torch.from_numpy(limits[piece]))
        with torch.no_grad():
            outputs = beam(*settings, end_id(problem.network), width)
        for row, output in zip(piece.tolist(), outputs, strict=True):
            written[row] = output
    return written


def output_limits(problem: Problem, inputs: TokenStrings) -> Int64[np.ndarray, " string"]:
    """Most tokens of each output: twice the longest target for the input's length, or fewer if the
    model's positions end before.
    """
    end = longest_readable(problem.network)
    lengths, rows = np.unique(inputs.lengths, return_inverse=True)
    longest = [2 * max(problem.longest_target(length), 1) for length in lengths.tolist()]
    limits = np.array(longest, dtype=np.int64)[rows]
    if end is not None:
        # The last token written is not read.
        limits = np.minimum(limits, end - inputs.lengths)
    return np.maximum(limits, 1)


def beginnings(problem: Problem, inputs: TokenStrings) -> torch.Tensor:
    """Makes the ids read before an output is written: `CLS`, the input and `SEP`."""
    ids = np.pad(inputs.ids, ((0, 0), (1, 1)), constant_values=PAD)
    ids[:, 0] = CLS
    ids[np.arange(len(inputs)), inputs.lengths + 1] = separator_id(problem.network)
    return torch.from_numpy(ids.astype(np.int64))


def _model(config: NetworkConfig, weights: Weights) -> Classifier:
    model = make_model(config).to(dtype=getattr(torch, config.precision))
    load_parameters(model, {name: torch.from_numpy(value) for name, value in weights.items()})
    return model.eval()


def _pieces(problem: Problem, widths: np.ndarray, beams: int) -> list[slice]:
    """Cuts strings, sorted by width, into pieces whose caches fit in memory."""
    config = problem.network
    # Each token has keys and values, or a state, in every block.
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
