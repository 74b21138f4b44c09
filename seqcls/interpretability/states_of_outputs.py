"""Outputs of a model that writes: tokens with probabilities, and the tree of the likeliest."""

from math import exp, fsum, log
from typing import NamedTuple

import torch

from seqcls.decode import written_beams
from seqcls.errors import ConfigError
from seqcls.interpretability import readable_model
from seqcls.interpretability.readable_model import (
    Output,
    check_length,
    name_tokens,
    target,
    token_ids,
    write_output,
)
from seqcls.interpretability.trained_model import Letters, TrainedModel
from seqcls.kinds.transduction import writable
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import FIRST_LETTER

# Outputs token by token: the probability of each, and the likeliest other token.


class OutputToken(NamedTuple):
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
        output: the output, teacher forced; the model's own if none is given.

    Raises:
        ConfigError: the model writes no outputs.
        InvalidStringError: the string is no input of the task, or too long.
    """
    if reason := model.problem.lacks("outputs"):
        raise ConfigError(reason)
    check_length(model, letters, output)
    output = write_output(model, tuple(letters)) if output is None else output
    ids, start = token_ids(model, output), len(letters) + 1
    outputs = readable_model.run(model, readable_model.read(model, [letters], [output]))[0]
    # The head at `SEP` predicts the first token of the output.
    scores = outputs[start : start + len(ids)].log_softmax(dim=1)
    rows = torch.arange(len(ids))
    others = writable(scores)
    # The runner-up is another token than the one that is written.
    others[rows, ids] = -torch.inf
    seconds = others.argmax(dim=1)
    names = name_tokens(model, ids), name_tokens(model, seconds.tolist())
    shares = scores[rows, ids].exp().tolist(), scores[rows, seconds].exp().tolist()
    return tuple(map(OutputToken, names[0], shares[0], names[1], shares[1]))


# The likeliest outputs of an input as a tree, whose branches part where outputs differ.


class Token(NamedTuple):
    """A token of the tree, which all outputs that begin alike share."""

    row: int
    """The row of the likeliest output that it is part of."""
    place: int
    """In the output, from 0."""
    token: str
    probability: float
    """After the tokens before it."""
    log_probability: float
    """The log-probability of it and all tokens before it, in nats."""


class Leaf(NamedTuple):
    """One output, at the end of its branch."""

    row: int
    text: str
    ended: bool
    """True if the model ended it with `END`; else it was cut off."""
    right: bool | None
    """None where no target is known."""
    branch: int
    """The place of the first token that no row above has."""
    parent: int
    """The row that its branch leaves; the first one leaves itself."""
    tokens: int
    """`END` among them."""
    log_probability: float


class OutputTree(NamedTuple):
    """Rows from top to bottom: each output below the one that it shares the most with."""

    tokens: tuple[Token, ...]
    leaves: tuple[Leaf, ...]


def output_tree(model: TrainedModel, letters: Letters, width: int) -> OutputTree:
    """The outputs that beam search finds, with probabilities by teacher forcing.

    Raises:
        ConfigError: the model writes no outputs.
        InvalidStringError: the string is no input of the task, or too long.
    """
    if reason := model.problem.lacks("outputs"):
        raise ConfigError(reason)
    check_length(model, letters)
    right = target(model, letters) if model.is_input(letters) else None
    strings = TokenStrings.of_lists(model.num_letters, [letters])
    (beam,) = written_beams(model.problem, model.weights, strings, width)
    written = dict[tuple[str, ...], tuple[Output, list[float]]]()
    first = dict[tuple[str, ...], int]()
    for number, likely in enumerate(beam):
        output = Output(tuple(token - FIRST_LETTER for token in likely.tokens), likely.ended)
        path = output_tokens(model, letters, output)
        names = tuple(x.token for x in path)
        # A probability that underflows to 0 has no logarithm.
        written[names] = output, [log(max(x.probability, 1e-300)) for x in path]
        for end in range(1, len(names) + 1):
            first.setdefault(names[:end], number)
    tokens, leaves = list[Token](), list[Leaf]()
    rows: dict[tuple[str, ...], int] = {(): 0}
    # Outputs that share their first tokens are neighbors, in the order of the likeliest.
    ordered = sorted(written, key=lambda x: [first[x[:end]] for end in range(1, len(x) + 1)])
    for row, names in enumerate(ordered):
        output, logs = written[names]
        branch = next((x for x in range(len(names)) if names[: x + 1] not in rows), len(names))
        parent = rows[names[:branch]]
        for place in range(branch, len(names)):
            rows[names[: place + 1]] = row
            so_far = fsum(logs[: place + 1])
            tokens.append(Token(row, place, names[place], exp(logs[place]), so_far))
        text, is_right = model.text(output.letters), None if right is None else output == right
        leaves.append(
            Leaf(row, text, output.ended, is_right, branch, parent, len(names), fsum(logs))
        )
    return OutputTree(tuple(tokens), tuple(leaves))
