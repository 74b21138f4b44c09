"""The likeliest outputs of an input as a tree, whose branches part where outputs differ."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, fsum, log

from seqcls.interpretability.model.trained_model import Letters, TrainedModel
from seqcls.interpretability.model.written_output import Output, target
from seqcls.interpretability.states.output_tokens import likeliest_outputs, output_tokens
from seqcls.tokens.tokenizer import FIRST_LETTER

Path = tuple[str, ...]


@dataclass(frozen=True)
class Token:
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


@dataclass(frozen=True)
class Leaf:
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


@dataclass(frozen=True)
class OutputTree:
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
