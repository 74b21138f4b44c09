"""An exhaustive check string by string, for models whose answers letter counts do not determine."""

import numpy as np

from seqcls.interpretability.enumeration import MAX_STRINGS, affordable_length, all_strings
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.models.positions import longest_readable
from seqcls.results import Verdict


def checked_length(model: TrainedModel, limit: int = MAX_STRINGS) -> int:
    """The greatest length up to which all strings are tried.

    No longer than the longest test string, nor than the model has places for.
    """
    end = longest_readable(model.problem.network)
    longest = model.problem.test.lengths[-1]
    return affordable_length(
        model.num_letters, limit, longest if end is None else min(longest, end)
    )


def string_verdict(model: TrainedModel, limit: int = MAX_STRINGS) -> Verdict:
    """What a model makes of every string up to the length at which no more than `limit` are.

    The empty string is one of them where a test may hold it.

    Raises:
        ConfigError: the task is no language.
    """
    model.problem.require_language()
    longest = checked_length(model, limit)
    tried = positives = negatives = 0
    least: int | None = None
    shortest: str | None = None
    for strings in all_strings(model.num_letters, longest, empty=model.problem.tries_empty):
        answers = model.ask(strings)
        wrong = np.flatnonzero(answers.wrong)
        tried += len(strings)
        positives += int(answers.predicted[wrong].sum())
        negatives += int((~answers.predicted[wrong]).sum())
        if len(wrong) and least in (None, int(strings.lengths[0])):
            least = int(strings.lengths[0])
            texts = [model.text(row) for row in strings.letters[wrong].tolist()]
            shortest = min(texts if shortest is None else [shortest, *texts])
    return Verdict(
        max_length=longest,
        unit="string",
        inputs=tried,
        false_positives=positives,
        false_negatives=negatives,
        shortest_error=shortest,
    )
