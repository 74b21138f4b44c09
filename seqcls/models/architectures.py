"""Descriptions of architectures, known before one is loaded: settings read, limits and sizes.

Reading them loads no PyTorch. A class of models (`seqcls.models.base.Classifier`) is an
`Architecture` itself: one from outside describes itself in its class, ours in the classes here.
"""

from typing import Any, ClassVar

from seqcls.config import NetworkConfig
from seqcls.network import (
    EncoderDecoderFields,
    PictureReaderFields,
    RecurrentAttentionFields,
    RecurrentFields,
    TransformerFields,
)
from seqcls.plugins import Loadable, load_path

MOST_LETTERS = 64
"""The largest alphabet that compiled engines read: each letter costs as much as a number of the
hidden state. Beside the head of a Transformer that writes outputs this is little."""


class Architecture(Loadable):
    """Description of one architecture."""

    reads: ClassVar[frozenset[str]] = frozenset()
    """The settings that it reads beside those of every network (`hidden_size`, `dropout_rate`,
    `embeddings_init_strategy`, `precision`), such as `num_blocks` or `num_attention_heads`."""

    several_outputs: ClassVar[bool] = False
    """True if its head gives `num_outputs` numbers for each string; languages need one."""

    compiled_width: ClassVar[tuple[int, int] | None] = None
    """The widest hidden state at which compiled engines are faster than PyTorch: for one answer a
    string, and for predictions at tokens, as `benchmarks.plain` and `benchmarks.outputs` measure
    them. None for an architecture that is not compiled, as every one from outside."""

    letter: ClassVar[str] = ""
    """The letter of its block in the `layers` of `hybrid`; empty if it cannot be one."""

    mixer_path: ClassVar[str] = ""
    """Import path of such a block's mixer, like `path`; by default the class's `mixer`."""

    @classmethod
    def obstacle(cls, config: NetworkConfig) -> str | None:
        """The reason why such a network is impossible, naming the setting; None if it is valid."""
        return None

    @classmethod
    def not_compiled(cls, config: NetworkConfig) -> str | None:
        """The reason why such a network is not compiled; None if it is."""
        # One from outside has no program, whatever it derives from.
        if cls.compiled_width is None or not cls.path:
            return f"architecture={config.architecture!r} is not compiled"
        at_tokens = config.head != "string"
        if config.hidden_size > (widest := cls.compiled_width[at_tokens]):
            return f"hidden_size={config.hidden_size}: up to {widest} it is faster than PyTorch"
        return None if at_tokens else many_letters(config)

    # Sizes, for estimates of memory and time. Those of one from outside are unknown, so the
    # defaults are a guess.

    @classmethod
    def count_parameters(cls, config: NetworkConfig) -> int:
        """Number of parameters of all blocks, without the embedding and the classifier."""
        return 0

    @classmethod
    def count_products(cls, config: NetworkConfig, tokens: float) -> float:
        """Multiply-adds for a token in one block, for strings of so many tokens."""
        return 2.0 * config.hidden_size**2

    @classmethod
    def load_mixer(cls) -> Any:
        """Imports the class of the mixer of one of its blocks."""
        return load_path(cls.mixer_path) if cls.mixer_path else cls.load().mixer


# Shared by several architectures.


def many_letters(config: NetworkConfig) -> str | None:
    """The reason why compiled engines do not read so large an alphabet; None if they do."""
    if config.num_letters <= MOST_LETTERS:
        return None
    return f"an alphabet of {config.num_letters} tokens: up to {MOST_LETTERS} are compiled"


def no_blocks(config: NetworkConfig) -> str | None:
    """The reason why a network of blocks is impossible; None if it is valid."""
    if config.writes and config.position_range:
        return (
            f"position_range={config.position_range}: places are drawn for strings of a known "
            "length, and that of an output that is being written is not; leave it out"
        )
    if config.final_norm and not config.has_norms:
        return "final_norm=True with layer_norm_eps=0, which means no norm at all; leave one out"
    if config.embeddings_init_strategy == "gpt2":
        for name in ("attention_init_strategy", "feed_forward_init_strategy"):
            if (value := getattr(config, name)) != "default":
                return (
                    f"{name}={value!r} with embeddings_init_strategy='gpt2', which draws all "
                    "weights; leave one out"
                )
    return None


def _no_streams(config: NetworkConfig) -> str | None:
    """The reason why a task does not fit an encoder and a decoder; None if it does."""
    if not config.writes:
        asks = "one answer of a string" if config.head == "string" else "answers at every place"
        return (
            f"architecture={config.architecture!r}: it writes outputs, and this task asks for "
            f"{asks}; use 'transformer' or 'lstm'"
        )
    if config.head == "all":
        return (
            f"loss_on='all' with architecture={config.architecture!r}: it reads inputs whole and "
            "predicts none of their tokens; use 'output'"
        )
    return None


def no_head(config: NetworkConfig, *, blind: str | None) -> str | None:
    """The reason why a readout is impossible; None if it is valid.

    Args:
        blind: the setting by which `CLS` before a string reads nothing of it; None if it reads it.
    """
    if config.head != "string":
        if config.readout == "first":
            return None
        answer = "an output" if config.writes else "the answer"
        return f"readout={config.readout!r}: {answer} is read at every place; leave it out"
    if config.readout == "first" and blind is not None:
        return (
            f"readout='first' with {blind}: CLS comes first, so it hasn't seen the string yet; "
            "use readout='last' or 'mean'"
        )
    return None


def _rows(config: NetworkConfig, attentions: int) -> int:
    """Number of rows, each of the hidden size, in a block with so many attentions."""
    rows = attentions * (4 * attention_width(config) + _norm(config))
    return rows + 2 * config.feed_forward_size + _norm(config)


def _norm(config: NetworkConfig) -> int:
    # `nn.LayerNorm` has a weight and a bias, an RMS norm a weight alone.
    return (2 if config.layer_norm == "nn" else 1) if config.has_norms else 0


def attention_width(config: NetworkConfig) -> int:
    return config.num_attention_heads * config.attention_head_size


def _picture_parameters(config: NetworkConfig) -> int:
    # A left shift is a power of two that is known to be a whole number.
    widths = [config.picture_channels << (x // 2) for x in range(config.picture_blocks)]
    # Each block has two 3 x 3 convolutions, and a 1 x 1 one makes the hidden size.
    return sum(18 * width**2 for width in widths) + widths[-1] * config.hidden_size


# Transformers.


class Transformer(Architecture):
    """One stream of tokens that attend to each other."""

    path = "seqcls.models.transformer:Transformer"
    reads = TransformerFields.reads
    several_outputs = True
    compiled_width = (128, 128)
    letter = "a"
    mixer_path = "seqcls.models.attention:AttentionMixer"

    @classmethod
    def obstacle(cls, config: NetworkConfig) -> str | None:
        causal = "attention_mask='causal'" if config.attention_mask == "causal" else None
        if (reason := no_head(config, blind=causal)) is not None:
            return reason
        if config.head != "string" and config.attention_mask != "causal":
            left_to_right = "an output is written" if config.writes else "every place is answered"
            return (
                f"attention_mask={config.attention_mask!r}: {left_to_right} from left to right; "
                "use 'causal'"
            )
        return no_blocks(config)

    @classmethod
    def count_parameters(cls, config: NetworkConfig) -> int:
        rows = config.num_blocks * _rows(config, 1) + config.final_norm * _norm(config)
        return rows * config.hidden_size

    @classmethod
    def count_products(cls, config: NetworkConfig, tokens: float) -> float:
        mixed, hidden = attention_width(config), config.hidden_size
        # Four projections, the feed-forward's two layers, and scores and values of all pairs.
        return 4 * mixed * hidden + 2 * config.feed_forward_size * hidden + 2 * mixed * tokens


class EncoderDecoder(Architecture):
    """An encoder of inputs, and a decoder of outputs that attends to it."""

    path = "seqcls.models.encoder_decoder:EncoderDecoder"
    reads = EncoderDecoderFields.reads
    several_outputs = True
    compiled_width: ClassVar[tuple[int, int] | None] = (128, 128)

    @classmethod
    def obstacle(cls, config: NetworkConfig) -> str | None:
        return _no_streams(config) or no_blocks(config)

    @classmethod
    def count_parameters(cls, config: NetworkConfig) -> int:
        rows = config.num_blocks * (_rows(config, 1) + _rows(config, 2))
        return (rows + 2 * config.final_norm * _norm(config)) * config.hidden_size

    @classmethod
    def count_products(cls, config: NetworkConfig, tokens: float) -> float:
        # Half of the tokens pass the encoder, half the decoder; keys and values of the encoder's
        # are computed once for each of the decoder's blocks.
        mixed, hidden = attention_width(config), config.hidden_size
        return 6 * mixed * hidden + 2 * config.feed_forward_size * hidden + 1.5 * mixed * tokens


class ParagraphReader(EncoderDecoder):
    """An encoder of pictures, and a decoder of outputs that attends to it."""

    path = "seqcls.models.encoder_decoder:ParagraphReader"
    reads = PictureReaderFields.reads
    compiled_width = None

    @classmethod
    def obstacle(cls, config: NetworkConfig) -> str | None:
        if not config.picture:
            return (
                "architecture='paragraph_reader': it reads pictures, and this task draws none; use "
                "task='paragraph', or architecture='encoder_decoder'"
            )
        if config.hidden_size % 2:
            return (
                f"hidden_size={config.hidden_size} with architecture='paragraph_reader': half of "
                "it says the row and half the column; use an even number"
            )
        if config.attention_scale != "sqrt":
            return (
                f"attention_scale={config.attention_scale!r} with architecture='paragraph_reader': "
                "pictures have one size; use 'sqrt'"
            )
        return super().obstacle(config)

    @classmethod
    def count_parameters(cls, config: NetworkConfig) -> int:
        decoder = config.num_blocks * _rows(config, 2) * config.hidden_size
        return decoder + _picture_parameters(config)

    @classmethod
    def count_products(cls, config: NetworkConfig, tokens: float) -> float:
        return super().count_products(config, tokens) + 8.0 * _picture_parameters(config)


# Recurrent networks.


class Recurrent(Architecture):
    """Layers of cells, by default of plain ones."""

    path = "seqcls.models.recurrent:Recurrent"
    reads = RecurrentFields.reads
    several_outputs = True
    compiled_width: ClassVar[tuple[int, int] | None] = (512, 256)
    gates: ClassVar[int] = 1

    @classmethod
    def obstacle(cls, config: NetworkConfig) -> str | None:
        return no_head(config, blind=f"architecture={config.architecture!r}")

    @classmethod
    def not_compiled(cls, config: NetworkConfig) -> str | None:
        return super().not_compiled(config) or many_letters(config)

    @classmethod
    def count_parameters(cls, config: NetworkConfig) -> int:
        return 2 * cls.gates * config.num_blocks * config.hidden_size**2

    @classmethod
    def count_products(cls, config: NetworkConfig, tokens: float) -> float:
        # Every gate meets the input and the state.
        return 2.0 * cls.gates * config.hidden_size**2


class GRU(Recurrent):
    """A gated recurrent unit."""

    gates = 3


class LSTM(Recurrent):
    """A long short-term memory: a cell beside the state."""

    gates = 4
    letter = "r"
    mixer_path = "seqcls.models.lstm_mixer:LSTMMixer"


class RecurrentAttention(Architecture):
    """A recurrent encoder and decoder."""

    path = "seqcls.models.recurrent_attention:RecurrentAttention"
    reads = RecurrentAttentionFields.reads
    several_outputs = True

    @classmethod
    def obstacle(cls, config: NetworkConfig) -> str | None:
        if config.picture and config.hidden_size % 2:
            return (
                f"hidden_size={config.hidden_size} with pictures: half of it says the row and half "
                "the column; use an even number"
            )
        return _no_streams(config)

    @classmethod
    def count_parameters(cls, config: NetworkConfig) -> int:
        # Eight squares for each LSTM cell's four gates, in the encoder and in the decoder.
        hidden, cells = config.hidden_size, 16 * config.num_blocks * config.hidden_size**2
        if config.attention == "none":
            return cells
        # The first layer's weights of the context, and the three layers that score.
        return cells + 4 * hidden**2 + 2 * hidden**2 + hidden

    @classmethod
    def count_products(cls, config: NetworkConfig, tokens: float) -> float:
        cells = 8.0 * config.hidden_size**2
        if config.attention == "none":
            return cells
        # Half of the tokens attend to the other half.
        attends = 3 * config.hidden_size**2 + 0.5 * config.hidden_size * tokens
        return cells + attends / config.num_blocks
