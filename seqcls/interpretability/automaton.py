"""The result of learning a model's automaton."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from seqcls.errors import ConfigError
from seqcls.interpretability.trained_model import MAX_LENGTH, Answer, TrainedModel
from seqcls.interpretability.wording import Table, percent, sign
from seqcls.problem import Problem
from seqcls.strings.tokenizer import Tokenizer
from seqcls.tasks.automaton import Automaton
from seqcls.text import count

if TYPE_CHECKING:
    from automata.fa.dfa import DFA


# Bounds of the evaluations of a model while its automaton is learned.


MOST_LETTERS = 8
"""Tokens of an alphabet whose automata are learned: of more, too few short strings are tried."""


@dataclass(frozen=True)
class LearningBudget:
    """Bounds, each of which ends the learning."""

    rounds: int = 100
    """Hypotheses that are held against the model."""
    states: int = 40
    """States of a hypothesis."""
    length: int = 0
    """Tokens of the longest query; 0 for twice the longest test string."""
    strings: int = 2**16
    """Short strings, all of which are tried up to the greatest length that the number allows."""
    single: int = 2**20
    """Longer strings that are queried one by one."""
    seconds: float = 60.0

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            most = _MAX_BUDGET.get(name)
            # `not value > 0` refuses NaN too.
            if not value > 0 and not (name == "length" and value == 0):
                raise ConfigError(f"{name}={value}: expected more than 0; nothing could be learned")
            if most is not None and value > most:
                raise ConfigError(f"{name}={value}: expected at most {most:,}")
            # `seconds` alone has no maximum above, and JSON knows no infinity.
            if value == math.inf:
                raise ConfigError(f"{name}={value}: expected a finite number, such as 60")


_MAX_BUDGET = {
    "rounds": 10_000,
    "states": 1_000,
    "length": MAX_LENGTH,
    "strings": 2**20,
    "single": 2**24,
}


def obstacle(problem: Problem) -> str | None:
    """The reason why automata of a problem's models are not learned; None where they are."""
    # A model that answers at every place is a Moore machine: a state outputs its answer there.
    if not problem.at_places and (reason := problem.lacks("labels")):
        return f"an automaton is learned of languages, and {reason}"
    letters = problem.tokenizer.num_letters
    if letters > MOST_LETTERS:
        return (
            f"the alphabet has {letters} tokens: automata are learned over at most "
            f"{MOST_LETTERS}; try `seqcls model rules` or `seqcls model minimal`"
        )
    return None


# Automata as graphs and as data.


def dot(
    automaton: Automaton,
    alphabet: Sequence[str],
    color: str = "black",
    names: Mapping[int, str] | None = None,
) -> str:
    """A graph in the language DOT: accepting states have two rings, an arrow leads to the start.

    Edges between the same two states are one, with all their tokens.

    Of a Moore machine `names` are those of its outputs, which are below the states' numbers.
    """
    lines = [
        "digraph {",
        f'  graph [rankdir=LR, bgcolor="transparent"]; node [color="{color}", '
        f'fontcolor="{color}", shape=circle]; edge [color="{color}", fontcolor="{color}"];',
        # DOT draws arrows between nodes only, so the one to the start leaves an invisible node.
        '  start [shape=none, label=""];',
        f"  start -> {automaton.start};",
    ]
    lines += [f"  {state} [shape=doublecircle];" for state in automaton.accepting.nonzero()[0]]
    for state, output in enumerate(automaton.says.tolist() if names else ()):
        lines.append(f'  {state} [label="{state}\\n{_escape((names or {})[output])}"];')
    edges: dict[tuple[int, int], list[str]] = {}
    for state, row in enumerate(automaton.table.tolist()):
        for token, after in zip(alphabet, row, strict=True):
            edges.setdefault((state, after), []).append(token)
    for (state, after), tokens in edges.items():
        lines.append(f'  {state} -> {after} [label="{", ".join(map(_label, tokens))}"];')
    return "\n".join([*lines, "}"])


def record(
    automaton: Automaton, alphabet: Sequence[str], names: Mapping[int, str] | None = None
) -> dict[str, Any]:
    """An automaton as JSON has it; of a Moore machine with the outputs by these names."""
    outputs = [names[output] for output in automaton.says.tolist()] if names else []
    return {
        **({"outputs": outputs} if names else {}),
        "alphabet": list(alphabet),
        "start": automaton.start,
        "accepting": automaton.accepting.nonzero()[0].tolist(),
        "transitions": [dict(zip(alphabet, row, strict=True)) for row in automaton.table.tolist()],
    }


def _label(token: str) -> str:
    """A token in a label, where a comma separates tokens and a backslash keeps signs apart."""
    return re.sub(r"([!-/:-@\[-^`{-~])" if len(token) > 1 else r'([\\",])', r"\\\1", token)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


MAIN_SHARE = 0.95
"""The main hypothesis gives at least this share of a model's test answers, and test errors."""


@dataclass(frozen=True, eq=False)
class Round:
    """One hypothesis, held against the model."""

    automaton: Automaton
    asked: int
    """Strings queried until then."""
    agreement: float
    """The share of distinct test strings on which its answer is the model's."""
    explained: int
    """Misclassified test strings on which it and the language differ."""
    counterexample: str | None
    """A string to which the model's answer is another; None where none was found."""

    @property
    def states(self) -> int:
        return len(self.automaton.table)


SHOWN_STATES = 20
"""States of an automaton that a table shows; `record` and `dot` have them all."""

# These are names of attributes and keys of the JSON at once.
ROUND = ("states", "asked", "agreement", "explained", "counterexample")
LEARNED = (
    *("found", "ended", "tried_length", "longer", "longest", "asked", "error_is_tested"),
    "explained",
)
"""Keys of the JSON of a hypothesis, and of all that was learned."""


@dataclass(frozen=True, eq=False)
class LearnedAutomaton:
    """An automaton over the tokens of a language, and the queries by which it was found."""

    alphabet: tuple[str, ...]
    names: Mapping[int, str]
    """The names of a Moore machine's outputs; empty where states accept or reject."""
    rounds: tuple[Round, ...]
    """Its last hypothesis is the automaton."""
    ended: str | None
    """The reason for ending while the model differed; None where no difference was found."""
    budget: LearningBudget
    tried_length: int
    """All strings up to it were tried."""
    empty_given: bool
    """True if the label of the empty string, which no test has, was taken from the language."""
    empty_known: bool
    """True if its label is known; else it was taken for negative."""
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
    """True if the test set has that string."""
    wrong: int
    """Distinct test strings, of those queried, that the model misclassifies."""

    @property
    def found(self) -> bool:
        """True if the automaton agrees with the model on every string tried."""
        return self.ended is None

    @property
    def automaton(self) -> Automaton:
        """The last hypothesis; minimal."""
        return self.rounds[-1].automaton

    def dot(self) -> str:
        """The automaton as a graph in the language DOT."""
        return dot(self.automaton, self.alphabet, names=self.names)

    def record(self) -> dict[str, Any]:
        """The automaton as JSON has it."""
        return record(self.automaton, self.alphabet, self.names)

    def learning(self) -> dict[str, Any]:
        """The automaton as JSON has it, and all queries and results."""
        return {
            **self.record(),
            **{name: getattr(self, name) for name in LEARNED},
            "budget": asdict(self.budget),
            "error": None if self.error is None else self.error.record(),
            "test_errors": self.wrong,
            "rounds": [{name: getattr(made, name) for name in ROUND} for made in self.rounds],
            "said": learned_text(self),
        }

    def describe(self, model: TrainedModel) -> Iterator[str | Table]:
        """Yields the findings, the hypotheses, and the main one's states where they are few."""
        yield from [model.name, *learned_text(self)]
        title = "hypotheses, each with the string that refutes it"
        yield Table(title, [self._hypothesis(made) for made in self.rounds])
        # Later hypotheses may be large without making more of the errors.
        shown, of_state = self.main_hypothesis, (self.names and "output") or "accepts"
        if shown.states <= SHOWN_STATES:
            outputs = shown.automaton.says.tolist() if self.names else ()
            ends = [self.names[output] for output in outputs]
            ends = ends or ["yes" if x else "" for x in shown.automaton.accepting.tolist()]
            rows = zip(ends, shown.automaton.table.tolist(), strict=True)
            yield Table(
                count(shown.states, "state"),
                [
                    {"state": number, of_state: end, **dict(zip(self.alphabet, row, strict=True))}
                    for number, (end, row) in enumerate(rows)
                ],
            )

    def _hypothesis(self, made: Round) -> dict[str, Any]:
        differs = made.counterexample
        return {
            "states": made.states,
            "strings asked": f"{made.asked:,}",
            "agrees on tested": percent(made.agreement),
            "test errors made": f"{made.explained:,} of {self.wrong:,}",
            "refuted by": "" if differs is None else self.display(differs),
        }

    def display(self, string: str) -> str:
        """A string as it is shown; the empty one needs a name."""
        return Tokenizer(self.alphabet).display(string) or "the empty string"

    def dfa(self) -> "DFA":
        """The automaton as a `DFA` of automata-lib; of a Moore machine by which states accept."""
        # Takes a third of a second to load.
        from automata.fa.dfa import DFA

        # Without `names`, as a DFA accepts or rejects and outputs nothing else.
        recorded = record(self.automaton, self.alphabet)
        return DFA(
            states=set(range(self.states)),
            input_symbols=set(self.alphabet),
            transitions=dict(enumerate(recorded["transitions"])),
            initial_state=self.automaton.start,
            final_states=set(recorded["accepting"]),
        )

    @property
    def states(self) -> int:
        return self.rounds[-1].states

    @property
    def explained(self) -> int:
        """The test errors on which the automaton and the language differ."""
        return self.rounds[-1].explained

    @property
    def main_hypothesis(self) -> Round:
        """The smallest hypothesis that makes `MAIN_SHARE` of the test errors; else the last."""
        if not self.wrong:
            return self.rounds[-1]
        # A hypothesis can make the errors and still misread what the model gets right.
        making = (x for x in self.rounds if x.explained >= MAIN_SHARE * self.wrong)
        return next((x for x in making if x.agreement >= MAIN_SHARE), self.rounds[-1])


# The result in sentences that claim no more than was tried.


def learned_text(learned: LearnedAutomaton) -> list[str]:
    """The findings about a model, a sentence each."""
    sentences = [_finding(learned)]
    if learned.empty_given and not learned.empty_known:
        sentences.append(
            "The test has no empty string, so the model was not asked about it: it is taken for "
            "negative."
        )
    elif learned.empty_given:
        sentences.append(
            "The test has no empty string, so of that the language's label was taken, not the "
            "model's answer."
        )
    sentences.append(_language_text(learned))
    if learned.wrong:
        sentences.append(_errors_text(learned))
    return sentences


def _finding(learned: LearnedAutomaton) -> str:
    made = len(learned.rounds)
    rounds = f"{made:,} {'hypothesis' if made == 1 else 'hypotheses'}"
    if not learned.found:
        differs = learned.rounds[-1].counterexample
        assert differs is not None
        return (
            f"No finite machine was found within the budget: {learned.ended} ({rounds}, "
            f"{count(learned.asked, 'string')} asked). The last hypothesis, of "
            f"{count(learned.states, 'state')}, and the model differ on {learned.display(differs)}."
        )
    longer = ""
    if learned.longer:
        longer = f", and on {learned.longer:,} longer ones, of up to {learned.longest:,}"
    return (
        f"An automaton of {count(learned.states, 'state')} agrees with the model on every string "
        f"of up to {count(learned.tried_length, 'token')} (all tried){longer} ({rounds}, "
        f"{count(learned.asked, 'string')} asked). Of other strings nothing is known."
    )


def _language_text(learned: LearnedAutomaton) -> str:
    if learned.error is not None:
        return _error_text(learned, learned.error)
    if learned.found and learned.language is not None:
        states = count(learned.states, "state")
        return f"It is the same as the minimal automaton of the language ({states})."
    return "On all strings that were tried the model is right."


def _error_text(learned: LearnedAutomaton, error: Answer) -> str:
    if not error.is_wrong:
        return f"It differs from the language first on {learned.display(error.string)}."
    # Of a Moore machine both are texts, and there is no single logit.
    answers = (error.label, error.predicted)
    label, predicted = (x if isinstance(x, str) else sign(bool(x)) for x in answers)
    logit = "" if learned.names else f" (logit {error.logit:.4f})"
    tested = "the test has it" if learned.error_is_tested else "the test does not have it"
    what = "of the strings asked, the model is wrong first on"
    if learned.found and learned.language is not None:
        what = "it differs from the language first on"
    return (
        f"{what[0].upper()}{what[1:]} {learned.display(error.string)}: {label}, and the model "
        f"says {predicted}{logit}, an error of the model ({tested})."
    )


def _errors_text(learned: LearnedAutomaton) -> str:
    chosen = learned.main_hypothesis
    which = "The automaton"
    if chosen is not learned.rounds[-1] or not learned.found:
        which = f"The hypothesis of {count(chosen.states, 'state')}"
    return (
        f"{which} makes {chosen.explained:,} of the model's {learned.wrong:,} different test "
        f"errors and says what the model says on {percent(chosen.agreement)} of the different test "
        "strings."
    )
