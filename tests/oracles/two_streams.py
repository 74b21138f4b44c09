"""Encoder-decoders by `torch.nn.Transformer`, and by PyTorch's cells and the equations."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from seqcls.config import NetworkConfig
from seqcls.models.encoder_decoder import EncoderDecoder
from seqcls.strings.tokenizer import CLS, PAD

LETTERS = 5
SEP = LETTERS + 2
GENERAL: dict[str, Any] = {
    "num_letters": LETTERS + 2,
    "num_outputs": LETTERS + 4,
    "head": "output",
    "trained_length": 20,
    "precision": "float64",
}
"""Settings of a network that writes tokens of five letters."""


def example_ids() -> Tensor:
    """Strings `CLS x SEP y`, of several lengths each, padded."""
    rows = [
        [CLS, 2, 3, 4, 5, 6, SEP, 3],
        [CLS, 4, SEP, 2, 2, 6, 5],
        [CLS, SEP],
        [CLS, 3, 3, 2, SEP, 6, 4],
    ]
    width = max(map(len, rows))
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])


class PyTorchs(nn.Module):
    """The same network of `torch.nn.Transformer`, with a model's weights."""

    def __init__(self, model: EncoderDecoder, config: NetworkConfig) -> None:
        super().__init__()
        self.layers = nn.Transformer(
            config.hidden_size,
            config.num_attention_heads,
            config.num_blocks,
            config.num_blocks,
            config.feed_forward_size,
            dropout=0.0,
            activation=config.activation,
            layer_norm_eps=config.layer_norm_eps,
            batch_first=True,
            norm_first=config.norm_placement == "pre",
            dtype=torch.float64,
        )
        if not config.final_norm:
            self.layers.encoder.norm = self.layers.decoder.norm = None
        self.embedding = nn.Embedding(config.vocabulary_size, config.hidden_size).double()
        self.classifier = nn.Linear(config.hidden_size, config.num_outputs).double()
        self.load_state_dict(self.values(dict(model.named_parameters())))

    @staticmethod
    def values(named: dict[str, Tensor]) -> dict[str, Tensor]:
        """A model's parameters, or their gradients, by the names of PyTorch's layers."""
        found = {}
        for name, value in named.items():
            layer = "layers." + name.replace("blocks", "layers")
            is_decoder = name.startswith("decoder")
            for ours, theirs in {
                "cross_attention_norm": "norm2",
                "feed_forward_norm": "norm3" if is_decoder else "norm2",
                "final_norm": "norm",
                "cross_attention.output": "multihead_attn.out_proj",
                "attention.output": "self_attn.out_proj",
                "feed_forward.input": "linear1",
                "feed_forward.output": "linear2",
                "attention_norm": "norm1",
            }.items():
                layer = layer.replace(f".{ours}.", f".{theirs}.")
            if name.startswith(("embedding", "classifier")):
                found[name] = value
            elif ".key." not in name and ".value." not in name:
                found[layer.replace(".query.", ".in_proj_")] = value
            if ".query." in name:
                parts = [named[name.replace("query", part)] for part in ("query", "key", "value")]
                into = layer.replace(".query.", ".in_proj_")
                into = into.replace("cross_attention", "multihead_attn")
                found.pop(layer.replace(".query.", ".in_proj_"))
                found[into.replace(".attention.", ".self_attn.")] = torch.cat(parts)
        return found

    def forward(self, ids: Tensor) -> list[Tensor]:
        """The outputs from `SEP` on, string by string."""
        rows = [[token for token in row if token != PAD] for row in ids.tolist()]
        inputs = [torch.tensor(row[: row.index(SEP)]) for row in rows]
        outputs = [torch.tensor(row[row.index(SEP) :]) for row in rows]
        read = nn.utils.rnn.pad_sequence(inputs, batch_first=True, padding_value=PAD)
        written = nn.utils.rnn.pad_sequence(outputs, batch_first=True, padding_value=PAD)
        later = torch.ones(written.shape[1], written.shape[1]).triu(1).bool()
        states = self.layers(
            self.embedding(read),
            self.embedding(written),
            tgt_mask=later,
            src_key_padding_mask=read == PAD,
            tgt_key_padding_mask=written == PAD,
            memory_key_padding_mask=read == PAD,
        )
        logits = self.classifier(states)
        return [row[: len(output)] for row, output in zip(logits, outputs, strict=True)]


StateAndCell = tuple[Tensor, Tensor]
"""State and cell of a layer for one string."""
Change = Callable[[str, int, int, StateAndCell], StateAndCell]
"""Replaces them, after the token at a position, in a layer of a side."""


HIDDEN, LAYERS = 6, 2


def unchanged(side: str, layer: int, position: int, cached: StateAndCell) -> StateAndCell:
    del side, layer, position
    return cached


def transcribed(
    weights: Mapping[str, Tensor],
    ids: list[int],
    attends: bool,
    change: Change = unchanged,
) -> Tensor:
    """The outputs of one string from `SEP` on, by `torch.nn.LSTMCell` and the paper's equations."""

    def cell(name: str) -> nn.LSTMCell:
        inputs = weights[f"{name}.input_weight"].shape[1]
        made = nn.LSTMCell(inputs, HIDDEN, dtype=torch.float64)
        for theirs, ours in {
            "weight_ih": "input_weight",
            "weight_hh": "state_weight",
            "bias_ih": "input_bias",
            "bias_hh": "state_bias",
        }.items():
            delattr(made, theirs)
            setattr(made, theirs, weights[f"{name}.{ours}"])
        return made

    encoder = [cell(f"encoder.{layer}") for layer in range(LAYERS)]
    decoder = [cell(f"decoder.{layer}") for layer in range(LAYERS)]
    embedding = weights["embedding.weight"]
    cached = [(torch.zeros(1, HIDDEN).double(), torch.zeros(1, HIDDEN).double())] * LAYERS
    end = ids.index(SEP)
    annotations = []
    for position, token in enumerate(ids[:end]):
        x = embedding[[token]]
        for layer in range(LAYERS):
            cached[layer] = change("encoder", layer, position, encoder[layer](x, cached[layer]))
            x = cached[layer][0]
        annotations.append(x[0])
    outputs = []
    for position, token in enumerate(ids[end:], end):
        x = embedding[[token]]
        if attends:
            query = weights["additive.query.weight"] @ cached[-1][0][0]
            scores = torch.stack(
                [
                    weights["additive.score.weight"][0]
                    @ torch.tanh(query + weights["additive.key.weight"] @ h)
                    for h in annotations
                ]
            )
            shares = scores.exp() / scores.exp().sum()
            context = sum(share * h for share, h in zip(shares, annotations, strict=True))
            assert isinstance(context, Tensor)
            x = torch.cat([x, context[None]], dim=1)
        for layer in range(LAYERS):
            cached[layer] = change("decoder", layer, position, decoder[layer](x, cached[layer]))
            x = cached[layer][0]
        outputs.append(weights["classifier.weight"] @ x[0] + weights["classifier.bias"])
    return torch.stack(outputs)
