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


def verdict_sentence(run: pd.Series, config: RunConfig, scores: pd.DataFrame) -> str:
    """What testing showed of the run; of test strings, which are not all strings.

    Args:
        run: errors, false_positives, false_negatives and solved_length.
        config: its configuration.
        scores: length and tested (strings), of every length that was tested.
    """
    problem = resolve(config)
    wrong, tested = int(run["errors"]), int(scores["tested"].sum())
    shortest, longest = scores["length"].min(), scores["length"].max()
    left = max(problem.test.epoch_size - tested, 0)
    more = "1 more was" if left == 1 else f"{left:,} more were"
    untested = f" {more} not tested: it has no places for them." if left else ""
    if not wrong:
        return (
            f"It is right on all {tested:,} test strings{' that it was asked' if left else ''}, of "
            f"up to {longest} letters; other strings were not tried in the test.{untested}"
        )
    kinds = ""
    if not pd.isna(run["false_positives"]):
        positives, negatives = int(run["false_positives"]), int(run["false_negatives"])
        kinds = f": {positives:,} false positives and {negatives:,} false negatives"
    return (
        f"It is wrong on {wrong:,} of {tested:,} test strings{kinds}.{untested} "
        f"{_solved(run['solved_length'], shortest, problem.kind.words.missed)}"
    )


def _solved(length: float, shortest: int, missed: str) -> str:
    if pd.isna(length) or length < 1:
        said = "Some of the shortest test strings are among them"
        none = f": the test has no string of fewer than {shortest:,} letters"
        return f"{said}{none if shortest > 1 else ''}."
    letters = "1 letter" if length == 1 else f"{length:.0f} letters"
    return (
        f"It is right on every test string of up to {letters}; strings that are not in the test "
        f"may be {missed} at a shorter length."
    )
