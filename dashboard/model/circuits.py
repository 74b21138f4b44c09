"""Key-query and value-output circuits of heads, for any string; and permutations of a string."""

from typing import Any

import numpy as np
import pandas as pd

from dashboard import marks, token_marks
from dashboard.model import inside_words as words
from dashboard.section import Panel, Section
from dashboard.words.sentences import say
from seqcls.errors import ConfigError
from seqcls.interpretability.trained_model import Letters
from seqcls.questions import RunModel

ROUNDING = 1e-9
"""Logits in double precision that differ by less are the same."""


def heads_of(model: RunModel) -> tuple[Any, ...]:
    """The circuits of its heads; none of a model that has no such heads."""
    try:
        return model.circuits()
    except ConfigError:
        return ()


def circuits(model: RunModel) -> tuple[Section, ...]:
    """Key-query and value-output circuits of each head; empty for a model without heads."""
    looks, writes = [], []
    for head in heads_of(model):
        name, size = f"{head.name[:1].upper()}{head.name[1:]}", np.shape(head.output)[-1]
        # A row a token that attends, a column what it attends to.
        scores, types = np.asarray(head.scores), head.token_types
        drawn = token_marks.signed_map(scores, types, types, "Attends", "Attended to", "Score")
        looks.append(Panel.of(drawn, name, say("ranks", rank=head.key_query_rank, size=size)))
        rank = say("ranks", rank=head.value_output_rank, size=size)
        writes.append(Panel.of(_direct(head), name, rank))
    if not looks:
        return ()
    return (
        Section(words.LOOKS, (), None, tuple(looks), words.SCORES, ("up", "down")),
        Section(words.WRITES, (), None, tuple(writes), words.DIRECT),
    )


def _direct(head: Any) -> Any:
    """The value-output circuit, read out: a bar a token, or a row an output of the head."""
    direct = np.asarray(head.direct_logit)
    # A language has one logit, outputs one for each token.
    if direct.ndim == 1:
        frame = pd.DataFrame({"token": head.token_types, "adds": direct})
        return marks.bars(frame.assign(label=frame["adds"].map("{:+.2f}".format)), "token", "adds")
    if direct.shape[0] == len(head.token_types):
        direct = direct.T
    outputs = [f"output {number}" for number in range(len(direct))]
    titles = ("Output", "Attended to", "Adds")
    return token_marks.signed_map(direct, outputs, head.token_types, *titles)


def orders(model: RunModel, letters: Letters) -> Section:
    """Shows whether the order of a string's letters matters, by the logits of permutations.

    Raises:
        ConfigError: the string cannot be permuted, as the input of a task whose inputs have a form.
        InvalidStringError: it is too long to be read letter by letter.
    """
    found = model.orders(model.text(letters))
    # All its letters are alike, or there are fewer than two.
    if len({*found.strings}) == 1:
        return Section(words.ORDERS, (say("one_order"),))
    number = model.problem.kind.score_name
    key = "order_is_nothing" if found.spread <= ROUNDING else "order_matters"
    shown = [model.tokenizer.display(text) for text in found.strings]
    table = pd.DataFrame({"shuffled": shown, "score": found.logits})
    return Section(words.ORDERS, (say(key, number=number, spread=found.spread),), table)
