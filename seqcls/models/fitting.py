"""Whether a network can be what a configuration says. No PyTorch is loaded to know it."""

from collections.abc import Mapping

from seqcls.config import NetworkConfig
from seqcls.errors import ConfigError
from seqcls.models import MODELS, OF_PICTURES
from seqcls.models.positions import POSITIONS, longest_readable
from seqcls.models.reading import special_tokens


def check_network(config: NetworkConfig, longest: Mapping[str, int]) -> None:
    """Refuses a network that cannot be, or that cannot read what it must.

    Args:
        config: the network, of an architecture and positions that there are.
        longest: tokens of the longest string of `train`, `validation` and `test`.

    Raises:
        ConfigError: settings that the architecture or the positions cannot have.
    """
    parts = ((MODELS, config.architecture), (POSITIONS, config.positions))
    for registry, name in parts:
        with registry.guarded(name):
            obstacle = registry[name].obstacle(config)
        if obstacle is not None:
            raise ConfigError(obstacle)
    if config.picture and not MODELS[config.architecture].reads >= OF_PICTURES:
        raise ConfigError(
            f"architecture={config.architecture!r}: it reads tokens, and this task draws pictures; "
            "use 'paragraph_reader' or 'recurrent_attention'"
        )
    if config.num_outputs > 1 and not MODELS[config.architecture].several_outputs:
        raise ConfigError(
            f"architecture={config.architecture!r}: it answers with one number, and this task asks "
            f"for {config.num_outputs}"
        )
    end = longest_readable(config)
    for part, length in longest.items():
        if end is None or length <= end:
            continue
        if config.position_range:
            raise ConfigError(
                f"position_range={config.position_range}: expected at least "
                f"{length + special_tokens(config)}, the tokens that are read of the longest "
                f"{part} string"
            )
        # In testing those strings are not asked about, and their lengths have no number.
        if part != "test":
            known = "trained on or tested" if config.tested_length else "trained on"
            raise ConfigError(
                f"{part}_max_length={length}: positions={config.positions!r} ends at {end}, the "
                f"longest string {known}; lower {part}_max_length to it"
            )
