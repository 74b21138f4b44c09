"""A trained model with all analyses as methods.

A result has `record()` for programs, and `RunModel.describe` gives it in sentences and tables.
Commands, functions of `sweeps.api` and notebooks call these methods on a stored run's model.

PyTorch and AALpy are imported where they are used: they take a second or two to load.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from seqcls import prediction
from seqcls.errors import ConfigError, InvalidStringError, Parameter
from seqcls.interpretability.automaton import LearnedAutomaton, LearningBudget
from seqcls.interpretability.domains import obstacle
from seqcls.interpretability.minimal import (
    Reduced,
    Shortest,
    minimal_failing,
    nearest_right,
    shortest_failing,
    whose_known,
)
from seqcls.interpretability.rules import Rules, fitting_rules
from seqcls.interpretability.trained_model import Given, Letters, TrainedModel
from seqcls.interpretability.verdicts import (
    OutputVerdict,
    output_verdict,
    verdict_of,
    verdict_text,
)
from seqcls.interpretability.wording import Table
from seqcls.notebook import bars
from seqcls.results import Verdict

if TYPE_CHECKING:
    from seqcls.interpretability.ablation import AblationMethod, Ablations
    from seqcls.interpretability.automaton import Round
    from seqcls.interpretability.automaton_inside import Inside
    from seqcls.interpretability.certification import Certification
    from seqcls.interpretability.circuits import Circuits, Orders
    from seqcls.interpretability.explanations import Explanation
    from seqcls.interpretability.families import FamilyAnswers
    from seqcls.interpretability.patching import Patched
    from seqcls.interpretability.states_by_strings import ModelStates
    from seqcls.proofs.prover import Proof

Budget = TypeVar("Budget")


def within(budget: Budget, **bounds: float | None) -> Budget:
    """Returns a budget with the bounds that are not None."""
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    return cast(Budget, replace(cast(Any, budget), **given))


@dataclass(frozen=True, eq=False, repr=False)
class RunModel(TrainedModel):
    """A stored run's model, for notebooks and commands.

    A string is text such as `ab{100}c{55}`, or a list of its tokens. Each method refuses a string
    that is not over this alphabet (`InvalidStringError`), and a model or task to which it does not
    apply (`ConfigError`).
    """

    by_length: Sequence[tuple[int, float]] = ()
    """Lengths of its test strings, each with the share that it gets right."""
    run: int | None = None
    """The id of its run."""

    def _repr_html_(self) -> str:
        """Renders its accuracy by length, its settings, and its answers to the shortest strings."""
        known = self.problem.config.knows_trained_lengths
        trained = self.problem.trained_lengths[-1] if known else None
        return bars(self.by_length, trained) + super()._repr_html_()

    @property
    def name(self) -> str:
        """Its name in sentences."""
        return super().name if self.run is None else f"run {self.run}"

    def logits(self, strings: str | Sequence[Given]) -> np.ndarray:
        """Computes a logit for each string, positive if the model takes it to be in the language.

        Raises:
            ConfigError: the task is no language; `ask_all` gives its answers.
        """
        self.problem.require_language("logits are of languages")
        return np.asarray(self.ask_all(strings).score)

    def predict(
        self, strings: Sequence[str], *, partial: bool = True, beam: int | None = None
    ) -> dict[str, list[Any]]:
        """Predicts strings, from letter counts if they suffice.

        Args:
            strings: in the usual notation.
            partial: True to predict the others if the model cannot read a string; False to refuse.
            beam: for a transduction, the width of a beam, which finds at most so many outputs.

        Returns:
            Columns: string, label (None if the string is too long to be read token by token),
            predicted (None if the model cannot read it), logit, probability. For a task that is no
            language string, target, the answer and its score; with a beam string, target, output,
            ended and log_probability, a row an output.

        Raises:
            ConfigError: a beam for a task that is no transduction, or one too narrow or too wide.
            InvalidStringError: a string is not over this alphabet, or is no input.
        """
        return prediction.predict(self.problem, self.weights, strings, partial=partial, beam=beam)

    def explain(self, string: Given) -> "Explanation":
        """Finds the cause of an answer."""
        from seqcls.interpretability import explanations

        self._refuse_others("explanations")
        return explanations.explain(self, self.tokenizer.notation(string))

    def proofs(self) -> "Certification":
        """Proves what it can of the answers for strings of every length."""
        from seqcls.interpretability.certification import certify

        self._refuse_others("proofs")
        return certify(self)

    def _refuse_others(self, what: str) -> None:
        """Refuses a model that is not the report's.

        Raises:
            ConfigError: `what` needs such a model; the message names other analyses.
        """
        reason = obstacle(self.problem)
        self.problem.require_language(f"{self.name}: {what} are of languages")
        if reason is None:
            return
        from seqcls.interpretability.readable_model import plain_model
        from seqcls.proofs.cells import why_not_proved

        proves = what == "proofs" and why_not_proved(self.problem) is None
        others = ["`states`"]
        others += ["`patch`"] * bool(plain_model(self).sites())
        others += ["`family`"] * (self.problem.unknown_labels is None)
        run = "RUN" if self.run is None else self.run
        first = f"`seqcls model prove {run}`, " * proves
        raise ConfigError(
            f"{self.name}: {what} do not hold for this model: {reason}; try {first}`seqcls model "
            f"rules {run}`, `seqcls model minimal {run}`, or, with a string, {' or '.join(others)}"
        )

    def family(self, strings: str) -> "FamilyAnswers":
        """Finds where the answer changes as the free counts of a family such as `<ab>{n}` grow.

        It uses letter counts up to a million if these decide; else it runs strings of up to 2,000
        tokens. For a transduction it finds where outputs are no longer right, on inputs of up to
        400 tokens.

        Raises:
            InvalidStringError: it is no family over this alphabet.
        """
        from seqcls.interpretability.families import answers_along

        if reason := self.problem.unknown_labels:
            raise ConfigError(f"no family is judged: {reason}")
        return answers_along(self, self.tokenizer.notation(strings))

    def verdict(self) -> "Verdict | OutputVerdict":
        """Checks all strings up to a length.

        It uses letter counts if these decide and are few enough; else it runs string by string. For
        a transduction it runs every input up to a length.
        """
        if reason := self.problem.unknown_labels:
            raise ConfigError(f"{self.name}: there is no exhaustive check: {reason}")
        # A verdict on a language counts its answers by their direction.
        is_language = not (self.problem.writes or self.problem.at_places)
        return verdict_of(self) if is_language else output_verdict(self)

    def minimal(self, string: Given) -> Reduced:
        """Reduces a misclassified string until no deletion fails; finds the nearest right one.

        Raises:
            InvalidStringError: the string is not over this alphabet, or is answered rightly.
        """
        return minimal_failing(self, self.letters(string))

    def shortest(self) -> Shortest:
        """Finds the shortest misclassified strings."""
        return shortest_failing(self)

    def rules(self) -> Rules:
        """Finds simple rules that predict the answers on the test strings, the best first."""
        return fitting_rules(self)

    def states(self, string: Given) -> "ModelStates":
        """Finds each part's share of a string's logit, and the position at which the answer forms.

        Raises:
            InvalidStringError: the string is not over this alphabet, or has too many tokens.
        """
        from seqcls.interpretability import states_by_strings
        from seqcls.interpretability.states_of_outputs import output_tokens

        letters = self.letters(string)
        answer = self.answer(letters)
        writes = self.problem.lacks("prefixes") is not None
        units = states_by_strings.recurrent_units(self, letters)
        return states_by_strings.ModelStates(
            answer,
            None if writes else states_by_strings.prefix_logits(self, letters),
            output_tokens(self, letters) if writes else None,
            states_by_strings.logit_steps(self, letters),
            states_by_strings.attention_patterns(self, letters, "attention"),
            units,
            None if units is None else states_by_strings.principal_path(units.states[-1]),
        )

    def patch(self, base: Given, source: Given | None = None) -> "Patched":
        """Finds the states that change the answer when patched in from another string.

        Args:
            base: the string whose states are replaced.
            source: the string of the same length that states are taken from; by default the
                nearest one that is answered rightly and differently.

        Raises:
            InvalidStringError: a string is not over this alphabet, both differ in length, or there
                is no such source.
        """
        from seqcls.interpretability.patching import patch

        letters = self.letters(base)
        other = self._nearest(letters) if source is None else self.letters(source)
        return patch(self, letters, other)

    def _nearest(self, letters: Letters) -> Letters:
        nearest = nearest_right(self, letters, same_length=True)
        if nearest.answer is None:
            words = self.problem.kind.words
            raise InvalidStringError(
                f"no {words.string}{whose_known(self.problem)} of the same length within two "
                f"substitutions is {words.hit} with the other prediction; name one with ",
                Parameter("source"),
            )
        return nearest.letters

    def ablate(
        self,
        kinds: Sequence[str] = (),
        how: str = "zero",
        *,
        sample: int | None = None,
        prune: bool = False,
    ) -> "Ablations":
        """Tests the model without each of its parts alone, or without more and more of them.

        Args:
            kinds: `head`, `feed-forward`, `unit` or `dimension` (of the residual stream); by
                default heads and feed-forwards, or else units.
            how: `zero`: the part adds nothing; `mean`: it adds its mean over all tokens of all
                strings evaluated.
            sample: number of distinct test strings to evaluate; by default all if letter counts
                decide, else 400.
            prune: remove more and more parts, the cheapest first.

        Raises:
            ConfigError: there is no such kind of part, or the model has none, or too many to prune.
        """
        from seqcls.interpretability.ablation import Ablations, Judge
        from seqcls.models.parts import PART_KINDS

        # A single kind may be given as text, which is a sequence of letters too.
        kinds = [kinds] if isinstance(kinds, str) else kinds
        for text in kinds:
            if text not in PART_KINDS:
                raise ConfigError(Parameter("kinds", text), f": expected {', '.join(PART_KINDS)}")
        methods: dict[str, AblationMethod] = {"zero": "zero", "mean": "mean"}
        if how not in methods:
            raise ConfigError(Parameter("how", how), ": expected zero or mean")
        judge = Judge(self, sample)
        parts = judge.parts([kind for kind in PART_KINDS if kind in kinds])
        if not parts:
            raise ConfigError(
                f"{self.name} has no such part; leave ",
                Parameter("kinds"),
                " out to see those it has",
            )
        if prune:
            outcomes = tuple(judge.prune(parts, methods[how]))
        else:
            outcomes = (judge.ablate({}), *judge.rank(parts, methods[how]))
        strings = int(judge.tested.occurrences.sum())
        return Ablations(strings, outcomes, judge.exact, how, prune)

    def circuits(self) -> "tuple[Circuits, ...]":
        """Computes each head's query-key and value-output circuits for every type of token.

        Raises:
            ConfigError: no head of the model attends to tokens by query and key.
        """
        from seqcls.interpretability.circuits import circuits

        return circuits(self)

    def orders(self, string: Given, orders: int = 8, seed: int = 0) -> "Orders":
        """Evaluates a string with its letters in random orders.

        Raises:
            InvalidStringError: the string is not over this alphabet, or has too many tokens.
        """
        from seqcls.interpretability.circuits import letter_orders

        letters = self.letters(string)
        # Called for its refusal of a string that the model cannot read.
        self.answer(letters)
        return letter_orders(self, letters, orders, seed)

    def automaton(
        self,
        *,
        states: int | None = None,
        rounds: int | None = None,
        strings: int | None = None,
        length: int | None = None,
        seconds: float | None = None,
        on_round: "Callable[[Round], None] | None" = None,
    ) -> LearnedAutomaton:
        """Learns the minimal automaton of the answers, as far as the model is queried.

        The result is exported by its methods `dot`, `record` (for JSON) and `dfa` (of
        automata-lib).

        Args:
            states: most states of a hypothesis; the defaults of all bounds are those of
                `LearningBudget`.
            rounds: most hypotheses.
            strings: most short strings, all of which are queried.
            length: tokens of the longest string queried.
            seconds: time limit of the learning.
            on_round: called with every hypothesis.

        Raises:
            ConfigError: the task is no language, its alphabet is too large, or no string may be
                queried.
        """
        from seqcls.interpretability.automaton_learning import learn

        bounds = {"states": states, "rounds": rounds, "strings": strings, "length": length}
        return learn(self, within(LearningBudget(), **bounds, seconds=seconds), on_round)

    def automaton_inside(self, learned: LearnedAutomaton) -> "Inside":
        """Finds the states of a learned automaton inside the model by linear probes.

        Args:
            learned: a result of `automaton`; its `main_hypothesis` is probed.

        Raises:
            ConfigError: the model names no states of blocks or layers.
        """
        from seqcls.interpretability.automaton_inside import look_inside

        return look_inside(self, learned.main_hypothesis.automaton)

    def prove(
        self,
        *,
        learned: bool = False,
        seconds: float | None = None,
        regions: int | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> "Proof":
        """Proves a recurrent network right on every string, or refutes it, or cannot decide.

        Args:
            learned: compare it with the automaton learned from its answers, not the language's.
            seconds: time limit; the defaults of all bounds are those of `ProofBudget`.
            regions: most regions of states.
            on_progress: called with a description of each step.

        Raises:
            ConfigError: nothing can be proved about such a model, or it has no known automaton.
        """
        from seqcls.proofs.prover import ProofBudget, prove

        found = self.automaton() if learned else None
        if found is not None and not found.found:
            raise ConfigError(f"no automaton of the model was found: {found.ended}")
        automaton = None if found is None else found.automaton
        budget = within(ProofBudget(), seconds=seconds, regions=regions)
        return prove(self, automaton, budget, on_progress)

    def describe(self, found: Any) -> Iterator[str | Table]:
        """Describes a result in sentences and tables."""
        if isinstance(found, Verdict):
            yield f"{self.name}: {verdict_text(found, self.problem)}"
        else:
            yield from found.describe(self)
