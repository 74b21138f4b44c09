"""Small models of any architecture with random weights: they get much wrong, each its own way."""

from typing import Any

from seqcls.engines.member import draw_initial
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.problem import configuration, resolve

TWO_BLOCKS: dict[str, Any] = {
    "num_blocks": 2,
    "num_attention_heads": 2,
    "positions": "sinusoidal",
    "attention_mask": "causal",
    "readout": "last",
    "feed_forward_size": 4,
}
LSTM: dict[str, Any] = {"architecture": "lstm", "readout": "last", "biases": True}


def untrained(seed: int | None = None, **fields: Any) -> TrainedModel:
    """A model that answers some strings one way and some the other, where no seed is named."""
    if seed is None:
        seed = 1 if "architecture" in fields else 3
    config = configuration(
        {
            "task": "even_pairs",
            "hidden_size": 4,
            "attention_head_size": 2,
            "precision": "float64",
            **fields,
        }
    )
    return TrainedModel(resolve(config), draw_initial([(resolve(config), seed)])[0])
