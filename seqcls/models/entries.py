"""What a part of a network says of itself before it is loaded: its class, its settings, its size.

No PyTorch is loaded to name one.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from seqcls.config import NetworkConfig
from seqcls.declarations import declared_by


@dataclass(frozen=True)
class Sizes:
    """What an architecture's blocks take."""

    parameters: Callable[[NetworkConfig], int]
    """Numbers of all blocks, embedding and classifier left out."""
    products: Callable[[NetworkConfig, float], float] = lambda config, _: (
        2.0 * config.hidden_size**2
    )
    """Multiply-adds of a token in one block, in strings of so many tokens."""
    scores: Callable[[NetworkConfig, float], int] = lambda *_: 0
    """Numbers that a token's attention keeps of all blocks for the gradients, in such strings."""


def recurrent(gates: int) -> Sizes:
    """The sizes of a recurrent network with so many gates. Parameters are those of four gates that
    read input and state, the most that there are.
    """
    return Sizes(
        parameters=lambda config: 8 * config.num_blocks * config.hidden_size**2,
        products=lambda config, _: 2.0 * gates * config.hidden_size**2,
    )


def _transformer_parameters(config: NetworkConfig) -> int:
    rows = config.num_blocks * _rows(config, 1) + config.final_norm * _norm(config)
    return rows * config.hidden_size


def _rows(config: NetworkConfig, attentions: int) -> int:
    """Rows of as many numbers as the hidden size in a block with so many attentions."""
    rows = attentions * (4 * _attention_width(config) + _norm(config))
    return rows + 2 * config.feed_forward_size + _norm(config)


def _norm(config: NetworkConfig) -> int:
    return (2 if config.layer_norm == "nn" else 1) if config.has_norms else 0


def _transformer_products(config: NetworkConfig, tokens: float) -> float:
    mixed, hidden = _attention_width(config), config.hidden_size
    return 4 * mixed * hidden + 2 * config.feed_forward_size * hidden + 2 * mixed * tokens


def _transformer_scores(config: NetworkConfig, tokens: float) -> int:
    # The last block attends at one place alone, where the logit is read there.
    reads_one = config.head == "string" and config.readout != "mean"
    blocks = config.num_blocks - reads_one
    return int(blocks * config.num_attention_heads * tokens)


def _encoder_decoder_parameters(config: NetworkConfig) -> int:
    rows = config.num_blocks * (_rows(config, 1) + _rows(config, 2))
    return (rows + 2 * config.final_norm * _norm(config)) * config.hidden_size


def _encoder_decoder_products(config: NetworkConfig, tokens: float) -> float:
    # Half of the tokens pass the encoder, half the decoder; keys and values of the encoder's are
    # computed once for each of the decoder's blocks.
    mixed, hidden = _attention_width(config), config.hidden_size
    return 6 * mixed * hidden + 2 * config.feed_forward_size * hidden + 1.5 * mixed * tokens


def _encoder_decoder_scores(config: NetworkConfig, tokens: float) -> int:
    # Three attentions over half of the tokens by half of them.
    return int(0.75 * config.num_blocks * config.num_attention_heads * tokens)


def _recurrent_attention_parameters(config: NetworkConfig) -> int:
    hidden, cells = config.hidden_size, 16 * config.num_blocks * config.hidden_size**2
    if config.attention == "none":
        return cells
    # The first layer's weights of the context, and the three layers that score.
    return cells + 4 * hidden**2 + 2 * hidden**2 + hidden


def _recurrent_attention_products(config: NetworkConfig, tokens: float) -> float:
    cells = 8.0 * config.hidden_size**2
    if config.attention == "none":
        return cells
    # Half of the tokens attend to the other half.
    attends = 3 * config.hidden_size**2 + 0.5 * config.hidden_size * tokens
    return cells + attends / config.num_blocks


def _recurrent_attention_scores(config: NetworkConfig, tokens: float) -> int:
    return int(0.25 * config.hidden_size * tokens) if config.attention == "additive" else 0


def _feed_forward_numbers(config: NetworkConfig) -> int:
    """Numbers of a block's feed-forward."""
    return 2 * config.feed_forward_size * config.hidden_size


def _mixing(
    weights: Callable[[NetworkConfig], float], kept: Callable[[NetworkConfig, float], float]
) -> Sizes:
    """The sizes of blocks with a memory: numbers of a mixer, and those that it keeps of a token for
    the gradients, in strings of so many tokens, each of which takes a few products.
    """
    return Sizes(
        parameters=lambda config: int(
            config.num_blocks * (weights(config) + _feed_forward_numbers(config))
        ),
        products=lambda config, tokens: (
            weights(config) + _feed_forward_numbers(config) + 3 * kept(config, tokens)
        ),
        scores=lambda config, tokens: int(config.num_blocks * kept(config, tokens)),
    )


def _pairs(config: NetworkConfig, tokens: float) -> float:
    """Products of all pairs of tokens, and of what is asked and written."""
    return 3 * config.num_attention_heads * tokens + 8 * _attention_width(config)


def _mamba_weights(config: NetworkConfig) -> float:
    width = config.expand * config.hidden_size
    return width * (3 * config.hidden_size + 3 * config.state_size)


def _attention_width(config: NetworkConfig) -> int:
    return config.num_attention_heads * config.attention_head_size


UNKNOWN = Sizes(
    parameters=lambda _: 0,
    products=lambda config, _: 2.0 * config.hidden_size**2,
)
"""The sizes of an architecture from outside: what it takes nobody knows, and training takes some
time."""

TRANSFORMER = Sizes(_transformer_parameters, _transformer_products, _transformer_scores)

ENCODER_DECODER = Sizes(
    _encoder_decoder_parameters, _encoder_decoder_products, _encoder_decoder_scores
)


def _picture_parameters(config: NetworkConfig) -> int:
    # A left shift is a power of two that is known to be a whole number.
    widths = [config.picture_channels << (x // 2) for x in range(config.picture_blocks)]
    return sum(18 * width**2 for width in widths) + widths[-1] * config.hidden_size


PARAGRAPH_READER = Sizes(
    lambda config: (
        config.num_blocks * _rows(config, 2) * config.hidden_size + _picture_parameters(config)
    ),
    lambda config, tokens: (
        _encoder_decoder_products(config, tokens) + 8.0 * _picture_parameters(config)
    ),
    _encoder_decoder_scores,
)

RECURRENT_ATTENTION = Sizes(
    _recurrent_attention_parameters, _recurrent_attention_products, _recurrent_attention_scores
)

DELTANET = LINEAR_ATTENTION = _mixing(
    lambda config: 4 * _attention_width(config) * config.hidden_size, _pairs
)

GATED_DELTANET = _mixing(lambda config: 5 * _attention_width(config) * config.hidden_size, _pairs)

DELTAPRODUCT = _mixing(
    lambda config: (
        (2 + 2 * config.householder_steps) * _attention_width(config) * config.hidden_size
    ),
    lambda config, tokens: config.householder_steps * _pairs(config, tokens),
)

MAMBA = _mixing(
    _mamba_weights, lambda config, _: 4 * config.expand * config.hidden_size * config.state_size
)

SLSTM = _mixing(
    lambda config: (
        _attention_width(config) * (5 * config.hidden_size + 4 * config.attention_head_size)
    ),
    lambda config, _: 20 * _attention_width(config),
)


Compiled = Literal["transformer", "recurrent"]


def nothing(config: NetworkConfig) -> None:
    """What a part says that has no obstacle, or places without end."""
    del config


@dataclass(frozen=True)
class Entry:
    """An architecture or a position scheme: where its class is, and what it requires of settings.

    One from outside is its class itself, of which these are attributes and class methods.
    """

    path: str
    """Its module and its name in it, with a colon between."""
    reads: frozenset[str] = frozenset()
    """The settings that it reads beside the alphabet's and its own width, such as `num_blocks`."""
    obstacle: Callable[[NetworkConfig], str | None] = nothing
    """Why a network cannot have it, naming the setting; None where it can."""
    table_size: Callable[[NetworkConfig], int | None] = nothing
    """How many places a position scheme has; None where there is no end to them."""
    several_outputs: bool = False
    """Whether an architecture's head may give more than one number for each string."""
    sizes: Sizes = UNKNOWN
    """How large the models of an architecture are."""
    compiled: Compiled | None = None
    """The program by which the compiled engines train an architecture; None where they have none.
    Only ours have one: such a program computes what the class does, on its own."""
    letter: str = ""
    """What stands for a block of it in the `layers` of `hybrid`; nothing where it cannot be one."""
    mixer: str = ""
    """Where the class of such a block's mixer is, like `path`; by default its class's `mixer`."""

    def load(self) -> Any:
        """Its class."""
        return _load(self.path)

    def load_mixer(self) -> Any:
        """The class of the mixer of one of its blocks."""
        return _load(self.mixer) if self.mixer else self.load().mixer


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def entry_of(part: Any) -> Entry:
    """What a class from outside says of itself."""
    path = f"{part.__module__}:{part.__qualname__}"
    table_size = getattr(part, "table_size", nothing)
    several = bool(getattr(part, "several_outputs", False))
    sizes = getattr(part, "sizes", UNKNOWN)
    reads = frozenset(part.reads).union(declared_by(part))
    entry = Entry(path, reads, part.obstacle, table_size, several, sizes)
    return replace(entry, letter=getattr(part, "letter", ""))
