"""A model in two sentences: what it should do, and what testing showed."""

import pandas as pd

from seqcls.config import RunConfig
from seqcls.data import sampler_of, strings_read, task_of


def task_sentence(config: RunConfig) -> str:
    """The language, and how long the strings were."""
    train, test = sampler_of(config, "train"), sampler_of(config, "test")
    return (
        f"{task_of(config).describe()} This model was trained on strings of up to "
        f"{train.longest} letters and tested on strings of up to {test.longest}."
    )


def verdict_sentence(run: pd.Series, config: RunConfig) -> str:
    """What testing showed of the run; of test strings, which are not all strings."""
    test = sampler_of(config, "test")
    wrong = int(run["false_positives"] + run["false_negatives"])
    if not wrong:
        return (
            f"It is right on all {test.epoch_size:,} test strings, of up to {test.longest} "
            "letters; other strings were not tried in the test."
        )
    return (
        f"It is wrong on {wrong:,} of {test.epoch_size:,} test strings: "
        f"{int(run['false_positives']):,} false positives and {int(run['false_negatives']):,} "
        f"false negatives. {_solved(run['solved_length'], _shortest(config))}"
    )


def _shortest(config: RunConfig) -> int:
    """Letters of the shortest test strings that there may be."""
    read = "test_min_length" in strings_read(config, "test")
    return config.test_min_length if read else 0


def _solved(length: float, shortest: int) -> str:
    if length < shortest:
        return f"The test has no string of fewer than {shortest:,} letters."
    if length < 1:
        return "Some of the shortest test strings are among them."
    letters = "1 letter" if length == 1 else f"{length:.0f} letters"
    return (
        f"It is right on every test string of up to {letters}; strings that are not in the test "
        "may be misclassified at a shorter length."
    )
