"""States of a model along one string: running logit, parts, attention and units.

Each is a section of the model's states, so that pages and files of one string share them.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dashboard import token_marks
from dashboard.model import inside_words as words
from dashboard.section import Panel, Section
from dashboard.words.sentences import say
from seqcls.counts import counts_suffice
from seqcls.interpretability.trained_model import Letters
from seqcls.interpretability.wording import EMPTY
from seqcls.questions import RunModel

if TYPE_CHECKING:
    from seqcls.interpretability.states_by_strings import ModelStates

MIN_LABELED_WEIGHT = 0.005
"""Least weight that is written above its bar."""

DRAWN = 64
"""Tokens up to which maps of attention and units are drawn."""


def running_of(model: RunModel, letters: Letters, states: "ModelStates") -> Section | None:
    """Logit of each prefix of a string; None for a model that writes."""
    if (prefixes := states.prefixes) is None:
        return None
    at_places = model.problem.at_places
    right = [
        "not known" if label is None else "right" if is_right else "wrong"
        for label, is_right in zip(prefixes.labels, _are_right(prefixes), strict=True)
    ]
    frame = pd.DataFrame({"place": range(len(right)), "value": prefixes.logits, "answer": right})
    frame["prefix"] = [model.display(letters[:end]) or EMPTY for end in frame["place"]]
    # A beginning is named by its last token.
    names = ["CLS" if at_places else EMPTY, *prefixes.tokens[1:]]
    number = "Margin" if isinstance(prefixes.labels[0], str) else "Logit"
    panels = [Panel.of(token_marks.running(frame, names, number))]
    wrong = right.index("wrong") if "wrong" in right else None
    key = "no_wrong_beginning" if wrong is None else "wrong_beginning"
    sentences = [say(key, tokens=wrong)] if "not known" not in right or wrong is not None else []
    if prefixes.answers:
        texts = [*map(str, prefixes.labels)]
        rows = {"String": names, "Target": texts, "Output": [*prefixes.answers]}
        panels.append(Panel.of(token_marks.alignment(rows, wrong)))
    caption = words.RUNNING_MARGIN if number == "Margin" else words.RUNNING
    legend = tuple(x for x in ("right", "wrong", "not known") if x in right)
    return Section(words.WHERE, tuple(sentences), None, tuple(panels), caption, legend)


def _are_right(prefixes: Any) -> list[bool]:
    """Correctness of each prefix's answer."""
    if isinstance(prefixes.labels[0], str):
        return [x > 0 for x in prefixes.logits.tolist()]
    pairs = zip(prefixes.logits.tolist(), prefixes.labels, strict=True)
    # NaN is unlike itself: a beginning that cannot be answered is not right.
    return [x == x and (x > 0) == bool(label) for x, label in pairs]


def stream_of(states: "ModelStates") -> Section | None:
    """The residual stream read out after each step; None of a model that has none."""
    if states.steps is None:
        return None
    parts = pd.Series([step.text for step in states.steps])
    adds, logit = np.array([step.adds for step in states.steps]), states.steps[-1].logit
    most = int(np.abs(adds).argmax())
    sentence = say("most_adds", part=parts[most], adds=adds[most], logit=logit)
    # Two parts of one name would be one row of the chart.
    again = parts.groupby(parts).cumcount()
    parts = parts.where(again == 0, parts + " " + again.astype(str))
    panel = Panel.of(token_marks.all_steps(token_marks.sum_up(parts.tolist(), adds.tolist())))
    return Section(words.ADDED_BY_PARTS, (sentence,), None, (panel,), words.SUMS, ("up", "down"))


def reads_several(model: RunModel, letters: Letters, states: "ModelStates") -> bool:
    """Returns True if the attention of more than one token reaches the answer."""
    patterns = states.attention
    if patterns is None or model.problem.lacks("labels"):
        return False
    return len(patterns.weights) > 1 or len(_rows_read(patterns, model, letters)) > 1


def attention_of(
    model: RunModel, letters: Letters, states: "ModelStates", *, every: bool = False
) -> Section | None:
    """Attention weights, head by head; None for a model without attention.

    Args:
        model: the model.
        letters: of the string.
        states: of the string.
        every: shows each token's attention, not only that of the one that is read.
    """
    patterns = states.attention
    if patterns is None or not patterns.weights.shape[1]:
        return None
    if every or model.problem.lacks("labels"):
        if len(patterns.tokens) > DRAWN + 2:
            return Section(words.ATTENTION, (say("too_long", drawn=DRAWN),))
        panels = [
            Panel.of(attention_map(x, patterns.rows, patterns.tokens, "Attends"), name)
            for name, x in heads(patterns)
        ]
        return Section(words.ATTENTION, (), None, tuple(panels), words.ROWS)
    read = _rows_read(patterns, model, letters)
    if counts_suffice(model.problem.network, training=False) is None:
        # Equal letters have equal states: one bar for all of a letter.
        names = list(dict.fromkeys(patterns.tokens))
        counts = [patterns.tokens.count(name) for name in names]
        held = np.array(names)[:, None] == np.array(patterns.tokens)
        called = [
            name if number == 1 else f"{name}{{{number}}}"
            for name, number in zip(names, counts, strict=True)
        ]
        panels = [_bars(held @ x[read].mean(axis=0), called, name) for name, x in heads(patterns)]
        return Section(words.ATTENTION, (), None, tuple(panels), words.BY_LETTER)
    panels = [
        _bars(x[read].mean(axis=0), list(patterns.tokens), name) for name, x in heads(patterns)
    ]
    return Section(words.ATTENTION, (), None, tuple(panels), words.READ[model.config.readout])


def attention_map(
    weights: np.ndarray, rows: Sequence[str], columns: Sequence[str], attends: str
) -> Any:
    """Attention of each token (row) to each (column) in one head; `attends` titles the rows."""
    # Rounded: more digits make the page larger, and no color shows them.
    cells = token_marks.cells(weights.round(6), rows, columns, attends, "Attended to", "Weight")
    return token_marks.share_map(cells, "value", len(rows))


def heads(patterns: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Yields each head's name and its weights, a row for each token that attends."""
    blocks, heads = patterns.weights.shape[:2]
    for block in range(blocks):
        for head in range(heads):
            number = patterns.blocks[block]
            yield (
                f"Block {number}, head {head}" if blocks > 1 else f"Head {head}",
                patterns.weights[block, head],
            )


def _rows_read(patterns: Any, model: RunModel, letters: Letters) -> list[int]:
    """The rows of the tokens of which the answer is made."""
    last, readout = len(patterns.rows) - 1, model.config.readout
    if readout == "first":
        return [0]
    if readout == "mean":
        # The empty string has no letter to read.
        return list(range(last + 1 - len(letters), last + 1)) or [last]
    return [last]


def _bars(weights: np.ndarray, names: list[str], title: str) -> Panel:
    frame = pd.DataFrame({"place": range(len(names)), "token": names, "weight": weights})
    frame["label"] = [f"{x:.0%}" if x >= MIN_LABELED_WEIGHT else "" for x in weights]
    # Above more bars the numbers would lie on one another.
    label = "label" if len(names) <= 12 else ""
    return Panel.of(token_marks.weights(frame, names, label), title)


def layer_word(model: RunModel) -> str:
    """Name of a layer, such as `decoder block`."""
    # Imported where it is used: PyTorch takes a second or two to load.
    from seqcls.interpretability import states_by_strings

    return states_by_strings.layer_word(model)


def units_of(
    states: "ModelStates", state: str = "", layer: str = "", word: str = "layer"
) -> Section | None:
    """The units of a recurrent layer after every token; None of a model that has none.

    Args:
        states: of a string.
        state: `state`, or one of the gates; the state where it has no such gate.
        layer: as the network calls it; the last where it has no such layer.
        word: what a layer is.
    """
    if (units := states.units) is None:
        return None
    number = units.layers.get(layer, len(units.states) - 1)
    gate = units.gates.get(state)
    values = (units.states if gate is None else gate)[number]
    if len(units.tokens) > DRAWN + 2:
        return Section(words.UNITS, (say("too_long", drawn=DRAWN),))
    note = say("strongest", reach=float(np.abs(values).max(initial=0)))
    numbers, titles = [*map(str, range(values.shape[1]))], ("Unit", "After", "Value")
    chart = token_marks.signed_map(values.T.round(5), numbers, units.tokens, *titles)
    panels = [Panel.of(chart, "Units", note)]
    if gate is None:
        panels.append(_path(values, units.tokens))
    named = "state" if gate is None else state.replace("_", " ")
    where = f"{word} {[*units.layers][number]}"
    sentence = say("units", state=named, layer=where, units=values.shape[1])
    return Section(words.UNITS, (sentence,), None, tuple(panels), words.UNIT_MAP, ("up", "down"))


def _path(states: np.ndarray, tokens: tuple[str, ...]) -> Panel:
    """The states in the plane in which they vary most."""
    # Imported where it is used: PyTorch takes a second or two to load.
    from seqcls.interpretability.states_by_strings import principal_path

    found = principal_path(states)
    frame = pd.DataFrame({"place": range(len(tokens)), "token": tokens})
    # Of states along one line the second component is rounding alone.
    frame["first"], frame["second"] = found.points.round(9).T
    axes = (f"First component ({found.shares[0]:.0%})", f"Second ({found.shares[1]:.0%})")
    return Panel.of(token_marks.path(frame, axes), "Path of the state")
