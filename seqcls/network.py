"""Fields of networks, grouped by the parts that read them, and the network as a whole.

An architecture reads the fields of the classes that its class inherits from, as does a position
scheme; every network reads those of `NetworkFields` itself. Importing this loads no PyTorch.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from seqcls.declarations import About, Fields, Name, PositiveSize, Settings, Size

IMPORTED = "imported"
"""The architecture of models trained elsewhere of which only results are known."""

COUPLED = ("coupled_marks", "coupled")
"""The position schemes in which tokens of input and output share positions, as the task defines."""

InitStrategy = Literal["default", "output_fan_out"]
Few = Annotated[int, Field(ge=1, le=64)]


def are_imported(fields: Mapping[str, Any]) -> bool:
    """True if a configuration's fields, or those that a sweep fixes, are of models trained
    elsewhere.
    """
    # The architecture's name marks them, since there is no class.
    return fields.get("architecture") == IMPORTED


class Heads(Fields, alone=True):
    """num_attention_heads: Heads of each attention layer; 0 leaves attention out.
    attention_head_size: Numbers in each head's queries, keys and values.
    """

    num_attention_heads: Annotated[Size, About("Network", 3, "heads n_heads num_heads")] = 2
    attention_head_size: Annotated[PositiveSize, About("Network", 11, "head_size head_dim")] = 1


class FeedForward(Fields, alone=True):
    """feed_forward_size: Units of the feed-forward layer; 0 leaves it out.
    feed_forward_init_strategy: How the feed-forward layer's weights are drawn.
    """

    feed_forward_size: Annotated[Size, About("Network", 12, "d_ff ffn_size mlp_size")] = 2
    feed_forward_init_strategy: Annotated[InitStrategy, About("Network", 25)] = "default"


class Norms(Fields, alone=True):
    """layer_norm: `rms`: root mean square only; `nn`: PyTorch's `LayerNorm`.
    layer_norm_eps: 0 means no norm at all.
    """

    layer_norm: Annotated[Literal["rms", "nn"], About("Network", 13)] = "rms"
    layer_norm_eps: Annotated[float, Field(ge=0, le=1), About("Network", 14)] = 1e-5

    @property
    def has_norms(self) -> bool:
        return self.layer_norm_eps > 0


class Attention(Fields, alone=True):
    """no_attend_cls: Whether tokens cannot attend to `CLS`.
    attention_init_strategy: How attention's weights are drawn.
    """

    no_attend_cls: Annotated[bool, About("Network", 17)] = False
    attention_init_strategy: Annotated[InitStrategy, About("Network", 24)] = "default"


class Depth(Fields):
    """num_blocks: Blocks of a Transformer; layers of a recurrent network."""

    num_blocks: Annotated[Few, About("Network", 4, "n_layers num_layers depth blocks")] = 1


class Readout(Fields):
    """readout: `first`: at `CLS` before the string; `last`: at an end token after it; `mean`: over
    the string's own tokens, with neither; `last_letter`: at the last of these.
    """

    readout: Annotated[Literal["first", "last", "mean", "last_letter"], About("Network", 9)] = (
        "first"
    )


class Biases(Fields):
    """biases: Whether linear layers and cells have biases."""

    biases: Annotated[bool, About("Network", 21)] = False


class RecurrentFields(Biases, Depth, Readout):
    """Fields of `rnn`, `gru` and `lstm`."""


class BlockFields(Biases, FeedForward, Norms):
    """norm_placement: Norms before or after attention and feed-forward.
    activation: `gelu_tanh`: the approximation by tanh (Hendrycks & Gimpel 2016).
    final_norm: Whether the last block's output is normalized once more.
    """

    norm_placement: Annotated[Literal["pre", "post"], About("Network", 15)] = "pre"
    activation: Annotated[Literal["gelu", "relu", "gelu_tanh"], About("Network", 20)] = "gelu"
    final_norm: Annotated[bool, About("Network", 16)] = False


class MixingFields(BlockFields, Depth, Readout):
    """Fields of every network of blocks with a mixer."""


class Positioned(Heads):
    """positions: How a Transformer knows a token's place.
    attention_scale: `log_length`: scores times ln N as well, N the tokens that the model reads;
        with a causal mask those up to the one that attends. `learned_log_length`: times
        s ln N + b, with an s and a b for each head, which are learned (Nakanishi 2025).
    """

    positions: Annotated[Name, About("Network", 6, "position positional_encoding pos_enc")] = "none"
    attention_scale: Annotated[
        Literal["sqrt", "log_length", "learned_log_length"], About("Network", 18)
    ] = "sqrt"


class TransformerFields(MixingFields, Positioned, Attention):
    """attention_mask: `causal`: a token attends only to itself and those before it."""

    attention_mask: Annotated[Literal["full", "causal"], About("Network", 10)] = "full"


class EncoderDecoderFields(BlockFields, Depth, Positioned, Attention):
    """embedding_scale: `sqrt`: embeddings times the root of the hidden size (Vaswani et al.
    2017).
    """

    embedding_scale: Annotated[Literal["none", "sqrt"], About("Network", 27)] = "none"


class Pictures(Fields):
    """picture_blocks: Residual blocks that read a picture; every two halve its sides and double
        the channels.
    picture_channels: Channels of the first of these blocks.
    """

    picture_blocks: Annotated[Few, About("Network", 33)] = 4
    picture_channels: Annotated[int, Field(ge=1, le=512), About("Network", 34)] = 16


class PictureReaderFields(EncoderDecoderFields, Pictures):
    """Fields of `paragraph_reader`."""


class RecurrentAttentionFields(Biases, Depth, Pictures):
    """attention: What `recurrent_attention` has: whether the decoder attends to the encoder's
    states (Bahdanau et al. 2015), or only starts from the last (Sutskever et al. 2014).
    """

    attention: Annotated[Literal["additive", "none"], About("Network", 19)] = "additive"


class MixingHeads(MixingFields, Heads):
    """Fields of `slstm` and `linear_attention`."""


class Eigenvalues(Fields):
    """eigenvalue_range: What a memory keeps from one token to the next, in `deltanet`,
    `gated_deltanet`, `deltaproduct` and `mamba`: factors from 0 to 1, or from -1 to 1
    (Grazzi et al. 2024).
    """

    eigenvalue_range: Annotated[Literal["positive", "signed"], About("Network", 28)] = "positive"


class DeltaNetFields(MixingHeads, Eigenvalues):
    """short_convolution: Whether `deltanet`, `gated_deltanet` and `deltaproduct` mix queries, keys
    and values with the three tokens before.
    """

    short_convolution: Annotated[bool, About("Network", 29)] = True


class DeltaProductFields(DeltaNetFields):
    """householder_steps: How often `deltaproduct` writes to its memory with each token (Siems et
    al. 2025).
    """

    householder_steps: Annotated[int, Field(ge=1, le=16), About("Network", 30)] = 2


class MambaFields(MixingFields, Eigenvalues):
    """expand: How many times as wide as the hidden state the channels of `mamba` are.
    state_size: Numbers that each channel of `mamba` keeps.
    """

    expand: Annotated[Few, About("Network", 31)] = 2
    state_size: Annotated[PositiveSize, About("Network", 32)] = 16


class HybridFields(MixingFields):
    """layers: The blocks of `hybrid`, the first first, a letter for the mixer of each: `a`
    attention, `d` DeltaNet, `g` Gated DeltaNet, `p` DeltaProduct, `m` Mamba, `l` linear
    attention, `s` sLSTM, `r` LSTM.
    """

    layers: Annotated[str, Field(max_length=64), About("Network", 5)] = ""


class DrawnPlaces(Fields):
    """position_range: Above 0, places are drawn from so many, anew for every batch (Ruoss et al.
    2023).
    """

    position_range: Annotated[int, Field(ge=0, le=1_000_000), About("Network", 7)] = 0


class LearnedPlaces(DrawnPlaces):
    """position_draw: How `learned` places are drawn in training: `shifted` moves each string's by
    one offset, drawn so that it still fits a table for the longest test string.
    """

    position_draw: Annotated[Literal["sorted", "shifted"], About("Network", 8)] = "sorted"


class Head(Fields):
    """tied_embeddings: Whether the head's weights are the embeddings: of transductions alone."""

    tied_embeddings: Annotated[bool, About("Network", 26)] = False


def _say_dropout(run: Any) -> str:
    return f"dropout {run.dropout_rate:g}" if run.dropout_rate else ""


class NetworkFields(
    LearnedPlaces,
    Head,
    PictureReaderFields,
    RecurrentAttentionFields,
    HybridFields,
    DeltaProductFields,
    MambaFields,
    TransformerFields,
):
    """All fields of networks; `seqcls.problem` checks that the named parts exist.

    architecture: The network.
    hidden_size: Numbers in the state of each token.
    dropout_rate: The share of states that training sets to 0.
    embeddings_init_strategy: `gpt2`: of all weights, as Radford et al. (2019) draw them.
    precision: The precision of all numbers, in training and in testing.
    """

    architecture: Annotated[Name, About("Network", 1, "model arch network")] = "transformer"
    hidden_size: Annotated[PositiveSize, About("Network", 2, "hidden dim d_model hidden_dim")] = 2
    dropout_rate: Annotated[
        float,
        Field(ge=0, lt=1),
        About("Network", 22, "dropout p_dropout", _say_dropout),
    ] = 0.0
    embeddings_init_strategy: Annotated[
        Literal["default", "linear_like", "gpt2"], About("Network", 23)
    ] = "default"
    precision: Annotated[Literal["float32", "float64"], About("Network", 35, "dtype")] = "float32"

    @property
    def is_imported(self) -> bool:
        """True if its models were trained elsewhere and only predictions are known."""
        return are_imported({"architecture": self.architecture})


class NetworkConfig(Settings, NetworkFields):
    """The network: everything that determines its parameters' shapes and its function.

    Made from a run's configuration by `seqcls.problem.resolve`, which knows its alphabet.
    """

    # With `CLS` and `PAD` all ids fit a byte.
    num_letters: Annotated[int, Field(ge=1, le=254)] = 3
    """Number of tokens of the alphabet."""
    num_outputs: Annotated[int, Field(ge=1, le=4096)] = 1
    """Number of outputs of the head for a string or token."""
    trained_length: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Number of tokens of the longest training string."""
    tested_length: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Number of tokens of the longest test string, with `position_draw` `shifted`."""
    head: Literal["string", "output", "all", "places"] = "string"
    """Predictions of the head: one answer a string (`string`), every token of an output (`output`),
    in training those of the input too (`all`), or an answer at every place, `CLS` included."""
    coupling: str = ""
    """With positions `coupled` or `coupled_marks` the task and its fields as JSON, which determine
    the tokens that share positions, and whether marks are moved too."""
    picture: str = ""
    """The task and its fields as JSON, if models read pictures that it draws."""
    place_seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Seed of the positions of tested strings, with `position_range`."""

    # Mypy does not know the fields of `NetworkFields`, which is no model of Pydantic's.
    if TYPE_CHECKING:

        def __init__(self, **fields: Any) -> None: ...

    @property
    def vocabulary_size(self) -> int:
        # `CLS` and `PAD` are added; `SEP` and `END`, if there are any, count as letters.
        return self.num_letters + 2

    @property
    def writes(self) -> bool:
        """True if it answers with an output, token by token."""
        return self.head in ("output", "all")
