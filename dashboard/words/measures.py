"""What pages call errors and accuracy, and what each number means in a sentence."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.column_config import NumberColumn, TextColumn

from dashboard import data
from dashboard.text import verbatim
from seqcls import kinds
from seqcls.interpretability.wording import EMPTY, percent
from seqcls.kinds import ACCURACY, KINDS, MISCLASSIFIED, Kind, Measure, Words
from seqcls.problem import obstacle_of, resolve
from sweeps.api import reading
from sweeps.api.presentation import ANY_WORDS

ANY_ACCURACY = Measure(
    "accuracy", "Accuracy", "Share of a model's test strings that it answers correctly."
)


@dataclass(frozen=True)
class KindWords:
    """The words that hold for all models of a page."""

    words: Words = MISCLASSIFIED
    accuracy: str = ACCURACY.meaning
    """In a sentence."""


def words_of(config_ids: Iterable[int]) -> KindWords:
    """The words for models of these configurations."""
    kinds = kinds_of(tuple(config_ids))
    words = {kind.words for kind in kinds}
    accuracy = {kind.measures()[0].meaning for kind in kinds}
    return KindWords(
        words.pop() if len(words) == 1 else ANY_WORDS,
        accuracy.pop() if len(accuracy) == 1 else ANY_ACCURACY.meaning,
    )


def words_of_languages(names: Iterable[str]) -> KindWords:
    """The words for models of these languages, or other tasks, by what these are called."""
    known = set(names)
    return words_of(config_id for config_id, name in data.languages().items() if name in known)


def has_cells(config_ids: Iterable[int]) -> bool:
    """Whether there are false positives and negatives of any of these configurations."""
    return any(kind.cells for kind in kinds_of(tuple(config_ids)))


@partial(data.shared, of=reading.configs_revision)
def kinds_of(config_ids: tuple[int, ...]) -> list[Kind]:
    """The kinds of answers of these configurations, each once; of languages where none is known."""
    languages = data.languages()
    # One configuration of each language tells.
    first = {languages[config_id]: config_id for config_id in config_ids}
    configs = data.some_configs(tuple(first.values())).values()
    # The kind of a plug-in's task is unknown unless it is installed.
    kinds = [resolve(config).kind for config in configs if obstacle_of(config) is None]
    each = {type(kind): kind for kind in kinds}
    return list(each.values()) or [KINDS["membership"]()]


TESTED = "Models that are trained and tested, of all configurations that match the filters."
SEEDS = "Trained and tested models with the same settings but different initial values."
FALSE_POSITIVES = "Negative test strings that are predicted positive"
DRAWN = (
    "How the string was drawn. Uniform: of all negative strings of its length. Edited: a positive "
    "string with a few tokens changed. Near: a positive string with one or two tokens replaced or "
    "exchanged, each pair of neighbors of which occurs in some positive string. Border: at edit "
    "distance 1 from a string of the other label."
)
RANDOM = (
    "Accuracy on random test strings: within / beyond trained lengths; beyond, of several models "
    "those that learned."
)
BORDER = (
    "Accuracy on border pairs of the test: within / beyond trained lengths; beyond, of several "
    "models those that learned. The strings of a pair are at edit distance 1, one in the language "
    "and one outside."
)
OCCURRENCES = "How often the string is in the test set."
NOT_KNOWN = "not known"
"""What is right of a string that is not in the file, or too long to be read token by token."""
NO_ANSWER = "no answer"
"""What is said of a model that has no places for so long a string."""


def solved_length(words: Words = MISCLASSIFIED) -> str:
    """What the solved length is."""
    strings = words.plural("")
    return (
        f"The greatest length up to which a model {words.misses.format(f'no test {words.string}')}."
        f" {strings.capitalize()} that are not in the test set may be {words.missed} at a shorter "
        f"length; none: some of the shortest test {strings} are {words.missed}."
    )


def first_wrong_length(words: Words = MISCLASSIFIED) -> str:
    """What the length is at which a model is wrong first."""
    missed = words.misses.format(f"some test {words.string}")
    return (
        f"The shortest length at which it {missed}, whether it was trained on such lengths or not. "
        "None of models that have not learned: their errors say nothing about length."
    )


def failing(below: float, words: Words = MISCLASSIFIED) -> str:
    """What a failing model is, at this threshold in [0, 1]."""
    if below >= 1:
        missed = words.miss.format(f"at least one of their {words.plural('test')}")
        return f"Models that {missed}."
    return f"Models with an accuracy below {percent(below, 1)}."


WIDEST, PINNED = 370, 200
"""Pixels of the column that names the rows, at most, and where it stays in sight."""

LETTER = 6.0
"""Pixels of a letter in a table, about."""


def string_columns(kind: kinds.Kind | None = None) -> dict[str, Any]:
    """How the columns of a table of misclassified strings are shown.

    Args:
        kind: of their task's answers; of languages if none is given.
    """
    kind = kind or kinds.KINDS["membership"]()
    columns, words = kind.error_columns(), kind.words
    names = {column.name for column in columns}
    return {
        "string": TextColumn(
            words.string.capitalize(),
            help="a{100} is a, a hundred times.",
            # Targets and outputs stand beside it.
            width=420 if "label" in names else 240,
        ),
        "kind": TextColumn("Kind", help=f"False positive: {FALSE_POSITIVES}, and so on."),
        "drawn": TextColumn("Drawn", help=DRAWN),
        "length": NumberColumn("Length", help="Tokens"),
        "occurrences": NumberColumn("Occurrences", help=OCCURRENCES),
        "models": NumberColumn("Models", help=verbatim(f"Models that {words.miss.format('it')}.")),
        "of": NumberColumn("Tested on it", help="Of the models with errors that are counted."),
        "share": NumberColumn(
            "Share", help="Of the models with errors that are tested on it.", format="percent"
        ),
        **{column.name: _of_errors(column) for column in columns},
        # Of a task that is no language there is no label, nor what follows from it.
        **({} if "label" in names else dict.fromkeys(("label", "kind"))),
    }


def kinds_first(errors: pd.DataFrame, kind: kinds.Kind | None) -> pd.DataFrame:
    """A table of wrong outputs with what the kind says of each first; of others what is known."""
    if kind is None or "output" not in errors:
        return errors.dropna(axis="columns", how="all")
    named = [column.name for column in kind.error_columns()]
    return errors[["string", *named, "length", "occurrences"]]


def answers_frame(answers: pd.DataFrame) -> pd.DataFrame:
    """Strings, what is right of each and what the model says, as a table shows them.

    Args:
        answers: as `sweeps.api.models.predict` gives them, written out to be shown.

    Returns:
        string, label or target, predicted or output, correct (missing where it is not known, or
        there is no answer), and the number that says how sure the model is.
    """
    right = "label" if "label" in answers else "target"
    answer, number = [x for x in answers if x not in ("string", right, "probability")]
    known, answered = answers[right].notna(), answers[answer].notna()
    correct = (answers[right] == answers[answer]).astype("boolean")
    texts = {name: answers[name].map(_answer_text) for name in (right, answer)}
    return pd.DataFrame(
        {
            "string": answers["string"],
            right: texts[right].where(known, NOT_KNOWN),
            answer: texts[answer].where(answered, NO_ANSWER),
            "correct": correct.where(known & answered),
            number: answers[number],
        }
    )


def _answer_text(value: bool | str | None) -> str:
    """A label as it is stored, or an output, which may be empty."""
    if isinstance(value, str):
        return value or EMPTY
    return "" if value is None else str(int(value))


def answer_columns(kind: kinds.Kind) -> dict[str, Any]:
    """How the columns of a model's answers, where these are not yes or no, are shown."""
    return {column.name: _of_errors(column) for column in kind.answer_columns}


def _of_errors(column: kinds.ErrorColumn) -> Any:
    if column.name in ("logit", "margin", "log_probability"):
        return NumberColumn(column.title, help=verbatim(column.meaning), format="%.4f")
    return st.column_config.Column(column.title, help=verbatim(column.meaning))
