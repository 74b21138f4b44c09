"""Families of strings: where an answer, or the rightness of an output, changes as counts grow."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from dashboard import marks, style
from dashboard.model import limits_words as words
from dashboard.section import Panel, Section, colors_present
from dashboard.words.sentences import say
from seqcls.interpretability.wording import sign
from seqcls.questions import RunModel

SENTENCES = 4
"""Sentences on a family before its picture."""

NAMED = 3
"""Changes whose counts are written beside their rules."""

ANSWERED = {"output": "Predicted", "target": "Is"}
"""Titles of a tooltip's fields for a language."""

SURE = 5.0
"""A logit that is drawn in full color: a probability of 0.7%, or of 99.3%."""


def describe(model: RunModel, found: Any) -> tuple[str, ...]:
    """An answer to a question in sentences."""
    return tuple(x for x in model.describe(found) if isinstance(x, str))


def shown_text(model: RunModel, value: bool | str | None) -> str:
    """A label, a target or an answer as a table has it."""
    if isinstance(value, str):
        return model.tokenizer.display(value)
    return "" if value is None else sign(bool(value))


def right_or_wrong(is_right: bool) -> str:
    """The name of the color of an answer."""
    return "right" if is_right else "wrong"


def usual_family(model: RunModel, text: str) -> str:
    """The family that is looked at first: where a string is wrong, its minimal failing part grows.

    Args:
        model: at an epoch.
        text: the string.

    Raises:
        InvalidStringError: it is not of this alphabet, or too long to be worked on by letters.
    """
    if model.answer(text).is_wrong:
        text = model.minimal(text).minimal.string
    return family_through(model, model.tokenizer.display(text) or model.tokenizer.alphabet[0])


def family_through(model: RunModel, text: str) -> str:
    """The family through a string: of its repetitions the longest grows, else its last token.

    Where inputs have a form, such as instructions in pairs, what first can grow and keep it.
    """
    families = _families_through(model, text)
    first = next(families)
    if model.problem.kind.every_string:
        return first
    return next((x for x in (first, *families) if _has_inputs(model, x)), first)


def _families_through(model: RunModel, text: str) -> Iterator[str]:
    repetitions = [(int(x[1]), x.span(1)) for x in re.finditer(r"\{(\d+)\}", text)]
    start, end = max(repetitions)[1] if repetitions else (0, 0)
    yield f"{text[:start]}n{text[end:]}" if repetitions else f"{text}{{n}}"
    join, encoded = model.tokenizer.separator.join, model.tokenizer.encode(text)[1:]
    tokens = [model.tokenizer.decode([x]) for x in encoded]
    for size, form in ((1, "{}{{n}}"), (2, "<{}>{{n}}")):
        for place in range(len(tokens) - size + 1):
            grown = form.format(join(tokens[place : place + size]))
            yield join([*tokens[:place], grown, *tokens[place + size :]])


def _has_inputs(model: RunModel, family: str) -> bool:
    # One count alone may make an input by chance.
    strings = [family.replace("{n}", f"{{{n}}}") for n in (2, 3, 4)]
    return all(model.is_input(model.letters(string)) for string in strings)


def family(model: RunModel, text: str) -> Section:
    """Shows where the answer, or the correctness of outputs, changes as counts grow.

    Args:
        model: at an epoch.
        text: one or two counts are free in it, as in `ab{n}` and `a{m}b{n}`.

    Raises:
        ConfigError: the labels of its strings are not known.
        InvalidStringError: it is no family of this alphabet, or none of its strings is an input.
    """
    found = model.family(text)
    names = found.family.names
    rows = [
        {
            **dict(zip(names, x.values, strict=True)),
            "score": x.score,
            "verdict": x.error_kind
            if x.error_kind in marks.OUTPUT_ERRORS
            else right_or_wrong(x.is_right),
            "right_tokens": x.right_tokens,
            "target_tokens": x.target_tokens,
            "target": shown_text(model, x.target),
            "output": shown_text(model, x.output),
        }
        for x in found.members
    ]
    frame = pd.DataFrame(rows)
    table: pd.DataFrame | None = None
    shown: tuple[str, ...] = ()
    # What is wrong is the answer; then what was tried, and where it changes.
    tried, answer, *changing = describe(model, found)
    says = [answer, tried, *_fold(changing)]
    if len(names) > 1:
        # The table has the rows.
        says = says[:2]
    if found.of_outputs:
        table = frame.rename(columns={"verdict": "output_is", "output": "model_output"})
        shown = (*names, "output_is", "right_tokens", "target_tokens", "target", "model_output")
        draw = _outputs_along if len(names) == 1 else _outputs_map
        chart, caption = draw(frame, names), words.OUTPUTS
    elif len(names) == 1:
        changes = [after.values[0] for _, after in found.changes]
        # The exponential of more than 709 is beyond the largest double.
        frame["probability"] = 1 / (1 + np.exp(-frame["score"].clip(-700, 700)))
        chart, caption = _logit_along(frame, names[0], changes, found.limit), words.ALONG
    else:
        changed = [dict(zip(names, after.values, strict=True)) for _, after in found.changes]
        chart = _logit_map(_with_edges(frame, found.grid, names), changed, names)
        caption = words.MAP
        table, shown = _rows(found), ("row_of", "wrong_in_row", "first_in_row")
    legend = colors_present(frame["verdict"], (*marks.RIGHT, *marks.OUTPUT_ERRORS))
    caption = caption.format(family=text)
    title = words.OUTPUTS_UP_TO if found.of_outputs else words.FAMILY
    panel = Panel.of(chart)
    return Section(title, tuple(says), table, (panel,), caption, legend, shown=shown)


def _fold(sentences: Sequence[str]) -> list[str]:
    """The first changes of an answer, the number left out, and the last."""
    if len(sentences) <= SENTENCES:
        return [*sentences]
    left = len(sentences) - SENTENCES
    return [*sentences[: SENTENCES - 1], say("more_changes", n=left), sentences[-1]]


def _rows(found: Any) -> pd.DataFrame:
    """A row a value of the first count: how many are wrong, and the first that is."""
    rows, (first, last) = [], found.family.names
    for members in found.rows:
        wrong = [x for x in members if not x.is_right]
        rows.append(
            {
                "row_of": f"{first} = {members[0].values[0]:,}",
                "wrong_in_row": f"{len(wrong):,} of {len(members):,}",
                "first_in_row": f"{last} = {wrong[0].values[1]:,}" if wrong else "",
            }
        )
    return pd.DataFrame(rows)


def _count_axis(channel: Any, field: str, name: str) -> Any:
    """An axis of counts on a log scale."""
    axis = alt.Axis(format="~s", **marks.LOG_AXIS)
    scale = alt.Scale(type="log", nice=False)
    return channel(f"{field}:Q", title=f"{name} (log)", scale=scale, axis=axis)


def _logit_along(frame: pd.DataFrame, name: str, changes: Sequence[int], limit: Any) -> Any:
    """The logit against the free count; rules where the answer changes, and at its limit."""
    x = _count_axis(alt.X, name, f"{name}, the free count")
    base = alt.Chart(frame.dropna(subset=["score"])).encode(x, marks.y_axis("score:Q", "Logit"))
    dots = base.mark_point(filled=True, size=24, opacity=1).encode(
        marks.color("verdict", marks.RIGHT),
        tooltip=marks.tips(
            **_counts((name,)), score="Logit:.4f", probability="Probability:.6f", **ANSWERED
        ),
    )
    levels = pd.DataFrame([{"level": 0.0, "name": ""}])
    if limit is not None:
        levels.loc[1] = [limit, f"limit {limit:.3g}"]
    level = alt.Chart(levels).encode(alt.Y("level:Q"))
    # Of more the names would lie on each other.
    named = [f"{name} = {n:,}" if len(changes) <= NAMED else "" for n in changes]
    at = pd.DataFrame({"n": changes, "name": named})
    flips = alt.Chart(at).encode(alt.X("n:Q"))
    label: dict[str, Any] = {"fontSize": 12, "color": "~ink"}
    return alt.layer(
        level.mark_rule(color="~muted", strokeDash=[2, 3]),
        level.mark_text(align="right", dy=-7, **label).encode(x=alt.value("width"), text="name:N"),
        base.mark_line(color="~muted", strokeWidth=1.2),
        dots,
        flips.mark_rule(color="~ink", strokeDash=[6, 4]),
        flips.mark_text(align="left", dx=5, **label).encode(y=alt.value(8), text="name:N"),
    ).properties(height=style.HEIGHT, width="container")


def _with_edges(frame: pd.DataFrame, grid: Sequence[int], names: Sequence[str]) -> pd.DataFrame:
    """The strings of the grid with the edges of their cells, x, x2, y, y2, and strength."""
    values = np.array(grid, dtype=float)
    # On a log scale the middle of two counts is their geometric mean.
    middles = np.sqrt(values[1:] * values[:-1])
    # The outer cells reach as far outward as inward, on that scale.
    first, last = (values[:1] ** 2 / middles[:1], values[-1:] ** 2 / middles[-1:])
    # A single count has no neighbor to reach toward.
    edges = np.concatenate([first, middles, last]) if len(grid) > 1 else np.array([0.7, 1.4])
    cells = frame[frame[names[0]].isin(grid) & frame[names[1]].isin(grid)].copy()
    for name, axis in zip(names, "xy", strict=True):
        place = np.searchsorted(values, cells[name])
        cells[axis], cells[f"{axis}2"] = edges[place], edges[place + 1]
    cells["strength"] = 0.25 + 0.65 * np.minimum(cells["score"].abs(), SURE) / SURE
    return cells


def _logit_map(cells: pd.DataFrame, changes: list[dict[str, int]], names: Sequence[str]) -> Any:
    """Two free counts as a map of what is right, with dots where the answer changes."""
    first, second = names
    edges = {"x2": "x2:Q", "y2": "y2:Q"}
    base = alt.Chart(cells).mark_rect()
    map_of = base.encode(
        _count_axis(alt.X, "x", first),
        _count_axis(alt.Y, "y", second),
        marks.color("verdict", marks.RIGHT),
        alt.Opacity("strength:Q", scale=None),
        tooltip=marks.tips(**_counts(names), score="Logit:.4f", **ANSWERED),
        **edges,
    )
    # Without names for its columns, a frame of no changes would have none.
    boundary = alt.Chart(pd.DataFrame(changes, columns=list(names)))
    dots = boundary.mark_circle(size=22, color="~ink", opacity=1).encode(
        alt.X(f"{first}:Q"),
        alt.Y(f"{second}:Q"),
        tooltip=marks.tips(**_counts(names)),
    )
    return alt.layer(map_of, dots).properties(height=360, width="container")


def _outputs_along(frame: pd.DataFrame, names: Sequence[str]) -> Any:
    """Right tokens of each output against the free count, below the length of the targets."""
    (name,) = names
    x = alt.X(f"{name}:Q", title=f"{name}, the free count", axis=alt.Axis(tickMinStep=1))
    base = alt.Chart(frame).encode(x)
    targets = base.mark_line(color="~muted", strokeDash=[4, 4])
    points = base.mark_point(filled=True, size=50, opacity=1).encode(
        alt.Y("right_tokens:Q"), _verdicts(), tooltip=_tooltip(names)
    )
    length = marks.y_axis("target_tokens:Q", "Right tokens (dashed: of the target)", form="~s")
    return alt.layer(targets.encode(length), points).properties(
        height=style.HEIGHT, width="container"
    )


def _outputs_map(frame: pd.DataFrame, names: Sequence[str]) -> Any:
    """A cell for each input of two free counts, in the color of what its output is."""
    rows = frame[names[1]].nunique()
    x = alt.X(f"{names[0]}:O", axis=alt.Axis(labelAngle=0))
    y = alt.Y(f"{names[1]}:O", sort="descending")
    cells = alt.Chart(frame).mark_rect(stroke="~ground")
    drawn = cells.encode(x, y, _verdicts(), tooltip=_tooltip(names))
    return drawn.properties(height=max(24 * rows, 80), width="container")


def _verdicts() -> alt.Color:
    return marks.color("verdict", ("right", *marks.OUTPUT_ERRORS))


def _tooltip(names: Sequence[str]) -> list[alt.Tooltip]:
    return marks.tips(
        **_counts(names),
        verdict="Output is",
        right_tokens="Right tokens:",
        target_tokens="Target tokens:",
        target="Target",
        output="Output",
    )


def _counts(names: Sequence[str]) -> dict[str, str]:
    return {name: f"{name}:," for name in names}
