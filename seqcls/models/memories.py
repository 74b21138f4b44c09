"""Descriptions of architectures whose blocks have a memory, known before one is loaded."""

from typing import ClassVar

from seqcls.config import NetworkConfig
from seqcls.models.architectures import (
    Architecture,
    Recurrent,
    attention_width,
    no_blocks,
)
from seqcls.network import (
    DeltaNetFields,
    DeltaProductFields,
    Heads,
    MambaFields,
    MixingFields,
    MixingHeads,
)


class MixingArchitecture(Architecture):
    """Blocks that mix tokens from left to right; by default with a square memory a head."""

    path = "seqcls.models.mixing:Mixing"
    reads = MixingFields.reads
    several_outputs = True
    compiled_width = (128, 128)

    @classmethod
    def obstacle(cls, config: NetworkConfig) -> str | None:
        # A mixer reads from left to right as cells do, so `CLS` in front would see nothing.
        if (reason := Recurrent.obstacle(config)) is not None:
            return reason
        if config.num_attention_heads == 0 and cls.reads >= Heads.reads:
            return (
                f"num_attention_heads=0 with architecture={config.architecture!r}: its memory is "
                "in heads; use 1 or more"
            )
        if config.embeddings_init_strategy == "gpt2":
            return (
                f"embeddings_init_strategy='gpt2' with architecture={config.architecture!r}: it "
                "draws all weights, and what a memory begins with is not a weight; use 'default' "
                "or 'linear_like'"
            )
        return no_blocks(config)

    @classmethod
    def mixer_weights(cls, config: NetworkConfig) -> float:
        """Number of parameters of a mixer."""
        return 0.0

    @classmethod
    def mixer_numbers(cls, config: NetworkConfig, tokens: float) -> float:
        """Number of values that a mixer stores for a token's gradients, each costing a few
        products: weights of all pairs, queries, keys and values.
        """
        return 3 * config.num_attention_heads * tokens + 8 * attention_width(config)

    @classmethod
    def count_parameters(cls, config: NetworkConfig) -> int:
        return int(config.num_blocks * cls._block(config))

    @classmethod
    def count_products(cls, config: NetworkConfig, tokens: float) -> float:
        return cls._block(config) + 3 * cls.mixer_numbers(config, tokens)

    @classmethod
    def _block(cls, config: NetworkConfig) -> float:
        return cls.mixer_weights(config) + 2 * config.feed_forward_size * config.hidden_size


class LinearAttention(MixingArchitecture):
    """Attention without a softmax."""

    mixer_path = "seqcls.models.mixing:LinearAttentionMixer"
    reads = MixingHeads.reads
    letter = "l"
    projections: ClassVar[int] = 4
    """Number of a mixer's matrices: queries, keys, values and the output."""

    @classmethod
    def mixer_weights(cls, config: NetworkConfig) -> float:
        return cls.projections * attention_width(config) * config.hidden_size


class DeltaNet(LinearAttention):
    """A memory that erases its value at a key before it writes a new one there."""

    mixer_path = "seqcls.models.deltanet:DeltaNetMixer"
    reads = DeltaNetFields.reads
    letter = "d"


class GatedDeltaNet(DeltaNet):
    """DeltaNet's memory with a decay, and a gate."""

    mixer_path = "seqcls.models.deltanet:GatedDeltaNetMixer"
    letter = "g"
    projections = 5


class DeltaProduct(MixingArchitecture):
    """DeltaNet's memory, written to several times with each token."""

    mixer_path = "seqcls.models.deltanet:DeltaProductMixer"
    reads = DeltaProductFields.reads
    letter = "p"

    @classmethod
    def mixer_weights(cls, config: NetworkConfig) -> float:
        # Queries and the output, and for every step a key and a value.
        steps = 2 + 2 * config.householder_steps
        return steps * attention_width(config) * config.hidden_size

    @classmethod
    def mixer_numbers(cls, config: NetworkConfig, tokens: float) -> float:
        return config.householder_steps * super().mixer_numbers(config, tokens)


class Mamba(MixingArchitecture):
    """Many small memories that decay."""

    mixer_path = "seqcls.models.mamba:MambaMixer"
    reads = MambaFields.reads
    letter = "m"

    @classmethod
    def mixer_weights(cls, config: NetworkConfig) -> float:
        width = config.expand * config.hidden_size
        # Input, gate and output; then rates, B and C. Weights of the steps are few beside them.
        return width * (3 * config.hidden_size + 3 * config.state_size)

    @classmethod
    def mixer_numbers(cls, config: NetworkConfig, tokens: float) -> float:
        return 4 * config.expand * config.hidden_size * config.state_size


class SLSTM(MixingArchitecture):
    """Exponential gates, and recurrent weights within a head."""

    mixer_path = "seqcls.models.slstm:SLSTMMixer"
    reads = MixingHeads.reads
    letter = "s"

    @classmethod
    def mixer_weights(cls, config: NetworkConfig) -> float:
        # Four gates and the output meet the token, and the gates meet the state of their head.
        head = 5 * config.hidden_size + 4 * config.attention_head_size
        return attention_width(config) * head

    @classmethod
    def mixer_numbers(cls, config: NetworkConfig, tokens: float) -> float:
        return 20 * attention_width(config)
