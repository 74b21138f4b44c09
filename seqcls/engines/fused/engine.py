"""The fused engine as one among others."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from seqcls.config import RunConfig
from seqcls.counts.invariance import counts_suffice
from seqcls.engines.base import Member, Progress
from seqcls.results import TrainedMember, Weights
from seqcls.strings import TokenStrings

DEFAULTS = {
    "num_blocks": 1,
    "readout": "first",
    "attention_scale": "sqrt",
    "norm_placement": "pre",
    "activation": "gelu",
    "biases": False,
    "weight_decay": 0.01,
    "gradient_clip": 0.0,
}
"""What is compiled has these values of some fields, and no others."""


class Fused:
    """One member after another, each in compiled code from counts to AdamW."""

    name = "fused"

    def obstacle(self, config: RunConfig, device: str) -> str | None:
        """Why it cannot train and test this configuration; None where it can."""
        if device == "cuda":
            return "device='cuda' is no CPU"
        for field, value in DEFAULTS.items():
            own = getattr(config, field)
            if own != value:
                return f"{field}={own!r} is not compiled"
        return counts_suffice(config, training=True)

    def group_size(self, config: RunConfig) -> int:
        """Few: members are trained one after another, and small groups keep all cores at work."""
        del config
        return 16

    def train(
        self,
        members: Sequence[Member],
        initial: Sequence[Weights] | None,
        *,
        every_epoch: bool,
        progress: Progress,
        device: str,
    ) -> list[TrainedMember]:
        """As `Engine.train`. Drawing initial parameters loads PyTorch."""
        del device
        from seqcls.engines.fused.training import train_fused

        if initial is None:
            from seqcls.models.initialization import draw_initial

            initial = draw_initial(members)
        return train_fused(members, initial, every_epoch=every_epoch, progress=progress)

    def logits(
        self,
        config: RunConfig,
        weights: Sequence[Weights],
        strings: TokenStrings,
        *,
        device: str,
    ) -> Float[np.ndarray, "member string"]:
        """As `Engine.logits`."""
        del device
        from seqcls.data import network_of
        from seqcls.engines.fused.training import fused_logits

        return fused_logits(network_of(config), weights, strings.counts)
