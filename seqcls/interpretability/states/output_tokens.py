"""Outputs token by token: how sure a model is of each, and what it might have written instead."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from seqcls.decoding.judging import written_beams
from seqcls.engines.base import Written
from seqcls.errors import ConfigError
from seqcls.interpretability.model.readable_model import AROUND_OUTPUTS, ids_of, plain_model
from seqcls.interpretability.model.trained_model import Letters, TrainedModel
from seqcls.interpretability.model.written_output import Output, token_ids, written
from seqcls.interpretability.states.by_strings import check_length
from seqcls.kinds.transduction import writable
from seqcls.tokens.strings import TokenStrings
from seqcls.tokens.tokenizer import FIRST_LETTER


@dataclass(frozen=True)
class OutputToken:
    """A token that is written, and the likeliest other one."""

    token: str
    probability: float
    """After the tokens before it."""
    runner_up: str
    runner_up_probability: float


def output_tokens(
    model: TrainedModel, letters: Letters, output: Output | None = None
) -> tuple[OutputToken, ...]:
    """The tokens of an output in their order, `END` among them, in double precision.

    Args:
        model: one that writes.
        letters: the input.
        output: which output, teacher forced; what the model writes if none is given.

    Raises:
        ConfigError: the model writes no outputs.
        InvalidStringError: the string is no input of the task, or too long.
    """
    require_writing(model)
    check_length(model, letters, output)
    output = written(model, tuple(letters)) if output is None else output
    said, start = token_ids(model, output), len(letters) + 1
    with torch.no_grad():
        outputs = plain_model(model)(ids_of(model, [letters], [output]))[0]
    return tokens_of(model, said, outputs[start : start + len(said)])


def tokens_of(
    model: TrainedModel, said: Sequence[int], outputs: Float[Tensor, "token output"]
) -> tuple[OutputToken, ...]:
    """Reads `output_tokens` from what the head gives at each token that is written.

    Args:
        model: whose outputs they are.
        said: the ids of the tokens.
        outputs: of the head, before each.
    """
    scores = outputs.log_softmax(dim=1)
    rows = torch.arange(len(said))
    others = writable(scores)
    others[rows, said] = -torch.inf
    seconds = others.argmax(dim=1).tolist()
    names = [*model.tokenizer.alphabet, *AROUND_OUTPUTS]
    return tuple(
        OutputToken(
            names[token - FIRST_LETTER],
            float(scores[row, token].exp()),
            names[second - FIRST_LETTER],
            float(scores[row, second].exp()),
        )
        for row, (token, second) in enumerate(zip(said, seconds, strict=True))
    )


def likeliest_outputs(model: TrainedModel, letters: Sequence[int], width: int) -> list[Written]:
    """The outputs that beam search keeps, the likeliest first.

    Raises:
        ConfigError: the model writes no outputs.
        InvalidStringError: the string is too long.
    """
    require_writing(model)
    check_length(model, letters)
    strings = TokenStrings.of_lists(model.num_letters, [letters])
    (beam,) = written_beams(model.problem, model.weights, strings, width)
    return beam


def require_writing(model: TrainedModel) -> None:
    """Refuses a model that answers a string at once.

    Raises:
        ConfigError: it is one.
    """
    if not model.writes:
        raise ConfigError(
            f"task={model.config.task!r} is no transduction: its models write nothing"
        )
