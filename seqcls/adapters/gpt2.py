"""GPT-2 as Hugging Face writes it: `wte`, `wpe`, `h.0.attn.c_attn`, and its `config.json`.

Matrices are stored [in, out]. A head of its own is `lm_head`, or `score` of a sequence classifier;
without one it is the embedding.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from seqcls.adapters.base import (
    TABLE,
    Adapter,
    Loaded,
    Settings,
    Tensors,
    Vocabulary,
    readout_of,
    transformer_fields,
)
from seqcls.config import NetworkConfig
from seqcls.errors import ConfigError
from seqcls.results import Weights

ACTIVATIONS: Mapping[str, str] = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
}
"""Ours by their names there."""

_BUFFERS = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")

_UNUSUAL = ("scale_attn_by_inverse_layer_idx", "add_cross_attention")
"""Settings that change the function, and are off as published."""


def read(tensors: Tensors, settings: Settings, vocabulary: Vocabulary) -> Loaded:
    """Implements `Adapter.read`."""
    prefix = "transformer." if tensors.has("transformer.wte.weight") else ""
    tensors.leave_out(lambda name: bool(_BUFFERS.fullmatch(name.removeprefix(prefix))))
    if switched_on := [x for x in _UNUSUAL if settings.get(x, False)]:
        raise ConfigError(f"{switched_on[0]}=True: expected False, as GPT-2 is published")
    heads = settings.number("n_head")
    scaled = settings.get("scale_attn_weights", True, (True, False))
    activation = settings.get("activation_function", "gelu_new", tuple(ACTIVATIONS))
    table = tensors.take(f"{prefix}wte.weight", None, None)
    hidden = table.shape[1]
    if hidden % heads:
        raise ConfigError(f"n_head={heads}: expected a divisor of the width, {hidden}")
    readout = readout_of(settings, vocabulary, "last_letter")
    tensors.read_as |= {"embedding": f"{prefix}wte.weight", "positions": f"{prefix}wpe.weight"}
    weights = {
        "embedding.weight": vocabulary.embedding(table, readout, f"{prefix}wte.weight"),
        TABLE: tensors.take(f"{prefix}wpe.weight", None, hidden),
    }
    blocks, inner = 0, 4 * hidden
    while blocks == 0 or tensors.has(f"{prefix}h.{blocks}.ln_1.weight"):
        inner = _read_block(tensors, f"{prefix}h.{blocks}.", f"blocks.{blocks}.", hidden, weights)
        if not scaled:
            # The house divides scores by the root of a head's size.
            for name in ("weight", "bias"):
                query = weights[f"blocks.{blocks}.attention.query.{name}"]
                query *= np.sqrt(hidden // heads).astype(query.dtype)
        blocks += 1
    for name in ("weight", "bias"):
        weights[f"final_norm.{name}"] = tensors.take(f"{prefix}ln_f.{name}", hidden)
    head_name = next((x for x in ("lm_head.weight", "score.weight") if tensors.has(x)), None)
    tensors.read_as["head"] = head_name or "the embeddings"
    head = table if head_name is None else tensors.take(head_name, None, hidden)
    _check_tying(settings, head_name, table, head)
    settings.check_sizes(
        n_layer=blocks,
        n_embd=hidden,
        n_inner=inner,
        n_positions=len(weights[TABLE]),
        vocab_size=len(table),
    )
    if not vocabulary.at_places and head_name != "score.weight":
        vocabulary.embedding(head, readout, head_name or "wte.weight")
        head = head[[vocabulary.answer_id(settings, answer) for answer in ("no", "yes")]]
    read_head = vocabulary.head(head, None, readout, head_name or "wte.weight")
    weights["classifier.weight"], weights["classifier.bias"] = read_head
    fields: dict[str, Any] = {
        **transformer_fields(blocks, hidden, heads, inner),
        "layer_norm_eps": settings.epsilon("layer_norm_epsilon"),
        "norm_placement": "pre",
        "final_norm": True,
        "activation": ACTIVATIONS[activation],
        "attention_mask": "causal",
        "positions": "learned",
        "readout": readout,
    }
    return Loaded(fields, weights)


def _check_tying(settings: Settings, name: str | None, table: np.ndarray, head: np.ndarray) -> None:
    """Refuses a head of which tensors and settings say two things.

    Raises:
        ConfigError: it is to be of its own and is missing, or to be the embeddings and differs.
    """
    # Where Hugging Face's settings say nothing, it takes the embeddings.
    default = True if settings.of_folder.get("model_type") == "gpt2" else None
    tied = settings.get("tie_word_embeddings", default, (True, False, None))
    if tied is False and name is None:
        raise ConfigError("tensor 'lm_head.weight' is missing, and tie_word_embeddings=False")
    if tied and name == "lm_head.weight" and not np.array_equal(head, table):
        raise ConfigError(
            "tensor 'lm_head.weight' differs from 'wte.weight', which is the head with "
            "tie_word_embeddings=True: expected False, or the same numbers"
        )


_LAYERS = {
    "attn.c_attn": ("attention.query", "attention.key", "attention.value"),
    "attn.c_proj": ("attention.output",),
    "mlp.c_fc": ("feed_forward.input",),
    "mlp.c_proj": ("feed_forward.output",),
}
_NORMS = {"ln_1": "attention_norm", "ln_2": "feed_forward_norm"}
"""Our names of a block's parts, by theirs."""


def _read_block(
    tensors: Tensors, theirs: str, ours: str, hidden: int, weights: dict[str, np.ndarray]
) -> int:
    """Reads one block; returns the units of its feed-forward."""
    _, inner = tensors.matrix(f"{theirs}mlp.c_fc.weight")
    sizes = {"mlp.c_fc": (hidden, inner), "mlp.c_proj": (inner, hidden)}
    for layer, parts in _LAYERS.items():
        inputs, outputs = sizes.get(layer, (hidden, len(parts) * hidden))
        matrix = tensors.take(f"{theirs}{layer}.weight", inputs, outputs).T
        bias = tensors.take(f"{theirs}{layer}.bias", outputs)
        split = zip(parts, np.split(matrix, len(parts)), np.split(bias, len(parts)), strict=True)
        for part, rows, numbers in split:
            weights[f"{ours}{part}.weight"] = np.ascontiguousarray(rows)
            weights[f"{ours}{part}.bias"] = numbers.copy()
    for norm, part in _NORMS.items():
        for name in ("weight", "bias"):
            weights[f"{ours}{part}.{name}"] = tensors.take(f"{theirs}{norm}.{name}", hidden)
    return inner


_AS_PUBLISHED: Mapping[str, Any] = {
    "architecture": "transformer",
    "positions": "learned",
    "position_range": 0,
    "attention_mask": "causal",
    "attention_scale": "sqrt",
    "no_attend_cls": False,
    "layer_norm": "nn",
    "norm_placement": "pre",
    "final_norm": True,
    "biases": True,
}


def write(network: NetworkConfig, weights: Weights) -> tuple[Weights, dict[str, Any]]:
    """The tensors and the `config.json` of a network of ours that is a GPT-2.

    A language's logit is the `score` of its second class; the first one's is 0.

    Raises:
        ConfigError: it is none; the setting is named.
    """
    said = network.model_dump()
    for name, value in _AS_PUBLISHED.items():
        if said[name] != value:
            raise ConfigError(f"{name}={said[name]!r}: a GPT-2 has {name}={value!r}")
    hidden, heads = network.hidden_size, network.num_attention_heads
    if heads * network.attention_head_size != hidden or not network.feed_forward_size:
        raise ConfigError(
            f"attention_head_size={network.attention_head_size}: a GPT-2 of width {hidden} has "
            f"{heads} heads that make up its width, and a feed-forward"
        )
    if network.readout == "mean":
        raise ConfigError("readout='mean': a GPT-2 is read at the last token")
    if np.any(weights.get("classifier.bias", 0)):
        raise ConfigError("the head has a bias: that of a GPT-2 has none")
    tensors = {"wte.weight": weights["embedding.weight"], "wpe.weight": weights[TABLE]}
    parts = [(f"ln_f.{name}", f"final_norm.{name}") for name in ("weight", "bias")]
    for block in range(network.num_blocks):
        theirs, ours = f"h.{block}.", f"blocks.{block}."
        for layer, joined in _LAYERS.items():
            rows, biases = (
                np.concatenate([weights[f"{ours}{part}.{name}"] for part in joined])
                for name in ("weight", "bias")
            )
            tensors[f"{theirs}{layer}.weight"] = np.ascontiguousarray(rows.T)
            tensors[f"{theirs}{layer}.bias"] = biases
        for norm, part in _NORMS.items():
            parts += [(f"{theirs}{norm}.{x}", f"{ours}{part}.{x}") for x in ("weight", "bias")]
    tensors |= {theirs: weights[ours] for theirs, ours in parts}
    if network.head != "string" and not network.tied_embeddings:
        tensors["lm_head.weight"] = weights["classifier.weight"]
    elif network.head == "string":
        of_second = weights["classifier.weight"]
        tensors["score.weight"] = np.concatenate([np.zeros_like(of_second), of_second])
    theirs_by_ours = {ours: theirs for theirs, ours in reversed(list(ACTIVATIONS.items()))}
    return tensors, {
        "model_type": "gpt2",
        "activation_function": theirs_by_ours[network.activation],
        "layer_norm_epsilon": network.layer_norm_eps,
        "n_embd": hidden,
        "n_head": heads,
        "n_inner": network.feed_forward_size,
        "n_layer": network.num_blocks,
        "n_positions": len(tensors["wpe.weight"]),
        "vocab_size": len(tensors["wte.weight"]),
        "tie_word_embeddings": "lm_head.weight" not in tensors,
        # Hugging Face has no word for it, and reads the last token.
        **({"readout": network.readout} if network.head == "string" else {}),
    }


GPT2 = Adapter(
    "attn.c_attn.weight",
    (
        *("n_head", "activation_function", "layer_norm_epsilon", "scale_attn_weights"),
        *("readout", "yes", "no", "position_offset", "tie_word_embeddings"),
    ),
    read,
    ("gpt2",),
)
