"""One model looked into: minimal strings, rules, states, patches, ablations, its automaton.

PyTorch and AALpy are imported where they are used: they take a second or two to load.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from seqcls.errors import ConfigError, InvalidStringError, Parameter
from seqcls.interpretability.minimal import (
    Minimal,
    Nearest,
    Shortest,
    minimal_failing,
    nearest_right,
    shortest_failing,
)
from seqcls.interpretability.rules import Rules, fitting_rules
from seqcls.interpretability.trained_model import Answer, Letters, TrainedModel
from sweeps.api.models import model
from sweeps.api.presentation import whose_known
from sweeps.store.databases.engine import Store
from sweeps.store.reads import queries

if TYPE_CHECKING:
    from seqcls.interpretability.ablation import Ablated
    from seqcls.interpretability.attribution import LogitStep
    from seqcls.interpretability.automaton import LearnedAutomaton, Round
    from seqcls.interpretability.automaton_inside import Inside
    from seqcls.interpretability.backends import AblationMethod
    from seqcls.interpretability.patching import Patched
    from seqcls.interpretability.states_by_strings import Path, Patterns, Prefixes, Units
    from seqcls.interpretability.states_of_outputs import OutputToken


class Reduced(NamedTuple):
    """A misclassified string, made as short as it can be, and the nearest right one."""

    minimal: Minimal
    nearest: Nearest


class ModelStates(NamedTuple):
    """A model's states along a string, as far as its architecture has them."""

    answer: Answer
    prefixes: "Prefixes | None"
    """None of a model that writes."""
    output: "tuple[OutputToken, ...] | None"
    """What a model writes, token by token; None of a model that answers at once."""
    steps: "tuple[LogitStep, ...] | None"
    """What each part adds to the logit; None without a residual stream."""
    attention: "Patterns | None"
    units: "Units | None"
    path: "Path | None"
    """The path of the last layer's units, in the plane in which they vary most."""

    def record(self) -> dict[str, Any]:
        """The answer and the states as programs read them, as far as there are any."""
        record = self.answer.record()
        if self.prefixes is not None:
            record["prefix_logits"] = self.prefixes.logits.tolist()
            if self.prefixes.answers:
                record["prefix_answers"] = list(self.prefixes.answers)
        if self.output is not None:
            record["output"] = list(map(vars, self.output))
        if self.steps is not None:
            record["steps"] = list(map(vars, self.steps))
        if self.attention is not None:
            attention = self.attention
            record |= {"tokens": attention.tokens, "attention": attention.weights.tolist()}
        if self.units is not None and self.path is not None:
            record |= {
                "tokens": self.units.tokens,
                "units": self.units.states.tolist(),
                "gates": {name: gate.tolist() for name, gate in self.units.gates.items()},
                "path": self.path.points.tolist(),
            }
        return record


class Patches(NamedTuple):
    """States carried over from one string to another, and the answers to both."""

    patched: "Patched"
    base: Answer
    source: Answer

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        patched = self.patched
        what = {} if patched.number == patched.unit else {"number": patched.number}
        return {
            **what,
            "base": self.base.record(),
            "source": self.source.record(),
            "tokens": {"base": patched.base_tokens, "source": patched.source_tokens},
            "sites": [site.text for site in patched.sites],
            "logits": [
                [None if logit != logit else logit for logit in logits]
                for logits in patched.logits.tolist()
            ],
            "flips": patched.flips.tolist(),
        }


class Ablations(NamedTuple):
    """What is left of a model without its parts, and by which test strings that is judged."""

    strings: int
    outcomes: "tuple[Ablated, ...]"
    """The whole model first."""
    exact: bool
    """Whether these are all test strings, each as often as it occurs, by letter counts; else they
    are a sample of distinct ones, which were run."""


def minimal(
    store: Store, run: int | str, string: str | Sequence[str], epoch: int | None = None
) -> Reduced:
    """A string that a model gets wrong, reduced until no deletion fails, and the nearest right one.

    Raises:
        UnknownRunError: there is no such run, or it has no such weights.
        InvalidStringError: the string is not of this alphabet, or is answered rightly.
    """
    opened = model(store, run, epoch)
    letters = opened.letters(string)
    reduced = minimal_failing(opened, letters)
    return Reduced(reduced, nearest_right(opened, letters, prefer_other_answer=True))


def shortest(store: Store, run: int | str, epoch: int | None = None) -> Shortest:
    """The shortest strings that a model gets wrong, of all that there are.

    Raises:
        UnknownRunError: as `minimal`.
    """
    return shortest_failing(model(store, run, epoch))


def rules(store: Store, run: int | str, epoch: int | None = None) -> Rules:
    """The simple rules that predict a model's answers on its test strings, the best first.

    Raises:
        UnknownRunError: as `minimal`.
    """
    return fitting_rules(model(store, run, epoch))


def states(
    store: Store, run: int | str, string: str | Sequence[str], epoch: int | None = None
) -> ModelStates:
    """What each part of a model adds to a string's logit, and where along it the answer is made.

    Raises:
        UnknownRunError: as `minimal`.
        InvalidStringError: the string is not of this alphabet, or has too many tokens.
    """
    from seqcls.interpretability import attribution, states_by_strings
    from seqcls.interpretability.states_of_outputs import output_tokens

    opened = model(store, run, epoch)
    letters = opened.letters(string)
    answer = opened.answer(letters)
    reads_output = opened.problem.lacks("prefixes") is not None
    units = (
        states_by_strings.recurrent_units(opened, letters)
        if states_by_strings.has_units(opened)
        else None
    )
    in_one_stream = states_by_strings.has_attention(opened) and not states_by_strings.has_decoder(
        opened
    )
    return ModelStates(
        answer,
        None if reads_output else states_by_strings.prefix_logits(opened, letters),
        output_tokens(opened, letters) if reads_output else None,
        attribution.logit_steps(opened, letters)
        if attribution.has_residual_stream(opened)
        else None,
        states_by_strings.attention_patterns(opened, letters) if in_one_stream else None,
        units,
        None if units is None else states_by_strings.principal_path(units.states[-1]),
    )


def patch(
    store: Store,
    run: int | str,
    base: str | Sequence[str],
    source: str | Sequence[str] | None = None,
    epoch: int | None = None,
) -> Patches:
    """Which states, carried over from another string, turn a model's answer.

    Args:
        base: the string that states are put into.
        source: one of the same length that they are from; the nearest one that is answered rightly
            and otherwise, where none is named.

    Raises:
        UnknownRunError: as `minimal`.
        InvalidStringError: no string of this alphabet, not of the same length, or none to be had.
    """
    from seqcls.interpretability import patching

    opened = model(store, run, epoch)
    letters = opened.letters(base)
    other = _nearest(opened, letters) if source is None else opened.letters(source)
    patched = patching.patch(opened, letters, other)
    return Patches(patched, opened.answer(letters), opened.answer(other))


def ablate(
    store: Store,
    run: int | str,
    kinds: Sequence[str] = (),
    how: str = "zero",
    *,
    sample: int | None = None,
    prune: bool = False,
    epoch: int | None = None,
) -> Ablations:
    """What a model is without each of its parts alone, or without more and more of them.

    Args:
        kinds: `head`, `feed-forward` or `unit`; units only where there are no others, if none is
            named.
        how: `zero`: the part adds nothing; `mean`: it adds its mean over the strings that are
            judged, by letter counts where the answer is read, else at all tokens.
        sample: distinct test strings to run and judge by. If no number is named, all test strings
            where letter counts decide; else 400 of them are run.
        prune: remove more and more, the cheapest part first.

    Raises:
        UnknownRunError: as `minimal`.
        ConfigError: there is no such kind of part, or the model has none, or too many to prune.
    """
    from seqcls.interpretability import ablation
    from seqcls.interpretability.backends import Counts
    from seqcls.models.parts import PART_KINDS

    kinds = [kinds] if isinstance(kinds, str) else kinds
    for text in kinds:
        if text not in PART_KINDS:
            raise ConfigError(Parameter("kinds", text), f": expected {', '.join(PART_KINDS)}")
    methods: dict[str, AblationMethod] = {"zero": "zero", "mean": "mean"}
    if how not in methods:
        raise ConfigError(Parameter("how", how), ": expected zero or mean")
    method = methods[how]
    opened = model(store, run, epoch)
    backend = ablation.running(opened, sample) if sample else ablation.backend_of(opened)
    parts = backend.parts([kind for kind in PART_KINDS if kind in kinds])
    if not parts:
        run_id = queries.find_run(store.reader(), str(run))
        raise ConfigError(
            f"run {run_id} has no such part; leave ", Parameter("kinds"), " out to see those it has"
        )
    if prune:
        outcomes = tuple(ablation.prune(backend, parts, method))
    else:
        outcomes = (ablation.ablate(backend, {}), *ablation.rank(backend, parts, method))
    exact = isinstance(backend, Counts)
    return Ablations(int(backend.tested.occurrences.sum()), outcomes, exact)


def _nearest(opened: TrainedModel, letters: Letters) -> Letters:
    nearest_one = nearest_right(opened, letters, other_answer=True, same_length=True, known=False)
    if nearest_one.answer is None:
        words = opened.problem.kind.words
        raise InvalidStringError(
            f"no {words.string}{whose_known(opened.problem)} of the same length within two "
            f"substitutions is {words.hit} with the other prediction; name one with ",
            Parameter("source"),
        )
    return nearest_one.letters


def automaton(
    store: Store,
    run: int | str,
    epoch: int | None = None,
    *,
    states: int | None = None,
    rounds: int | None = None,
    strings: int | None = None,
    length: int | None = None,
    seconds: float | None = None,
    on_round: "Callable[[Round], None] | None" = None,
) -> "LearnedAutomaton":
    """The minimal automaton of what a model answers, as far as it was asked.

    What comes back is exported by its methods `dot`, `record` (as JSON has it) and `dfa` (of
    automata-lib).

    Args:
        states: of a hypothesis at most; this and what follows as the `Budget` has it, if not named.
        rounds: hypotheses at most.
        strings: short strings, all of which are tried, at most.
        length: tokens of the longest string asked.
        seconds: after which the learning ends.
        on_round: told of every hypothesis.

    Raises:
        UnknownRunError: there is no such run, or it has no such weights.
        ConfigError: the task is no language, its alphabet is too large, or nothing may be asked.
    """
    from seqcls.interpretability.automaton import LearningBudget
    from seqcls.interpretability.automaton_learning import learn

    given = {"states": states, "rounds": rounds, "strings": strings, "length": length}
    named = {name: value for name, value in given.items() if value is not None}
    budget = (
        LearningBudget(**named) if seconds is None else LearningBudget(**named, seconds=seconds)
    )
    return learn(model(store, run, epoch), budget, on_round)


def automaton_inside(
    store: Store, run: int | str, learned: "LearnedAutomaton", epoch: int | None = None
) -> "Inside":
    """Where the states of a learned automaton are inside a model: linear probes and clusters.

    Args:
        learned: what `automaton` has found of the same model; its `main_hypothesis` is looked for.

    Raises:
        UnknownRunError: as `automaton`.
        ConfigError: the model names no states of its blocks or layers.
    """
    from seqcls.interpretability.automaton_inside import look_inside

    return look_inside(model(store, run, epoch), learned.main_hypothesis.automaton)
