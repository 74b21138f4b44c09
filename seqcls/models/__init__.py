"""The models, one architecture a file: the readable truth, one string a row."""

from collections.abc import Mapping

from seqcls.config import NetworkConfig
from seqcls.models.entries import Entry, entry_of
from seqcls.models.sizes import TRANSFORMER, recurrent
from seqcls.plugins import Registry


def _no_transformer(config: NetworkConfig) -> str | None:
    if config.readout == "first" and config.attention_mask == "causal":
        return (
            "readout='first' with attention_mask='causal': CLS stands before the string and has "
            "read nothing of it; use readout='last' or 'mean'"
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


def _no_first_readout(config: NetworkConfig) -> str | None:
    if config.readout == "first":
        return (
            f"readout='first' with architecture={config.architecture!r}: CLS stands before the "
            "string and has read nothing of it; use readout='last' or 'mean'"
        )
    return None


_OF_TRANSFORMERS = frozenset(
    {
        "num_blocks",
        "positions",
        "attention_mask",
        "readout",
        "attention_scale",
        "norm_placement",
        "activation",
        "biases",
        "final_norm",
    }
)

OF_ATTENTION = frozenset(
    {
        "num_attention_heads", "attention_head_size", "feed_forward_size", "layer_norm",
        "layer_norm_eps", "no_attend_cls", "attention_init_strategy",
        "feed_forward_init_strategy",
    }
)  # fmt: skip
"""Fields of the first version that mean something to a Transformer alone."""


def _recurrent(name: str, gates: int) -> Entry:
    return Entry(
        f"seqcls.models.recurrent:{name}",
        frozenset({"num_blocks", "readout", "biases"}),
        _no_first_readout,
        several_outputs=True,
        sizes=recurrent(gates),
    )


_OWN: Mapping[str, Entry] = {
    "transformer": Entry(
        "seqcls.models.transformer:Transformer",
        _OF_TRANSFORMERS | OF_ATTENTION,
        _no_transformer,
        several_outputs=True,
        sizes=TRANSFORMER,
    ),
    "rnn": _recurrent("RNN", gates=1),
    "gru": _recurrent("GRU", gates=3),
    "lstm": _recurrent("LSTM", gates=4),
}

MODELS: Registry[Entry] = Registry("seqcls.models", _OWN, entry_of)
