"""Errors of a model that reads pictures, by their contents: characters and lines."""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from dashboard import marks
from dashboard.section import Panel, Section
from seqcls.evaluation import distinct_test_strings
from seqcls.kinds.output_errors import edits
from seqcls.kinds.transduction import target_lengths
from seqcls.models.positions import longest_readable
from seqcls.problem import Problem, obstacle_of, resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.paragraph import CHARACTERS, LINES, Paragraph
from sweeps.api import Store, reading, run_config

EXACT, ERRORS = "exact match", "character error rate"

CAPTION = (
    "Exact match: the share of outputs that are the whole text. Character error rate: edits from "
    "outputs to texts over the characters of the texts, line breaks among them. Dashed: the most "
    "in training."
)


def by_features(store: Store, run_id: int) -> Section | None:
    """Both measures by the number of characters and of lines; None where no task draws pictures."""
    config = run_config(store, run_id)
    if obstacle_of(config) is not None or not isinstance(resolve(config).task, Paragraph):
        return None
    problem = resolve(config)
    counted = _count(problem, reading.string_errors(store, run_id))
    panels = [
        Panel.of(_lines(_shares(counted, feature), feature, _most_trained(problem, feature)))
        for feature in (CHARACTERS, LINES)
    ]
    return Section("How does the size of the text matter?", (), None, tuple(panels), CAPTION)


def _count(problem: Problem, errors: pd.DataFrame) -> pd.DataFrame:
    """Each distinct test string that the model has places for, with its errors and features."""
    test = distinct_test_strings(problem.test)
    lengths, times = target_lengths(test.targets), test.occurrences
    encode = problem.tokenizer.encode
    wrong = {
        text: edits(list(encode(output)), list(encode(target)))
        for text, output, target in errors[["string", "output", "target"]].to_numpy().tolist()
    }
    counted = pd.DataFrame(
        {
            "tested": times,
            "right": times * [text not in wrong for text in test.texts],
            "edits": times * np.array([wrong.get(text, 0) for text in test.texts]),
            "tokens": times * lengths,
            **problem.task.features(test.strings),
        }
    )
    end = longest_readable(problem.network)
    # An input and its target are read as one string, with a token between them.
    return counted[(test.strings.lengths + 1 + lengths) <= (np.inf if end is None else end)]


def _shares(counted: pd.DataFrame, feature: str) -> pd.DataFrame:
    """A row a value and measure: value, measure, share, of, tested."""
    sums = counted.groupby(feature)[["tested", "right", "edits", "tokens"]].sum().reset_index()
    sums = sums.rename(columns={feature: "value"})
    shares = {EXACT: ("right", "tested"), ERRORS: ("edits", "tokens")}
    return pd.concat(
        sums[["value", "tested"]].assign(
            measure=name, share=sums[part] / sums[total], of=sums[total]
        )
        for name, (part, total) in shares.items()
    )


def _lines(measured: pd.DataFrame, feature: str, trained: int) -> Any:
    """A line a measure."""
    title = feature.capitalize()
    tooltip = marks.tips(
        measure="Measure", value=f"{title}:", share="Value:.2~%", of="Out of:,",
        tested="Test inputs:",
    )  # fmt: skip
    lines = marks.lines(
        measured,
        "measure",
        tooltip,
        marks.x_axis("value:Q", title, zero=True),
        marks.y_axis("share:Q", "Share", form="%"),
        marks.color("measure", (EXACT, ERRORS), marks.RIGHT, legend=marks.TOP, title=None),
    )
    return alt.layer(lines, marks.rule("x", trained, strokeDash=[4, 4])).properties(height=200)


def _most_trained(problem: Problem, feature: str) -> int:
    """The feature in the longest inputs of training, whose lines are as few as they may be."""
    task = problem.task
    assert isinstance(task, Paragraph)
    longest = task.draw_input(np.random.default_rng(0), problem.train.lengths[-1])
    strings = TokenStrings.of_lists(problem.tokenizer.num_letters, [longest.tolist()])
    return int(task.features(strings)[feature][0])
