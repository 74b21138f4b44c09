"""The parameters that runs begin with."""

from collections.abc import Sequence

from seqcls.config import RunConfig
from seqcls.data import network_of
from seqcls.models.initialization import initial_parameters
from seqcls.results import Weights


def draw_initial(members: Sequence[tuple[RunConfig, int]]) -> list[Weights]:
    """The initial parameters of (configuration, model seed) pairs."""
    return [
        {
            name: value.numpy()
            for name, value in initial_parameters(network_of(config), seed).items()
        }
        for config, seed in members
    ]
