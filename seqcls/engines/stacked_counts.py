"""The PyTorch engine by letter counts: all members of a group in one step."""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float

from seqcls.config import NetworkConfig, RunConfig
from seqcls.counts.invariance import counts_suffice
from seqcls.engines.base import Member, Progress
from seqcls.results import TrainedMember, Weights
from seqcls.strings import TokenStrings


class StackedCounts:
    """All members at once, from letter counts."""

    name = "counts"
    by_counts = True
    one_thread = False
    wants_initial = False

    def obstacle(self, config: RunConfig, device: str) -> str | None:
        """Why it cannot train and test this configuration; None where it can."""
        del device
        return counts_suffice(config, training=True)

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
        from seqcls.engines.by_counts import ByCounts
        from seqcls.engines.group import Group
        from seqcls.engines.stacked import GroupTraining, choose_device, optimized
        from seqcls.initial import draw_initial

        config, where = members[0][0], choose_device(device)
        weights = draw_initial(members) if initial is None else initial
        group = Group(weights, where, **optimized(config))
        way = ByCounts(network_of(config), group, config.train_batch_size, where)
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
        from seqcls.engines.by_counts import ByCounts
        from seqcls.engines.group import Group
        from seqcls.engines.stacked import choose_device
        from seqcls.engines.steps import all_logits

        where = choose_device(device)
        way = ByCounts(network_of(config), Group(weights, where), len(strings), where)
        return all_logits(way, strings, len(weights))
