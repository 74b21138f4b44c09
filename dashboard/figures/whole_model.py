"""Figures of the whole model: losses, attention, parameters, the stream read out, and circuits."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd

from dashboard import marks, token_marks
from dashboard.figures.epochs import Epochs
from dashboard.figures.figure import Figure
from dashboard.figures.points import OWN_SIZE
from seqcls.config import RunConfig
from seqcls.problem import resolve
from seqcls.strings.tokenizer import PAD

LOSS_TITLES = {"loss": "Mean nats per string (log)", "sum": "Nats of all strings (log)"}
LOSSES = {"training": "accent", "validation": "wrong"}


def loss_by_epoch(epochs: Epochs, _: Sequence[int]) -> Iterator[Figure]:
    """1: training and validation loss."""
    frame = losses_by_part(epochs.config, epochs.losses)
    if frame.empty:
        return
    problem = resolve(epochs.config)
    validated, tested = (problem.sampler(x).lengths[-1] for x in ("validation", "test"))
    note = (
        f"{kept_sentence(epochs.config)} Test strings have up to {tested} tokens, validation "
        f"strings up to {validated}: a low loss here promises nothing there."
    )
    chart = draw_losses(frame, epochs.kept_epoch, epochs.shown)
    yield Figure.from_chart(1, "Loss by epoch", "", note, chart)


def losses_by_part(config: RunConfig, stored: pd.DataFrame) -> pd.DataFrame:
    """One row an epoch and part: epoch, part, loss (mean nats a string), sum (nats).

    Args:
        config: of the run.
        stored: epoch, train_loss, validation_loss: sums over an epoch's strings, in nats.
    """
    parts = {"training": ("train_loss", "train"), "validation": ("validation_loss", "validation")}
    problem = resolve(config)
    rows = [
        stored[["epoch"]].assign(
            part=part,
            # Parts differ in how many strings they have: only their means can be compared.
            loss=stored[column] / problem.sampler(drawn).epoch_size,
            sum=stored[column],
        )
        for part, (column, drawn) in parts.items()
    ]
    return pd.concat(rows, ignore_index=True)


def kept_sentence(config: RunConfig) -> str:
    """States which epoch's model is tested, by the rule that ends training."""
    if not config.stop_when_right:
        return "The model of the epoch with the lowest validation loss is kept and tested."
    sentence = (
        "Training ends with the first model that is right on all validation strings of trained "
        "lengths, and keeps it; where none is, that with the lowest validation loss is kept."
    )
    if config.train_more_steps:
        sentence = sentence.replace(
            "lengths,", f"lengths {config.train_more_steps:,} steps or more after one first was,"
        )
    if config.check_every:
        sentence += " The last epoch may have ended early: its mean is that of the strings seen."
    return sentence


def draw_losses(
    frame: pd.DataFrame,
    kept_epoch: int | None,
    shown: int | None = None,
    column: Literal["loss", "sum"] = "loss",
) -> Any:
    """Loss on a log scale, with rules at the tested epoch and at the one that is shown.

    Args:
        frame: epoch, part (`training` or `validation`), loss (mean nats a string), sum (nats).
        kept_epoch: the one whose model was stored and tested.
        shown: the epoch of the other figures; 0 is before training.
        column: on the axis; the sum where the number of strings is not known.
    """
    tips = {"loss": "Mean (nats per string):.6g", "sum": "Sum (nats):.6g"}
    drawn = frame[frame[column] > 0]  # a logarithm needs more than zero
    y = alt.Y(
        f"{column}:Q", title=LOSS_TITLES[column], scale=alt.Scale(type="log"),
        axis=alt.Axis(**marks.LOG_AXIS),
    )  # fmt: skip
    # From 0: before training there is a model to show, though no loss.
    domain = [0, int(frame["epoch"].max())]
    lines = alt.Chart(drawn).encode(
        marks.x_axis("epoch:Q", "Epoch", domain=domain),
        y,
        marks.color("part", LOSSES, LOSSES.values(), legend=marks.TOP, title="Loss on"),
        tooltip=marks.tips(
            epoch="Epoch:", part="Loss on", **{x: y for x, y in tips.items() if x in frame}
        ),
    )
    # At opposite ends, since both rules may be at one epoch.
    ends = {"kept": (kept_epoch, 0, 8), "shown": (shown, "height", -8)}
    named = [(name, *end) for name, end in ends.items() if end[0] is not None]
    rules = [
        layer
        for name, epoch, y, dy in named
        for base in [alt.Chart(pd.DataFrame([{"epoch": epoch, "name": name}])).encode(x="epoch:Q")]
        for layer in (
            base.mark_rule(color="~muted", strokeDash=[4, 4]),
            base.mark_text(align="left", dx=4, dy=dy, color="~ink").encode(
                y=alt.value(y), text="name:N"
            ),
        )
    ]
    points = lines.mark_point(filled=True, size=30, opacity=1)
    return alt.layer(lines.mark_line(), points, *rules).properties(width="container", height=240)


def attention_weights(epochs: Epochs, heads: Sequence[int]) -> Iterator[Figure]:
    """8: per head and string, the attention weights of `CLS`."""
    note = (
        "The weight of all tokens of a type together: a softmax over token types, in which a token "
        "with score s that occurs n times counts n times e to the s."
    )
    for head in heads:
        frame = weights_frame(epochs, head)
        if not frame.empty:
            chart = _weights(frame, epochs.tokens)
            yield Figure.from_chart(8, "Attention weights of CLS", f"head {head}", note, chart)


def weights_frame(epochs: Epochs, head: int) -> pd.DataFrame:
    """string, token, count, label, score, each (one token's weight), weight (of them all)."""
    scores, weights = (epochs.now[f"attention.{x}"][:, head, 0] for x in ("scores", "weights"))
    rows = [
        {
            "string": epochs.strings[string] or "(empty)",
            "token": epochs.tokens[token],
            "count": int(times),
            "label": f"{epochs.tokens[token]} x {int(times):,}",
            "score": float(scores[string, token]),
            "each": float(weights[string, token] / times),
            "weight": float(weights[string, token]),
        }
        for (string, token), times in np.ndenumerate(epochs.attended)
        if times
    ]
    return pd.DataFrame(rows)


def _weights(frame: pd.DataFrame, tokens: Sequence[str]) -> Any:
    """One head as a table of bars: a row a token type, strings below each other."""
    base = alt.Chart().encode(
        alt.Y("label:N", title=None, sort=None),
        # The axis extends beyond a weight of 1, to leave room for the numbers.
        alt.X(
            "weight:Q",
            title="Attention weight of all tokens of a type",
            scale=alt.Scale(domain=[0, 1.75], nice=False),
            axis=alt.Axis(values=[0, 0.5, 1], format="%", grid=False),
        ),
        tooltip=marks.tips(
            string="String",
            token="Token",
            count="Occurs:",
            score="Score of each:.4f",
            weight="Weight of all together:.6f",
        ),
    )
    bars = base.mark_bar().encode(marks.token_color(tokens))
    label = "format(datum.weight, '.3f') + '  (score ' + format(datum.score, '.2f') + ')'"
    texts = base.mark_text(align="left", dx=5, fontSize=12, color="~ink").encode(text="text:N")
    cell = alt.layer(bars, texts.transform_calculate(text=label), data=frame)
    header = alt.Header(labelAngle=0, labelAlign="left", labelLimit=160, labelFontSize=13)
    strings = list(dict.fromkeys(frame["string"]))
    rows = alt.Row("string:N", title=None, sort=strings, header=header)
    facets = cell.properties(width=250, height=alt.Step(24)).facet(row=rows, spacing=12)
    # A shared axis would give each string a row for every token that any of them holds.
    return facets.resolve_scale(y="independent").properties(**OWN_SIZE)


ORDER = (
    "embedding", "attention_norm", "query", "key", "value", "attention.output",
    "feed_forward_norm", "feed_forward.input", "feed_forward.output",
)  # fmt: skip
"""Parts of the names of parameters, in the order of the computation; the classifier is last."""

SMALLEST = 1e-4
"""Parameters nearer to zero are drawn at this magnitude."""


def parameter_magnitudes(epochs: Epochs, _: Sequence[int]) -> Iterator[Figure]:
    """14: every parameter's absolute value."""
    every = [
        float(np.abs(x).max(initial=0))
        for model in epochs.models.values()
        for x in _weights_in_order(model.weights).values()
    ]
    frame = pd.DataFrame(
        [
            {"parameter": name, "entry": ", ".join(map(str, place)), "value": float(value)}
            for name, weight in _weights_in_order(epochs.model.weights).items()
            for place, value in np.ndenumerate(weight)
        ]
    ).assign(magnitude=lambda x: x["value"].abs())
    note = "Large queries and keys make sharp attention, large values a loud head."
    title = "Magnitudes of all parameters"
    # Over all epochs, so that the scale is fixed; the factor leaves room at its right end.
    yield Figure.from_chart(14, title, "", note, _magnitudes(frame, (SMALLEST, 1.3 * max(every))))


def _weights_in_order(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Parameters as `attention query`, in the order of the computation."""
    # What pads strings is never attended to.
    embedding = np.delete(weights["embedding.weight"], PAD, axis=0)
    named = {**weights, "embedding.weight": embedding}
    # Lists of booleans sort by the first part that a name holds.
    in_order = sorted(named, key=lambda name: [part in name for part in ORDER], reverse=True)
    titles = {name: name.removeprefix("blocks.0.").removesuffix(".weight") for name in in_order}
    return {
        title.replace("_", "-").replace(".", " "): named[name]
        for name, title in titles.items()
        if named[name].size
    }


def _magnitudes(frame: pd.DataFrame, limits: tuple[float, float]) -> Any:
    """Every parameter as a tick, its absolute value on a log scale; dots are root mean squares."""
    squares = (frame["value"] ** 2).groupby(frame["parameter"], sort=False).mean()
    means = squares.pow(0.5).rename("magnitude").reset_index()
    names = list(dict.fromkeys(frame["parameter"]))

    def base(rows: pd.DataFrame) -> Any:
        # A logarithmic scale has no place for zero.
        shown = rows.assign(magnitude=rows["magnitude"].clip(lower=limits[0]))
        return alt.Chart(shown).encode(
            alt.X(
                "magnitude:Q", title="Absolute value (log); dots: root mean square",
                scale=alt.Scale(type="log", domain=limits, nice=False),
                axis=alt.Axis(**marks.LOG_AXIS),
            ),
            alt.Y("parameter:N", title=None, sort=names, axis=alt.Axis(labelLimit=220)),
        )  # fmt: skip

    one = marks.tips(parameter="Matrix", entry="Row, column", value="Value:.6f")
    ticks = base(frame).mark_tick(color="~accent", thickness=1, opacity=1)
    mean = marks.tips(parameter="Matrix", magnitude="Root mean square:.6f")
    dots = base(means).mark_point(filled=True, size=80, color="~muted", opacity=1)
    layers = ticks.encode(tooltip=one), dots.encode(tooltip=mean)
    return alt.layer(*layers).properties(width="container", height=alt.Step(30))


STEPS_WIDTH = 210
"""Pixels of a panel of steps."""


def readouts(epochs: Epochs, _: Sequence[int]) -> Iterator[Figure]:
    """16: the logit, as the sum of what each part of the model adds."""
    note = (
        "The logit if the classifier read `CLS` after the embedding, after each head, and after "
        "the feed-forward. The steps sum to the logit; above 0 the model predicts positive."
    )
    every = [steps_frame(epochs, epoch) for epoch in epochs.models]
    ends = np.concatenate([frame[["start", "end"]].to_numpy().ravel() for frame in every])
    low, high = min(0.0, float(ends.min())), max(0.0, float(ends.max()))
    # Logits that are all zero need a scale as well.
    margin = 0.12 * (high - low) or 1.0
    legend = alt.Legend(orient="top", columns=3)
    layers = token_marks.steps(legend, domain=[low - margin, high + margin])
    panel = alt.layer(*layers, data=steps_frame(epochs, epochs.shown))
    panel = panel.properties(width=STEPS_WIDTH, height=alt.Step(26))
    header = alt.Header(labelFontSize=13, labelLimit=STEPS_WIDTH)
    strings = [string or "(empty)" for string in epochs.strings]
    facet = alt.Facet("string:N", title=None, sort=strings, header=header)
    # The space between panels holds the numbers of the left one.
    room = token_marks.ROOM_FOR_NUMBERS
    padding = {"left": 5, "top": 5, "bottom": 5, "right": room}
    chart = panel.facet(facet, columns=2, spacing=room).properties(padding=padding, **OWN_SIZE)
    yield Figure.from_chart(16, "The stream read out", "", note, chart)


def steps_frame(epochs: Epochs, epoch: int) -> pd.DataFrame:
    """A row a part of the model and string, as of `token_marks.sum_up`, and string.

    The classifier is linear and reads the stream itself, so that the logit is exactly the sum of
    what it makes of the embedding of `CLS`, of each head's output and of the feed-forward's.
    """
    states, classifier = epochs.states[epoch], epochs.classifier(epoch)
    mixed = states["attention.mixed_value"][:, :, 0]
    heads, size = mixed.shape[1:]
    output = epochs.models[epoch].weights["blocks.0.attention.output.weight"].astype(np.float64)
    # What a head adds is linear in its mixed value: its rows of W_O, then the classifier.
    by_head = np.einsum("shd,hdx,x->sh", mixed, output.T.reshape(heads, size, -1), classifier)
    added = [
        states["embedding"][:, :1] @ classifier,
        by_head,
        states["feed_forward.output"][:, :1] @ classifier,
    ]
    names = ["embedding", *(f"head {head}" for head in range(heads)), "feed-forward"]
    sums = [
        token_marks.sum_up(names, adds).assign(string=string or "(empty)")
        for string, adds in zip(epochs.strings, np.concatenate(added, axis=1).tolist(), strict=True)
    ]
    return pd.concat(sums, ignore_index=True)


CELL, CELL_ROW = 52, 30
"""Pixels of a cell of a matrix."""

STRONG = 0.7
"""The part of the largest value from which on a cell is so dark that its number is light."""

WRITTEN = 8
"""Dimensions of the widest stream that is drawn whole; of wider ones only what reaches the logit
is."""


def score_circuits(epochs: Epochs, heads: Sequence[int]) -> Iterator[Figure]:
    """17: the score that every token gives every other, per head."""
    circuits = epochs.model.circuits()
    frame = pd.DataFrame(
        [
            (f"head {head}", epochs.tokens[query], epochs.tokens[key], float(score))
            for head in heads
            for (query, key), score in np.ndenumerate(circuits[head].scores)
        ],
        columns=["head", "row", "column", "value"],
    )
    if frame.empty:
        return
    rank = ", ".join(f"head {head}: rank {circuits[head].key_query_rank}" for head in heads)
    note = (
        "The score of each token (column) to each that asks (row). Only the row of `CLS` decides: "
        f"a gap of 1 between two scores is worth e = 2.7 letters for one. {rank}."
    )
    # Over all epochs, so that a color means the same number at each.
    limit = _largest(x.scores for model in epochs.models.values() for x in model.circuits())
    titles = ("asks (query)", "is asked (key)")
    chart = _matrix(frame, epochs.tokens, titles, "score", limit)
    yield Figure.from_chart(17, "Key-query circuit", "", note, chart)


def write_circuits(epochs: Epochs, heads: Sequence[int]) -> Iterator[Figure]:
    """17: what attending to a token writes into the stream, and adds to the logit."""
    circuits, hidden = epochs.model.circuits(), epochs.config.hidden_size
    # The logit is last: wide streams have no other column.
    columns = [*(f"dim {x}" for x in range(hidden) if hidden <= WRITTEN), "logit"]
    rows = []
    for head in heads:
        written = np.asarray(circuits[head].output)[:, : len(columns) - 1]
        direct = np.asarray(circuits[head].direct_logit)
        for (token, column), value in np.ndenumerate(np.column_stack([written, direct])):
            rows.append((f"head {head}", epochs.tokens[token], columns[column], float(value)))
    if not rows:
        return
    frame = pd.DataFrame(rows, columns=["head", "row", "column", "value"])
    rank = ", ".join(f"head {head}: rank {circuits[head].value_output_rank}" for head in heads)
    note = (
        "What `CLS` receives where all of a head's attention is on one token (row), in each "
        f"dimension of the stream, and what that adds to the logit directly. {rank}."
    )
    limit = _largest(
        values
        for model in epochs.models.values()
        for circuit in model.circuits()
        for values in (circuit.output, circuit.direct_logit)
    )
    chart = _matrix(frame, columns, ("attended to", "written"), "added", limit)
    yield Figure.from_chart(17, "Value-output circuit", "", note, chart)


def _largest(arrays: Iterator[Any]) -> float:
    return max((float(np.abs(x).max(initial=0)) for x in arrays), default=1.0) or 1.0


def _matrix(
    frame: pd.DataFrame, columns: Sequence[str], titles: tuple[str, str], name: str, limit: float
) -> Any:
    """A number for every pair of a row and a column, one grid a head.

    Args:
        frame: head, row, column and value.
        columns: in order.
        titles: what a row is and what a column is.
        name: what the value is.
        limit: the largest absolute value of the color scale, the same at every epoch.
    """
    axis = alt.Axis(labelAngle=0, labelLimit=CELL)
    base = alt.Chart().encode(
        alt.X("column:N", title=titles[1], sort=list(columns), axis=axis),
        alt.Y("row:N", title=titles[0], sort=None),
        tooltip=marks.tips(head="Head", row=titles[0], column=titles[1], value=f"{name}:.4f"),
    )
    scale = alt.Scale(
        domain=[-limit, 0, limit], range=["~down", "~empty", "~up"], interpolate="rgb"
    )
    legend = alt.Legend(orient="bottom", gradientLength=200)
    color = alt.Color("value:Q", title=name, scale=scale, legend=legend)
    is_strong = alt.expr.abs(alt.datum.value) > STRONG * limit
    ink = alt.when(is_strong).then(alt.value("~ground")).otherwise(alt.value("~ink"))
    texts = base.mark_text(fontSize=11).encode(text=alt.Text("value:Q", format=".2f"), color=ink)
    grid = alt.layer(base.mark_rect().encode(color), texts, data=frame)
    grid = grid.properties(width=alt.Step(CELL), height=alt.Step(CELL_ROW))
    heads = list(dict.fromkeys(frame["head"]))
    facet = alt.Facet("head:N", title=None, sort=heads, header=alt.Header(labelFontSize=13))
    # Each panel is drawn alone.
    drawn = grid.facet(facet, columns=2, spacing=24).resolve_scale(y="independent")
    return drawn.properties(**OWN_SIZE)
