"""Possible remedies of a cause of failure: one field to change, with the reason and its source.

Nothing here is certain. A suggestion is made only where the configuration can have the changed
field; whether it helps, training it with the same seeds shows. The table is `REMEDIES`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from seqcls.config import (
    ANY_SAMPLER,
    AS_TRAINED,
    COUPLED,
    STRING_PARTS,
    NetworkConfig,
    RunConfig,
    default_fields,
)
from seqcls.fields import fields_unread
from seqcls.interpretability.mechanisms import (
    BEYOND,
    CONSTANT,
    DILUTION,
    FORM,
    LONGER,
    NOT_FOUND,
    NOT_LEARNED,
    ONE_LETTER,
    ORDER,
    OUTPUT_MECHANISMS,
    ROUNDING,
    RULE,
)
from seqcls.problem import Problem, configuration, obstacle_of
from seqcls.sampling.balanced import BalancedStrings
from seqcls.tasks.rearranging import Copy
from seqcls.theory.predictions import theory_of

Value = Callable[[Problem], Any]
"""The value of the changed field for a problem; None where there is nothing to change."""

Condition = Callable[[Problem], bool]


class Remedy(NamedTuple):
    """One field whose change may help against some causes."""

    causes: Sequence[str]
    change: Mapping[str, Any]
    """The field's new value, or a `Value`; and those of others that have to change with it, since
    they mean nothing beside it."""
    reason: str
    source: str = "an assumption, which the training tests"
    where: Condition = lambda _: True
    """True for the configurations that it is about."""
    after_few_epochs: bool = False
    """True if it is about trainings that took a third of their epochs at most."""


class Suggestion(NamedTuple):
    """A remedy for one configuration."""

    mechanism: str
    """The cause that it is suggested for."""
    field: str
    before: Any
    value: Any
    reason: str
    source: str
    along: Mapping[str, Any]
    """Other fields that have to change with it; mostly none."""

    @property
    def fields(self) -> dict[str, Any]:
        """All that is changed."""
        return {self.field: self.value, **self.along}

    @property
    def text(self) -> str:
        """Such as `attention_scale=log_length (now sqrt)`."""
        others = ", ".join(f"{name}={value}" for name, value in self.along.items())
        also = f", and with it {others}" if others else ""
        return f"{self.field}={self.value} (now {self.before}){also}"


def suggestions(
    problem: Problem, mechanisms: Sequence[str], epochs: float | None = None
) -> tuple[Suggestion, ...]:
    """Suggests remedies for these causes, each change named once.

    Args:
        mechanisms: the most frequent first.
        epochs: after how many training ended; None where that is not known.
    """
    few = epochs is not None and 3 * epochs <= problem.config.max_num_epochs
    named: dict[tuple[str, Any], Suggestion] = {}
    for mechanism in mechanisms:
        for remedy in REMEDIES:
            if mechanism in remedy.causes and (few or not remedy.after_few_epochs):
                for applied in _suggest(problem, mechanism, remedy):
                    # The cause that is more frequent names the change first.
                    named.setdefault((applied.field, applied.value), applied)
    return tuple(named.values())


def change_fields(config: RunConfig, fields: Mapping[str, Any]) -> RunConfig:
    """A configuration with other values of these fields, checked as a whole.

    Raises:
        ConfigError: the configuration cannot have it.
    """
    return configuration({**named_fields(config), **fields})


def named_fields(config: RunConfig) -> dict[str, Any]:
    """The fields to name so that the same configuration is made of them."""
    # Samplers that are left out follow the task.
    named = {*config.changed, *(f"{part}_sampler" for part in STRING_PARTS)} - {"plugins"}
    return {name: getattr(config, name) for name in sorted(named)}


def _suggest(problem: Problem, mechanism: str, remedy: Remedy) -> Iterator[Suggestion]:
    config, (field, *_) = problem.config, remedy.change
    if not remedy.where(problem) or field in fields_unread(config):
        return
    values = {x: y(problem) if callable(y) else y for x, y in remedy.change.items()}
    # A value that is there already is no change.
    new = {x: y for x, y in values.items() if y is not None and y != getattr(config, x)}
    fields = {**named_fields(config), **new}
    if field not in new or obstacle_of(fields) is not None or _is_in_vain(fields, field, mechanism):
        return
    value, before = new.pop(field), getattr(config, field)
    yield Suggestion(mechanism, field, before, value, remedy.reason, remedy.source, new)


def _is_in_vain(changed: Mapping[str, Any], field: str, mechanism: str) -> bool:
    """True if theory rules out that any such network recognizes the language.

    A statement about every length does not keep a network from the trained ones, nor other training
    from pushing errors back; one without a condition holds of short strings, too.
    """
    theory = theory_of(changed).first
    if theory.verdict != "cannot" or not theory.condition:
        return theory.verdict == "cannot"
    # Theory speaks of networks, and forbids no change of the training alone.
    return mechanism != NOT_LEARNED and field in NetworkConfig.model_fields


# Which configurations a remedy is about.


def _is_transformer(problem: Problem) -> bool:
    """True if the network is one that the sources of remedies are about."""
    return problem.config.architecture == "transformer"


def _has_positions(problem: Problem) -> bool:
    """True if the tokens have positions that a test can go beyond."""
    return _is_transformer(problem) and problem.config.positions != "none"


def _hides_order(problem: Problem) -> bool:
    """True if a full mask, without positions, would hide an order on which the task depends."""
    return problem.config.attention_mask == "full" and problem.task.order_sensitive


def _is_tested_longer(problem: Problem) -> bool:
    """True if the test has longer strings than the training."""
    return problem.test.lengths[-1] > problem.train.lengths[-1]


def _is_shallow(problem: Problem) -> bool:
    """True if it has one block, of which there is a reason for a second."""
    return _is_transformer(problem) and problem.config.num_blocks == 1


# Values that follow from the configuration.


def _times(field: str, number: int) -> Value:
    return lambda problem: number * getattr(problem.config, field) or number


def _one_more(field: str) -> Value:
    return lambda problem: getattr(problem.config, field) + 1


def _rate(factor: float) -> Value:
    # One digit reads as a chosen rate, and is as exact as it has to be.
    return lambda problem: float(f"{problem.config.learning_rate * factor:.1g}")


def _default(field: str) -> Value:
    """The default of a field, its value where nothing reads it."""
    return lambda problem: default_fields()[field] if field in problem.config.changed else None


def _warm_up(problem: Problem) -> int | None:
    """A twentieth of the steps of the training, where these are many and it has no warm-up."""
    config = problem.config
    # The last batch of an epoch is a step too, however small.
    steps = -(-problem.train.epoch_size // config.train_batch_size) * config.max_num_epochs
    return None if config.warm_up_steps or steps < MANY_STEPS else int(float(f"{steps / 20:.1g}"))


def _longest_tested(problem: Problem) -> int:
    # As Ruoss et al. do, who draw from 2,048 places for up to 500 tokens.
    return 4 * max(problem.sampler(part).lengths[-1] for part in STRING_PARTS) + 2


def _near_negatives(problem: Problem) -> str | None:
    train = problem.longest_train
    if not isinstance(train, BalancedStrings) or train.negatives in ("near", "border"):
        return None
    return "near" if train.near_obstacle is None else None


def _same_test(problem: Problem) -> str | None:
    """The negatives of the test as they are: what helps is seen on the same test strings."""
    config = problem.config
    as_trained = config.test_strings == "random" and config.test_negatives == AS_TRAINED
    return config.negatives if as_trained else None


_LSTM = {
    "architecture": "lstm",
    # Its answer is read at the end, and it has no use for what only a Transformer reads.
    "readout": lambda problem: "last" if problem.config.readout == "first" else None,
    **{
        name: _default(name)
        for name in (
            *("positions", "position_range", "position_draw", "attention_mask", "attention_scale"),
            *("norm_placement", "activation", "final_norm"),
        )
    },
}

MANY_STEPS = 200

_DEEP = (ORDER, CONSTANT, RULE, FORM, BEYOND, NOT_FOUND)
"""Causes that length does not make."""

_CHOMSKY = "Delétang et al. 2023, Neural Networks and the Chomsky Hierarchy"
_REPORT = "the report's own sweeps of increased dimensionality and of more attention heads"
_CHIANG = "Chiang & Cholak 2022, Overcoming a Theoretical Limitation of Self-Attention"
_HUANG = "Huang et al. 2025, A Formal Framework for Understanding Length Generalization"
_OLSSON = "Olsson et al. 2022, In-context Learning and Induction Heads"

REMEDIES = (
    # To learn the lengths that it is trained on.
    Remedy(
        [NOT_LEARNED],
        # Else training may stop before the epochs are up, as it may have.
        {"max_num_epochs": _times("max_num_epochs", 4), "patience": _times("patience", 4)},
        "Training may have ended too early: what one budget does not learn, a larger one may.",
        f"{_CHOMSKY}, who train for a million steps",
    ),
    Remedy(
        [NOT_LEARNED, CONSTANT],
        {"learning_rate": _rate(1 / 3)},
        "Steps that are too large pass by what smaller ones find.",
    ),
    Remedy(
        [NOT_LEARNED],
        {"learning_rate": _rate(3)},
        "Steps that are too small do not get there in time, or stay where the loss is flat.",
    ),
    Remedy(
        [NOT_LEARNED],
        {"warm_up_steps": _warm_up},
        "The first steps of Adam are its least certain; small ones do not lead astray.",
        "Liu et al. 2020, On the Variance of the Adaptive Learning Rate and Beyond",
    ),
    Remedy(
        [NOT_LEARNED],
        {"hidden_size": _times("hidden_size", 2)},
        "A wider model has more ways to get right what it is trained on.",
        f"{_REPORT}; of other architectures an assumption, which the training tests",
    ),
    # Having learned them, to generalize beyond.
    Remedy(
        [FORM],
        {"negatives": _near_negatives, "test_negatives": _same_test},
        "Negatives that a reader of neighboring tokens takes for positive show what else decides.",
        "the shortcut readers themselves",
    ),
    Remedy(
        [DILUTION],
        {"attention_scale": "log_length"},
        "Scores that grow with the logarithm of the length keep a token's weight as strings grow.",
        _CHIANG,
        _is_transformer,
    ),
    Remedy(
        [DILUTION],
        {"attention_head_size": _times("attention_head_size", 2)},
        "Larger heads can score tokens further apart, so that more of another outweigh one.",
        _REPORT,
        _is_transformer,
    ),
    Remedy(
        [DILUTION, NOT_FOUND],
        {"hidden_size": _times("hidden_size", 2)},
        "A wider hidden state holds the tokens further apart.",
        f"Elhage et al. 2022, Toy Models of Superposition; {_REPORT}",
    ),
    Remedy(
        [ONE_LETTER, DILUTION, NOT_FOUND],
        {"num_attention_heads": _times("num_attention_heads", 2)},
        "With more heads than tokens to look for, some head is likelier to look for each.",
        _REPORT,
        _is_transformer,
    ),
    Remedy(
        [LONGER],
        {"positions": "alibi"},
        "A bias by distance has a meaning at places that training never reached.",
        "Press, Smith & Lewis 2022, Train Short, Test Long",
        _has_positions,
    ),
    Remedy(
        [LONGER],
        {"position_range": _longest_tested},
        "Places drawn at random from a longer range are all trained before the test.",
        "Ruoss et al. 2023, Randomized Positional Encodings Boost Length Generalization",
        _has_positions,
    ),
    Remedy(
        [LONGER],
        {"positions": "none"},
        "Without positions there are no places beyond training.",
        "Kazemnejad et al. 2023, The Impact of Positional Encoding on Length Generalization",
        lambda problem: _has_positions(problem) and not _hides_order(problem),
    ),
    Remedy(
        [LONGER],
        {"attention_scale": "log_length"},
        "Attention spreads over more tokens as strings grow; scores that grow too sharpen it.",
        _CHIANG,
        _is_transformer,
    ),
    Remedy(
        [*_DEEP, NOT_LEARNED],
        {"positions": "alibi"},
        "This model sees how often tokens occur, not where; the language asks where.",
        "the invariance of attention without positions under permutation",
        # A full mask hides the order where no positions show it.
        lambda problem: (
            problem.config.positions == "none"
            and _is_transformer(problem)
            and _hides_order(problem)
        ),
    ),
    Remedy(
        [*_DEEP, LONGER],
        _LSTM,
        "Recurrent networks often learn regular languages such as parity, and go on beyond "
        "training.",
        _CHOMSKY,
        _is_transformer,
    ),
    Remedy(
        [*_DEEP, LONGER, NOT_LEARNED],
        {"eigenvalue_range": "signed"},
        "A memory whose factors may be below 0 can turn with each token, as counting modulo 2 "
        "asks; one with factors from 0 to 1 can only fade.",
        "Grazzi et al. 2024, Unlocking State-Tracking in Linear RNNs Through Negative Eigenvalues",
    ),
    Remedy(
        [LONGER],
        {"train_max_length": _times("train_max_length", 2)},
        "Training on longer strings may push back the length at which errors begin.",
    ),
    Remedy(
        [BEYOND, NOT_FOUND],
        {"train_size": _times("train_size", 2)},
        "Strings of a kind that training seldom shows are seen more often.",
        where=lambda problem: problem.config.train_sampler == ANY_SAMPLER,
    ),
    Remedy(
        _DEEP,
        {"num_blocks": _one_more("num_blocks")},
        "Deeper Transformers can follow an automaton in fewer steps than the string has tokens.",
        "Liu et al. 2023, Transformers Learn Shortcuts to Automata",
        _is_transformer,
    ),
    # To write outputs: other positions, more depth.
    Remedy(
        OUTPUT_MECHANISMS,
        # Coupled places read no draw.
        {"positions": "coupled_marks", "position_draw": _default("position_draw")},
        "Tokens of input and output that belong together share a place, so that what is to be "
        "written next, from the first token on, is found by its place, in longer strings too.",
        "Cho et al. 2024, Position Coupling",
    ),
    Remedy(
        OUTPUT_MECHANISMS,
        {"position_draw": "shifted"},
        "Places beyond those of training are trained too where training shifts strings.",
        _HUANG,
        lambda problem: _is_tested_longer(problem) and problem.config.positions == "learned",
    ),
    Remedy(
        OUTPUT_MECHANISMS,
        {"positions": "learned", "position_draw": "shifted"},
        "Places beyond those of training are trained too where they are learned and training "
        "shifts strings.",
        _HUANG,
        # Of learned places the draw alone is changed; coupled ones are moved already.
        lambda problem: _is_tested_longer(problem) and problem.config.positions not in COUPLED,
    ),
    Remedy(
        OUTPUT_MECHANISMS,
        {"num_blocks": 2},
        "Two blocks can look up what followed a token in the input; one that copies distinct "
        "tokens was not found.",
        f"{_OLSSON}; {_HUANG}",
        lambda problem: _is_shallow(problem) and isinstance(problem.task, Copy),
    ),
    Remedy(
        OUTPUT_MECHANISMS,
        {"num_blocks": _one_more("num_blocks")},
        "A further layer can look up what followed a token in the input, or compute more from "
        "token to token; that these outputs need it is not proven.",
        _OLSSON,
        lambda problem: _is_shallow(problem) or not _is_transformer(problem),
    ),
    # Whatever the cause.
    Remedy(
        [DILUTION, ONE_LETTER, CONSTANT, RULE, FORM, BEYOND, LONGER, NOT_FOUND, *OUTPUT_MECHANISMS],
        {"min_num_epochs": lambda problem: problem.config.max_num_epochs, "stop_when_right": False},
        "Of most failing seeds training ended after few epochs, once every validation string was "
        "right; trained on, a model may still turn to a rule that goes beyond them.",
        "Murty et al. 2023, Grokking of Hierarchical Structure in Vanilla Transformers",
        lambda problem: problem.config.stop_when_right,
        after_few_epochs=True,
    ),
    Remedy(
        [ROUNDING],
        {"precision": "float64"},
        "These errors are right answers in double precision.",
        "the mechanism itself",
    ),
)
