"""A batch of strings as models read it, and a model's outputs for it."""

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
    """The tokens' positions; None to let the model assign them."""
    times: Float[Tensor, "string position"] | None = None
    """Number of times that each token occurs, where letter counts suffice; None for once."""

    @property
    def arguments(self) -> tuple[Tensor | None, ...]:
        """The arguments with which a model is called."""
        ids_and_places = (self.ids, self.places)
        return ids_and_places if self.times is None else (*ids_and_places, self.times)

    @cached_property
    def is_predicted(self) -> Bool[Tensor, "string position"]:
        """A mask of the tokens at which a head with outputs at tokens predicts something."""
        read = self.ids != PAD
        if self.config.head != "output":
            return read
        # The first token of the output is predicted at `SEP`.
        return read & ((self.ids == separator_id(self.config)).cumsum(dim=1) > 0)

    def select_predicted(self, outputs: Outputs) -> Float[Tensor, "predicted ..."]:
        """Selects the outputs at predicted tokens; a head of whole strings predicts all of them."""
        return outputs if self.config.head == "string" else outputs[self.is_predicted]


def compute(model: Classifier, batch: Batch) -> Float[Tensor, "predicted ..."]:
    """Computes a model's outputs for a batch, by PyTorch's own kernels where it has any.

    The kernels have no dropout, so training with dropout does without them.
    """
    by_kernels = form(model, "by_kernels")
    outputs: Outputs | None = None
    if by_kernels is not None and not (model.training and batch.config.dropout_rate > 0):
        outputs = by_kernels(batch.ids)
    return batch.select_predicted(model(*batch.arguments) if outputs is None else outputs)
