"""Direct logit attribution: a logit as the sum of what each part of a model adds to it.

The logit is linear in the residual stream where it is read. Norms before attention and before the
feed-forward are inside of what is added, as they act on this string. With the norms after each sum
(`norm_placement = "post"`), or one after the last block (`final_norm`), what is added is scaled by
every later norm, which is held at the scale that it has for this string. So the parts sum to the
logit exactly.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import torch

from seqcls.interpretability import inside
from seqcls.interpretability.readable_model import plain_model
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.base import read_states
from seqcls.models.forms import form


class LogitStep(NamedTuple):
    """One part of a model and what it adds to the logit."""

    part: str
    """`embedding`, `head`, `feed-forward`, `bias` or `norm`."""
    block: int | None
    """None where there is one."""
    head: int | None
    adds: float
    logit: float
    """The logit if the classifier read the stream after this part."""

    @property
    def text(self) -> str:
        """The name of the step, such as `block 0: head 1`."""
        part = self.part if self.head is None else f"head {self.head}"
        return part if self.block is None else f"block {self.block}: {part}"


def logit_steps(model: TrainedModel, letters: Sequence[int]) -> tuple[LogitStep, ...] | None:
    """The contribution of each part to the logit of a string, in the order of the computation.

    The parts sum to the logit, in double precision; by letter counts where the order of tokens has
    no part in it. None of a model without a residual stream, or with more than one logit.
    """
    plain, network = plain_model(model), model.problem.network
    one_logit = network.num_outputs == 1 and network.head == "string"
    if not one_logit or (stream := form(plain, "residual_stream")) is None:
        return None
    batch = inside.read_string(model, letters)
    head, times = stream().head, batch.times[:, :, None]
    with torch.no_grad():
        parts = stream().parts(inside.states(model, batch))
        adds = []
        for x in parts:
            # A mean is linear, too: the mean of what a part adds is its share of the logit.
            if plain.config.readout == "mean":
                read = (x.states * times).sum(dim=1) / times.sum().clamp_min(1)
            else:
                read = read_states(plain.config, x.states, batch.ids)
            adds.append((x.name, x.block, x.head, float((read @ head.weight.T).squeeze())))
        if head.bias is not None:
            # Last, so that the steps end at the logit itself.
            adds.append(("bias", None, None, float(head.bias)))
    logits = accumulate(added for *_, added in adds)
    return tuple(LogitStep(*step, logit) for step, logit in zip(adds, logits, strict=True))
