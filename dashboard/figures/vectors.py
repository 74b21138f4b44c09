"""Figures of vectors: of tokens, of heads, and of `CLS` on its way to the classifier."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from jaxtyping import Float

from dashboard import marks
from dashboard.figures import points
from dashboard.figures.epochs import Epochs, States
from dashboard.figures.figure import Figure
from dashboard.figures.projection import Projection
from seqcls.strings.alphabets import CLS_NAME


class TokenFigure(NamedTuple):
    """A figure of vectors of tokens: how to read it, and what they are of each epoch."""

    title: str
    note: str
    read: Callable[[States, list[int], int], Float[np.ndarray, "group token_type hidden"]]
    """Takes them out of states: of these heads, from this token type on, if it is of heads."""
    groups: str = ""
    """The column that tokens are grouped by: `head` or `string`; empty where they are not."""
    axis: str = "dimension"
    """Name of a coordinate."""


TOKENS = {
    2: TokenFigure(
        "Token embeddings",
        "The vector of each token of the vocabulary. `CLS` starts every string.",
        lambda states, *_: states["embedding"][:1],
    ),
    3: TokenFigure(
        "Embeddings of a string",
        "A string as attention sees it: only which tokens it holds and how often, written `a{2}`.",
        lambda states, *_: states["embedding"],
        "string",
    ),
    4: TokenFigure(
        "Normalized embeddings",
        "The embeddings after the norm before attention: what queries, keys and values read.",
        lambda states, *_: states["attention_norm"][:1],
    ),
    5: TokenFigure(
        "Keys and the query of CLS",
        "`CLS` gives each token a score: the product of its query and the token's key, over the "
        "root of the head size. The softmax of the scores, each counted as often as its token "
        "occurs, is the attention.",
        lambda states, heads, first: np.concatenate(
            [states["attention.key"][0, heads, first:], states["attention.query"][0, heads, :1]],
            axis=1,
        ),
        "head",
        "key, query",
    ),
    6: TokenFigure(
        "Values",
        "What `CLS` receives from a head is the mean of these values, weighted by attention. "
        "Letters whose values lie close together are alike to everything that follows.",
        lambda states, heads, first: states["attention.value"][0, heads, first:],
        "head",
        "value",
    ),
    15: TokenFigure(
        "Transformed embeddings of a string",
        "All tokens of a string after the block. Only `CLS` is read by the classifier.",
        lambda states, *_: states["after_feed_forward"],
        "string",
    ),
}


def draw_tokens(number: int, epochs: Epochs, heads: Sequence[int]) -> Iterator[Figure]:
    """2 to 6 and 15: the vectors of tokens, a figure each head.

    Heads of size 1 are one line each in one figure, on one scale: louder ones reach further.
    """
    # Keys and values of a `CLS` that nothing attends to are left out.
    figure, first = TOKENS[number], int(epochs.config.no_attend_cls)
    # Without a norm they are the embeddings, which figure 2 has.
    if number == 4 and not epochs.config.has_norms:
        return
    is_line = epochs.config.attention_head_size == 1
    together = [[*heads]] * bool(heads) if is_line else [[head] for head in heads]
    for some in together if figure.groups == "head" else [[]]:
        # Of every epoch, though one is drawn: the limits are those of all.
        every = {epoch: figure.read(x, some, first) for epoch, x in epochs.states.items()}
        vectors = {epoch: x.reshape(-1, x.shape[-1]) for epoch, x in every.items()}
        projection = epochs.projection([*vectors.values()], figure.axis)
        rows = []
        for (row, named), group in zip(
            _name_vectors(number, epochs, some), every[epochs.shown], strict=True
        ):
            places, tokens, names = map(list, zip(*named, strict=True))
            panel = {"panel": row} if figure.groups == "string" else {}
            # Of the vectors of `CLS` only its query has a name of its own.
            query = [name != token == CLS_NAME for token, name in zip(tokens, names, strict=True)]
            columns = {"token": tokens, "name": names, "row": row, "query": query, **panel}
            rows.append(projection.points(group[places], **columns))
        chart = points.of_tokens(pd.concat(rows, ignore_index=True), projection, epochs.tokens)
        part = f"head {some[0]}" if some and not is_line else ""
        note = figure.note + projection.describe_loss(vectors[epochs.shown])
        yield Figure.from_chart(number, figure.title, part, note, chart)


def _name_vectors(
    number: int, epochs: Epochs, heads: Sequence[int]
) -> Iterator[tuple[str, list[tuple[int, str, str]]]]:
    """Each group of vectors of a figure: its name, and place, token and name of those drawn."""
    tokens = epochs.tokens
    if TOKENS[number].groups == "string":
        for string, counts in zip(epochs.strings, epochs.counts.tolist(), strict=True):
            times = zip(tokens, [1, *counts], strict=True)
            yield (
                string or "(empty)",
                [(x, y, f"{y}{{{n}}}" if n > 1 else y) for x, (y, n) in enumerate(times) if n],
            )
        return
    attended = tokens[int(epochs.config.no_attend_cls) :] if heads else tokens
    named = [(place, token, token) for place, token in enumerate(attended)]
    if number == 5:
        named.append((len(named), CLS_NAME, f"{CLS_NAME} query"))
    yield from ((f"head {head}", named) for head in heads)
    if not heads:
        yield "embedding", named


STRINGS = {
    7: (
        "Attention value of CLS",
        "The mean of the tokens' values, weighted by attention. The letters mark their own values: "
        "a string stands near the letter that a head attends to.",
        "attention.mixed_value",
    ),
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
        "CLS normalized again",
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
"""The title of each figure of strings, how to read it, and the state that is drawn."""


def draw_strings(number: int, epochs: Epochs, heads: Sequence[int]) -> Iterator[Figure]:
    """7 and 9 to 13: the state of `CLS` of each string, from heads to what the classifier reads."""
    title, note, name = STRINGS[number]
    # Without a norm it is figure 10.
    if number == 11 and not epochs.config.has_norms:
        return
    # The tested epoch's, at every epoch: with each epoch's own the axes would turn.
    towards = epochs.classifier(epochs.kept_epoch) if number == 13 else None
    names = [string or "(empty)" for string in epochs.strings]
    for head in heads if number == 7 else [None]:
        where = (slice(None), 0) if head is None else (slice(None), head, 0)
        now, every = epochs.now[name][where], [x[name][where] for x in epochs.states.values()]
        if head is not None:
            values = [x["attention.value"][0, head] for x in epochs.states.values()]
            # The letters' own values are marked in the picture, and so within its limits.
            every = [np.concatenate(x) for x in zip(values, every, strict=True)]
        axis = "dimension" if head is None else "value"
        projection = epochs.projection(every, axis, towards)
        below = [] if head is None else _landmarks(epochs, projection, head)
        below = _boundary(epochs, projection) if number == 13 else below
        frame = projection.points(
            now, name=names, row=names, outcome=epochs.outcomes, logit=epochs.now["logit"]
        )
        chart = points.of_strings(frame, projection, below)
        part = "" if head is None else f"head {head}"
        yield Figure.from_chart(number, title, part, note + projection.describe_loss(now), chart)


def _landmarks(epochs: Epochs, projection: Projection, head: int) -> list[Any]:
    """Marks of the letters' own values: rules, or in a plane small circles."""
    letters = epochs.tokens[1:]
    own = projection.points(epochs.now["attention.value"][0, head, 1:], token=letters)
    # Stroke and fill, not color: the scale and the legend of color are those of the strings.
    base = alt.Chart(own).encode(points.axis(projection, 0))
    text: dict[str, Any] = {"fontWeight": "bold", "fontSize": 13, "color": "~ink"}
    if len(projection.domains) == 1:
        rules = base.mark_rule(opacity=1, strokeWidth=2)
        names = base.mark_text(**text).encode(text="token:N", y=alt.value(-8))
        return [rules.encode(marks.token_color(letters, alt.Stroke)), names]
    base = base.encode(points.axis(projection, 1))
    circles = base.mark_circle(size=50, opacity=0.8)
    names = base.mark_text(dy=-10, **text).encode(text="token:N")
    return [circles.encode(marks.token_color(letters, alt.Fill)), names]


def _boundary(epochs: Epochs, projection: Projection) -> list[Any]:
    """Marks of the line on which the logit is zero, and of the direction in which it grows."""
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
    # At right angles to the classifier, through the origin, since it has no bias.
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
