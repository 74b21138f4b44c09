"""What learning an automaton has found, in sentences that say no more than was tried."""

from typing import TYPE_CHECKING

from seqcls.interpretability.automata.learned_automaton import Learned
from seqcls.interpretability.model.trained_model import Answer
from seqcls.interpretability.rounded import percent
from seqcls.interpretability.wording import sign
from seqcls.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    # PyTorch, which takes a second or two to load.
    from seqcls.interpretability.automata.inside import Clusters, Inside


def learned_text(learned: Learned) -> list[str]:
    """What was found of a model, a sentence each."""
    said = [_finding(learned)]
    if learned.empty_given and not learned.empty_known:
        said.append(
            "The test has no empty string, so the model was not asked about it: it is taken for "
            "negative."
        )
    elif learned.empty_given:
        said.append(
            "The test has no empty string, so of that the language's label was taken, not the "
            "model's answer."
        )
    said.append(_of_language(learned))
    if learned.wrong:
        said.append(_of_errors(learned))
    return said


def _finding(learned: Learned) -> str:
    rounds = counted(len(learned.rounds), "hypothesis", "hypotheses")
    if not learned.found:
        differs = learned.rounds[-1].counterexample
        assert differs is not None
        return (
            f"No finite machine was found within the budget: {learned.ended} ({rounds}, "
            f"{learned.asked:,} strings asked). The last hypothesis, of "
            f"{states(learned.states)}, and the model differ on {named(learned, differs)}."
        )
    longer = ""
    if learned.longer:
        longer = f", and on {learned.longer:,} longer ones, of up to {learned.longest:,}"
    return (
        f"An automaton of {states(learned.states)} agrees with the model on every string of up to "
        f"{learned.tried_length} tokens (all tried){longer} ({rounds}, {learned.asked:,} strings "
        "asked). Of other strings nothing is known."
    )


def _of_language(learned: Learned) -> str:
    if learned.error is not None:
        return _of_error(learned, learned.error)
    if learned.found and learned.language is not None:
        return (
            f"It is the same as the minimal automaton of the language ({states(learned.states)})."
        )
    return "On all strings that were tried the model is right."


def _of_error(learned: Learned, error: Answer) -> str:
    if not error.is_wrong:
        return f"It differs from the language first on {named(learned, error.string)}."
    label, predicted = (sign(bool(x)) for x in (error.label, error.predicted))
    tested = "the test has it" if learned.error_is_tested else "the test does not have it"
    what = "of the strings asked, the model is wrong first on"
    if learned.found and learned.language is not None:
        what = "it differs from the language first on"
    return (
        f"{what[0].upper()}{what[1:]} {named(learned, error.string)}: {label}, and the model says "
        f"{predicted} (logit {error.logit:.4f}), an error of the model ({tested})."
    )


def _of_errors(learned: Learned) -> str:
    chosen = learned.main_hypothesis
    which = "The automaton"
    if chosen is not learned.rounds[-1] or not learned.found:
        which = f"The hypothesis of {states(chosen.states)}"
    return (
        f"{which} makes {chosen.explained:,} of the model's {learned.wrong:,} different test "
        f"errors and says what the model says on {percent(chosen.agreement)} of the different test "
        "strings."
    )


def inside_text(inside: "Inside") -> list[str]:
    """How far an automaton's states are to be read from a model's own, a sentence a layer."""
    said = [
        f"Held-out strings: the most frequent of the {states(inside.states)} is right after "
        f"{percent(inside.commonest, 1)} of their tokens. A linear probe of"
    ]
    for probe in inside.probes:
        beyond = "" if probe.beyond is None else f", {percent(probe.beyond, 1)} in longer ones"
        said.append(
            f"  {probe.layer} is right after {percent(probe.trained, 1)} in strings of the "
            f"training's lengths{beyond}"
        )
    if inside.clusters is not None:
        clusters = inside.clusters
        said.append(
            f"What the last layer keeps after prefixes falls into {clusters.count} clusters, which "
            f"tell the automaton's state of {percent(clusters.purity, 1)} of them: "
            f"{_split(clusters)}."
        )
    return said


def _split(clusters: "Clusters") -> str:
    """How many clusters stand for each state."""
    numbers = sorted(set(clusters.of_state))
    return ", ".join(
        f"state {state} is {counted(clusters.of_state.count(state), 'cluster', 'clusters')}"
        for state in numbers
    )


def named(learned: Learned, string: str) -> str:
    """A string as it is shown; the empty one needs a name."""
    return Tokenizer(learned.alphabet).display(string) or "the empty string"


def states(number: int) -> str:
    """Such as `1 state`."""
    return counted(number, "state", "states")


def counted(number: int, one: str, many: str) -> str:
    """A number of things."""
    return f"{number:,} {one if number == 1 else many}"
