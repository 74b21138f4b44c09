"""Base classes of models: token ids in, a logit out, every state on the way under a stable name.

Most models are a `BodyAndHead`: a head computes the outputs of a string, or of every token, from
the body's states.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor, nn
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.models.architectures import Architecture
from seqcls.models.layers import Dropout, Embedding, Linear, masked_mean
from seqcls.models.parts import Site, parts_among
from seqcls.strings.tokenizer import PAD

Ids = Integer[Tensor, "string position"]
"""Token ids as a model reads them, with its special token, and `PAD` after each string."""

Places = Integer[Tensor, "#string position"]
"""Each token's position, the same for every string or one row a string."""


Outputs = Float[Tensor, "string *output"]
"""The head's outputs: a logit or `num_outputs` numbers a string, (string,) or (string, output), or
`num_outputs` numbers a token, (string, position, output)."""


class Recorder:
    """Records the named states of a forward pass, if a caller gives a dictionary for them."""

    def __init__(self, prefix: str = "", recorded: dict[str, Tensor] | None = None) -> None:
        self._prefix = prefix
        self._recorded = recorded

    def __call__(self, name: str, state: Tensor) -> Tensor:
        if self._recorded is not None:
            self._recorded[self._prefix + name] = state
        return state

    def recall(self, name: str) -> Tensor | None:
        """A state that is known, so that what leads to it need not be computed; None for most."""
        return None

    def step(self, name: str, position: int, state: Tensor) -> Tensor:
        """Returns a state, (string, hidden), that the next position is computed from."""
        return state

    def aside(self, name: str, make: Callable[[], Tensor]) -> None:
        """Records a state that nothing is computed from; `make` is called only when recording."""
        if self._recorded is not None:
            self(name, make())

    def within(self, name: str) -> "Recorder":
        """A recorder for a part, whose names begin with the part's name."""
        return Recorder(f"{self._prefix}{name}.", self._recorded)


class Classifier(nn.Module, Architecture, ABC):
    """A model of one architecture; its values are undefined until they are drawn or loaded.

    An architecture from outside is a subclass whose constructor takes the network's settings. It
    implements `run`, and describes itself by the attributes of `Architecture`.
    """

    steps_through: ClassVar[bool] = False
    """True if it reads one token after another, which takes as long for many strings as for one."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config

    @abstractmethod
    def run(self, ids: Ids, record: Recorder, places: Places | None) -> Outputs:
        """Computes the outputs for strings and records every state on the way under its name.

        Args:
            ids: the tokens.
            record: called with each state's name and value; returns the value.
            places: the tokens' positions; None to let the model assign them.
        """

    def parts(self) -> Mapping[Site, str]:
        """The parts that can be ablated, each with the name of the recorded state that holds it.

        A state has the shape (string, position, hidden), or (string, head, position, head_size) for
        heads. In a model of two streams (`TwoStreams`) the positions are those of one stream; the
        names of a decoder's states, and no others, begin with `decoder.`. By default these are the
        heads, units and feed-forwards among `sites`.
        """
        return parts_among(self.config, self.sites())

    def sites(self) -> Mapping[Site, tuple[str, ...]]:
        """The states that can be patched between strings, in the order of the computation.

        Each comes with the names of its recorded states, which have the shapes given at `parts`.
        """
        return {}

    def tokens_of(self, ids: Ids, state: str) -> Bool[Tensor, "string state_position"]:
        """A mask of the positions that hold a token in the recorded state of that name."""
        return ids != PAD

    def attention(self) -> tuple[str, ...]:
        """The name of each block's attention weights, (string, head, position, position)."""
        return ()

    def units(self) -> tuple[Mapping[str, str], ...]:
        """The recorded names of each recurrent layer's `state`, gates and other states.

        Their shape is (string, position, hidden).
        """
        return ()

    def decoder_states(self) -> tuple[str, ...]:
        """The name of each block's last states, for a decoder that reads the output alone.

        Their shape is (string, output position, hidden), from `SEP` on.
        """
        return ()

    def forward(self, ids: Ids, places: Places | None = None) -> Outputs:
        """Computes the outputs; a positive logit means in the language."""
        return self.run(ids, Recorder(), places)

    def activations(self, ids: Ids, places: Places | None = None) -> dict[str, Tensor]:
        """Returns every intermediate state by name, in the order of the computation."""
        recorded: dict[str, Tensor] = {}
        self.run(ids, Recorder(recorded=recorded), places)
        return recorded

    def use_dropout_generator(self, generator: torch.Generator) -> None:
        """Draws every dropout mask from this generator, in the order of the computation."""
        for module in self.modules():
            if isinstance(module, Dropout):
                module.generator = generator


Hidden = Float[Tensor, "string position hidden"]


class BodyAndHead(Classifier):
    """A model whose body gives every token a state, and whose head reads one, their mean, or all.

    With `tied_embeddings` the outputs are the products of the state with each token's embedding
    (Press & Wolf 2017).
    """

    embedding: Embedding
    classifier: Linear | None
    """Made by the subclass after its body, since parameters are drawn in this order."""

    @abstractmethod
    def states(self, ids: Ids, record: Recorder, places: Places | None) -> Hidden:
        """Computes the last states of strings and records every state on the way by name."""

    def head(self, read: Float[Tensor, "*string hidden"]) -> Outputs:
        """Computes outputs from the states that are read."""
        if self.classifier is None:
            return functional.linear(read, self.embedding.weight)
        outputs: Tensor = self.classifier(read)
        # A single logit has no output axis; where there are several, nothing is squeezed.
        return outputs.squeeze(-1) if self.config.head == "string" else outputs

    def run(self, ids: Ids, record: Recorder, places: Places | None) -> Outputs:
        return self.read(self.states(ids, record, places), ids, record)

    def read(
        self,
        states: Hidden,
        ids: Ids,
        record: Recorder,
        times: Float[Tensor, "string position"] | None = None,
    ) -> Outputs:
        """Computes outputs from the last states.

        Args:
            times: how often each token occurs; None for once.
        """
        if self.config.head != "string":
            return record("logits", self.head(states))
        read = record("readout", read_states(self.config, states, ids, times))
        return record("logit", self.head(read))


def make_head(config: NetworkConfig) -> Linear | None:
    """Makes the layer of the head, with `num_outputs` numbers; None if embeddings are tied."""
    if config.tied_embeddings:
        return None
    return Linear(config.hidden_size, config.num_outputs, bias=config.biases)


def read_states(
    config: NetworkConfig,
    states: Hidden,
    ids: Ids,
    times: Float[Tensor, "string position"] | None = None,
) -> Float[Tensor, "string hidden"]:
    """Returns the states that the head reads: at the first token, at the last, or the mean of all.

    The state of a string without tokens, which only readouts without a special token have, is zero.

    Args:
        times: how often each token occurs; None for once.
    """
    if config.readout == "first":
        return states[:, 0]
    read = ids != PAD
    if config.readout == "mean":
        return masked_mean(states, read if times is None else times)
    last = read.sum(dim=1) - 1
    if config.readout == "last_letter":
        # An empty string has no last letter: it reads the zeros padded before the first.
        states, last = functional.pad(states, (0, 0, 1, 0)), last + 1
    return states[torch.arange(len(ids), device=ids.device), last]
