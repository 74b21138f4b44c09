"""Greedy decoding and beam search, for any model that writes token by token."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from seqcls.cancellation import check
from seqcls.decoding.stepping import Start, start
from seqcls.engines.base import Written
from seqcls.kinds.transduction import writable
from seqcls.models.base import Classifier, Ids


def greedy(
    model: Classifier,
    ids: Ids,
    limits: Int64[Tensor, " string"],
    end: int,
    *,
    begin: Start = start,
) -> list[Written]:
    """The output of each string that takes the likeliest token at every place.

    Args:
        model: its head answers token by token; dropout is off.
        ids: what it reads first, `PAD` after each.
        limits: tokens of each output at most, at least 1.
        end: the id of `END`.
        begin: how the model keeps what it has read.

    Returns:
        Of a string for which the model gives NaN an empty output that has not ended, its
        log-probability NaN.
    """
    stepper, outputs = begin(model, ids, int(limits.max()))
    count = len(ids)
    tokens = torch.full((count, int(limits.max())), -1)
    ended = torch.zeros(count, dtype=torch.bool)
    scores = torch.zeros(count, dtype=outputs.dtype)
    rows, place = torch.arange(count), 0
    while True:
        check()
        best = writable(outputs).argmax(dim=1)
        scores[rows] += outputs.log_softmax(dim=1).gather(1, best[:, None])[:, 0]
        ends = best == end
        ended[rows[ends]] = True
        tokens[rows[~ends], place] = best[~ends]
        place += 1
        goes_on = (~ends & (limits[rows] > place)).nonzero()[:, 0]
        if not len(goes_on):
            break
        if len(goes_on) < len(rows):
            stepper.take(goes_on)
            rows, best = rows[goes_on], best[goes_on]
        outputs = stepper.step(best)
    # A number that is none cannot be the greatest: nothing is written.
    tokens[scores.isnan()] = -1
    ended &= ~scores.isnan()
    lengths = (tokens >= 0).sum(dim=1).tolist()
    written = zip(tokens.tolist(), lengths, ended.tolist(), scores.tolist(), strict=True)
    return [Written(row[:length], *rest) for row, length, *rest in written]


def beam(
    model: Classifier,
    ids: Ids,
    limits: Int64[Tensor, " string"],
    end: int,
    width: int,
    *,
    begin: Start = start,
) -> list[list[Written]]:
    """The likeliest outputs of each string that a beam of some width finds, the likeliest first.

    At every place the likeliest `width` continuations of all outputs are kept; one with `END` is
    done. It ends when no open output is likelier than the likeliest that is done: none of its
    continuations is. With a width of 1 that is `greedy`.

    Args:
        model: its head answers token by token; dropout is off.
        ids: what it reads first, `PAD` after each.
        limits: tokens of each output at most, at least 1.
        end: the id of `END`.
        width: outputs that are kept.
        begin: how the model keeps what it has read.
    """
    stepper, outputs = begin(model, ids, int(limits.max()))
    rows = torch.arange(len(ids))
    open_scores = outputs.new_zeros(len(ids), 1)
    tokens = torch.zeros(len(ids), 1, 0, dtype=torch.long)
    done: list[list[Written]] = [[] for _ in range(len(ids))]
    place = 0
    while True:
        check()
        continued = _continued(open_scores, outputs, width)
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
            kept, ended = tokens[row, column].tolist(), bool(ends[row, column])
            score = float(continued.score[row, column])
            done[int(rows[row])].append(Written(kept[:-1] if ended else kept, ended, score))
        scores = continued.score.masked_fill(ends | at_limit, -torch.inf)
        best = torch.tensor(
            [max((x.log_probability for x in done[row]), default=-torch.inf) for row in rows],
            dtype=scores.dtype,
        )
        goes_on = (scores.max(dim=1).values > best).nonzero()[:, 0]
        if not len(goes_on):
            break
        beams = outputs.shape[0] // len(rows)
        parents = (goes_on * beams)[:, None] + continued.parent[goes_on]
        stepper.take(parents.flatten())
        rows, tokens, open_scores = rows[goes_on], tokens[goes_on], scores[goes_on]
        outputs = stepper.step(continued.token[goes_on].flatten())
    return [
        sorted(some, key=lambda x: -x.log_probability)[:width] or [Written([], False, math.nan)]
        for some in done
    ]


class _Continued(NamedTuple):
    """The likeliest continuations of each string's outputs."""

    score: Float[Tensor, "string beam"]
    parent: Int64[Tensor, "string beam"]
    """Which output is continued."""
    token: Int64[Tensor, "string beam"]


def _continued(
    open_scores: Float[Tensor, "string beam"],
    outputs: Float[Tensor, "string_beam output"],
    width: int,
) -> _Continued:
    beams, size = open_scores.shape[1], outputs.shape[1]
    # Probabilities are those of training, in which any token may follow.
    scores = outputs.log_softmax(dim=1).where(writable(outputs) > -torch.inf, -torch.inf)
    # An output whose numbers are none is not continued.
    scores = scores.masked_fill(scores.isnan(), -torch.inf)
    scores = open_scores[:, :, None] + scores.view(-1, beams, size)
    best = scores.flatten(1).topk(min(width, beams * size), dim=1)
    return _Continued(best.values, best.indices // size, best.indices % size)
