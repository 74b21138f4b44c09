"""The readable model of a run in double precision, and strings as it reads them."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import torch
from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.interpretability.model.written_output import Output, with_outputs, written
from seqcls.models.base import Classifier, Recorder
from seqcls.models.initialization import make_model
from seqcls.models.reading import read_ids
from seqcls.tokens.strings import TokenStrings
from seqcls.tokens.tokenizer import FIRST_LETTER, PAD

Change = Callable[[str, int | None, Tensor], Tensor]
"""What becomes of a state, by its name: of all positions, or of the one that is named."""

PAIRS_AT_ONCE = 2**19
"""Scores of one head in a piece: larger ones take half of their time to be given memory."""

SPECIAL = {"first": "CLS", "last": "END"}
"""What the token is called that is no letter, by the readout."""

AROUND_OUTPUTS = ("SEP", "END")
"""What the tokens are called that follow the alphabet's where a model writes."""


class Changing(Recorder):
    """A recorder that gives the model other states than those that it computed."""

    def __init__(self, change: Change, prefix: str = "") -> None:
        super().__init__()
        self._change = change
        self._prefix = prefix

    def __call__(self, name: str, state: Tensor) -> Tensor:
        return self._change(self._prefix + name, None, state)

    def step(self, name: str, position: int, state: Tensor) -> Tensor:
        """Records like `Recorder.step`, with what becomes of the state."""
        return self._change(self._prefix + name, position, state.unsqueeze(1)).squeeze(1)

    def within(self, name: str) -> "Changing":
        """A recorder of a part, whose names begin with the part's."""
        return Changing(self._change, f"{self._prefix}{name}.")


def plain_network(model: TrainedModel) -> NetworkConfig:
    """The network's settings, in double precision."""
    return model.problem.network.model_copy(update={"precision": "float64"})


@lru_cache(maxsize=8)
def plain_model(model: TrainedModel) -> Classifier:
    """The readable model; dropout is off. Made once for a model that is asked much."""
    readable = make_model(plain_network(model)).to(torch.float64)
    weights = {name: torch.from_numpy(value.copy()) for name, value in model.weights.items()}
    readable.load_state_dict({name: value.double() for name, value in weights.items()})
    return readable.eval()


def ids_of(
    model: TrainedModel, strings: Sequence[Sequence[int]], outputs: Sequence[Output] | None = None
) -> Tensor:
    """The token ids that the model reads of strings, padded, of shape (string, position).

    Args:
        model: the model.
        strings: by their letters.
        outputs: of a model that writes, what it reads after each; what it writes if none are given.
    """
    batch = TokenStrings.of_lists(model.num_letters, strings)
    if model.writes:
        if outputs is None:
            outputs = [written(model, tuple(letters)) for letters in strings]
        batch = with_outputs(model, batch, outputs)
    return torch.from_numpy(read_ids(batch, plain_network(model).readout)).long()


def token_names(
    model: TrainedModel, letters: Sequence[int], output: Output | None = None
) -> list[str]:
    """What the model reads of a string, token by token; as `ids_of`."""
    special = SPECIAL.get(plain_network(model).readout, "")
    alphabet = [*model.tokenizer.alphabet, *AROUND_OUTPUTS]
    (row,) = ids_of(model, [letters], None if output is None else [output]).tolist()
    return [alphabet[x - FIRST_LETTER] if x >= FIRST_LETTER else special for x in row if x != PAD]
