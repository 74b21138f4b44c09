"""A batch of strings as models read it, and what they answer of it."""

from dataclasses import dataclass
from functools import cached_property

from jaxtyping import Bool, Float
from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.kinds.transduction import separator_id
from seqcls.models.base import Classifier, Ids, Outputs, Places
from seqcls.models.forms import form
from seqcls.strings.tokenizer import PAD


@dataclass(frozen=True, eq=False)
class Batch:
    """Strings that go through a model at once, no wider than the longest of them."""

    config: NetworkConfig
    ids: Ids
    places: Places | None
    """None where the model assigns them itself."""
    times: Float[Tensor, "string position"] | None = None
    """How often each token occurs, where letter counts suffice; None where each stands for itself.
    """

    @property
    def arguments(self) -> tuple[Tensor | None, ...]:
        """What a model is called with."""
        ids_and_places = (self.ids, self.places)
        return ids_and_places if self.times is None else (*ids_and_places, self.times)

    @cached_property
    def is_predicted(self) -> Bool[Tensor, "string position"]:
        """At which tokens a head that answers token by token predicts the next one, or answers."""
        read = self.ids != PAD
        if self.config.head != "output":
            return read
        # From `SEP` on, where the first token of the output is predicted.
        return read & ((self.ids == separator_id(self.config)).cumsum(dim=1) > 0)

    def select_predicted(self, outputs: Outputs) -> Float[Tensor, "predicted ..."]:
        """Chooses from a model's outputs those that are predicted, where its head answers token
        by token.
        """
        return outputs if self.config.head == "string" else outputs[self.is_predicted]


def compute(model: Classifier, batch: Batch) -> Float[Tensor, "predicted ..."]:
    """What a model answers of a batch: by kernels of PyTorch's own where it has any, which drop
    nothing.
    """
    by_kernels = form(model, "by_kernels")
    outputs: Outputs | None = None
    if by_kernels is not None and not (model.training and batch.config.dropout_rate > 0):
        outputs = by_kernels(batch.ids)
    return batch.select_predicted(model(*batch.arguments) if outputs is None else outputs)
