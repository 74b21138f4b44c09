"""How right a model's outputs are by the characters and by the lines of what it reads."""

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import data
from dashboard.charts.errors.by_feature import by_feature
from dashboard.elements import pictures, placement
from seqcls.config import RunConfig
from seqcls.decoding.measures import edits
from seqcls.evaluation import distinct_test_strings
from seqcls.kinds.transduction import target_lengths
from seqcls.models.positions import longest_readable
from seqcls.problem import Problem, resolve
from seqcls.tasks.transductions.paragraph import CHARACTERS, LINES, Paragraph
from seqcls.tokens.strings import TokenStrings
from sweeps.store.strings.string_queries import ErrorSearch

EXACT, ERRORS = "Exact match", "Character error rate"


def show(run_id: int, config: RunConfig) -> None:
    """Two charts side by side; nothing where the task draws no pictures."""
    problem = resolve(config)
    if pictures.page_of(problem.task) is None:
        return
    shares = _measured(run_id, config)
    for column, feature in zip(st.columns(2), (CHARACTERS, LINES), strict=True):
        with column:
            rows = shares[shares["feature"] == feature]
            chart = placement.built(by_feature, rows, feature, _most_trained(problem, feature))
            placement.show(chart, f"outputs by {feature}")
    st.caption(
        "Exact match: the share of outputs that are the whole text. Character error rate: edits "
        "from outputs to texts over the characters of the texts, line breaks among them."
    )


@data.shared
def _measured(run_id: int, config: RunConfig) -> pd.DataFrame:
    """feature, value, measure, share, of, tested: by each feature, of readable strings."""
    problem = resolve(config)
    test = distinct_test_strings(problem.test)
    lengths = target_lengths(test.targets)
    end = longest_readable(problem.network)
    encode = problem.tokenizer.encode
    errors = data.string_errors(run_id, ErrorSearch())[["string", "output", "target"]]
    wrong = {
        text: edits(list(encode(output)), list(encode(target)))
        for text, output, target in errors.to_numpy().tolist()
    }
    times = test.occurrences
    counted = pd.DataFrame(
        {
            "tested": times,
            "right": times * [text not in wrong for text in test.texts],
            "edits": times * np.array([wrong.get(text, 0) for text in test.texts]),
            "tokens": times * lengths,
            **problem.task.features(test.strings),
        }
    )
    counted = counted[(test.strings.lengths + 1 + lengths) <= (np.inf if end is None else end)]
    return pd.concat([_by(counted, feature) for feature in (CHARACTERS, LINES)])


def _by(counted: pd.DataFrame, feature: str) -> pd.DataFrame:
    sums = counted.groupby(feature)[["tested", "right", "edits", "tokens"]].sum().reset_index()
    sums = sums.rename(columns={feature: "value"})
    kept = sums[["value", "tested"]].assign(feature=feature)
    shares = {EXACT: ("right", "tested"), ERRORS: ("edits", "tokens")}
    parts = [
        kept.assign(measure=name, share=sums[part] / sums[of], of=sums[of])
        for name, (part, of) in shares.items()
    ]
    return pd.concat(parts)


def _most_trained(problem: Problem, feature: str) -> int:
    """The feature in the longest inputs of training, whose lines are as few as they may be."""
    task = problem.task
    assert isinstance(task, Paragraph)
    longest = task.draw_input(np.random.default_rng(0), problem.train.lengths[-1])
    strings = TokenStrings.of_lists(problem.tokenizer.num_letters, [longest.tolist()])
    return int(task.features(strings)[feature][0])
