"""What fields and values are called on pages."""

from collections.abc import Mapping
from typing import Any

from seqcls.config import RunConfig
from seqcls.problem import with_samplers

FIELDS = {
    "hidden_size": "width",
    "num_attention_heads": "heads",
    "attention_head_size": "size of heads",
    "num_blocks": "blocks",
    "feed_forward_size": "feed-forward",
    "num_letters": "letters",
    "layer_norm_eps": "eps of norms",
    "no_attend_cls": "attention to CLS",
    "dataset": "file",
    "max_num_epochs": "epochs",
    "train_max_length": "trained up to",
    "test_max_length": "tested up to",
}
"""What fields are called by themselves, where that is not their name."""


def settings_changed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the settings that a configuration reads that are not usual for its task."""
    parts = {x: settings[x] for x in ("task", "architecture") if x in settings}
    usual = dict(RunConfig.from_mapping(with_samplers(parts)))
    return {x: y for x, y in settings.items() if x in parts or y != usual.get(x)}
