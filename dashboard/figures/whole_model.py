"""Figures of the whole model: losses, parameters, the stream read out, and the circuits."""

from collections.abc import Iterator, Sequence
from typing import Literal

import altair as alt
import numpy as np
import pandas as pd

from dashboard.charts.colors import GREY, OKABE_ITO
from dashboard.charts.pointing import TOKEN, add_frame, pointer
from dashboard.charts.readout import steps_frame, waterfall
from dashboard.charts.scales import (
    LOG_AXIS,
    SIDE,
    Domain,
    Drawing,
    by_panel,
    readable_on,
    reserve_height,
)
from dashboard.figures.figure import Figure
from dashboard.figures.history import Traces, kept_sentence, losses, losses_by_part
from seqcls.interpretability.attribution import direct_logit_attribution
from seqcls.interpretability.network import Network
from seqcls.interpretability.states_by_counts import Circuits, circuits
from seqcls.problem import resolve

PARAMETER_ROW = 30


def magnitudes(frame: pd.DataFrame, domain: Domain) -> Drawing:
    """Every parameter as a tick, its absolute value on a log scale; dots are root mean squares.

    Args:
        frame: parameter (the matrix it is of), entry (its place, as text), value, magnitude.
        domain: limits of the magnitude, above zero. A value below them is drawn at the lower one.
    """
    drawn = frame.assign(shown=frame["magnitude"].clip(lower=domain[0]))
    squares = (frame["value"] ** 2).groupby(frame["parameter"], sort=False).mean()
    means = squares.pow(0.5).clip(lower=domain[0]).rename("rms").reset_index()
    names = list(dict.fromkeys(frame["parameter"]))
    y = alt.Y("parameter:N", title=None, sort=names, axis=alt.Axis(labelLimit=220))

    def x(field: str) -> alt.X:
        return alt.X(
            f"{field}:Q",
            title="Absolute value (log)",
            scale=alt.Scale(type="log", domain=domain, nice=False),
            axis=alt.Axis(**LOG_AXIS),
        )

    ticks = (
        alt.Chart(drawn)
        .mark_tick(color=OKABE_ITO[0], thickness=1, opacity=1)
        .encode(
            x("shown"),
            y,
            tooltip=[
                alt.Tooltip("parameter:N", title="Matrix"),
                alt.Tooltip("entry:N", title="Row, column"),
                alt.Tooltip("value:Q", title="Value", format=".6f"),
            ],
        )
    )
    dots = (
        alt.Chart(means)
        .mark_point(filled=True, size=80, color=GREY, opacity=1)
        .encode(
            x("rms"),
            y,
            tooltip=[
                alt.Tooltip("parameter:N", title="Matrix"),
                alt.Tooltip("rms:Q", title="Root mean square", format=".6f"),
            ],
        )
    )
    return alt.layer(ticks, dots).properties(
        width=2 * SIDE - 160,
        height=alt.Step(PARAMETER_ROW),
        title="How large the parameters are (dot: root mean square)",
        **reserve_height(PARAMETER_ROW * len(names)),
    )


# The two circuits of a head: what it looks for, and what it then writes.

CELL = 52
CIRCUIT_ROW = 30


def matrix(
    frame: pd.DataFrame,
    tokens: Sequence[str],
    titles: tuple[str, str],
    what: str,
    limit: float,
    attended: Literal["row", "column"],
) -> Drawing:
    """A number for every pair of a row and a column, one square grid a head.

    Args:
        frame: head, row, column and value.
        tokens: the columns in order.
        titles: what a row is and what a column is.
        what: what the value is, with its unit.
        limit: the largest absolute value of the color scale, the same at every epoch.
        attended: which of the two is the token that is attended to, and is pointed at.
    """
    x = alt.X(
        "column:N",
        title=titles[1],
        sort=list(tokens),
        axis=alt.Axis(labelAngle=0, labelLimit=CELL),
    )
    y = alt.Y("row:N", title=titles[0], sort=None)
    base = alt.Chart().encode(
        x,
        y,
        tooltip=[
            alt.Tooltip("head:N", title="Head"),
            alt.Tooltip("row:N", title=titles[0]),
            alt.Tooltip("column:N", title=titles[1]),
            alt.Tooltip("value:Q", title=what, format=".4f"),
        ],
    )
    color = alt.Color(
        "value:Q",
        title=what,
        scale=alt.Scale(scheme="blueorange", domain=[-limit, limit], domainMid=0, reverse=True),
        legend=alt.Legend(orient="bottom", gradientLength=200),
    )
    cells = base.mark_rect().encode(color).add_params(pointer(TOKEN))
    number = alt.Text("value:Q", format=".2f")
    texts = base.mark_text(fontSize=11).encode(text=number, color=readable_on("value"))
    size = {"width": alt.Step(CELL), "height": alt.Step(CIRCUIT_ROW)}
    frames = add_frame(alt.Chart().encode(y if attended == "row" else x), TOKEN)
    grid = alt.layer(cells, texts, frames, data=frame).properties(**size)
    grid = grid.transform_calculate(token=f"datum.{attended}")
    panels = grid.facet(alt.Facet(**by_panel(frame, "head")), columns=2, spacing=24)
    # Each panel is drawn alone.
    return panels.resolve_scale(y="independent").properties(
        **reserve_height(CIRCUIT_ROW * frame["row"].nunique())
    )


ORDER = (
    "embedding",
    "attention_norm",
    "query",
    "key",
    "value",
    "attention.output",
    "feed_forward_norm",
    "feed_forward.input",
    "feed_forward.output",
)
"""Parts of the names of parameters, in the order of the computation; the classifier is last."""

SMALLEST = 1e-4
"""Parameters nearer to zero are drawn at this magnitude."""


def loss_by_epoch(traces: Traces, epoch: int) -> Iterator[Figure]:
    """1: training and validation loss."""
    history = traces.history
    frame = losses_by_part(history.config, history.losses)
    if frame.empty:
        return
    validated, tested = (
        resolve(history.config).sampler(part).lengths[-1] for part in ("validation", "test")
    )
    note = (
        f"{kept_sentence(history.config)} Test strings have up to {tested} tokens, validation "
        f"strings up to {validated}: a low loss here promises nothing there."
    )
    chart = losses(frame, history.kept_epoch, epoch)
    yield Figure(1, "Loss by epoch", "", note, frame, chart)


def parameter_magnitudes(traces: Traces, epoch: int) -> Iterator[Figure]:
    """14: every parameter's absolute value."""
    networks = traces.history.networks
    largest = max(
        float(np.abs(w).max()) for net in networks.values() for w in _weights_in_order(net).values()
    )
    frame = magnitudes_frame(networks[epoch])
    note = "Large queries and keys make sharp attention, large values a loud head."
    chart = magnitudes(frame, (SMALLEST, 1.3 * largest))
    yield Figure(14, "Magnitudes of all parameters", "", note, frame, chart)


def magnitudes_frame(network: Network) -> pd.DataFrame:
    """One row a parameter: parameter (its matrix), entry, value, magnitude."""
    return pd.DataFrame(
        [
            {"parameter": name, "entry": ", ".join(map(str, index)), "value": float(value)}
            for name, weight in _weights_in_order(network).items()
            for index, value in np.ndenumerate(weight)
        ]
    ).assign(magnitude=lambda frame: frame["value"].abs())


def _weights_in_order(network: Network) -> dict[str, np.ndarray]:
    named = {**network.weights, "embedding.weight": network.embedding}  # PAD is never attended to
    in_order = sorted(named, key=lambda name: [part in name for part in ORDER], reverse=True)
    return {_title_of(name): named[name] for name in in_order if named[name].size}


def _title_of(name: str) -> str:
    """`blocks.0.attention.query.weight` as `attention query`."""
    short = name.removeprefix("blocks.0.").removesuffix(".weight")
    return short.replace("_", "-").replace(".", " ")


def readouts(traces: Traces, epoch: int) -> Iterator[Figure]:
    """16: the logit, as the sum of what each part of the model adds."""
    networks = traces.history.networks
    domain = _readout_domain(traces)
    note = (
        "The logit if the classifier read `CLS` after the embedding, after each head, and after "
        "the feed-forward. The steps sum to the logit; above 0 the model predicts positive."
    )
    frames = [
        steps_frame(direct_logit_attribution(networks[epoch], string).steps, string or "(empty)")
        for string in traces.strings
    ]
    frame = pd.concat(frames, ignore_index=True)
    title = "The stream read out"
    yield Figure(16, title, "", note, frame, waterfall(frame, domain, title))


def _readout_domain(traces: Traces) -> tuple[float, float]:
    ends = [0.0]
    for epoch, states in traces.states.items():
        classifier = traces.history.networks[epoch].classifier
        heads = states.head_output[:, :, 0] @ classifier
        start = np.full((len(heads), 1), states.embedding[0] @ classifier)
        sums = np.cumsum(np.concatenate([start, heads], axis=1), axis=1)
        ends += [*sums.ravel().tolist(), *states.logit.tolist()]
    margin = 0.12 * (max(ends) - min(ends)) or 1.0
    return min(ends) - margin, max(ends) + margin


def score_circuits(traces: Traces, epoch: int, heads: Sequence[int]) -> Iterator[Figure]:
    """17: the score that every token gives every other, per head."""
    of_heads = _circuits(traces, epoch)
    rank = ", ".join(f"head {h}: rank {of_heads[h].key_query_rank}" for h in heads)
    frame = pd.DataFrame(
        [
            {"head": f"head {head}", "row": query, "column": key, "value": float(score)}
            for head in heads
            for query, scores in zip(traces.tokens, of_heads[head].scores, strict=True)
            for key, score in zip(traces.tokens, scores, strict=True)
        ]
    )
    if frame.empty:
        return
    note = (
        "The score of each token (column) to each that asks (row). Only the row of `CLS` decides: "
        f"a gap of 1 between two scores is worth e = 2.7 letters for one. {rank}."
    )
    limit = _limit([n.scores for n in traces.history.networks.values()])
    titles = ("asks (query)", "is asked (key)")
    chart = matrix(frame, traces.tokens, titles, "score", limit, attended="column")
    yield Figure(17, "Key-query circuit", "", note, frame, chart)


def write_circuits(traces: Traces, epoch: int, heads: Sequence[int]) -> Iterator[Figure]:
    """17: what attending to a token writes into the stream, and adds to the logit."""
    of_heads = _circuits(traces, epoch)
    rank = ", ".join(f"head {h}: rank {of_heads[h].value_output_rank}" for h in heads)
    hidden = traces.history.config.hidden_size
    rows: list[dict[str, object]] = []
    for head in heads:
        for kind, token in enumerate(traces.tokens):
            written = of_heads[head].ov_output[kind].tolist()
            cells = {f"dim {number}": value for number, value in enumerate(written)}
            cells = {} if hidden > MAX_WRITTEN else cells
            cells["logit"] = float(of_heads[head].direct_logit[kind])
            rows += [
                {"head": f"head {head}", "row": token, "column": column, "value": value}
                for column, value in cells.items()
            ]
    if not rows:
        return
    frame = pd.DataFrame(rows)
    note = (
        "What `CLS` receives where all of a head's attention is on one token (row), in each "
        f"dimension of the stream, and what that adds to the logit directly. {rank}."
    )
    networks = traces.history.networks.values()
    limit = _limit([n.ov_output for n in networks] + [n.ov_output @ n.classifier for n in networks])
    columns = list(dict.fromkeys(frame["column"]))
    chart = matrix(frame, columns, ("attended to", "written"), "added", limit, attended="row")
    yield Figure(17, "Value-output circuit", "", note, frame, chart)


MAX_WRITTEN = 8
"""The widest stream that is drawn whole; of wider ones only what reaches the logit is drawn."""


def _circuits(traces: Traces, epoch: int) -> tuple[Circuits, ...]:
    return circuits(traces.history.networks[epoch])


def _limit(arrays: Sequence[np.ndarray]) -> float:
    return max((float(np.abs(array).max()) for array in arrays if array.size), default=1.0) or 1.0
