"""What errors come from, or have in common."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from seqcls.text import count

MechanismName = Literal[
    "dilution",
    "value interference",
    "two heads on one letter",
    "feed-forward saturation",
    "no single mechanism",
]
"""Those of models that have an exact account."""


@dataclass(frozen=True)
class Mechanism:
    """Why the string fails, decided by what would turn its answer."""

    name: MechanismName
    head: int | None
    letter: str | None
    """The letter that is drowned, that is taken for another, or that all heads attend to.

    None where several together are taken for another.
    """
    by: str | None
    """What drowns it, the letter for which it is taken, or the one that no head looks for."""
    unit: int | None
    """The feed-forward unit that saturates."""
    counterfactual: str
    """What was changed inside the network, in words."""
    logit: float
    """The logit of the string as it is."""
    logit_with: float
    """And with the counterfactual."""


SAMPLE = 50
"""Errors of a model that causes are found of, unless more are asked for."""

DILUTION = "dilution"
ROUNDING = "rounding"
ORDER = "order not seen"
CONSTANT = "constant answer"
RULE = "simple rule"
FORM = "answers by form"
FEATURE = "errors by a feature"
BEYOND = "errors beyond a bound"
ANOTHER = "another language"
ONE_EDIT = "one edit away"
LONGER = "longer than in training"
AS_SHORT = "not only longer than in training"

FORGETS = "forgets while one token repeats"
FORGETS_WORD = "forgets while a word repeats"
"""What a refuted proof shows of a recurrent network; it is of the model, not of its test errors."""

NOT_LEARNED = "not learned"
"""The cause of a model that is not right on the trained lengths; it says nothing of longer ones."""

BEHAVIOURS = (ORDER, CONSTANT, RULE, FORM, FEATURE, BEYOND, ANOTHER, ONE_EDIT, LONGER, AS_SHORT)

REPEATED = "repeated input tokens"
FIRST_RIGHT = "first tokens right"
ONE_PLACE = "first wrong at one place"
LATER = "first wrong later in longer inputs"

BESIDE_NOT_LEARNED = frozenset(
    {
        *("value interference", "two heads on one letter", "feed-forward saturation", ROUNDING),
        *(ORDER, CONSTANT, RULE, FORM, ANOTHER),
    }
)
"""What may be told of errors of a model that has not learned, too: what it does instead.

It speaks of no length, nor of a feature that grows with the length."""

OUTPUT_BEHAVIOURS = (REPEATED, FIRST_RIGHT, ONE_PLACE, LATER)
"""Behaviors of wrong outputs, beside how each differs from its target."""

EXPLAINS = 0.9
"""What is said of errors together holds of such a share of them at least."""

ALL_HEADS = "all heads"
"""Where the attention of a model without an exact account is diluted, if in no one head."""


def is_exact(mechanism: str, tokens: str) -> bool:
    """Whether a cause rests on an exact account of the model."""
    of_any_model = tokens == ALL_HEADS or tokens.startswith("block ")
    return mechanism in (*get_args(MechanismName), ROUNDING) and not of_any_model


# Errors attributed to their causes.


@dataclass(frozen=True)
class AttributedError:
    """One error and its cause."""

    string: str
    mechanism: str
    head: int | None = None
    tokens: str = ""
    agreement: float | None = None


def spread_evenly(number: int, most: int) -> list[int]:
    """Places of at most so many, spread evenly over a number of them, the first among them."""
    if number <= most:
        return list(range(number))
    return [number * place // most for place in range(most)]


# What a model forgets.


def forgetting_text(stored: Mapping[str, Any], display: Callable[[str], str]) -> str:
    """What a model forgets, in a sentence.

    Args:
        stored: as `seqcls.proofs.forgetting.Forgetting.record` has it.
        display: shows a string.
    """
    after = f" after {display(stored['before'])}" if stored["before"] else ""
    moved = ", ".join(
        f"{name} of layer {layer} by {float(f'{by:.2g}'):,g}" for layer, name, by in stored["units"]
    )
    return (
        f"It {stored['mechanism']}: as {display(stored['word'])} repeats{after}, its state moves "
        f"away ({moved}); from {count(stored['repetitions'], 'repetition')} on it is wrong, as on "
        f"{display(stored['string'])}."
    )
