"""The PyTorch engine string by string."""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float

from seqcls.config import NetworkConfig, RunConfig
from seqcls.engines.base import Member, Progress
from seqcls.results import TrainedMember, Weights
from seqcls.strings import TokenStrings


class StackedStrings:
    """All members in one step on a GPU; elsewhere, and with dropout, one at a time."""

    name = "strings"
    by_counts = False
    one_thread = False
    wants_initial = False

    def obstacle(self, config: RunConfig, device: str) -> str | None:
        """Why it cannot train and test this configuration; None where it can."""
        del config, device
        return None

    def group_size(self, config: RunConfig) -> int:
        """Beyond this many members a step's arithmetic outweighs what stacking saves."""
        del config
        return 64

    def prepare(self, configs: Iterable[RunConfig]) -> None:
        """As `Engine.prepare`: nothing is kept."""

    def parameter_shapes(self, config: NetworkConfig) -> None:
        """As `Engine.parameter_shapes`."""

    def load(self) -> None:
        """As `Engine.load`."""
        import seqcls.engines.stacked  # noqa: F401

    def train(
        self,
        members: Sequence[Member],
        initial: Sequence[Weights] | None,
        *,
        every_epoch: bool,
        progress: Progress,
        device: str,
    ) -> list[TrainedMember]:
        """As `Engine.train`."""
        from seqcls.data import network_of
        from seqcls.engines.group import Group
        from seqcls.engines.stacked import GroupTraining, choose_device, optimized
        from seqcls.engines.steps import Members, Way
        from seqcls.engines.strings.arena import Arena
        from seqcls.engines.strings.one_by_one import OneByOne
        from seqcls.engines.strings.stacked import Stacked
        from seqcls.initial import draw_initial

        config, where = members[0][0], choose_device(device)
        weights = draw_initial(members) if initial is None else initial
        own = (network_of(config), config.train_batch_size, where, config.train_seed)
        group: Members
        way: Way
        if where.type == "cuda" and config.dropout_rate == 0:
            group = stacked = Group(weights, where, **optimized(config))
            way = Stacked(stacked, *own)
        else:
            group = arena = Arena(weights, where, **optimized(config))
            way = OneByOne(arena, *own)
        return GroupTraining(members, group, way, where, every_epoch=every_epoch).run(progress)

    def logits(
        self,
        config: RunConfig,
        weights: Sequence[Weights],
        strings: TokenStrings,
        *,
        device: str,
    ) -> Float[np.ndarray, "member string"]:
        """As `Engine.logits`."""
        from seqcls.data import network_of
        from seqcls.engines.stacked import choose_device
        from seqcls.engines.steps import all_logits
        from seqcls.engines.strings.arena import Arena
        from seqcls.engines.strings.one_by_one import OneByOne

        where = choose_device(device)
        way = OneByOne(Arena(weights, where), network_of(config), len(strings), where)
        return all_logits(way, strings, len(weights))
