"""What a model that writes computes: its tokens, likeliest outputs, and what it reads."""

from collections.abc import Iterator, Sequence
from math import exp, fsum, log
from typing import NamedTuple

import torch

from seqcls.decode import written_beams
from seqcls.errors import ConfigError
from seqcls.interpretability import inside
from seqcls.interpretability.readable_model import (
    AROUND_OUTPUTS,
    Output,
    target,
    token_ids,
    write_output,
)
from seqcls.interpretability.states_by_strings import check_length
from seqcls.interpretability.trained_model import Letters, TrainedModel
from seqcls.kinds.base import Written
from seqcls.kinds.transduction import writable
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import FIRST_LETTER

# Outputs token by token: how sure a model is of each, and what it might have written instead.


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
        output: which output, teacher forced; what the model writes if none is given.

    Raises:
        ConfigError: the model writes no outputs.
        InvalidStringError: the string is no input of the task, or too long.
    """
    require_writing(model)
    check_length(model, letters, output)
    output = write_output(model, tuple(letters)) if output is None else output
    ids, start = token_ids(model, output), len(letters) + 1
    outputs = inside.run(model, inside.read(model, [letters], [output]))[0]
    scores = outputs[start : start + len(ids)].log_softmax(dim=1)
    rows = torch.arange(len(ids))
    others = writable(scores)
    others[rows, ids] = -torch.inf
    seconds = others.argmax(dim=1).tolist()
    names = [*model.tokenizer.alphabet, *AROUND_OUTPUTS]
    return tuple(
        OutputToken(
            names[token - FIRST_LETTER],
            float(scores[row, token].exp()),
            names[second - FIRST_LETTER],
            float(scores[row, second].exp()),
        )
        for row, (token, second) in enumerate(zip(ids, seconds, strict=True))
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
    if reason := model.problem.lacks("outputs"):
        raise ConfigError(reason)


# The likeliest outputs of an input as a tree, whose branches part where outputs differ.

Path = tuple[str, ...]


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
    """Whether the model ended it with `END`; else it was cut off."""
    right: bool | None
    """None where no target is known."""
    branch: int
    """The place of its first token that no row above has."""
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
    right = target(model, letters) if model.is_input(letters) else None
    outputs = [
        Output(tuple(token - FIRST_LETTER for token in likely.tokens), likely.ended)
        for likely in likeliest_outputs(model, letters, width)
    ]
    paths = [
        _Path(model, letters, output, None if right is None else output == right)
        for output in outputs
    ]
    tokens, leaves = list[Token](), list[Leaf]()
    rows: dict[Path, int] = {(): 0}
    for row, path in enumerate(_in_order(paths, 0)):
        names = path.names
        branch = next(
            (place for place in range(len(names)) if names[: place + 1] not in rows), len(names)
        )
        parent = rows[names[:branch]]
        for place in range(branch, len(names)):
            rows[names[: place + 1]] = row
            so_far = fsum(path.logs[: place + 1])
            tokens.append(Token(row, place, names[place], exp(path.logs[place]), so_far))
        text = model.text(path.output.letters)
        whole = fsum(path.logs)
        leaves.append(
            Leaf(row, text, path.output.ended, path.right, branch, parent, len(names), whole)
        )
    return OutputTree(tuple(tokens), tuple(leaves))


class _Path:
    """An output, token by token."""

    def __init__(
        self, model: TrainedModel, letters: Letters, output: Output, right: bool | None
    ) -> None:
        self.output, self.right = output, right
        written = output_tokens(model, letters, output)
        self.names: Path = tuple(each.token for each in written)
        self.logs = [log(max(each.probability, 1e-300)) for each in written]


def _in_order(paths: Sequence[_Path], place: int) -> Iterator[_Path]:
    """Outputs that share their first tokens, those that share more beside each other."""
    groups = dict[str, list[_Path]]()
    for path in paths:
        if len(path.names) == place:
            yield path
        else:
            groups.setdefault(path.names[place], []).append(path)
    for group in groups.values():
        if len(group) == 1:
            yield group[0]
        else:
            yield from _in_order(group, place + 1)
