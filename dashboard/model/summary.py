"""A model in two sentences: what it should do, and what testing showed."""

import pandas as pd

from seqcls.config import RunConfig
from seqcls.fields.imported import unfolded
from seqcls.problem import resolve


def task_sentence(config: RunConfig) -> str:
    """The language, and how long the strings were."""
    train, test = resolve(config).train, resolve(config).test
    if resolve(config).is_imported:
        settings = unfolded(dict(config))
        said = ", ".join(f"{name}={value}" for name, value in settings.items())
        return (
            f"{resolve(config).task.describe()} This model was trained elsewhere and its results "
            f"imported ({said}); it was tested on strings of up to {test.lengths[-1]} letters."
        )
    return (
        f"{resolve(config).task.describe()} This model was trained on strings of up to "
        f"{train.lengths[-1]} letters and tested on strings of up to {test.lengths[-1]}."
    )


def verdict_sentence(run: pd.Series, config: RunConfig) -> str:
    """What testing showed of the run; of test strings, which are not all strings."""
    problem = resolve(config)
    test = problem.test
    wrong = int(run["errors"])
    if not wrong:
        return (
            f"It is right on all {test.epoch_size:,} test strings, of up to {test.lengths[-1]} "
            "letters; other strings were not tried in the test."
        )
    kinds = ""
    if not pd.isna(run["false_positives"]):
        positives, negatives = int(run["false_positives"]), int(run["false_negatives"])
        kinds = f": {positives:,} false positives and {negatives:,} false negatives"
    return (
        f"It is wrong on {wrong:,} of {test.epoch_size:,} test strings{kinds}. "
        f"{_solved(run['solved_length'], test.lengths[0], problem.kind.words.missed)}"
    )


def _solved(length: float, shortest: int, missed: str) -> str:
    if length < 1:
        return "Some of the shortest test strings are among them."
    if length < shortest:
        return f"The test has no string of fewer than {shortest:,} letters."
    letters = "1 letter" if length == 1 else f"{length:.0f} letters"
    return (
        f"It is right on every test string of up to {letters}; strings that are not in the test "
        f"may be {missed} at a shorter length."
    )
