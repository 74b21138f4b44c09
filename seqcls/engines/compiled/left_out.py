"""Settings of training that no compiled engine has."""

from seqcls.config import RunConfig


def training_left_out(config: RunConfig) -> str | None:
    """Why none trains so; None where one may."""
    if config.warm_up_steps:
        return f"warm_up_steps={config.warm_up_steps} is not compiled"
    return None
