"""What may help against a cause of failure: one field to change, with the reason and its source.

Nothing here is certain. A suggestion is made only where the configuration can have the changed
field; whether it helps, training it with the same seeds shows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from seqcls.config import (
    ANY_SAMPLER,
    AS_TRAINED,
    COUPLED,
    PARTS,
    NetworkConfig,
    RunConfig,
    default_fields,
)
from seqcls.fields import fields_unread
from seqcls.interpretability.mechanisms import (
    ANOTHER,
    AS_SHORT,
    BEHAVIOURS,
    BEYOND,
    FEATURE,
    FORM,
    LONGER,
    NOT_LEARNED,
    OUTPUT_BEHAVIOURS,
)
from seqcls.problem import Problem, configuration, obstacle_of
from seqcls.results import ErrorKind
from seqcls.sampling.balanced import BalancedStrings
from seqcls.tasks.rearranging import Copy
from seqcls.theory.predictions import theory_of

# One change of a configuration that may help, and the values that such changes have.


Value = Callable[[Problem], Any]
"""The value of the changed field for a problem; None where there is nothing to change."""


@dataclass(frozen=True)
class Remedy:
    """One field whose change may help against some mechanisms."""

    mechanisms: frozenset[str]
    field: str
    value: Value
    reason: str
    source: str
    others: Callable[[Problem], Mapping[str, Any]] = lambda _: {}
    """Other fields that have to change with it, since they mean nothing beside the new value."""


def always(value: Any) -> Value:
    """The same whatever the problem."""
    return lambda _: value


def one_more(field: str) -> Value:
    """One more than there are."""
    return lambda problem: getattr(problem.config, field) + 1


def in_a_transformer(value: Value) -> Value:
    """A value only where the network is one."""
    return lambda problem: value(problem) if _is_transformer(problem) else None


def _is_transformer(problem: Problem) -> bool:
    """Whether the network is one that the sources of remedies are about."""
    return problem.config.architecture == "transformer"


# What may help against wrong outputs of transductions: other positions, more depth.

_ASSUMED = "an assumption, which the training tests"

_OF_OUTPUTS = frozenset({*get_args(ErrorKind), *OUTPUT_BEHAVIOURS})

_HUANG = "Huang et al. 2025, A Formal Framework for Understanding Length Generalization"
_OLSSON = "Olsson et al. 2022, In-context Learning and Induction Heads"
_CHO = "Cho et al. 2024, Position Coupling"


def _tested_longer(value: Value) -> Value:
    """Only where the test has longer strings than the training."""

    def where_longer(problem: Problem) -> Any:
        tested, trained = problem.test.lengths[-1], problem.train.lengths[-1]
        return value(problem) if tested > trained else None

    return where_longer


def _of_learned(problem: Problem) -> str | None:
    return "shifted" if problem.config.positions == "learned" else None


def _learned_positions(problem: Problem) -> str | None:
    # Of learned places the draw alone is changed; coupled ones are moved already.
    return None if problem.config.positions in ("learned", *COUPLED) else "learned"


def _without_a_draw(problem: Problem) -> dict[str, Any]:
    """Coupled places read no `position_draw`."""
    name = "position_draw"
    return {name: default_fields()[name]} if name in problem.config.changed else {}


def _second_block(*, copies: bool) -> Value:
    def where_one(problem: Problem) -> Any:
        fits = isinstance(problem.task, Copy) == copies and problem.config.num_blocks == 1
        return 2 if fits else None

    return in_a_transformer(where_one)


def _more_layers(problem: Problem) -> int | None:
    # Of Transformers of one stream a second block is what there is a reason for.
    return None if _is_transformer(problem) else int(one_more("num_blocks")(problem))


OUTPUT_REMEDIES = (
    Remedy(
        _OF_OUTPUTS,
        "positions",
        always("coupled_marks"),
        "Tokens of input and output that belong together share a place, so that what is to be "
        "written next, from the first token on, is found by its place, in longer strings too.",
        _CHO,
        _without_a_draw,
    ),
    Remedy(
        _OF_OUTPUTS,
        "position_draw",
        _tested_longer(_of_learned),
        "Places beyond those of training are trained too where training shifts strings.",
        _HUANG,
    ),
    Remedy(
        _OF_OUTPUTS,
        "positions",
        _tested_longer(_learned_positions),
        "Places beyond those of training are trained too where they are learned and training "
        "shifts strings.",
        _HUANG,
        lambda _: {"position_draw": "shifted"},
    ),
    Remedy(
        _OF_OUTPUTS,
        "num_blocks",
        _second_block(copies=True),
        "Two blocks can look up what followed a token in the input; one that copies distinct "
        "tokens was not found.",
        f"{_OLSSON}; {_HUANG}",
    ),
    Remedy(
        _OF_OUTPUTS,
        "num_blocks",
        _second_block(copies=False),
        "Two blocks can look up what followed a token in the input; whether this task needs it is "
        "not proven.",
        _OLSSON,
    ),
    Remedy(
        _OF_OUTPUTS,
        "num_blocks",
        _more_layers,
        "More layers compute more from token to token; that these outputs need it is not proven.",
        _ASSUMED,
    ),
)


@dataclass(frozen=True)
class Suggestion:
    """A remedy for one configuration."""

    mechanism: str
    """What it is suggested for."""
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


def suggestions(problem: Problem, mechanisms: Sequence[str]) -> tuple[Suggestion, ...]:
    """What may help models against these mechanisms, each change named once.

    Args:
        mechanisms: the most frequent first.
    """
    named: dict[tuple[str, Any], Suggestion] = {}
    for mechanism in mechanisms:
        for remedy in REMEDIES:
            if mechanism in remedy.mechanisms:
                for applied in _suggest(problem, mechanism, remedy):
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
    named = {*config.changed, *(f"{part}_sampler" for part in PARTS)} - {"plugins"}
    return {name: getattr(config, name) for name in sorted(named)}


def _suggest(problem: Problem, mechanism: str, remedy: Remedy) -> Iterator[Suggestion]:
    config = problem.config
    value, before = remedy.value(problem), getattr(config, remedy.field)
    if value is None or value == before or remedy.field in fields_unread(config):
        return
    others = remedy.others(problem)
    changed = {**named_fields(config), remedy.field: value, **others}
    if obstacle_of(changed) is not None or _is_in_vain(changed, remedy.field, mechanism):
        return
    yield Suggestion(mechanism, remedy.field, before, value, remedy.reason, remedy.source, others)


def _is_in_vain(changed: Mapping[str, Any], field: str, mechanism: str) -> bool:
    """Whether theory says that no such network recognizes the language.

    What it says of every length does not keep a network from the trained ones, nor other training
    from pushing errors back; what it says without a condition holds of short strings, too.
    """
    said = theory_of(changed).first
    if said.verdict != "cannot" or not said.condition:
        return said.verdict == "cannot"
    return mechanism != NOT_LEARNED and field in NetworkConfig.model_fields


def _double(field: str) -> Value:
    return lambda problem: 2 * getattr(problem.config, field) or 2


def _with_positions(value: Value) -> Value:
    """Only where tokens have places that a test can go beyond."""
    return lambda problem: value(problem) if problem.config.positions != "none" else None


def _of_drawn_strings(value: Value) -> Value:
    """Only where training draws strings of any task."""
    return lambda problem: value(problem) if problem.config.train_sampler == ANY_SAMPLER else None


def _where_order_decides(value: Value) -> Value:
    """Only for a Transformer that cannot tell orders apart, on a task that asks for it."""

    def where_blind(problem: Problem) -> Any:
        has_places = problem.config.positions != "none"
        return None if has_places or not _hides_order(problem) else value(problem)

    return in_a_transformer(where_blind)


def _hides_order(problem: Problem) -> bool:
    """Whether a full mask, without positions, would hide an order that the task asks for."""
    return problem.config.attention_mask == "full" and problem.task.order_sensitive


def _longest_tested(problem: Problem) -> int:
    return 4 * max(problem.sampler(part).lengths[-1] for part in PARTS) + 2


def _of_an_lstm(problem: Problem) -> dict[str, Any]:
    """Its answer is read at the end, and it has no use for what only a Transformer reads."""
    config = problem.config
    unread = {name: default_fields()[name] for name in _TRANSFORMERS if name in config.changed}
    return {**unread, "readout": "last"} if config.readout == "first" else unread


_TRANSFORMERS = (
    *("positions", "position_range", "position_draw", "attention_mask", "attention_scale"),
    *("norm_placement", "activation", "final_norm"),
)


def _without_bound(problem: Problem) -> str | None:
    """No positions, where those that there are bring a bound on the length.

    Not where the order would be out of sight then: a causal mask shows it, a full one does not.
    """
    has_places = problem.config.positions != "none"
    return "none" if has_places and not _hides_order(problem) else None


def _of_near_negatives(problem: Problem) -> str | None:
    train = problem.longest_train
    if not isinstance(train, BalancedStrings) or train.negatives in ("near", "border"):
        return None
    return "near" if train.near_obstacle is None else None


def _negatives_of_test(problem: Problem) -> dict[str, Any]:
    """As they are: what helps is seen on the same test strings."""
    config = problem.config
    if config.test_strings != "random":
        return {}
    named = config.test_negatives
    return {"test_negatives": config.negatives if named == AS_TRAINED else named}


def _longer_patience(problem: Problem) -> dict[str, Any]:
    """Else training may stop before the epochs are up, as it may have."""
    return {"patience": MORE_EPOCHS * problem.config.patience}


def _rate(factor: float) -> Value:
    return lambda problem: float(f"{problem.config.learning_rate * factor:.1g}")


def _warm_up(problem: Problem) -> int | None:
    """A twentieth of the steps of the training, where these are many and it has no warm-up."""
    config = problem.config
    steps = -(-problem.train.epoch_size // config.train_batch_size) * config.max_num_epochs
    return None if config.warm_up_steps or steps < MANY_STEPS else int(float(f"{steps / 20:.1g}"))


MORE_EPOCHS = 4
"""Times as many as now."""

MANY_STEPS = 200

_LENGTH = frozenset({LONGER, BEYOND})
_BLIND = frozenset(BEHAVIOURS) - _LENGTH

_WIDTH = (
    "Values of more letters than a head has dimensions lie close together; with more of them they "
    "can be told apart."
)
_SUPERPOSITION = "Elhage et al. 2022, Toy Models of Superposition"
_CHOMSKY = "Delétang et al. 2023, Neural Networks and the Chomsky Hierarchy"
_REPORT = "the report's own sweeps of increased dimensionality and of more attention heads"

OF_LEARNING = (
    Remedy(
        frozenset({NOT_LEARNED}),
        "max_num_epochs",
        lambda problem: MORE_EPOCHS * problem.config.max_num_epochs,
        "Training may have ended too early: what one budget does not learn, a larger one may.",
        f"{_CHOMSKY}, who train for a million steps",
        _longer_patience,
    ),
    Remedy(
        frozenset({NOT_LEARNED}),
        "learning_rate",
        _rate(1 / 3),
        "Steps that are too large pass by what smaller ones find.",
        _ASSUMED,
    ),
    Remedy(
        frozenset({NOT_LEARNED}),
        "learning_rate",
        _rate(3),
        "Steps that are too small do not get there in time, or stay where the loss is flat.",
        _ASSUMED,
    ),
    Remedy(
        frozenset({NOT_LEARNED}),
        "warm_up_steps",
        _warm_up,
        "The first steps of Adam are its least certain; small ones do not lead astray.",
        "Liu et al. 2020, On the Variance of the Adaptive Learning Rate and Beyond",
    ),
    Remedy(
        frozenset({NOT_LEARNED}),
        "hidden_size",
        _double("hidden_size"),
        "A wider model has more ways to get right what it is trained on.",
        f"{_REPORT}; of other architectures {_ASSUMED}",
    ),
)
"""What may help a model to learn the lengths that it is trained on."""

REMEDIES = (
    *OF_LEARNING,
    Remedy(
        frozenset({FORM}),
        "negatives",
        _of_near_negatives,
        "Negatives that a reader of neighboring tokens takes for positive show what else decides.",
        "the shortcut readers themselves",
        _negatives_of_test,
    ),
    Remedy(
        frozenset({"dilution"}),
        "attention_scale",
        in_a_transformer(always("log_length")),
        "Scores that grow with the logarithm of the length keep a token's weight as strings grow.",
        "Chiang & Cholak 2022, Overcoming a Theoretical Limitation of Self-Attention",
    ),
    Remedy(
        frozenset({"dilution"}),
        "attention_head_size",
        in_a_transformer(_double("attention_head_size")),
        "Larger heads can score tokens further apart, so that more of another outweigh one.",
        _REPORT,
    ),
    Remedy(
        frozenset({"value interference"}),
        "attention_head_size",
        in_a_transformer(_double("attention_head_size")),
        _WIDTH,
        _SUPERPOSITION,
    ),
    Remedy(
        frozenset({"value interference", "dilution", "no single mechanism"}),
        "hidden_size",
        _double("hidden_size"),
        "A wider residual stream holds the tokens further apart.",
        f"{_SUPERPOSITION}; {_REPORT}",
    ),
    Remedy(
        frozenset(
            {"two heads on one letter", "value interference", "dilution", "no single mechanism"}
        ),
        "num_attention_heads",
        in_a_transformer(_double("num_attention_heads")),
        "With more heads than tokens to look for, some head is likelier to look for each.",
        _REPORT,
    ),
    Remedy(
        frozenset({"feed-forward saturation"}),
        "feed_forward_size",
        _double("feed_forward_size"),
        "With more units the answer hangs less on one that is closed.",
        "the mechanism itself",
    ),
    Remedy(
        _LENGTH,
        "positions",
        in_a_transformer(_with_positions(always("alibi"))),
        "A bias by distance has a meaning at places that training never reached.",
        "Press, Smith & Lewis 2022, Train Short, Test Long",
    ),
    Remedy(
        _LENGTH,
        "position_range",
        in_a_transformer(_with_positions(_longest_tested)),
        "Places drawn at random from a longer range are all trained before the test.",
        "Ruoss et al. 2023, Randomized Positional Encodings Boost Length Generalization",
    ),
    Remedy(
        _LENGTH,
        "positions",
        in_a_transformer(_without_bound),
        "Without positions there are no places beyond training.",
        "Kazemnejad et al. 2023, The Impact of Positional Encoding on Length Generalization",
    ),
    Remedy(
        _LENGTH,
        "attention_scale",
        in_a_transformer(always("log_length")),
        "Attention spreads over more tokens as strings grow; scores that grow too sharpen it.",
        "Chiang & Cholak 2022, Overcoming a Theoretical Limitation of Self-Attention",
    ),
    Remedy(
        _BLIND | {NOT_LEARNED},
        "positions",
        _where_order_decides(always("alibi")),
        "This model sees how often tokens occur, not where; the language asks where.",
        "the invariance of attention without positions under permutation",
    ),
    Remedy(
        _BLIND,
        "architecture",
        in_a_transformer(always("lstm")),
        "Recurrent networks often learn regular languages such as parity.",
        _CHOMSKY,
        _of_an_lstm,
    ),
    Remedy(
        _LENGTH,
        "architecture",
        in_a_transformer(always("lstm")),
        "Recurrent networks often go on beyond the trained lengths.",
        _CHOMSKY,
        _of_an_lstm,
    ),
    Remedy(
        frozenset({*BEHAVIOURS, NOT_LEARNED}),
        "eigenvalue_range",
        always("signed"),
        "A memory whose factors may be below 0 can turn with each token, as counting modulo 2 "
        "asks; one with factors from 0 to 1 can only fade.",
        "Grazzi et al. 2024, Unlocking State-Tracking in Linear RNNs Through Negative Eigenvalues",
    ),
    Remedy(
        _LENGTH,
        "train_max_length",
        _double("train_max_length"),
        "Training on longer strings may push back the length at which errors begin.",
        _ASSUMED,
    ),
    Remedy(
        frozenset({FEATURE, ANOTHER, AS_SHORT}),
        "train_size",
        _of_drawn_strings(_double("train_size")),
        "Strings of a kind that training seldom shows are seen more often.",
        _ASSUMED,
    ),
    Remedy(
        _BLIND,
        "num_blocks",
        in_a_transformer(one_more("num_blocks")),
        "Deeper Transformers can follow an automaton in fewer steps than the string has tokens.",
        "Liu et al. 2023, Transformers Learn Shortcuts to Automata",
    ),
    *OUTPUT_REMEDIES,
    Remedy(
        frozenset({"constant answer"}),
        "learning_rate",
        _rate(1 / 3),
        "Training may end in an answer that never changes because its steps are too large.",
        _ASSUMED,
    ),
    Remedy(
        frozenset({"rounding"}),
        "precision",
        always("float64"),
        "These errors are right answers in double precision.",
        "the mechanism itself",
    ),
)
