"""What learning a model's automaton has found."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seqcls.interpretability.automata.budget import Budget
from seqcls.interpretability.automata.exported import dfa, dot, record
from seqcls.interpretability.model.trained_model import Answer
from seqcls.tasks.automata.automaton import Automaton

if TYPE_CHECKING:
    from automata.fa.dfa import DFA

MOST = 0.95
"""The share of a model's test answers, and of its test errors, with which a hypothesis shows
them."""


@dataclass(frozen=True, eq=False)
class Round:
    """One hypothesis, held against the model."""

    automaton: Automaton
    asked: int
    """Strings asked until then."""
    agreement: float
    """The share of distinct test strings on which it says what the model says."""
    explained: int
    """Misclassified test strings on which it and the language differ."""
    counterexample: str | None
    """The string on which the model says otherwise; None where none was found."""

    @property
    def states(self) -> int:
        return len(self.automaton.table)


@dataclass(frozen=True, eq=False)
class Learned:
    """An automaton over the tokens of a language, and what was asked of the model to find it."""

    alphabet: tuple[str, ...]
    rounds: tuple[Round, ...]
    """Its last hypothesis is the automaton."""
    ended: str | None
    """What ended the learning while the model differed; None where no difference was found."""
    budget: Budget
    tried_length: int
    """All strings up to it were tried."""
    empty_given: bool
    """Whether the empty string, which no test has, was taken as the language has it."""
    empty_known: bool
    """Whether anybody knows its label; else it was taken for negative."""
    asked: int
    longer: int
    """Distinct longer strings that were tried."""
    longest: int
    """Tokens of the longest of them."""
    language: Automaton | None
    """The language's minimal automaton, where it is known to be regular."""
    error: Answer | None
    """The model's shortest error: where the automaton was found, the shortest string on which it
    and the language differ; else of the strings tried."""
    error_is_tested: bool
    """Whether the test set has that string."""
    wrong: int
    """Distinct test strings, of those asked, that the model misclassifies."""

    @property
    def found(self) -> bool:
        """Whether the automaton agrees with the model on every string tried."""
        return self.ended is None

    @property
    def automaton(self) -> Automaton:
        """The last hypothesis; minimal."""
        return self.rounds[-1].automaton

    def dot(self) -> str:
        """The automaton as a graph in the language DOT."""
        return dot(self.automaton, self.alphabet)

    def record(self) -> dict[str, Any]:
        """The automaton as JSON has it."""
        return record(self.automaton, self.alphabet)

    def dfa(self) -> "DFA":
        """The automaton as a `DFA` of automata-lib."""
        return dfa(self.automaton, self.alphabet)

    @property
    def states(self) -> int:
        return self.rounds[-1].states

    @property
    def explained(self) -> int:
        """The test errors on which the automaton and the language differ."""
        return self.rounds[-1].explained

    @property
    def main_hypothesis(self) -> Round:
        """The smallest hypothesis that makes `MOST` of the model's test errors; else the last."""
        if not self.wrong:
            return self.rounds[-1]
        making = (x for x in self.rounds if x.explained >= MOST * self.wrong)
        return next((x for x in making if x.agreement >= MOST), self.rounds[-1])
