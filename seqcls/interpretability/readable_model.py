"""The readable model of a run, opened up: strings, letter counts and outputs are read by one run.

It is in double precision. Every architecture names its states (`seqcls.models.base`), so one run
that records states, or puts others in their place, serves every question about the inside; what is
read is a `Batch`. Where the order of tokens has no part, a token that occurs n times is read once:
log n added to the scores that others give it is what n equal keys are to a softmax. So a million
letters cost what one does, exactly, in however many blocks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from seqcls.cancellation import check_each
from seqcls.counts import read_counts
from seqcls.decode import best_written
from seqcls.errors import InvalidStringError
from seqcls.interpretability.domains import obstacle, refuse
from seqcls.interpretability.trained_model import Letters, TrainedModel
from seqcls.kinds import Examples
from seqcls.kinds.transduction import end_id, letter_rows, target_lengths
from seqcls.models.base import Classifier, Recorder
from seqcls.models.initialization import load_parameters, make_model
from seqcls.models.pictures import pictures_at_once
from seqcls.models.positions import longest_readable, read_ids
from seqcls.models.transformer import Transformer
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


# What is read at once, and a run of it that records states or changes them.

STRINGS_AT_ONCE = 100
"""Strings that are read together token by token."""

COUNTS_AT_ONCE = 2**13
"""Multisets that are read together: their states stay in the processor's cache."""


class Batch(NamedTuple):
    """Strings that are read together, made by `read`, `spell` or `from_counts`."""

    ids: Int64[Tensor, "string position"]
    counts: Float[Tensor, "string position"] | None = None
    """Occurrences of each token; None where each position is one token."""

    @property
    def times(self) -> Float[Tensor, "string position"]:
        """Occurrences of each token, 0 for padding."""
        return (self.ids != PAD).double() if self.counts is None else self.counts


def read(
    model: TrainedModel, strings: Sequence[Sequence[int]], outputs: Sequence[Output] | None = None
) -> Batch:
    """Strings token by token, padded; of a model that writes each with an output, teacher forced.

    Args:
        outputs: what is read after each string; what the model writes if none are given.
    """
    batch = TokenStrings.of_lists(model.num_letters, strings)
    # What is read after a string is a question for models that answer token by token alone.
    if model.problem.writes:
        outputs = outputs or [write_output(model, tuple(letters)) for letters in strings]
        examples = Examples(batch, letter_rows([output.read for output in outputs]))
        batch = model.problem.kind.reading(model.task, examples)
    return Batch(torch.from_numpy(read_ids(batch, model.problem.network.readout)).long())


def read_string(model: TrainedModel, letters: Sequence[int]) -> Batch:
    """One string by its letter counts where they suffice, which reads each letter once; else read
    token by token.
    """
    if obstacle(model.problem, "states") is not None:
        return read(model, [letters])
    counts = np.bincount(np.array(letters, dtype=int), minlength=model.num_letters)
    return from_counts(model, counts[None])


def spell(model: TrainedModel, strings: TokenStrings) -> Iterator[Batch]:
    """Strings as they are read, which are sorted by length, some at a time, as narrow as can be."""
    config = plain_model(model).config
    start, most = 0, min(STRINGS_AT_ONCE, pictures_at_once(config))
    while start < len(strings):
        width = int(strings.lengths[start:].max(initial=0)) + 1
        # Attention is over pairs of tokens: of longer strings fewer fit.
        end = start + min(max(PAIRS_AT_ONCE // width**2, 1), most)
        ids = read_ids(strings.take(slice(start, end)), config.readout)
        yield Batch(torch.from_numpy(ids).long())
        start = end


def from_counts(
    model: TrainedModel, counts: Float[np.ndarray, "string letter"], special: float = 1.0
) -> Batch:
    """Multisets of letters: each letter once, with how often it occurs, in the alphabet's order.

    A state of a letter that does not occur is that of one that looks at the string from outside.

    Args:
        counts: how often each letter occurs; shares are read as well as numbers.
        special: how often the token beside the letters does. 0 with shares of letters is the limit
            of strings that grow without end.

    Raises:
        ConfigError: the order of tokens has a part in what the model computes.
    """
    refuse(model.problem, "states")
    ids, times = (
        torch.from_numpy(x) for x in read_counts(model.problem.network.readout, counts, special)
    )
    # All strings read the same tokens; only how often each occurs differs.
    return Batch(ids.long().expand(len(counts), -1), times)


def count_batches(
    model: TrainedModel, counts: Float[np.ndarray, "string letter"], special: float = 1.0
) -> list[Batch]:
    """Any number of strings as `from_counts` reads them, some at a time."""
    starts = range(0, len(counts), COUNTS_AT_ONCE)
    return [from_counts(model, counts[x : x + COUNTS_AT_ONCE], special) for x in starts]


@torch.no_grad()
def run(
    model: TrainedModel,
    batch: Batch,
    change: Change | None = None,
    known: Mapping[str, Tensor] = MappingProxyType({}),
) -> Tensor:
    """The head's outputs, in double precision, with states changed as they are computed.

    Args:
        change: what becomes of a state, by its name, of all positions or of the one that is read
            next. By letter counts `scores` are those of one token of each letter, `weights` those
            of all tokens of a letter together.
        known: states of this batch before they are changed; what heads take from values
            (`mixed_value`) is not computed again where it is among them.

    Returns:
        Of shape (string), (string, output) or, at every token, (string, position, output).
    """
    return _run(plain_model(model), batch, Changing(change or _same, known=known))


def states(model: TrainedModel, batch: Batch, names: Sequence[str] = ()) -> dict[str, Tensor]:
    """The states of these names, or of all, in the order of the computation.

    Their shapes are those of `seqcls.models`: (string, position, hidden), of heads (string, head,
    position, head_size), of scores and weights (string, head, position, position).
    """
    found = dict[str, Tensor]()

    def keep(name: str, position: int | None, state: Tensor) -> Tensor:
        # One position at a time is a step of a state that is recorded whole in the end.
        if position is None and (not names or name in names):
            found[name] = state
        return state

    class Keeping(Changing):
        # A recorder that only changes states computes none of these, and would leave them out.
        def aside(self, name: str, make: Callable[[], Tensor]) -> None:
            if not names or self._prefix + name in names:
                self(name, make())

    with torch.no_grad():
        _run(plain_model(model), batch, Keeping(keep))
    return found


def _same(_name: str, _position: int | None, state: Tensor) -> Tensor:
    return state


def _run(plain: Classifier, batch: Batch, record: Recorder) -> Tensor:
    if batch.counts is None:
        return plain.run(batch.ids, record, None)
    assert isinstance(plain, Transformer), "whose letter counts alone are read"
    return plain.run(batch.ids, record, None, batch.counts)


def logits(
    model: TrainedModel, counts: Float[np.ndarray, "string letter"], special: float = 1.0
) -> Float[np.ndarray, " string"]:
    """The logits of any number of strings by their letter counts, as `from_counts` reads them."""
    parts = check_each(count_batches(model, counts, special))
    return np.concatenate([np.zeros(0), *(run(model, part).numpy() for part in parts)])


# Names of tokens, and how long a string may be to be looked at token by token.


def name_tokens(model: TrainedModel, ids: Sequence[int]) -> tuple[str, ...]:
    """The names of tokens by their ids, but of `PAD`."""
    special = SPECIAL.get(model.problem.network.readout, "")
    names = [*model.tokenizer.alphabet, "SEP", "END"]
    read = (names[x - FIRST_LETTER] if x >= FIRST_LETTER else special for x in ids if x != PAD)
    return tuple(read)


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
