"""How others write models, as tables that are read both ways.

A row says which of their tensors are which of our parameters, whether a matrix is stored the other
way round, and of how many of ours it is made; a setting says which value of `config.json` is which
of a field. A model of theirs is read by its table, and one of ours is written by the same.
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
    """One layer: `{}` stands for the number of its block, `*` for `weight` and `bias`."""

    theirs: str
    ours: Sequence[str]
    """Parameters that stand one after another in theirs."""
    shape: Sequence[str]
    """The sizes of one of ours, by name: outputs and inputs; of a norm one alone."""
    transposed: bool = False
    """Whether theirs has inputs first."""


class Setting(NamedTuple):
    """What tensors do not say; a number above 0 up to 1 where its default is one."""

    field: str = ""
    """Our field; nothing where there is none."""
    values: Mapping[Any, Any] | range = {}
    """Our values of the field, by theirs, the usual one first, or those that both may have; any
    where there are none."""
    default: Any = None
    """Theirs, where nothing says it."""
    aliases: Sequence[str] = ()
    """What else `config.json` may call it."""


@dataclass(frozen=True)
class Format:
    """One way in which models are written."""

    name: str
    """What it is called in a sentence."""
    model_types: Sequence[str] = ()
    """What such a model may be called in `config.json`, as `model_type`."""
    blocks: Sequence[Row] = ()
    """The layers of a block; no other format has a tensor of the first one's name."""
    final: Row | None = None
    """The norm after all blocks."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """What a file that is written calls our other parameters. In one that is read they are found
    by their shapes."""
    prefix: str = ""
    """What stands before the names of blocks in a file that is written."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    sizes: Mapping[str, str] = field(default_factory=dict)
    """Sizes of the rows, by what `config.json` calls them."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Our fields that every such model has."""
    # A negative lookahead for nothing matches nowhere.
    left_out: str = r"(?!)"
    """Matches names of tensors that nothing is computed from."""
    refused: tuple[str, str] = (r"(?!)", "")
    """Matches names of tensors of another function, with what is expected instead."""

    @property
    def sign(self) -> str:
        """The name of the tensor that is in no other format, without what may stand before it."""
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
        # None is what settings hold where nobody decided; see `_check_tying`.
        "tie_word_embeddings": Setting("", _same(True, False, None)),
        "layer_norm_epsilon": Setting("layer_norm_eps", default=1e-5),
        # Tokens by which a language model says yes or no of a string.
        "yes": Setting(),
        "no": Setting(),
        "embedding": Setting(),
        "head": Setting(),
        "position_offset": Setting("", SIZES, 0),
        # What changes the function, and is off as published.
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
"""GPT-2 as Hugging Face writes it. A head of its own is `lm_head`, or `score` of a sequence
classifier; without one it is the embedding."""

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
"""Architectures by their gates, which stand in PyTorch's order in ours, too."""

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
"""The format that `config.json` of a model given by this program names: its names are ours."""

FORMATS: Mapping[str, Format] = {
    "gpt2": GPT2,
    "recurrent": RECURRENT,
    "transformer_encoder": ENCODER,
    OWN: Format("what `seqcls give` wrote"),
}
"""The ways in which weights are written, by name."""
