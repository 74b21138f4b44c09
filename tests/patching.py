"""One state carried over at all places at once: what is left of the model decides alone."""

from collections.abc import Sequence

import torch

from seqcls.errors import ConfigError
from seqcls.interpretability.model.readable_model import ids_of
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.interpretability.patching import _opened, _replaced
from seqcls.models.parts import Site


def patch_everywhere(
    model: TrainedModel, base: Sequence[int], source: Sequence[int], site: Site
) -> float:
    """The base string's logit with one state at all places at once.

    Raises:
        InvalidStringError: as `patch`.
        ConfigError: as `patch`, or the model has no such site.
    """
    network, sites = _opened(model, base, source)
    if site not in sites:
        known = ", ".join(each.text for each in sites)
        raise ConfigError(f"{site.text!r} is none of the model's sites; expected one of {known}")
    ids, others = ids_of(model, [base]), ids_of(model, [source])
    everywhere = torch.ones(1, ids.shape[1], dtype=torch.bool)
    with torch.no_grad():
        return float(
            _replaced(network, ids, site, sites[site], network.activations(others), everywhere)
        )
