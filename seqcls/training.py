"""Trains a group of runs, each member as if it were alone, by the engine that suits it."""

from collections.abc import Callable, Sequence

from seqcls.config import RunConfig
from seqcls.engines.choice import choose_engine
from seqcls.errors import GroupError
from seqcls.results import TrainedMember, Weights

Progress = Callable[[float], None]
"""Told how many members' worth of training is done, parts included."""


def train_group(
    members: Sequence[tuple[RunConfig, int]],
    *,
    engine: str = "auto",
    device: str = "auto",
    every_epoch: bool = False,
    progress: Progress | None = None,
    initial: Sequence[Weights] | None = None,
) -> list[TrainedMember]:
    """Trains (configuration, model seed) pairs of one shape, in their order.

    Args:
        members: pairs whose configurations have the same `group_key`.
        engine: `auto`, `fused` or `torch`, as for `seqcls.engines.choice.choose_engine`.
        device: `auto`, `cpu` or `cuda`; the fused engine runs on the CPU.
        every_epoch: keep the weights of every epoch instead of the best one's.
        progress: called as training goes on.
        initial: the members' initial parameters, as `draw_initial` gives them. Without them the
            fused engine draws them itself, for which it has to load PyTorch.

    Raises:
        GroupError: no members, or configurations that cannot train together.
        EngineError: the engine is unknown or cannot train these.
        DeviceError: the device is unknown or not there.
    """
    if len({config.group_key for config, _ in members}) != 1:
        raise GroupError(
            f"{len(members)} runs cannot train together: expected at least one, all alike in every "
            "field but the initialization strategies; group them by RunConfig.group_key"
        )
    report = progress or (lambda _: None)
    # Each engine's library is loaded only where it is used.
    if choose_engine(members[0][0], engine, device).name == "fused":
        from seqcls.engines.fused.training import train_fused

        start = draw_initial(members) if initial is None else initial
        return train_fused(members, start, every_epoch=every_epoch, progress=report)
    from seqcls.engines.stacked import train_stacked

    return train_stacked(members, device=device, every_epoch=every_epoch, progress=report)


def draw_initial(members: Sequence[tuple[RunConfig, int]]) -> list[Weights]:
    """The initial parameters of (configuration, model seed) pairs, drawn by PyTorch."""
    from seqcls.models.initialization import initial_parameters

    return [
        {name: value.numpy() for name, value in initial_parameters(config, seed).items()}
        for config, seed in members
    ]
