"""Figures of tokens: embeddings, keys, queries, values, and what the block makes of them."""

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from dashboard.charts.model.state_points import token_states
from dashboard.figures.by_counts.history import Traces
from dashboard.figures.figure import Figure, kept_share, points, view_of
from dashboard.figures.projection import Projection
from seqcls.interpretability.states.by_counts import Activations

_StringStates = Callable[[Activations, int], np.ndarray]
"""The states of a string's tokens, by its number."""


def embeddings(traces: Traces, epoch: int) -> Iterator[Figure]:
    """2: the vector of each token."""
    note = "The vector of each token of the vocabulary. `CLS` starts every string."
    yield _of_vocabulary(traces, epoch, 2, "Token embeddings", note, "embedding")


def normalised(traces: Traces, epoch: int) -> Iterator[Figure]:
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
    chart = token_states(frame, view_of(projection), traces.tokens, title)
    return Figure(number, title, "", note + kept_share(projection, now), frame, chart)


def string_embeddings(traces: Traces, epoch: int) -> Iterator[Figure]:
    """3: each string as the embeddings of its tokens, with how often each occurs."""
    note = (
        "A string as attention sees it: only which tokens it holds and how often, written `a{2}`."
    )
    yield _of_strings(traces, epoch, 3, "Embeddings of a string", note, lambda s, _: s.embedding)


def transformed(traces: Traces, epoch: int) -> Iterator[Figure]:
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
    chart = token_states(frame, view_of(projection), traces.tokens, title)
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
