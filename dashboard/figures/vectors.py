"""Figures of tokens and of heads: embeddings, keys, queries, values, and what becomes of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dashboard.charts.state_points import token_states
from dashboard.figures.figure import Figure, Projection, kept_share, points, selection_of
from dashboard.figures.history import Traces
from seqcls.interpretability.states_by_counts import Activations

_StringStates = Callable[[Activations, int], np.ndarray]
"""The states of a string's tokens, by its number."""


def embeddings(traces: Traces, epoch: int) -> Iterator[Figure]:
    """2: the vector of each token."""
    note = "The vector of each token of the vocabulary. `CLS` starts every string."
    yield _of_vocabulary(traces, epoch, 2, "Token embeddings", note, "embedding")


def normalized_embeddings(traces: Traces, epoch: int) -> Iterator[Figure]:
    """4: the embeddings as attention reads them, where there is a norm."""
    if traces.history.config.has_norms:
        note = "The embeddings after the norm before attention: what queries, keys and values read."
        yield _of_vocabulary(traces, epoch, 4, "Normalised embeddings", note, "attention_norm")


def _of_vocabulary(
    traces: Traces, epoch: int, number: int, title: str, note: str, name: str
) -> Figure:
    states = {at: getattr(activations, name) for at, activations in traces.states.items()}
    projection, now = traces.projection(list(states.values())), states[epoch]
    frame = points(projection, now, token=traces.tokens, name=traces.tokens, row="embedding")
    chart = token_states(frame, selection_of(projection), traces.tokens, title)
    return Figure(number, title, "", note + kept_share(projection, now), frame, chart)


def string_embeddings(traces: Traces, epoch: int) -> Iterator[Figure]:
    """3: each string as the embeddings of its tokens, with how often each occurs."""
    note = (
        "A string as attention sees it: only which tokens it holds and how often, written `a{2}`."
    )
    yield _of_strings(traces, epoch, 3, "Embeddings of a string", note, lambda s, _: s.embedding)


def final_states(traces: Traces, epoch: int) -> Iterator[Figure]:
    """15: the states of all tokens of a string after the block."""
    note = "All tokens of a string after the block. Only `CLS` is read by the classifier."
    title = "Transformed embeddings of a string"
    yield _of_strings(traces, epoch, 15, title, note, lambda s, i: s.after_feed_forward[i])


def _of_strings(
    traces: Traces, epoch: int, number: int, title: str, note: str, states: _StringStates
) -> Figure:
    every = range(len(traces.strings))
    stacked = {
        at: np.concatenate([states(activations, i) for i in every])
        for at, activations in traces.states.items()
    }
    projection = traces.projection(list(stacked.values()))
    panels = [_string_tokens(traces, epoch, i, states, projection) for i in every]
    frame = pd.concat(panels, ignore_index=True)
    chart = token_states(frame, selection_of(projection), traces.tokens, title)
    text = note + kept_share(projection, stacked[epoch])
    return Figure(number, title, "", text, frame, chart)


def _string_tokens(
    traces: Traces, epoch: int, string: int, states: _StringStates, projection: Projection
) -> pd.DataFrame:
    """The kinds of token that a string holds, each once, with how often it occurs."""
    now = traces.states[epoch]
    present = now.present[string]
    tokens = [token for token, here in zip(traces.tokens, present, strict=True) if here]
    counts = now.counts[string][present].tolist()
    names = [f"{t}{{{n}}}" if n > 1 else t for t, n in zip(tokens, counts, strict=True)]
    shown = traces.strings[string] or "(empty)"
    drawn = states(now, string)[present]
    return points(projection, drawn, token=tokens, name=names, row=shown, panel=shown)


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
    seen = _attended_kinds(traces)
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
    seen = _attended_kinds(traces)
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


def _attended_kinds(traces: Traces) -> slice:
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
        chart = token_states(frame, selection_of(projection), traces.tokens, title)
        yield Figure(number, title, "", note, frame, chart)
        return
    for head in heads:
        projection = traces.projection(every[head], vectors.axis)
        frame = _points(traces, epoch, projection, head, vectors)
        chart = token_states(
            frame, selection_of(projection), traces.tokens, f"{title}: head {head}"
        )
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
