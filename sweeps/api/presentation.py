"""Texts for strings, proofs and errors of runs. Pure functions."""

from collections.abc import Callable, Mapping

import pandas as pd

from seqcls.config import RunConfig
from seqcls.interpretability.wording import percent
from seqcls.kinds import MISCLASSIFIED, Words
from seqcls.problem import obstacle_of, resolve, tokenizer_of
from sweeps.results import BORDER_MEDIANS, BORDER_SHARES

TEXTS = ("string", "target", "output")
"""Columns of tables that hold strings of the alphabet."""

ANY_WORDS = Words(
    *("string", "get {} wrong", "gets {} wrong", "wrongly answered", "task", "label or target"),
    "rightly answered",
)


def words_of(*configs: RunConfig) -> Words:
    """Returns the words for errors of the task's kind; those of languages where it is unknown."""
    known = {resolve(config).kind.words for config in configs if obstacle_of(config) is None}
    # Words for one kind of answer would be wrong for the other.
    return ANY_WORDS if len(known) > 1 else next(iter(known), MISCLASSIFIED)


def display_strings(frame: pd.DataFrame, *configs: RunConfig) -> pd.DataFrame:
    """Formats the strings of a table.

    Args:
        frame: a frame with any of the columns `TEXTS`.
        configs: the configurations of its models; their tasks have one alphabet.
    """
    tokenizer = next(filter(None, map(tokenizer_of, configs)), None)
    texts = [name for name in TEXTS if name in frame] if tokenizer is not None else []
    if tokenizer is None or not texts:
        return frame
    shown = frame[texts].map(tokenizer.display, na_action="ignore")
    return frame.assign(**{name: shown[name] for name in texts})


def display_of(config: RunConfig) -> Callable[[str], str]:
    """Returns the formatter of strings of a configuration's task; `str` where it is unknown."""
    tokenizer = tokenizer_of(config)
    return str if tokenizer is None else tokenizer.display


def describe_proofs(runs: pd.DataFrame, configs: Mapping[int, RunConfig]) -> list[str]:
    """Describes the result of each run's proof, as `refuted by 10{25}`; empty where none is stored.

    Args:
        runs: config_id and, where any proof is stored, every_length and refuted_by.
        configs: configurations by id; the string of any other is not formatted.
    """
    if "every_length" not in runs:
        return [""] * len(runs)
    texts = []
    for config_id, result, string in runs[["config_id", "every_length", "refuted_by"]].to_numpy():
        refuted = ""
        if isinstance(string, str):
            shown = display_of(configs[config_id])(string) if config_id in configs else string
            refuted = f" by {shown or 'the empty string'}"
        texts.append(f"{result}{refuted}" if isinstance(result, str) else "")
    return texts


def border_sentence(accuracies: pd.DataFrame) -> str:
    """Describes the accuracy on random strings and border pairs; empty where no test has these.

    Args:
        accuracies: one row a model, with the columns of `BORDER_SHARES`; of several models, those
            on longer strings are missing of models that have not learned.
    """
    medians = accuracies[list(BORDER_SHARES)].median().dropna()
    accuracy, words = "Median accuracy", BORDER_MEDIANS
    if len(accuracies) == 1:
        accuracy, words = "Accuracy", BORDER_SHARES
    parts = [f"{words[str(name)]} {percent(x, 1)}" for name, x in medians.items()]
    return f"{accuracy}: {'; '.join(parts)}." if parts else ""
