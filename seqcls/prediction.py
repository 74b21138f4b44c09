"""A stored model's answers for strings as a user types them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
from seqcls.weights import weights_of

MOST_BEAMS = 1_000
"""Outputs that beam search keeps at most."""

MAX_LENGTH = 10_000
"""Tokens of a string that is read token by token: attention between all pairs still fits into
memory. Where letter counts suffice there is no such limit."""


@dataclass(frozen=True)
class Prediction:
    """What a model says of a string; a positive logit means that it is in the language."""

    logit: float
    """The logit; of a task that is no language the margin of the answer, of an output its
    log-probability, in nats."""
    probability: float
    """That the string is in the language; of an output its own; else NaN."""
    answer: str | None = None
    """As text, for a task that is no language."""


@dataclass(frozen=True)
class WrittenOutput:
    """An output that a model may write for an input."""

    text: str
    ended: bool
    """Whether the model ended it; else it was cut off."""
    log_probability: float
    """In nats, that of `END` included where it came."""


def predict(
    problem: Problem, weights: Weights | bytes, strings: Sequence[str], *, partial: bool = False
) -> list[Prediction]:
    """The model's answer for each string: from its letter counts where they suffice.

    Args:
        strings: in the notation of `seqcls.strings.tokenizer`.
        partial: where the model has no answer, as it has no places for so long a string or its
            logit is NaN, answer NaN and do not refuse.

    Raises:
        InvalidStringError: a string not of this alphabet, or one that the model cannot be asked.
    """
    if not strings:
        return []
    tokenizer, kind = problem.tokenizer, problem.kind
    # Counts come first: `a{1000000000}` is no more work by counts than `a`.
    typed = _by_counts(tokenizer, strings)
    # Dropout is off when a model answers, so it does not keep counts from being enough.
    if counts_suffice(problem.network, training=False) is not None:
        typed = _in_order(tokenizer, strings, typed)
    if not kind.every_string:
        problem.check_inputs(typed)
    (answers,) = ask(
        problem.without_dropout, [_parameters(problem, weights)], Questions.without_targets(typed)
    )
    scores = np.where(answers.known, answers.score, np.nan).astype(np.float64).tolist()
    for string, score in zip(strings, scores, strict=True):
        if math.isnan(score) and not partial:
            raise InvalidStringError(no_answer(problem, string))
    texts: Sequence[str | None] | None = kind.texts(problem.task, answers.predicted)
    return [
        Prediction(math.nan, math.nan)
        if math.isnan(score)
        else Prediction(score, kind.probability(score), text)
        for score, text in zip(scores, texts or [None] * len(strings), strict=True)
    ]


def outputs(
    problem: Problem, weights: Weights | bytes, strings: Sequence[str], beam_width: int
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
    parameters = _parameters(problem, weights)
    # Behind the input `SEP` takes one place more.
    rows = np.flatnonzero(inputs.lengths < places(problem))
    by_input: list[list[WrittenOutput]] = [[] for _ in strings]
    written = written_beams(problem, parameters, inputs.take(rows), beam_width)
    for row, some in zip(rows.tolist(), written, strict=True):
        letters = [[token - FIRST_LETTER for token in output.tokens] for output in some]
        texts = problem.kind.texts(problem.task, letter_rows(letters)) or ()
        by_input[row] = [
            WrittenOutput(text, output.ended, output.log_probability)
            for text, output in zip(texts, some, strict=True)
            if not math.isnan(output.log_probability)
        ]
    return by_input


def target_of(problem: Problem, string: str) -> bool | str | None:
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


def _parameters(problem: Problem, weights: Weights | bytes) -> Weights:
    return weights_of(problem, weights) if isinstance(weights, bytes) else weights


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


def no_answer(problem: Problem, string: str) -> str:
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
