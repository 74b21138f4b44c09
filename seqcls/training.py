"""Training of a group of runs, each member as if it were alone, by the engine that suits it."""

from collections.abc import Sequence

from seqcls.engines.base import Member, Progress
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.errors import GroupError
from seqcls.results import TrainedMember, Weights


def train_group(
    members: Sequence[Member],
    *,
    engine: str = "auto",
    device: str = "auto",
    every_epoch: bool = False,
    progress: Progress | None = None,
    initial: Sequence[Weights] | None = None,
) -> list[TrainedMember]:
    """Trains members of one shape, in their order.

    Args:
        members: problems, whose configurations have the same `group_key`, and model seeds.
        engine: as for `seqcls.engines.choice.choose_engine`.
        device: `auto`, `cpu` or `cuda`; the compiled engines run on the CPU.
        every_epoch: return the weights of every epoch instead of the best one's.
        progress: called after every epoch.
        initial: the members' initial parameters, from `draw_initial`. Without them the fused engine
            draws them, for which it has to load PyTorch.

    Raises:
        ConfigError: they stop when all is right, and no validation string is of trained lengths.
        GroupError: no members, or configurations that cannot train together.
        EngineError: the engine is unknown or cannot train these.
        DeviceError: the device is unknown or missing.
    """
    if len({problem.config.group_key for problem, _ in members}) != 1:
        raise GroupError(
            f"{len(members)} runs cannot train together: expected at least one, all alike in every "
            "field but the initialization strategies; group them by RunConfig.group_key"
        )
    # All have one group key, so checking one problem suffices.
    members[0][0].check_can_be_right()
    report = progress or (lambda _done, _epochs: None)
    chosen = engine_named(choose_engine(members[0][0], engine, device).name)
    return chosen.train(members, initial, every_epoch=every_epoch, progress=report, device=device)
