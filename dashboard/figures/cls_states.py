"""Figures of strings: what attention gives `CLS`, and its state on the way to the classifier."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

from dashboard.charts.attention import attention_weights
from dashboard.charts.state_points import boundary, landmarks, string_states, threshold
from dashboard.figures.figure import Figure, Projection, kept_share, points, selection_of
from dashboard.figures.history import Traces

LAST = 13
"""The figure of the state that the classifier reads."""


def attention_values(traces: Traces, epoch: int, heads: Sequence[int]) -> Iterator[Figure]:
    """7: per head, what `CLS` receives from each string, between the values of the letters."""
    note = (
        "The mean of the tokens' values, weighted by attention. The letters mark their own values: "
        "a string stands near the letter that a head attends to."
    )
    title = "Attention value of CLS"
    for head in heads:
        of_tokens = [s.value[head] for s in traces.states.values()]
        received = [s.mixed_value[:, head, 0] for s in traces.states.values()]
        projection = traces.projection(
            [np.concatenate(pair) for pair in zip(of_tokens, received, strict=True)], "value"
        )
        now = traces.states[epoch]
        frame = _string_points(traces, epoch, projection, now.mixed_value[:, head, 0])
        marks = points(projection, now.value[head, 1:], token=traces.tokens[1:])
        view = selection_of(projection)
        extra = landmarks(marks, view)
        chart = string_states(frame, view, f"{title}: head {head}", extra=extra)
        text = note + kept_share(projection, now.mixed_value[:, head, 0])
        yield Figure(7, title, f"head {head}", text, frame, chart)


def weights(traces: Traces, epoch: int, heads: Sequence[int]) -> Iterator[Figure]:
    """8: per head and string, the attention weights of `CLS`."""
    note = (
        "The weight of all tokens of a type together: a softmax over token types, in which a token "
        "with score s that occurs n times counts n times e to the s."
    )
    title = "Attention weights of CLS"
    for head in heads:
        frame = weights_frame(traces, epoch, head)
        if not frame.empty:
            chart = attention_weights(frame, traces.tokens, f"{title}: head {head}")
            yield Figure(8, title, f"head {head}", note, frame, chart)


def weights_frame(traces: Traces, epoch: int, head: int) -> pd.DataFrame:
    """string, head, token, count, label, score, each (one token's weight), weight (of them all)."""
    now = traces.states[epoch]
    return pd.DataFrame(
        [
            {
                "string": string or "(empty)",
                "head": f"head {head}",
                "token": token,
                "count": int(now.counts[i, kind]),
                "label": f"{token} x {now.counts[i, kind]:,}",
                "score": now.scores[head, 0, kind],
                "each": now.weights_each[i, head, 0, kind],
                "weight": now.weights[i, head, 0, kind],
            }
            for i, string in enumerate(traces.strings)
            for kind, token in enumerate(traces.tokens)
            if now.attended[i, kind]
        ]
    )


@dataclass(frozen=True)
class _ClsState:
    """A state of `CLS` on its way: what its figure is called, and where it is found."""

    title: str
    note: str
    name: str
    """The name of the field of `Activations`."""


_STATES = {
    9: _ClsState(
        "Attention output",
        "The values that the heads give `CLS`, through the output matrix and summed.",
        "attention_output",
    ),
    10: _ClsState(
        "CLS after attention",
        "The embedding of `CLS` plus the attention output.",
        "after_attention",
    ),
    11: _ClsState(
        "CLS normalised again",
        "The same after the norm before the feed-forward.",
        "feed_forward_norm",
    ),
    12: _ClsState(
        "Feed-forward output", "What the feed-forward adds to `CLS`.", "feed_forward_output"
    ),
    LAST: _ClsState(
        "CLS after the block",
        "What the classifier reads. Its logit grows along the arrow and is zero on the dashed "
        "line: beyond it a string is predicted positive.",
        "after_feed_forward",
    ),
}


def cls_state(number: int, traces: Traces, epoch: int) -> Iterator[Figure]:
    """9 to 13: the state of `CLS`, from the attention output to what the classifier reads."""
    state, history = _STATES[number], traces.history
    if state.name == "feed_forward_norm" and not history.config.has_norms:
        return
    every = [getattr(s, state.name)[:, 0] for s in traces.states.values()]
    towards = history.networks[history.kept_epoch].classifier if number == LAST else None
    projection = traces.projection(every, towards=towards)
    now = getattr(traces.states[epoch], state.name)[:, 0]
    frame = _string_points(traces, epoch, projection, now)
    view, extra = selection_of(projection), list[alt.Chart]()
    if number == LAST:
        x, *y = projection.coordinates(history.networks[epoch].classifier[None])[0].tolist()
        extra = boundary(view, (x, y[0])) if y else threshold(x)
    chart = string_states(frame, view, state.title, extra=extra)
    text = state.note + kept_share(projection, now)
    yield Figure(number, state.title, "", text, frame, chart)


def _string_points(
    traces: Traces, epoch: int, projection: Projection, states: np.ndarray
) -> pd.DataFrame:
    names = [string or "(empty)" for string in traces.strings]
    return points(
        projection,
        states,
        name=names,
        row=names,
        outcome=traces.outcomes(epoch),
        logit=traces.states[epoch].logit,
    )
