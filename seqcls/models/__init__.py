"""The architectures that a configuration can name, and the check of a network's settings.

Each architecture has a file: the readable truth, one string a row. Listing and checking them loads
no PyTorch.
"""

from collections.abc import Mapping

from seqcls.config import NetworkConfig, RunConfig
from seqcls.errors import ConfigError
from seqcls.models import architectures, memories
from seqcls.models.architectures import Architecture
from seqcls.models.memories import MixingArchitecture
from seqcls.models.positions import POSITIONS, longest_readable, special_tokens
from seqcls.network import (
    DeltaProductFields,
    Depth,
    HybridFields,
    MambaFields,
    Pictures,
    Positioned,
)
from seqcls.plugins import Registry

IN_SCORES = ("none", "rotary", "alibi")
"""Position schemes that attention among other mixers may have: they act on its scores alone and
have no parameters."""


# The number of letters is that of blocks, so a hybrid reads no `num_blocks`.
_IN_HYBRIDS = HybridFields.reads - Depth.reads
_OF_MEMORIES = (DeltaProductFields.reads | MambaFields.reads) - Depth.reads


class Hybrid(MixingArchitecture):
    """A block for each letter of `layers`, whose limits and sizes are those of its blocks."""

    reads = _IN_HYBRIDS | Positioned.reads | _OF_MEMORIES

    @classmethod
    def obstacle(cls, config: NetworkConfig) -> str | None:
        letters = architectures_by_letter()
        known = ", ".join(f"{x} ({name})" for x, name in letters.items())
        if not config.layers:
            return (
                "layers='' with architecture='hybrid': expected a letter for each block, such as "
                f"'gga', out of {known}"
            )
        if unknown := [x for x in config.layers if x not in letters]:
            return (
                f"layers={config.layers!r}: {unknown[0]!r} is not a mixer; expected letters of "
                f"{known}"
            )
        for part, alone in cls._blocks(config):
            if (reason := part.obstacle(alone)) is not None:
                return f"layers={config.layers!r}: {part.letter!r} cannot be a block: {reason}"
        if config.positions not in IN_SCORES:
            return (
                f"positions={config.positions!r} with architecture='hybrid': its attention knows "
                f"places by its scores alone; use {', '.join(IN_SCORES[:-1])} or {IN_SCORES[-1]}"
            )
        if config.position_range:
            return (
                f"position_range={config.position_range} with architecture='hybrid': its places "
                "are counted; leave it out"
            )
        # The blocks above have already refused missing heads where they need them.
        return super().obstacle(config.model_copy(update={"num_attention_heads": 1}))

    @classmethod
    def not_compiled(cls, config: NetworkConfig) -> str | None:
        for part, _ in cls._blocks(config):
            if part.compiled_width is None or not part.path:
                return f"layers={config.layers!r}: blocks of {part.letter!r} are not compiled"
        return super().not_compiled(config)

    @classmethod
    def count_parameters(cls, config: NetworkConfig) -> int:
        return sum(part.count_parameters(alone) for part, alone in cls._blocks(config))

    @classmethod
    def count_products(cls, config: NetworkConfig, tokens: float) -> float:
        products = (part.count_products(alone, tokens) for part, alone in cls._blocks(config))
        # Products are counted for one block, and those of a hybrid's blocks differ: their mean.
        return sum(products) / len(config.layers)

    @classmethod
    def _blocks(cls, config: NetworkConfig) -> list[tuple[type[Architecture], NetworkConfig]]:
        """The architecture of each letter of `layers`, and the network of that block alone."""
        found = []
        for letter in config.layers:
            name = architecture_of_letter(letter)
            alone = {"architecture": name, "layers": "", "num_blocks": 1}
            # Among mixers, attention reads from left to right as they do.
            alone["attention_mask"] = "causal"
            found.append((MODELS[name], config.model_copy(update=alone)))
        return found


_OWN: dict[str, type[Architecture]] = {
    "transformer": architectures.Transformer,
    "encoder_decoder": architectures.EncoderDecoder,
    "paragraph_reader": architectures.ParagraphReader,
    "recurrent_attention": architectures.RecurrentAttention,
    "rnn": architectures.Recurrent,
    "gru": architectures.GRU,
    "lstm": architectures.LSTM,
    "deltanet": memories.DeltaNet,
    "gated_deltanet": memories.GatedDeltaNet,
    "deltaproduct": memories.DeltaProduct,
    "mamba": memories.Mamba,
    "slstm": memories.SLSTM,
    "linear_attention": memories.LinearAttention,
    "hybrid": Hybrid,
}

MODELS: Registry[type[Architecture]] = Registry("seqcls.models", _OWN, base=Architecture)


def architectures_by_letter() -> dict[str, str]:
    """The architectures that may be a block of `hybrid`, by letter; ours before one from outside
    with the same letter.
    """
    # The last entry of a letter stays: ours come first in the registry, so last here.
    found = {MODELS[name].letter: name for name in reversed(MODELS.usable())}
    return {letter: found[letter] for letter in sorted(found) if letter}


def architecture_of_letter(letter: str) -> str:
    """The architecture of a known letter of `layers`."""
    # Ours first, so that no package is imported for them.
    own = next((name for name, part in _OWN.items() if part.letter == letter), None)
    return own or architectures_by_letter()[letter]


def settings_of(config: RunConfig) -> frozenset[str]:
    """The settings that a network reads; for `hybrid`, those that its blocks read."""
    reads = MODELS[config.architecture].reads
    if config.architecture != "hybrid":
        return reads
    letters = architectures_by_letter()
    settings = [MODELS[letters[x]].reads for x in config.layers if x in letters]
    theirs = frozenset[str]().union(*settings) - {
        "num_blocks",
        "attention_mask",
        "no_attend_cls",
    }
    # That strategy redraws attention which is a block's own part; here it is a mixer's.
    return _IN_HYBRIDS | (theirs - {"attention_init_strategy"})


def check_network(config: NetworkConfig, longest: Mapping[str, int]) -> None:
    """Refuses a network that is impossible or too short for its strings.

    Args:
        longest: number of tokens in the longest string of `train`, `validation` and `test`.

    Raises:
        ConfigError: the architecture or the positions do not allow the settings.
    """
    parts = ((MODELS, config.architecture), (POSITIONS, config.positions))
    for registry, name in parts:
        with registry.wrap_errors(name):
            obstacle = registry[name].obstacle(config)
        if obstacle is not None:
            raise ConfigError(obstacle)
    if config.picture and not MODELS[config.architecture].reads >= Pictures.reads:
        raise ConfigError(
            f"architecture={config.architecture!r}: it reads tokens, and this task draws pictures; "
            "use 'paragraph_reader' or 'recurrent_attention'"
        )
    request = "at every place" if config.head == "places" else f"for {config.num_outputs}"
    several = config.num_outputs > 1 or config.head == "places"
    if several and not MODELS[config.architecture].several_outputs:
        raise ConfigError(
            f"architecture={config.architecture!r}: it answers with one number, and this task asks "
            f"{request}"
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
        # Longer test strings are not evaluated, and their lengths get no accuracy.
        if part != "test":
            known = "trained on or tested" if config.tested_length else "trained on"
            raise ConfigError(
                f"{part}_max_length={length}: positions={config.positions!r} ends at {end}, the "
                f"longest string {known}; lower {part}_max_length to it"
            )
