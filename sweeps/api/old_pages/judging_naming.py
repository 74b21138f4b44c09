"""What fields and values are called on pages."""

from collections.abc import Mapping
from typing import Any

from seqcls.config import RunConfig
from seqcls.imported import PREFIX
from seqcls.problem import with_samplers
from sweeps.api.naming import WORDS

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


def say_field(field: str, *, with_name: bool = False) -> str:
    """A field in words; if wanted with its name, where that is another: `width (hidden_size)`."""
    if field in FIELDS:
        return FIELDS[field] + f" ({field})" * with_name
    return field if field.startswith(PREFIX) else field.replace("_", " ")


def say_value(field: str, text: str) -> str:
    """A value of a field in words, beside the name of the field: `LSTM`, `yes`, `16`."""
    known = WORDS.get(field, {}).items()
    forms = {str(x): y for x, y in known if x != "" and (isinstance(x, bool) or type(x) is not int)}
    if field.startswith(PREFIX) or field in ("dataset", "pattern", "formula"):
        return text
    return forms.get(text) or {"True": "yes", "False": "no"}.get(text, text.replace("_", " "))


def settings_changed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the settings that a configuration reads that are not usual for its task."""
    parts = {x: settings[x] for x in ("task", "architecture") if x in settings}
    usual = dict(RunConfig.from_mapping(with_samplers(parts)))
    return {x: y for x, y in settings.items() if x in parts or y != usual.get(x)}
