"""Predictions of a stored model for strings as a user types them."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from seqcls.counts import counts_suffice
from seqcls.errors import ConfigError, InvalidStringError
from seqcls.evaluation import TrainedGroup, places
from seqcls.kinds.base import Questions
from seqcls.kinds.transduction import letter_rows
from seqcls.models.positions import longest_readable
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import FIRST_LETTER, Tokenizer
from seqcls.tasks import CountTask
from seqcls.text import count

MOST_BEAMS = 1_000
"""The largest width of a beam."""

MAX_LENGTH = 10_000
"""Tokens of the longest string that is read token by token, so that attention between all pairs
fits into memory. There is no such limit if letter counts suffice."""


class WrittenOutput(NamedTuple):
    """An output that a model may write for an input."""

    text: str
    ended: bool
    """True if the model ended it; otherwise it was cut off."""
    log_probability: float
    """Log-probability in nats, with that of `END` if it was written."""


def predict(
    problem: Problem,
    weights: Weights,
    strings: Sequence[str],
    *,
    partial: bool = True,
    beam: int | None = None,
) -> dict[str, list[Any]]:
    """Predicts in columns; `seqcls.questions.RunModel.predict` documents these and the errors."""
    known = [_target_of(problem, string) for string in strings]
    if beam is not None:
        written = outputs(problem, weights, strings, beam)
        for string, some in zip(strings, written, strict=True):
            if not some and not partial:
                raise InvalidStringError(_no_answer(problem, string))
        rows = [
            (string, target, *output)
            for string, target, some in zip(strings, known, written, strict=True)
            for output in some
        ]
        names = ("string", "target", "output", "ended", "log_probability")
        return {name: [row[x] for row in rows] for x, name in enumerate(names)}
    tokenizer, kind = problem.tokenizer, problem.kind
    scores, texts = list[float](), list[str | None]()
    if strings:
        # By counts `a{1000000000}` takes no longer than `a`.
        typed = _by_counts(tokenizer, strings)
        # There is no dropout in predictions, so counts may suffice despite it.
        if counts_suffice(problem.network, training=False) is not None:
            typed = _in_order(tokenizer, strings, typed)
        if not kind.every_string:
            problem.check_inputs(typed)
        questions = Questions.without_targets(typed)
        (answers,) = TrainedGroup(problem.without_dropout, [weights]).ask(questions)
        scores = np.where(answers.known, answers.score, np.nan).astype(np.float64).tolist()
        texts = [*(kind.texts(problem.task, answers.predicted) or ())]
    for string, score in zip(strings, scores, strict=True):
        if math.isnan(score) and not partial:
            raise InvalidStringError(_no_answer(problem, string))
    if problem.lacks("labels"):
        answer, margin = kind.answer_columns
        texts = [None if math.isnan(x) else text for x, text in zip(scores, texts, strict=True)]
        return {"string": [*strings], "target": known, answer: texts, margin: scores}
    return {
        "string": [*strings],
        "label": known,
        "predicted": [None if math.isnan(x) else x > 0 for x in scores],
        "logit": scores,
        "probability": list(map(_probability, scores)),
    }


def _probability(logit: float) -> float:
    # The exponent is never positive: no large logit overflows.
    small = math.exp(-abs(logit))
    return (small if logit < 0 else 1) / (1 + small)


def outputs(
    problem: Problem, weights: Weights, strings: Sequence[str], beam_width: int
) -> list[list[WrittenOutput]]:
    """Writes outputs for each input, the likeliest first; none if the model has no answer.

    Args:
        strings: inputs in the notation of `seqcls.strings.tokenizer`.

    Raises:
        ConfigError: the task is no transduction, or there is no such beam.
        InvalidStringError: a string is not over this alphabet, or no input of the task.
    """
    if reason := problem.lacks("outputs"):
        raise ConfigError(reason)
    if not 1 <= beam_width <= MOST_BEAMS:
        raise ConfigError(f"beam {beam_width}: expected 1 to {MOST_BEAMS:,} outputs")
    if not strings:
        return []
    # Imported late: PyTorch takes a second or two to load.
    from seqcls.decode import written_beams

    tokenizer = problem.tokenizer
    inputs = _in_order(tokenizer, strings, _by_counts(tokenizer, strings))
    problem.check_inputs(inputs)
    # `SEP` after the input takes one more position.
    rows = np.flatnonzero(inputs.lengths < places(problem))
    by_input: list[list[WrittenOutput]] = [[] for _ in strings]
    written = written_beams(problem, weights, inputs.take(rows), beam_width)
    for row, some in zip(rows.tolist(), written, strict=True):
        letters = [[token - FIRST_LETTER for token in output.tokens] for output in some]
        texts = problem.kind.texts(problem.task, letter_rows(letters)) or ()
        by_input[row] = [
            WrittenOutput(text, output.ended, output.log_probability)
            for text, output in zip(texts, some, strict=True)
            if not math.isnan(output.log_probability)
        ]
    return by_input


def _target_of(problem: Problem, string: str) -> bool | str | None:
    """Returns the label of a string, or for another task the target as text.

    None if the string is too long to be read by its tokens, or is not in the task's file.
    """
    counted = _by_counts(problem.tokenizer, [string])
    if isinstance(problem.task, CountTask):
        return bool(problem.task.labels_of_counts(counted.counts)[0])
    if counted.lengths[0] > MAX_LENGTH:
        return None
    letters = _in_order(problem.tokenizer, [string], counted)
    if not problem.knows(letters).all():
        return None
    targets = problem.kind.targets(problem.task, letters)
    texts = problem.kind.texts(problem.task, targets)
    return bool(targets[0]) if texts is None else texts[0]


def _by_counts(tokenizer: Tokenizer, strings: Sequence[str]) -> TokenStrings:
    counts = np.array([tokenizer.counts(string) for string in strings], dtype=np.int64)
    return TokenStrings.of_counts(tokenizer.num_letters, counts.reshape(len(strings), -1))


def _in_order(tokenizer: Tokenizer, strings: Sequence[str], counted: TokenStrings) -> TokenStrings:
    for string, length in zip(strings, counted.lengths.tolist(), strict=True):
        if length > MAX_LENGTH:
            raise InvalidStringError(
                f"{string[:60]!r} has {length:,} tokens, more than the {MAX_LENGTH:,} that are "
                "read one by one; shorten it"
            )
    # `CLS` before the tokens is left out, since a model that reads it adds it.
    letters = [[x - FIRST_LETTER for x in tokenizer.encode(string)[1:]] for string in strings]
    return TokenStrings.of_lists(tokenizer.num_letters, letters)


def _no_answer(problem: Problem, string: str) -> str:
    """Explains why a model has no answer: the string is too long, or the outputs are NaN."""
    end = longest_readable(problem.network)
    # In a model that writes, `SEP` follows the string.
    longest = None if end is None else end - problem.kind.prompt_length(0)
    tokens = sum(count for _, count in problem.tokenizer.pieces(string))
    if longest is None or tokens <= longest:
        return not_a_number(string)
    return (
        f"{string[:60]!r} is longer than the model has places for "
        f"(positions={problem.network.positions!r}): expected at most {count(longest, 'token')}"
    )


def not_a_number(string: str) -> str:
    """Returns the message for a string with outputs of NaN."""
    return (
        f"{string[:60]!r} has no answer: what the model computes for it is NaN; expected a string "
        "for which it is finite, such as a shorter one"
    )
