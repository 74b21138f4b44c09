"""What the heads of a model look for and what they write, whatever the string; and its orders."""

from collections.abc import Iterator
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from dashboard import marks
from dashboard.model import inside_words as words
from dashboard.model import token_marks
from dashboard.section import Panel, Section
from dashboard.words.sentences import say
from seqcls.errors import ConfigError
from seqcls.interpretability.trained_model import Letters
from seqcls.questions import RunModel

ROUNDING = 1e-9
"""Logits in double precision that differ by less are the same."""


def circuits(model: RunModel) -> tuple[Section, ...]:
    """What each head looks for and what it writes; nothing of a model that has no heads."""
    try:
        heads = model.circuits()
    except ConfigError:
        return ()
    if not heads:
        return ()
    looks, writes = (
        tuple(Panel.of(draw(head), _name(head), note) for head, note in _with_ranks(heads, rank))
        for draw, rank in ((_scores, "key_query_rank"), (_direct, "value_output_rank"))
    )
    return (
        Section(words.LOOKS, (), None, looks, words.SCORES, ("up", "down")),
        Section(words.WRITES, (), None, writes, words.DIRECT),
    )


def _name(head: Any) -> str:
    text = str(head.name)
    return f"{text[:1].upper()}{text[1:]}"


def _with_ranks(heads: Any, rank: str) -> Iterator[tuple[Any, str]]:
    for head in heads:
        yield head, say("ranks", rank=getattr(head, rank), size=np.shape(head.output)[-1])


def _scores(head: Any) -> Any:
    """The key-query circuit: a row a token that attends, a column what it attends to."""
    return _matrix(np.asarray(head.scores), head.token_types, head.token_types, "Attends")


def _direct(head: Any) -> Any:
    """The value-output circuit, read out: a bar a token, or a row an output of the head."""
    direct = np.asarray(head.direct_logit)
    if direct.ndim == 1:
        frame = pd.DataFrame({"token": head.token_types, "adds": direct})
        return marks.bars(frame.assign(label=frame["adds"].map("{:+.2f}".format)), "token", "adds")
    if direct.shape[0] == len(head.token_types):
        direct = direct.T
    outputs = [f"output {number}" for number in range(len(direct))]
    return _matrix(direct, outputs, head.token_types, "Output")


def _matrix(values: np.ndarray, rows: Any, columns: Any, title: str) -> Any:
    row, place = np.indices(values.shape).reshape(2, -1)
    named = {"row_name": np.array(rows)[row], "to": np.array(columns)[place]}
    frame = pd.DataFrame({"row": row, "place": place, "value": values.ravel(), **named})
    tooltip = marks.tips(row_name=title, to="Attended to", value="Value:+.4f")
    base = alt.Chart(frame).encode(
        token_marks.along("place", columns, "Attended to"), token_marks.rows_axis("row", rows)
    )
    reach = max(float(np.abs(values).max(initial=0)), 1e-9)
    return token_marks.signed_map(base, "value", len(rows), tooltip, reach)


def orders(model: RunModel, letters: Letters) -> Section:
    """Whether the order of a string's letters matters: its numbers in other orders.

    Raises:
        ConfigError: the string cannot be permuted, as the input of a task whose inputs have a form.
        InvalidStringError: it is too long to be read letter by letter.
    """
    found = model.orders(model.text(letters))
    number = model.problem.kind.score_name
    key = "order_is_nothing" if found.spread <= ROUNDING else "order_matters"
    shown = [model.tokenizer.display(text) for text in found.strings]
    table = pd.DataFrame({"shuffled": shown, "score": found.logits})
    return Section(words.ORDERS, (say(key, number=number, spread=found.spread),), table)
