"""The readable model of a run in double precision, and strings as it reads them."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from seqcls.decode import best_written
from seqcls.errors import InvalidStringError
from seqcls.interpretability.trained_model import Letters, TrainedModel
from seqcls.kinds import Examples
from seqcls.kinds.transduction import end_id, letter_rows, target_lengths
from seqcls.models.base import Classifier, Recorder
from seqcls.models.initialization import load_parameters, make_model
from seqcls.models.positions import longest_readable, read_ids
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import FIRST_LETTER, PAD

# Outputs of models that write: what they write for an input, and what they read of an output.


class Output(NamedTuple):
    """An output of one input."""

    letters: Letters
    ended: bool = True
    """True if `END` follows; otherwise the output was cut off."""

    @property
    def read(self) -> Letters:
        """The letters that are read before its last token is written."""
        return self.letters if self.ended else self.letters[:-1]


# Checks of the length, token ids and token names all ask for the same output.
@lru_cache(maxsize=256)
def write_output(model: TrainedModel, letters: Letters) -> Output:
    """Writes the output of an input, by the decoding of the model's configuration.

    Raises:
        InvalidStringError: the string is no input of the task.
    """
    strings = TokenStrings.of_lists(model.num_letters, [letters])
    model.problem.check_inputs(strings)
    (output,) = best_written(model.problem, model.weights, strings)
    return Output(tuple(token - FIRST_LETTER for token in output.tokens), output.ended)


def target(model: TrainedModel, letters: Sequence[int]) -> Output:
    """The output that is right.

    Raises:
        InvalidStringError: the string is no input of the task.
    """
    strings = TokenStrings.of_lists(model.num_letters, [letters])
    targets = model.problem.kind.targets(model.task, strings)
    return Output(tuple(targets[0, : target_lengths(targets)[0]].tolist()))


def token_ids(model: TrainedModel, output: Output) -> list[int]:
    """The tokens that are written, `END` among them."""
    ids = [letter + FIRST_LETTER for letter in output.letters]
    return [*ids, end_id(model.problem.network)] if output.ended else ids


def log_probabilities(
    model: TrainedModel,
    outputs: Float[Tensor, "string position output"],
    start: int,
    written: Output,
) -> Float[Tensor, " string"]:
    """The log-probability of one output, teacher forced, by what the head gives.

    Args:
        outputs: at every place of strings that are read with this output.
        start: the place of `SEP`.
    """
    # The head at `SEP` predicts the first token of the output, and so on.
    ids = torch.tensor(token_ids(model, written))
    scores = outputs[:, start : start + len(ids)].log_softmax(dim=-1)
    return scores.gather(-1, ids.expand(len(scores), -1).unsqueeze(-1)).sum(dim=(1, 2))


Change = Callable[[str, int | None, Tensor], Tensor]
"""Maps a state to the one in its place: by name, and by position (None for all positions)."""

PAIRS_AT_ONCE = 2**19
"""Scores of one head in a piece: larger ones take half of their time to be given memory."""

SPECIAL = {"first": "CLS", "last": "END"}
"""The name of the token that is no letter, by the readout."""

AROUND_OUTPUTS = ("SEP", "END")
"""The names of the tokens after the alphabet's, of models that write."""


class Changing(Recorder):
    """A recorder that gives the model other states than those that it computed."""

    def __init__(
        self, change: Change, prefix: str = "", known: Mapping[str, Tensor] = MappingProxyType({})
    ) -> None:
        super().__init__(prefix)
        self._change = change
        self._known = known

    def __call__(self, name: str, state: Tensor) -> Tensor:
        return self._change(self._prefix + name, None, state)

    def recall(self, name: str) -> Tensor | None:
        return self._known.get(self._prefix + name)

    def step(self, name: str, position: int, state: Tensor) -> Tensor:
        """Records like `Recorder.step`, with what becomes of the state."""
        # A change sees an axis of positions, even where one position is computed.
        return self._change(self._prefix + name, position, state.unsqueeze(1)).squeeze(1)

    def within(self, name: str) -> "Changing":
        """A recorder of a part, whose names begin with the part's."""
        return type(self)(self._change, f"{self._prefix}{name}.", self._known)


@lru_cache(maxsize=8)
def plain_model(model: TrainedModel) -> Classifier:
    """The readable model, with dropout off; cached, as one model is evaluated often."""
    network = model.problem.network.model_copy(update={"precision": "float64"})
    readable = make_model(network).to(torch.float64)
    # `from_numpy` shares memory, and what is stored may be read-only.
    weights = {name: torch.from_numpy(value.copy()) for name, value in model.weights.items()}
    load_parameters(readable, weights)
    return readable.eval()


def ids_of(
    model: TrainedModel, strings: Sequence[Sequence[int]], outputs: Sequence[Output] | None = None
) -> Tensor:
    """The token ids that the model reads of strings, padded, of shape (string, position).

    Args:
        outputs: of a model that writes, what it reads after each; what it writes if none are given.
    """
    batch = TokenStrings.of_lists(model.num_letters, strings)
    # What is read after a string is a question for models that answer token by token alone.
    if model.problem.writes:
        outputs = outputs or [write_output(model, tuple(letters)) for letters in strings]
        examples = Examples(batch, letter_rows([output.read for output in outputs]))
        batch = model.problem.kind.reading(model.task, examples)
    return torch.from_numpy(read_ids(batch, model.problem.network.readout)).long()


def token_names(
    model: TrainedModel, letters: Sequence[int], output: Output | None = None
) -> list[str]:
    """The names of the tokens that the model reads of a string; as `ids_of`."""
    (row,) = ids_of(model, [letters], output and [output]).tolist()
    return name_tokens(model, row)


def name_tokens(model: TrainedModel, ids: Sequence[int]) -> list[str]:
    """The names of tokens by their ids, but of `PAD`."""
    special = SPECIAL.get(model.problem.network.readout, "")
    names = [*model.tokenizer.alphabet, *AROUND_OUTPUTS]
    return [names[x - FIRST_LETTER] if x >= FIRST_LETTER else special for x in ids if x != PAD]


# How long a string may be to be looked at token by token.

MAX_TOKENS = 512
"""Tokens of a string whose every state, or every prefix, is looked at."""


def check_length(model: TrainedModel, letters: Sequence[int], output: Output | None = None) -> None:
    """Refuses a string whose states are too many to be looked at.

    Args:
        output: what is read after it; of a model that writes what it writes, if none is given.

    Raises:
        InvalidStringError: it is no input of the task, or longer than `MAX_TOKENS` or than the
            model has places for; with its output, where it has one.
    """
    if output is None:
        model.refuse_no_input(letters)
    # The input is checked first: a model has no output for one that it cannot read.
    prompt = model.problem.kind.prompt_length(len(letters))
    _check_tokens(model, letters, prompt, "")
    if prompt > len(letters):
        read = (write_output(model, tuple(letters)) if output is None else output).read
        _check_tokens(model, letters, prompt + len(read), " with SEP and an output")


def _check_tokens(model: TrainedModel, letters: Sequence[int], tokens: int, what: str) -> None:
    end = longest_readable(model.problem.network)
    given = f"(positions={model.config.positions!r})"
    for most, whose in (
        (MAX_TOKENS, f"{MAX_TOKENS} whose states are looked at"),
        (end, f"{end} places that the model has {given}"),
    ):
        if most is not None and tokens > most:
            raise InvalidStringError(
                f"{model.display(letters)[:60]!r} has {tokens:,} tokens{what}, more than the "
                f"{whose}; shorten it"
            )
