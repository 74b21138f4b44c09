"""Figures of heads: the keys and the query that decide attention, and the values it mixes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dashboard.charts.model.state_points import token_states
from dashboard.figures.by_counts.history import Traces
from dashboard.figures.figure import Figure, kept_share, points, view_of
from dashboard.figures.projection import Projection
from seqcls.interpretability.states.by_counts import Activations


@dataclass(frozen=True, eq=False)
class _Vectors:
    """Some vectors of each head, and what they are called."""

    number: int
    title: str
    note: str
    axis: str
    tokens: list[str]
    names: list[str]
    of_head: Callable[[Activations, int], np.ndarray]
    """Shape (token, head_size)."""


def keys_and_queries(traces: Traces, epoch: int, heads: Sequence[int]) -> Iterator[Figure]:
    """5: per head, each token's key and the query of `CLS`."""
    seen = _attended(traces)
    tokens = list(traces.tokens[seen])
    vectors = _Vectors(
        number=5,
        title="Keys and the query of CLS",
        note=(
            "`CLS` gives each token a score: the product of its query and the token's key, over "
            "the root of the head size. The softmax of the scores, each counted as often as its "
            "token occurs, is the attention."
        ),
        axis="key, query",
        tokens=[*tokens, "CLS"],
        names=[*tokens, "CLS query"],
        of_head=lambda s, head: np.concatenate([s.key[head, seen], s.query[head, :1]]),
    )
    yield from _of_heads(traces, epoch, heads, vectors)


def values(traces: Traces, epoch: int, heads: Sequence[int]) -> Iterator[Figure]:
    """6: per head, each token's value."""
    seen = _attended(traces)
    tokens = list(traces.tokens[seen])
    vectors = _Vectors(
        number=6,
        title="Values",
        note=(
            "What `CLS` receives from a head is the mean of these values, weighted by attention. "
            "Letters whose values lie close together are alike to everything that follows."
        ),
        axis="value",
        tokens=tokens,
        names=tokens,
        of_head=lambda s, head: s.value[head, seen],
    )
    yield from _of_heads(traces, epoch, heads, vectors)


def _attended(traces: Traces) -> slice:
    """The kinds of token that can be attended to: `CLS` only where the model allows it."""
    return slice(1 if traces.history.config.no_attend_cls else 0, None)


def _of_heads(
    traces: Traces, epoch: int, heads: Sequence[int], vectors: _Vectors
) -> Iterator[Figure]:
    if not heads:
        return
    number, title, note = vectors.number, vectors.title, vectors.note
    every = {h: [vectors.of_head(s, h) for s in traces.states.values()] for h in heads}
    if traces.history.config.attention_head_size == 1:
        # One line each, on one scale: louder heads reach further.
        projection = traces.projection(
            [np.concatenate(states) for states in zip(*every.values(), strict=True)], vectors.axis
        )
        rows = [_points(traces, epoch, projection, head, vectors) for head in heads]
        frame = pd.concat(rows, ignore_index=True)
        chart = token_states(frame, view_of(projection), traces.tokens, title)
        yield Figure(number, title, "", note, frame, chart)
        return
    for head in heads:
        projection = traces.projection(every[head], vectors.axis)
        frame = _points(traces, epoch, projection, head, vectors)
        chart = token_states(frame, view_of(projection), traces.tokens, f"{title}: head {head}")
        text = note + kept_share(projection, vectors.of_head(traces.states[epoch], head))
        yield Figure(number, title, f"head {head}", text, frame, chart)


def _points(
    traces: Traces, epoch: int, projection: Projection, head: int, vectors: _Vectors
) -> pd.DataFrame:
    return points(
        projection,
        vectors.of_head(traces.states[epoch], head),
        token=vectors.tokens,
        name=vectors.names,
        row=f"head {head}",
        query=[name.endswith("query") for name in vectors.names],
    )
