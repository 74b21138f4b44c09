"""Formats of models, as tables that serve both reading and writing.

A row maps one of their tensors to one or more of our parameters and marks a transposed matrix; a
setting maps values of `config.json` to values of a field. A foreign model is read by its table, and
one of ours is written by the same table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

READOUTS = ("first", "last", "mean", "last_letter")

# The largest size that a field of ours may have (`declarations.PositiveSize`).
SIZES = range(1, 4097)

TABLE = "positions.table.weight"
"""Our parameter of learned positions."""


class Row(NamedTuple):
    """One layer; `{}` is replaced by the number of its block, `*` by `weight` and `bias`."""

    theirs: str
    ours: Sequence[str]
    """Parameters that are concatenated in theirs."""
    shape: Sequence[str]
    """Names of the sizes of one of ours: outputs and inputs, or one size of a norm."""
    transposed: bool = False
    """True if theirs has inputs first."""


class Setting(NamedTuple):
    """A setting that tensors do not determine; if its default is a float, a number in (0, 1]."""

    field: str = ""
    """Our field; empty if there is none."""
    values: Mapping[Any, Any] | range = {}
    """Our values by theirs, the usual one first, or the common range; empty for any value."""
    default: Any = None
    """Their value if it is not set."""
    aliases: Sequence[str] = ()
    """Other names of it in `config.json`."""


@dataclass(frozen=True)
class Format:
    """One format of models."""

    name: str
    """Its name in a sentence."""
    model_types: Sequence[str] = ()
    """Values of `model_type` in the `config.json` of such a model."""
    blocks: Sequence[Row] = ()
    """The layers of a block; the first one's name is in no other format."""
    final: Row | None = None
    """The norm after all blocks."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """Names of our other parameters in a written file; when read they are found by shape."""
    prefix: str = ""
    """Prefix of the names of blocks in a written file."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    sizes: Mapping[str, str] = field(default_factory=dict)
    """Names of the rows' sizes, by their names in `config.json`."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Values of our fields that every such model has."""
    # A negative lookahead for nothing matches nowhere.
    left_out: str = r"(?!)"
    """Pattern of tensors that no output depends on."""
    refused: tuple[str, str] = (r"(?!)", "")
    """Pattern of tensors of another function, with the expectation."""

    @property
    def sign(self) -> str:
        """The name of the tensor that is in no other format, without its prefix."""
        return self.blocks[0].theirs.format(0).replace("*", "weight") if self.blocks else ""


def _same(*values: Any) -> dict[Any, Any]:
    return {value: value for value in values}


_TRANSFORMER: Mapping[str, Any] = {"architecture": "transformer", "layer_norm": "nn"}

_READOUT = Setting("readout", _same(*READOUTS), "last_letter")

_ACTIVATION_ALIASES = ("hidden_act", "activation_function")

_ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
}

_QKV = ("query", "key", "value")

GPT2 = Format(
    "GPT-2",
    model_types=("gpt2",),
    blocks=(
        # Layers of Hugging Face's GPT-2 are `Conv1D`, which stores inputs first.
        Row("h.{}.attn.c_attn.*", [f"blocks.{{}}.attention.{x}.*" for x in _QKV],
            ("hidden", "hidden"), transposed=True),
        Row("h.{}.attn.c_proj.*", ["blocks.{}.attention.output.*"], ("hidden", "hidden"), True),
        Row("h.{}.ln_1.*", ["blocks.{}.attention_norm.*"], ("hidden",)),
        Row("h.{}.mlp.c_fc.*", ["blocks.{}.feed_forward.input.*"], ("inner", "hidden"), True),
        Row("h.{}.mlp.c_proj.*", ["blocks.{}.feed_forward.output.*"], ("hidden", "inner"), True),
        Row("h.{}.ln_2.*", ["blocks.{}.feed_forward_norm.*"], ("hidden",)),
    ),
    final=Row("ln_f.*", ["final_norm.*"], ("hidden",)),
    tables={
        "embedding.weight": "wte.weight", TABLE: "wpe.weight", "classifier.weight": "lm_head.weight"
    },
    settings={
        "n_head": Setting("num_attention_heads", SIZES),
        "scale_attn_weights": Setting("", _same(True, False), True),
        "activation_function": Setting("activation", _ACTIVATIONS, "gelu_new"),
        "readout": _READOUT,
        # Settings that leave it open hold None; see `_check_tying`.
        "tie_word_embeddings": Setting("", _same(True, False, None)),
        "layer_norm_epsilon": Setting("layer_norm_eps", default=1e-5),
        # Tokens by which a language model answers yes or no to a string.
        "yes": Setting(),
        "no": Setting(),
        "embedding": Setting(),
        "head": Setting(),
        "position_offset": Setting("", SIZES, 0),
        # Settings that change the function and are off as published.
        "scale_attn_by_inverse_layer_idx": Setting("", _same(False), False),
        "add_cross_attention": Setting("", _same(False), False),
    },
    sizes={
        "n_layer": "blocks", "n_embd": "hidden", "n_inner": "inner", "n_positions": "places",
        "vocab_size": "tokens",
    },
    fields={
        **_TRANSFORMER, "norm_placement": "pre", "final_norm": True, "attention_mask": "causal",
        "positions": "learned",
    },
    # Older files hold the causal mask of every layer.
    left_out=r"(.*\.)?h\.\d+\.attn\.(bias|masked_bias)",
)  # fmt: skip
"""GPT-2 as Hugging Face writes it. A separate head is `lm_head`, or `score` of a sequence
classifier; otherwise the head is the embedding."""

ENCODER = Format(
    "torch.nn.TransformerEncoder",
    model_types=("encoder", "transformer", "transformer_encoder"),
    blocks=(
        Row("layers.{}.self_attn.in_proj_*", [f"blocks.{{}}.attention.{x}.*" for x in _QKV],
            ("hidden", "hidden")),
        Row("layers.{}.self_attn.out_proj.*", ["blocks.{}.attention.output.*"],
            ("hidden", "hidden")),
        Row("layers.{}.linear1.*", ["blocks.{}.feed_forward.input.*"], ("inner", "hidden")),
        Row("layers.{}.linear2.*", ["blocks.{}.feed_forward.output.*"], ("hidden", "inner")),
        Row("layers.{}.norm1.*", ["blocks.{}.attention_norm.*"], ("hidden",)),
        Row("layers.{}.norm2.*", ["blocks.{}.feed_forward_norm.*"], ("hidden",)),
    ),
    final=Row("norm.*", ["final_norm.*"], ("hidden",)),
    tables={
        "embedding.weight": "embedding.weight", TABLE: "positions.weight",
        "classifier.weight": "head.weight", "classifier.bias": "head.bias",
    },
    prefix="encoder.",
    settings={
        "heads": Setting("num_attention_heads", SIZES, None, ("nhead", "num_heads", "n_head")),
        "readout": _READOUT._replace(default="first"),
        "embedding_scale": Setting("", _same("none", "sqrt"), "none"),
        "positions": Setting("", _same("table", "sinusoidal"), "table"),
        "mask": Setting("attention_mask", _same("full", "causal"), "full"),
        "layer_norm_eps": Setting("layer_norm_eps", default=1e-5),
        "norm_first": Setting("norm_placement", {True: "pre", False: "post"}, False),
        "activation": Setting("activation", _same("relu", "gelu"), "relu", _ACTIVATION_ALIASES),
        "position_offset": Setting("", SIZES, 0),
        "embedding": Setting(),
        "head": Setting(),
    },
    sizes={"num_layers": "blocks", "d_model": "hidden", "dim_feedforward": "inner"},
    fields=_TRANSFORMER,
)  # fmt: skip
"""`torch.nn.TransformerEncoder`, with an embedding, positions and a linear head. PyTorch leaves out
the biases of norms, too, where layers have none."""

CELLS = {1: "rnn", 3: "gru", 4: "lstm"}
"""Architectures by number of gates; the gates have PyTorch's order in ours too."""

RECURRENT = Format(
    "torch.nn.RNN, GRU or LSTM",
    model_types=tuple(CELLS.values()),
    blocks=(
        Row("*_ih_l{}", ["layers.{}.input_*"], ("gates", "inputs")),
        Row("*_hh_l{}", ["layers.{}.state_*"], ("gates", "hidden")),
    ),
    tables={
        "embedding.weight": "embedding.weight", "classifier.weight": "head.weight",
        "classifier.bias": "head.bias",
    },
    prefix="rnn.",
    settings={
        # Our `rnn` has tanh; with ReLU it would be another function.
        "nonlinearity": Setting("", _same("tanh"), "tanh", ("activation", *_ACTIVATION_ALIASES)),
        "readout": _READOUT,
        "embedding": Setting(),
        "head": Setting(),
    },
    sizes={"num_layers": "blocks", "hidden_size": "hidden", "input_size": "inputs"},
    refused=(
        r".*_reverse|(.*\.)?weight_hr_l\d+",
        "expected a network that reads forward, without projection",
    ),
)  # fmt: skip
"""PyTorch's recurrent networks, an embedding (without one tokens are one-hot) and a linear head."""

OWN = "seqcls"
"""The format in the `config.json` of a model that this program wrote, with our names."""

FORMATS: Mapping[str, Format] = {
    "gpt2": GPT2,
    "recurrent": RECURRENT,
    "transformer_encoder": ENCODER,
    OWN: Format("what `seqcls give` wrote"),
}
"""The formats of weights, by name."""
