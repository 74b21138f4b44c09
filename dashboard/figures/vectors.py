"""Figures of vectors: of tokens, of heads, and of `CLS` on its way to the classifier."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from jaxtyping import Float

from dashboard import marks
from dashboard.figures import points
from dashboard.figures.epochs import Epochs, States
from dashboard.figures.figure import Figure
from dashboard.figures.projection import Projection

VOCABULARY = {
    2: (
        "Token embeddings",
        "The vector of each token of the vocabulary. `CLS` starts every string.",
        "embedding",
    ),
    4: (
        "Normalised embeddings",
        "The embeddings after the norm before attention: what queries, keys and values read.",
        "attention_norm",
    ),
}


def vocabulary(number: int, epochs: Epochs) -> Iterator[Figure]:
    """2 and 4: the vector of each token, as it is embedded and as attention reads it."""
    title, note, name = VOCABULARY[number]
    if number == 4 and not epochs.config.has_norms:
        return
    projection = epochs.projection([states[name][0] for states in epochs.states.values()])
    now = epochs.now[name][0]
    frame = projection.points(now, token=epochs.tokens, name=epochs.tokens, row="embedding")
    chart = points.of_tokens(frame, projection, epochs.tokens)
    yield Figure.of(number, title, "", note + projection.describe_loss(now), chart)


OF_STRINGS = {
    3: (
        "Embeddings of a string",
        "A string as attention sees it: only which tokens it holds and how often, written `a{2}`.",
        "embedding",
    ),
    15: (
        "Transformed embeddings of a string",
        "All tokens of a string after the block. Only `CLS` is read by the classifier.",
        "after_feed_forward",
    ),
}


def tokens_of_strings(number: int, epochs: Epochs) -> Iterator[Figure]:
    """3 and 15: the tokens that each string holds, before and after the block."""
    title, note, name = OF_STRINGS[number]
    hidden = epochs.config.hidden_size
    projection = epochs.projection(
        [states[name].reshape(-1, hidden) for states in epochs.states.values()]
    )
    panels = []
    for string, counts, states in zip(epochs.strings, epochs.counts, epochs.now[name], strict=True):
        present = np.flatnonzero(np.insert(counts, 0, 1))
        tokens = [epochs.tokens[token] for token in present]
        times = [1, *counts[counts > 0].tolist()]
        names = [f"{x}{{{n}}}" if n > 1 else x for x, n in zip(tokens, times, strict=True)]
        shown = string or "(empty)"
        panels.append(
            projection.points(states[present], token=tokens, name=names, row=shown, panel=shown)
        )
    chart = points.of_tokens(pd.concat(panels, ignore_index=True), projection, epochs.tokens)
    loss = projection.describe_loss(epochs.now[name].reshape(-1, hidden))
    yield Figure.of(number, title, "", note + loss, chart)


# Vectors of heads.


def keys_and_queries(epochs: Epochs, heads: Sequence[int]) -> Iterator[Figure]:
    """5: per head, each token's key and the query of `CLS`."""
    seen = _attended_types(epochs)
    note = (
        "`CLS` gives each token a score: the product of its query and the token's key, over the "
        "root of the head size. The softmax of the scores, each counted as often as its token "
        "occurs, is the attention."
    )
    names = [*epochs.tokens[seen], "CLS query"]

    def vectors(states: States, head: int) -> Float[np.ndarray, "token head_size"]:
        query = states["attention.query"][0, head, :1]
        return np.concatenate([states["attention.key"][0, head, seen], query])

    title = "Keys and the query of CLS"
    yield from _vectors_of_heads(epochs, heads, 5, title, note, "key, query", names, vectors)


def values(epochs: Epochs, heads: Sequence[int]) -> Iterator[Figure]:
    """6: per head, each token's value."""
    seen = _attended_types(epochs)
    note = (
        "What `CLS` receives from a head is the mean of these values, weighted by attention. "
        "Letters whose values lie close together are alike to everything that follows."
    )

    def vectors(states: States, head: int) -> Float[np.ndarray, "token head_size"]:
        return np.asarray(states["attention.value"][0, head, seen])

    names = list(epochs.tokens[seen])
    yield from _vectors_of_heads(epochs, heads, 6, "Values", note, "value", names, vectors)


def _attended_types(epochs: Epochs) -> slice:
    """The token types that can be attended to: `CLS` only where the model allows it."""
    return slice(1 if epochs.config.no_attend_cls else 0, None)


def _vectors_of_heads(
    epochs: Epochs,
    heads: Sequence[int],
    number: int,
    title: str,
    note: str,
    axis: str,
    names: list[str],
    vectors: Callable[[States, int], Float[np.ndarray, "token head_size"]],
) -> Iterator[Figure]:
    """A figure a head; heads of size 1 are one line each, on one scale: louder ones reach further.

    Args:
        axis: what a coordinate is called.
        names: of the vectors.
        vectors: of a head.
    """
    if not heads:
        return
    together = [heads] if epochs.config.attention_head_size == 1 else [[head] for head in heads]
    for some in together:
        projection = epochs.projection(
            [np.concatenate([vectors(x, head) for head in some]) for x in epochs.states.values()],
            axis,
        )
        rows = [
            projection.points(
                vectors(epochs.now, head),
                token=[name.removesuffix(" query") for name in names],
                name=names,
                row=f"head {head}",
                query=[name.endswith(" query") for name in names],
            )
            for head in some
        ]
        chart = points.of_tokens(pd.concat(rows, ignore_index=True), projection, epochs.tokens)
        part = f"head {some[0]}" if len(together) == len(heads) and together[0] is not heads else ""
        loss = projection.describe_loss(vectors(epochs.now, some[0]))
        yield Figure.of(number, title, part, note + loss, chart)


def received_values(epochs: Epochs, heads: Sequence[int]) -> Iterator[Figure]:
    """7: per head, what `CLS` receives from each string, between the values of the letters."""
    note = (
        "The mean of the tokens' values, weighted by attention. The letters mark their own values: "
        "a string stands near the letter that a head attends to."
    )
    for head in heads:
        projection = epochs.projection(
            [
                np.concatenate(
                    [x["attention.value"][0, head], x["attention.mixed_value"][:, head, 0]]
                )
                for x in epochs.states.values()
            ],
            "value",
        )
        received = epochs.now["attention.mixed_value"][:, head, 0]
        letters = epochs.tokens[1:]
        own = projection.points(epochs.now["attention.value"][0, head, 1:], token=letters)
        below = _landmarks(own, projection, letters)
        chart = points.of_strings(
            _points_of_strings(epochs, projection, received), projection, below
        )
        text = note + projection.describe_loss(received)
        yield Figure.of(7, "Attention value of CLS", f"head {head}", text, chart)


def _landmarks(own: pd.DataFrame, projection: Projection, letters: Sequence[str]) -> list[Any]:
    """Where the letters' own values lie: rules, or in a plane small circles."""
    # Stroke and fill, not color: the scale and the legend of color are those of the strings.
    colors = [f"~{name}" for name in marks.letter_colors(letters)]
    scale = alt.Scale(domain=list(letters), range=colors)
    base = alt.Chart(own).encode(points.axis(projection, 0))
    texts = base.mark_text(fontWeight="bold", fontSize=13, color="~ink").encode(text="token:N")
    if len(projection.domains) == 1:
        stroke = alt.Stroke("token:N", scale=scale, legend=None)
        rules = base.mark_rule(opacity=1, strokeWidth=2).encode(stroke)
        return [rules, texts.encode(y=alt.value(-8))]
    y = points.axis(projection, 1)
    fill = alt.Fill("token:N", scale=scale, legend=None)
    circles = base.mark_circle(size=50, opacity=0.8).encode(y, fill)
    return [
        circles,
        texts.encode(y).mark_text(dy=-10, fontWeight="bold", fontSize=13, color="~ink"),
    ]


# The state of `CLS` on its way to the classifier.

CLS_STATES = {
    9: (
        "Attention output",
        "The values that the heads give `CLS`, through the output matrix and summed.",
        "attention.output",
    ),
    10: (
        "CLS after attention",
        "The embedding of `CLS` plus the attention output.",
        "after_attention",
    ),
    11: (
        "CLS normalised again",
        "The same after the norm before the feed-forward.",
        "feed_forward_norm",
    ),
    12: ("Feed-forward output", "What the feed-forward adds to `CLS`.", "feed_forward.output"),
    13: (
        "CLS after the block",
        "What the classifier reads. Its logit grows along the arrow and is zero on the dashed "
        "line: beyond it a string is predicted positive.",
        "after_feed_forward",
    ),
}


def cls_state(number: int, epochs: Epochs) -> Iterator[Figure]:
    """9 to 13: the state of `CLS`, from the attention output to what the classifier reads."""
    title, note, name = CLS_STATES[number]
    if number == 11 and not epochs.config.has_norms:
        return
    towards = epochs.classifier(epochs.kept) if number == 13 else None
    every = [states[name][:, 0] for states in epochs.states.values()]
    projection = epochs.projection(every, towards=towards)
    now = epochs.now[name][:, 0]
    below = _boundary(epochs, projection) if number == 13 else []
    chart = points.of_strings(_points_of_strings(epochs, projection, now), projection, below)
    yield Figure.of(number, title, "", note + projection.describe_loss(now), chart)


def _points_of_strings(
    epochs: Epochs, projection: Projection, states: Float[np.ndarray, "string hidden"]
) -> pd.DataFrame:
    names = [string or "(empty)" for string in epochs.strings]
    logit = epochs.now["logit"]
    return projection.points(states, name=names, row=names, outcome=epochs.outcomes, logit=logit)


def _boundary(epochs: Epochs, projection: Projection) -> list[Any]:
    """Where the classifier's logit is zero, and the direction in which it grows."""
    direction = projection.coordinates(epochs.classifier(epochs.shown)[None])[0]
    norm = float(np.linalg.norm(direction))
    if norm == 0:
        return []
    dashed: dict[str, Any] = {"color": "~muted", "strokeDash": [6, 4]}
    if len(direction) == 1:
        grows = direction[0] > 0
        base = alt.Chart(pd.DataFrame([{"name": "logit > 0 →" if grows else "← logit > 0"}]))
        side: dict[str, Any] = {"align": "left", "dx": 5} if grows else {"align": "right", "dx": -5}
        text = base.mark_text(color="~ink", **side)
        zero = alt.datum(0)
        return [
            base.mark_rule(**dashed).encode(x=zero),
            text.encode(x=zero, y=alt.value(8), text="name:N"),
        ]
    x, y = (direction / norm).tolist()
    reach = max(abs(end) for limits in projection.domains for end in limits)
    ends = {"x": -y * 3 * reach, "y": x * 3 * reach, "x2": y * 3 * reach, "y2": -x * 3 * reach}
    axes = [points.axis(projection, 0), points.axis(projection, 1)]
    line = alt.Chart(pd.DataFrame([ends])).mark_rule(**dashed, strokeWidth=2, clip=True)
    arrow = pd.DataFrame([{"x": 0.35 * reach * x, "y": 0.35 * reach * y, "name": "classifier"}])
    base = alt.Chart(points.with_places(arrow, projection, points.SIDE)).encode(*axes)
    head = base.mark_point(filled=True, opacity=1, size=60, shape="triangle", color="~muted")
    return [
        line.encode(*axes, x2="x2:Q", y2="y2:Q"),
        base.mark_rule(color="~muted", strokeWidth=2).encode(x2=alt.datum(0), y2=alt.datum(0)),
        points.point_away(head),
        points.names_of(base),
    ]
