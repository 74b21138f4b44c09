"""A stored model's answers for strings as a user types them."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from seqcls.counts import counts_suffice
from seqcls.errors import ConfigError, InvalidStringError
from seqcls.evaluation import ask, places
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
"""Outputs that beam search keeps at most."""

MAX_LENGTH = 10_000
"""Tokens of a string that is read token by token: attention between all pairs still fits into
memory. Where letter counts suffice there is no such limit."""


class WrittenOutput(NamedTuple):
    """An output that a model may write for an input."""

    text: str
    ended: bool
    """Whether the model ended it; else it was cut off."""
    log_probability: float
    """In nats, that of `END` included where it came."""


def predict(
    problem: Problem,
    weights: Weights,
    strings: Sequence[str],
    *,
    partial: bool = True,
    beam: int | None = None,
) -> dict[str, list[Any]]:
    """A model's answers in columns; `seqcls.questions.RunModel.predict` says which, and why not."""
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
        # Counts come first: `a{1000000000}` is no more work by counts than `a`.
        typed = _by_counts(tokenizer, strings)
        # Dropout is off when a model answers, so it does not keep counts from being enough.
        if counts_suffice(problem.network, training=False) is not None:
            typed = _in_order(tokenizer, strings, typed)
        if not kind.every_string:
            problem.check_inputs(typed)
        questions = Questions.without_targets(typed)
        (answers,) = ask(problem.without_dropout, [weights], questions)
        scores = np.where(answers.known, answers.score, np.nan).astype(np.float64).tolist()
        texts = [*(kind.texts(problem.task, answers.predicted) or ())]
    for string, score in zip(strings, scores, strict=True):
        if math.isnan(score) and not partial:
            raise InvalidStringError(_no_answer(problem, string))
    if problem.lacks("labels"):
        answer, margin = (column.name for column in kind.answer_columns)
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
    """What a model writes for each input, the likeliest first; nothing where it has no answer.

    Args:
        strings: inputs in the notation of `seqcls.strings.tokenizer`.

    Raises:
        ConfigError: the task is no transduction, or there is no such beam.
        InvalidStringError: a string not of this alphabet, or that is no input of the task.
    """
    if reason := problem.lacks("outputs"):
        raise ConfigError(reason)
    if not 1 <= beam_width <= MOST_BEAMS:
        raise ConfigError(f"beam {beam_width}: expected 1 to {MOST_BEAMS:,} outputs")
    if not strings:
        return []
    # PyTorch, which takes a second or two to load.
    from seqcls.decode import written_beams

    tokenizer = problem.tokenizer
    inputs = _in_order(tokenizer, strings, _by_counts(tokenizer, strings))
    problem.check_inputs(inputs)
    # Behind the input `SEP` takes one place more.
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
    """Whether a string is in the language; of another task the target as text.

    None where it is too long to be read by its tokens, or a file does not say it.
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
    # Before the tokens stands CLS, which a model that reads it adds itself.
    letters = [[x - FIRST_LETTER for x in tokenizer.encode(string)[1:]] for string in strings]
    return TokenStrings.of_lists(tokenizer.num_letters, letters)


def _no_answer(problem: Problem, string: str) -> str:
    """Why a model does not answer: it has too few places, or what it computes is NaN."""
    end = longest_readable(problem.network)
    # Of a model that writes, `SEP` follows the string.
    longest = None if end is None else end - problem.kind.prompt_length(0)
    tokens = sum(count for _, count in problem.tokenizer.pieces(string))
    if longest is None or tokens <= longest:
        return not_a_number(string)
    return (
        f"{string[:60]!r} is longer than the model has places for "
        f"(positions={problem.network.positions!r}): expected at most {count(longest, 'token')}"
    )


def not_a_number(string: str) -> str:
    """What is said of a string for which a model's numbers are none."""
    return (
        f"{string[:60]!r} has no answer: what the model computes for it is NaN; expected a string "
        "for which it is finite, such as a shorter one"
    )
