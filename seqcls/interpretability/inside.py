"""A model opened up: strings, letter counts and teacher-forced outputs are read by one run.

Every architecture names its states (`seqcls.models.base`), so one run that records states, or puts
others in their place, serves every question about the inside; what is read is a `Batch`. Where the
order of tokens has no part, a token that occurs n times is read once: log n added to the scores
that others give it is what n equal keys are to a softmax. So a million letters cost what one does,
exactly, in however many blocks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from seqcls.cancellation import check_each
from seqcls.counts import read_counts
from seqcls.interpretability.domains import obstacle, refuse
from seqcls.interpretability.readable_model import (
    PAIRS_AT_ONCE,
    Change,
    Changing,
    Output,
    ids_of,
    plain_model,
)
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.base import Classifier, Recorder
from seqcls.models.pictures import pictures_at_once
from seqcls.models.positions import read_ids
from seqcls.models.transformer import Transformer
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import PAD

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
    return Batch(ids_of(model, strings, outputs))


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
    starts = check_each(range(0, len(counts), COUNTS_AT_ONCE))
    parts = [from_counts(model, counts[x : x + COUNTS_AT_ONCE], special) for x in starts]
    return np.concatenate([np.zeros(0), *(run(model, part).numpy() for part in parts)])
