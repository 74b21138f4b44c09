"""What errors come from, or have in common, by name."""

from typing import Literal, get_args

MechanismName = Literal[
    "dilution",
    "value interference",
    "two heads on one letter",
    "feed-forward saturation",
    "no single mechanism",
]
"""Those of models that have an exact account."""

SAMPLE = 50
"""Errors of a model that causes are found of, unless more are asked for."""

DILUTION = "dilution"
ROUNDING = "rounding"
ORDER = "order not seen"
CONSTANT = "constant answer"
RULE = "simple rule"
FEATURE = "errors by a feature"
BEYOND = "errors beyond a bound"
ONE_EDIT = "one edit away"
LONGER = "longer than in training"
AS_SHORT = "not only longer than in training"

BEHAVIOURS = (ORDER, CONSTANT, RULE, FEATURE, BEYOND, ONE_EDIT, LONGER, AS_SHORT)

ALL_HEADS = "all heads"
"""Where the attention of a model without an exact account is diluted, if in no one head."""


def is_exact(mechanism: str, tokens: str) -> bool:
    """Whether a cause rests on an exact account of the model."""
    of_any_model = tokens == ALL_HEADS or tokens.startswith("block ")
    return mechanism in (*get_args(MechanismName), ROUNDING) and not of_any_model
