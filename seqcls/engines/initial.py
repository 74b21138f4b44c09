"""The parameters that runs begin with."""

from collections.abc import Sequence

from seqcls.engines.base import Member
from seqcls.results import Weights


def draw_initial(members: Sequence[Member]) -> list[Weights]:
    """The initial parameters of these members."""
    # PyTorch, which takes a second or two to load.
    from seqcls.models.initialization import initial_parameters

    return [
        {name: value.numpy() for name, value in initial_parameters(problem.network, seed).items()}
        for problem, seed in members
    ]
