"""One state carried over at all places at once: what is left of the model decides alone."""

from collections.abc import Sequence

import torch
from torch import Tensor

from seqcls.errors import ConfigError
from seqcls.interpretability.patching import _open, _patch
from seqcls.interpretability.readable_model import Output, ids_of
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.parts import Site


def outputs_patched_everywhere(
    model: TrainedModel,
    base: Sequence[int],
    source: Sequence[int],
    site: Site,
    output: Output | None = None,
) -> Tensor:
    """What the head gives of the base string with one state at all places at once.

    Both are read with this output, if one is given.

    Raises:
        InvalidStringError: as `patch`.
        ConfigError: as `patch`, or the model has no such site.
    """
    network, sites = _open(model, base, source)
    if site not in sites:
        known = ", ".join(each.text for each in sites)
        raise ConfigError(f"{site.text!r} is none of the model's sites; expected one of {known}")
    read = output and [output]
    ids, others = (ids_of(model, [letters], read) for letters in (base, source))
    everywhere = torch.ones(1, ids.shape[1], dtype=torch.bool)
    with torch.no_grad():
        return _patch(network, ids, site, sites[site], network.activations(others), everywhere)
