"""What every model is: token ids in, a logit out, every state on the way under a stable name.

Most are a `BodyAndHead`: from a body's states a head makes the numbers of a string, or of every
token.
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
from seqcls.models.parts import Part, Site
from seqcls.strings.tokenizer import PAD

Ids = Integer[Tensor, "string position"]
"""Token ids as a model reads them: the special token in its place, `PAD` after each string."""

Places = Integer[Tensor, "#string position"]
"""Where each token stands, for every string alike or for each its own."""


Outputs = Float[Tensor, "string *output"]
"""What the head gives of each string: one logit, or `num_outputs` numbers; of an output as many of
every token, (string, position, output)."""


class Recorder:
    """Keeps the states that a forward pass names, if a caller asked for them."""

    def __init__(self, prefix: str = "", recorded: dict[str, Tensor] | None = None) -> None:
        self._prefix = prefix
        self._recorded = recorded

    def __call__(self, name: str, state: Tensor) -> Tensor:
        if self._recorded is not None:
            self._recorded[self._prefix + name] = state
        return state

    def step(self, name: str, position: int, state: Tensor) -> Tensor:
        """Passes on a state that the next position is computed from, of shape (string, hidden)."""
        return state

    def aside(self, name: str, make: Callable[[], Tensor]) -> None:
        """Keeps a state that nothing is computed from, made only where a caller asked for them."""
        if self._recorded is not None:
            self(name, make())

    def within(self, name: str) -> "Recorder":
        """A recorder of a part, whose names begin with the part's."""
        return Recorder(f"{self._prefix}{name}.", self._recorded)


class Classifier(nn.Module, Architecture, ABC):
    """A model of one architecture; its values are undefined until they are drawn or loaded.

    An architecture from outside is a subclass whose constructor takes the network's settings and
    which says in `run` what it computes, and what `Architecture` asks of it.
    """

    steps_through: ClassVar[bool] = False
    """Whether it reads one token after another, which takes as long for many strings as for one."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config

    @abstractmethod
    def run(self, ids: Ids, record: Recorder, places: Places | None) -> Outputs:
        """The outputs for strings, every state on the way recorded under its name.

        Args:
            ids: the tokens.
            record: to be called with each state's name and value; returns the value.
            places: the tokens' places; None for those that the model assigns itself.
        """

    def parts(self) -> Mapping[Part, str]:
        """The parts that can be ablated, and the name of the recorded state that each is in.

        A state has the shape (string, position, hidden), or (string, head, position, head_size)
        where a part is a head. Of two streams (`TwoStreams`) the positions are those of one; a
        decoder's states, and no others, have names that begin with `decoder.`.
        """
        return {}

    def sites(self) -> Mapping[Site, tuple[str, ...]]:
        """The states that can be carried over between strings, in the order of the computation.

        Each with the names of the recorded states that it stands for, of the shapes of `parts`.
        """
        return {}

    def tokens_of(self, ids: Ids, state: str) -> Bool[Tensor, "string state_position"]:
        """Whether there is a token at each position of the recorded state of that name."""
        return ids != PAD

    def attention(self) -> tuple[str, ...]:
        """A block each, the name of its attention weights: (string, head, position, position)."""
        return ()

    def units(self) -> tuple[Mapping[str, str], ...]:
        """A recurrent layer each, the names of its `state` and of what else it records.

        Each of the shape (string, position, hidden).
        """
        return ()

    def decoder_states(self) -> tuple[str, ...]:
        """Where a decoder reads the output alone, a block each, the name of its last states.

        Each of the shape (string, output position, hidden), from `SEP` on.
        """
        return ()

    def forward(self, ids: Ids, places: Places | None = None) -> Outputs:
        """Logits of strings; positive means in the language."""
        return self.run(ids, Recorder(), places)

    def activations(self, ids: Ids, places: Places | None = None) -> dict[str, Tensor]:
        """Every intermediate state by its name, in the order of the computation."""
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
    """A model whose body gives every token a state, and whose head reads one, their mean, or each.

    With `tied_embeddings` the head gives each token's product with the state (Press & Wolf 2017).
    """

    embedding: Embedding
    classifier: Linear | None
    """Made by the subclass after its body, since parameters are drawn in their order."""

    @abstractmethod
    def states(self, ids: Ids, record: Recorder, places: Places | None) -> Hidden:
        """The body: the last states of strings, every state on the way recorded under its name."""

    def head(self, read: Float[Tensor, "*string hidden"]) -> Outputs:
        """What is made of the states that are read."""
        if self.classifier is None:
            return functional.linear(read, self.embedding.weight)
        outputs: Tensor = self.classifier(read)
        # A string's one logit has no axis of its own; where there are several, nothing is squeezed.
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
        """What the head makes of the last states.

        Args:
            times: how often each token occurs; None where each stands for itself.
        """
        if self.config.head != "string":
            return record("logits", self.head(states))
        read = record("readout", read_states(self.config, states, ids, times))
        return record("logit", self.head(read))


def make_head(config: NetworkConfig) -> Linear | None:
    """The layer that reads: `num_outputs` numbers of a state; None where embeddings do."""
    if config.tied_embeddings:
        return None
    return Linear(config.hidden_size, config.num_outputs, bias=config.biases)


def read_states(
    config: NetworkConfig,
    states: Hidden,
    ids: Ids,
    times: Float[Tensor, "string position"] | None = None,
) -> Float[Tensor, "string hidden"]:
    """The states that the head reads: at the first token, at the last, or the mean of all.

    Of no token, which only a string of letters alone may have, the state is zero.

    Args:
        times: how often each token occurs; None where each stands for itself.
    """
    if config.readout == "first":
        return states[:, 0]
    read = ids != PAD
    if config.readout == "mean":
        return masked_mean(states, read if times is None else times)
    last = read.sum(dim=1) - 1
    if config.readout == "last_letter":
        # An empty string has no last letter: it reads the zeros that are put before the first.
        states, last = functional.pad(states, (0, 0, 1, 0)), last + 1
    return states[torch.arange(len(ids), device=ids.device), last]
