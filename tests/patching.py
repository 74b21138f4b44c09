"""Patching of one state at all positions at once."""

from collections.abc import Sequence

import torch
from torch import Tensor

from seqcls.errors import ConfigError
from seqcls.interpretability import inside
from seqcls.interpretability.patching import carry_over, sites_of
from seqcls.interpretability.readable_model import Output
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.parts import Site


def outputs_patched_everywhere(
    model: TrainedModel,
    base: Sequence[int],
    source: Sequence[int],
    site: Site,
    output: Output | None = None,
) -> Tensor:
    """Outputs of the head for the base string, with one state of the source at all positions.

    Both are read with this output, if one is given.

    Raises:
        ConfigError: the model has no such site.
    """
    if site not in sites_of(model):
        known = ", ".join(known_site.text for known_site in sites_of(model))
        raise ConfigError(f"{site.text!r} is none of the model's sites; expected one of {known}")
    batch, other = (inside.read(model, [x], output and [output]) for x in (base, source))
    everywhere = torch.ones(1, batch.ids.shape[1], dtype=torch.bool)
    return carry_over(model, batch, site, inside.states(model, other), everywhere)
