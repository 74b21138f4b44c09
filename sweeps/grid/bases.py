"""What a specification starts from: `base = "small_transformer"` gives values that it need not."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from seqcls.config import RunConfig, default_fields
from seqcls.fields import fields_unread
from seqcls.kinds import kind_name
from seqcls.problem import with_samplers
from seqcls.tasks import TASKS

Base = Literal["report", "small_transformer"]
BASES: tuple[Base, ...] = get_args(Base)

Fields = Mapping[str, Any]
Value = Callable[[Fields], Any] | bool | float | str

_VALUES: Mapping[Base, Mapping[str, Value]] = {
    "report": {"no_attend_cls": True, "layer_norm_eps": 0.0},
    "small_transformer": {
        "num_blocks": 2,
        "hidden_size": 32,
        "num_attention_heads": 4,
        "attention_head_size": lambda x: max(
            1, x["hidden_size"] // max(1, x["num_attention_heads"])
        ),
        "feed_forward_size": lambda x: 4 * x["hidden_size"],
        "layer_norm": "nn",
        "biases": True,
        # Recurrent networks have no CLS to read at that knows the string, nor has a causal mask;
        # an output is read at every place.
        "readout": lambda x: (
            "last"
            if (x["architecture"] != "transformer" or x["attention_mask"] == "causal")
            and _is_language(x["task"])
            else "first"
        ),
        "negative_lengths": "uniform",
        "train_batch_size": 128,
        "validation_min_length": lambda x: x["train_min_length"],
        "validation_max_length": lambda x: x["train_max_length"],
        "learning_rate": 0.003,
        "warm_up_steps": 100,
        "final_learning_rate_factor": 0.1,
        "gradient_clip": 1.0,
        "max_num_epochs": 50,
        "min_num_epochs": 0,
        "patience": lambda x: x["max_num_epochs"],
        "min_validation_loss": 0.0,
        "stop_when_right": True,
    },
}
"""Values by field; of some it is made of what other fields have. They never change: a stored
specification names its base."""


def _is_language(task: str) -> bool:
    return all(kind_name(TASKS[name]) == "membership" for name in TASKS.usable([task]))


def on_base(base: Base | None, fields: Fields) -> dict[str, Any]:
    """The fields of a configuration, with the values of its base for others that it reads.

    Args:
        base: None adds nothing.

    Raises:
        ConfigError: the fields are no configuration.
    """
    if base is None:
        return dict(fields)
    values = _VALUES[base]
    unread = fields_unread(RunConfig.from_mapping(with_samplers(fields)))
    known = {**default_fields(), **fields}
    added: dict[str, Any] = {}
    for name, value in values.items():
        if name not in fields and name not in unread:
            # Later values may follow from earlier ones, as the size of heads from the hidden size.
            added[name] = value({**known, **added}) if callable(value) else value
    return {**added, **fields}
