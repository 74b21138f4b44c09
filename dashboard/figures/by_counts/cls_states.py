"""Figures of strings: what attention gives `CLS`, and its state on the way to the classifier."""

from collections.abc import Callable, Iterator, Sequence

import altair as alt
import numpy as np
import pandas as pd

from dashboard.charts.model.attention import attention_weights
from dashboard.charts.model.state_points import boundary, landmarks, string_states, threshold
from dashboard.figures.by_counts.history import Traces
from dashboard.figures.figure import Figure, kept_share, points, view_of
from dashboard.figures.projection import Projection
from seqcls.interpretability.states.by_counts import Activations


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
        view = view_of(projection)
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


def attention_output(traces: Traces, epoch: int) -> Iterator[Figure]:
    """9: what all heads together add to `CLS`."""
    note = "The values that the heads give `CLS`, through the output matrix and summed."
    yield _of_cls(traces, epoch, 9, "Attention output", note, lambda s: s.attention_output)


def after_attention(traces: Traces, epoch: int) -> Iterator[Figure]:
    """10: `CLS` after the first residual."""
    note = "The embedding of `CLS` plus the attention output."
    title = "CLS after attention"
    yield _of_cls(traces, epoch, 10, title, note, lambda s: s.after_attention)


def normalised_again(traces: Traces, epoch: int) -> Iterator[Figure]:
    """11: the same, as the feed-forward reads it, where there is a norm."""
    if traces.history.config.has_norms:
        note = "The same after the norm before the feed-forward."
        title = "CLS normalised again"
        yield _of_cls(traces, epoch, 11, title, note, lambda s: s.feed_forward_norm)


def feed_forward_output(traces: Traces, epoch: int) -> Iterator[Figure]:
    """12: what the feed-forward adds to `CLS`."""
    note = "What the feed-forward adds to `CLS`."
    title = "Feed-forward output"
    yield _of_cls(traces, epoch, 12, title, note, lambda s: s.feed_forward_output)


def after_feed_forward(traces: Traces, epoch: int) -> Iterator[Figure]:
    """13: `CLS` after the second residual, and the classifier."""
    direction = traces.history.networks[traces.history.kept_epoch].classifier
    now = traces.history.networks[epoch].classifier
    note = (
        "What the classifier reads. Its logit grows along the arrow and is zero on the dashed "
        "line: beyond it a string is predicted positive."
    )
    yield _of_cls(
        traces,
        epoch,
        13,
        "CLS after the block",
        note,
        lambda s: s.after_feed_forward,
        towards=direction,
        classifier=now,
    )


def _of_cls(
    traces: Traces,
    epoch: int,
    number: int,
    title: str,
    note: str,
    states: Callable[[Activations], np.ndarray],
    *,
    towards: np.ndarray | None = None,
    classifier: np.ndarray | None = None,
) -> Figure:
    every = [states(s)[:, 0] for s in traces.states.values()]
    projection = traces.projection(every, towards=towards)
    now = states(traces.states[epoch])[:, 0]
    frame = _string_points(traces, epoch, projection, now)
    extra: list[alt.Chart] = []
    if classifier is not None:
        arrow = projection.coordinates(classifier[None])[0].tolist()
        view = view_of(projection)
        extra = threshold(arrow[0]) if len(arrow) == 1 else boundary(view, (arrow[0], arrow[1]))
    chart = string_states(frame, view_of(projection), title, extra=extra)
    return Figure(number, title, "", note + kept_share(projection, now), frame, chart)


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
