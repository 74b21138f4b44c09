"""Settings of networks that no compiled engine has."""

from seqcls.config import NetworkConfig


def left_out(config: NetworkConfig) -> str | None:
    """Why none computes this network, whatever else it can; None where one may."""
    if config.activation not in ("gelu", "relu"):
        return f"activation={config.activation!r} is not compiled"
    if config.final_norm:
        return "final_norm=True is not compiled"
    if config.position_draw != "sorted":
        return f"position_draw={config.position_draw!r} is not compiled"
    return None
