"""From a body's states to what the head gives of a string, or of every token."""

from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.models.base import Classifier, Ids, Outputs, Places, Recorder
from seqcls.models.layers import Embedding, Linear, masked_mean
from seqcls.tokens.tokenizer import PAD

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
        return outputs.squeeze(-1) if self.config.head == "string" else outputs

    def run(self, ids: Ids, record: Recorder, places: Places | None) -> Outputs:
        """Implements `Classifier.run`."""
        states = self.states(ids, record, places)
        if self.config.head != "string":
            return record("logits", self.head(states))
        read = record("readout", read_states(self.config, states, ids))
        return record("logit", self.head(read))


def make_head(config: NetworkConfig) -> Linear | None:
    """The layer that reads: `num_outputs` numbers of a state; None where embeddings do."""
    if config.tied_embeddings:
        return None
    return Linear(config.hidden_size, config.num_outputs, bias=config.biases)


def read_states(config: NetworkConfig, states: Hidden, ids: Ids) -> Float[Tensor, "string hidden"]:
    """The states that the head reads: at the first token, at the last, or the mean of all."""
    if config.readout == "first":
        return states[:, 0]
    read = ids != PAD
    if config.readout == "mean":
        return masked_mean(states, read)
    return states[torch.arange(len(ids), device=ids.device), read.sum(dim=1) - 1]
