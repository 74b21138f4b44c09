"""Settings of networks and of their training that no compiled engine has."""

from seqcls.config import NetworkConfig, RunConfig


def left_out(config: NetworkConfig) -> str | None:
    """Why none computes this network, whatever else it can; None where one may."""
    if config.activation not in ("gelu", "relu"):
        return f"activation={config.activation!r} is not compiled"
    if config.final_norm:
        return "final_norm=True is not compiled"
    if config.position_draw != "sorted":
        return f"position_draw={config.position_draw!r} is not compiled"
    return None


def training_left_out(config: RunConfig) -> str | None:
    """Likewise of how it is trained."""
    if config.warm_up_steps:
        return f"warm_up_steps={config.warm_up_steps} is not compiled"
    return None
