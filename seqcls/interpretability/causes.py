"""Why each of a failing model's errors is one: by its mechanism, or by what it does.

Where letter counts give an exact account of a model, every error's mechanism is shown by a
counterfactual (`interventions`). The errors of other models are attributed by what they have in
common (`behaviours` below), as wrong outputs are, and by how they differ from their targets
(`output_causes`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.cause_evidence import (
    LENGTH,
    Dilution,
    Head,
    first_difference,
    first_not_seen,
    same_letters_other_label,
    sees_counts_alone,
    separations,
    smallest_automaton,
)
from seqcls.interpretability.domains import (
    TriedStrings,
    ask_tested,
    short_strings,
    shortest_short_error,
)
from seqcls.interpretability.interventions import mechanism_of_error
from seqcls.interpretability.mechanisms import (
    ALL_HEADS,
    ANOTHER,
    AS_SHORT,
    BESIDE_NOT_LEARNED,
    BEYOND,
    CONSTANT,
    DILUTION,
    EXPLAINS,
    FEATURE,
    FORM,
    LONGER,
    NOT_LEARNED,
    ONE_EDIT,
    ORDER,
    ROUNDING,
    RULE,
    SAMPLE,
    AttributedError,
    Mechanism,
    spread_evenly,
)
from seqcls.interpretability.minimal import nearest_right
from seqcls.interpretability.network import Network, as_network
from seqcls.interpretability.output_causes import output_behaviours
from seqcls.interpretability.rules import agreement, rules
from seqcls.interpretability.trained_model import MAX_LENGTH, Letters, TrainedModel
from seqcls.results import Cause
from seqcls.shortcuts import READERS, agreement_of, read_test
from seqcls.text import count as count_of

# Why errors of any model are errors: diluted attention, or what they have in common.
#
# Each is attributed by the first that holds. What is said of all strings is tried on the test
# strings and on all short ones: those no longer than the training's, as far as
# `seqcls.interpretability.domains` tries them.
#
# - **order not seen**: the model sees letter counts alone, and a string with the same letters has
#   the other label: it is wrong on one of the two, whatever it has learned;
# - **dilution** of a Transformer that is right on all short strings, shown by an intervention on
#   its attention (`seqcls.interpretability.cause_evidence`) that answers the error rightly and
#   leaves test strings beyond the training's lengths that are answered rightly so;
# - **constant answer**: it gives all test strings, and nearly all short ones, the same answer;
# - **simple rule**: one rule of the fixed list in `seqcls.interpretability.rules` says what the
#   model says on at least `AGREES` of all test strings, and of the short ones, and on at least
#   `EXPLAINS` of its errors among either;
# - **answers by form**: a shortcut reader (`seqcls.shortcuts`), which knows less than the language,
#   says what the model says on at least `FORMAL` of the test strings of trained lengths, wrong ones
#   included: their agreement beyond what both being right explains is at least half of what it
#   could be, by the lower end of its 95% interval; and the error is one of the reader's, too;
# - **errors by a feature**: they lie beyond a bound of a feature of the task, and what is answered
#   rightly on the other side (`seqcls.interpretability.cause_evidence`);
# - **errors beyond a bound**: likewise, a bound of the length, which tells errors from right
#   answers better than any feature, of a model that is right on all short strings;
# - **another language**: of a model that is wrong on a short string, an automaton of a few states
#   (`seqcls.interpretability.cause_evidence`) says what the model says, as a simple rule does:
#   errors are where it and the language differ;
# - **order not seen**, too, of a model that sees letter counts alone and fails so on a short
#   string;
# - **one edit away**: of at most `EDITED` tokens, and a string one edit away is answered otherwise,
#   and rightly; which edit is told;
# - **longer than in training**, of a model that is right on all short strings, else **not only
#   longer than in training**, with the shortest error: false positives and negatives apart.
#
# A behaviour says what the errors have in common, not what makes them.
#
# Of a model that has not learned the trained lengths no cause is told that speaks of length: such
# errors, and the shortest in any case, are **not learned**.

AGREES = 0.99
FORMAL, LEAST_KAPPA = 0.95, 0.5
EDITED = 16

CONTROLS = 20
"""Rightly answered strings on which an intervention is tried beside the error."""


def behaviours(
    model: TrainedModel, wrong: Sequence[str], picked: Sequence[str]
) -> tuple[AttributedError, ...]:
    """Which of some errors are diluted attention, and the behavioural groups of the others.

    Args:
        wrong: all test strings that it misclassifies.
        picked: those to attribute.
    """
    test, texts = ask_tested(model, wrong)
    short = short_strings(model)
    shortest = shortest_short_error(model, short, test)
    unseen = first_not_seen(model.problem, short)
    groups = [
        *_rule(model, test, short),
        *_form(model, test, texts),
        *_bounds(model, test, short, by_length=shortest is None),
    ]
    places = {text: place for place, text in enumerate(texts)}
    causes = _not_seen(model, picked)
    if shortest is None:
        causes |= _find_diluted(
            model, test, texts, [string for string in picked if string not in causes]
        )
    elif unseen is None and not all(any(x[places[y]] for _, x in groups) for y in picked):
        groups += _another(model, test, short)
    for string in picked:
        place = places[string]
        first = next((attribution for attribution, holds in groups if holds[place]), None)
        if string in causes:
            continue
        if first is not None:
            causes[string] = replace(first, string=string)
        elif unseen is not None:
            causes[string] = AttributedError(string, ORDER, None, f"as in {model.display(unseen)}")
        else:
            causes[string] = _other(model, string, shortest, positive=bool(test.predicted[place]))
    return tuple(causes[string] for string in picked)


def _not_seen(model: TrainedModel, picked: Sequence[str]) -> dict[str, AttributedError]:
    """The errors that no function of letter counts can avoid all of, where that is all it sees."""
    if not sees_counts_alone(model.problem):
        return {}
    twins = (
        (string, same_letters_other_label(model.problem, model.letters(string)))
        for string in dict.fromkeys(picked)
    )
    return {string: AttributedError(string, ORDER) for string, twin in twins if twin is not None}


def _find_diluted(
    model: TrainedModel, test: TriedStrings, texts: Sequence[str], picked: Sequence[str]
) -> dict[str, AttributedError]:
    """The errors that are right once attention is not diluted, where that spares right answers."""
    dilution = Dilution(model)
    lengths = test.strings.lengths
    fits = (lengths > dilution.longest_trained) & (lengths <= MAX_LENGTH)
    right = np.flatnonzero(fits & ~test.wrong).tolist()
    spread = [right[place] for place in spread_evenly(len(right), CONTROLS)]
    controls = [model.letters(texts[row]) for row in spread]
    label_of = {texts[row]: bool(test.labels[row]) for row in np.flatnonzero(fits).tolist()}
    spares: dict[tuple[Head, ...], bool] = {}
    causes = {}
    for string in dict.fromkeys(x for x in picked if x in label_of):
        cause = dilution.cause_of(model.letters(string), label_of[string])
        if cause is None:
            continue
        if cause.heads not in spares:
            spares[cause.heads] = dilution.leaves(controls, cause.heads)
        if spares[cause.heads]:
            causes[string] = _of_dilution(string, cause.heads)
    return causes


def _of_dilution(string: str, heads: tuple[Head, ...]) -> AttributedError:
    if len(heads) > 1:
        return AttributedError(string, DILUTION, None, ALL_HEADS)
    ((block, head),) = heads
    return AttributedError(string, DILUTION, head, f"block {block}")


_Group = tuple[AttributedError, Bool[np.ndarray, " string"]]


def _rule(model: TrainedModel, test: TriedStrings, short: TriedStrings) -> Iterator[_Group]:
    """The rule that agrees best with the model, if any agrees well; the simplest of equals."""
    best: _Group | None = None
    most = 0.0
    for text, holds in rules(model.tokenizer.alphabet, test.strings, test.predicted, test.times):
        constant = text.startswith("always")
        says = holds(test.strings)
        share = agreement(text, says, test.predicted, test.times).agreement
        if share < (1 if constant else AGREES) or share <= most:
            continue
        same = says == test.predicted
        same_of_short = holds(short.strings) == short.predicted
        explained = [
            alike for alike in (same[test.wrong], same_of_short[short.wrong]) if len(alike)
        ]
        # Of a model that answers no short string, since its logits are NaN, no rule is claimed.
        agrees = len(same_of_short) > 0 and same_of_short.mean() >= AGREES
        if agrees and all(alike.mean() >= EXPLAINS for alike in explained):
            best = AttributedError("", CONSTANT if constant else RULE, None, text, share), same
            most = share
    if best is not None:
        yield best


def _form(model: TrainedModel, test: TriedStrings, texts: Sequence[str]) -> Iterator[_Group]:
    """The errors of the reader that agrees best with the model, if any agrees nearly always."""
    problem = model.problem
    within = np.isin(test.strings.lengths, problem.train.lengths)
    if not (test.wrong & within).any():
        return
    every = distinct_test_strings(problem.test).test_set.texts
    number_of = {text: number for number, text in enumerate(every)}
    numbers = np.array([number_of[text] for text in texts], dtype=np.int64)
    found = []
    for shortcut in read_test(problem):
        if shortcut.right is None:
            continue
        errs = ~shortcut.right[numbers]
        own = (test.labels[within], test.wrong[within], errs[within], test.times[within])
        agrees = agreement_of(*own)
        if agrees.share >= FORMAL and agrees.low >= LEAST_KAPPA:
            interval = f"{agrees.low:.2f} to {agrees.high:.2f}"
            text = f"{READERS[shortcut.reader]}, kappa {agrees.kappa:.2f} ({interval})"
            found.append((agrees.kappa, text, agrees.share, errs & test.wrong))
    if found:
        _, text, share, holds = max(found, key=lambda each: each[0])
        yield AttributedError("", FORM, None, text, share), holds


def _bounds(
    model: TrainedModel, test: TriedStrings, short: TriedStrings, *, by_length: bool
) -> Iterator[_Group]:
    """The bounds of features, and of the length where no short string is misclassified."""
    for separation in separations(model.task, test, short, by_length=by_length):
        name = BEYOND if separation.name == LENGTH else FEATURE
        yield AttributedError("", name, None, separation.text), separation.beyond


def _another(model: TrainedModel, test: TriedStrings, short: TriedStrings) -> Iterator[_Group]:
    """The errors that a small automaton, which says what the model says, makes too."""
    automaton = smallest_automaton(model, test, short, AGREES, EXPLAINS)
    if automaton is None:
        return
    says = automaton.accepting[automaton.states(test.strings)]
    rule = agreement("", says, test.predicted, test.times)
    differs = first_difference(model, automaton, short)
    first_wrong = "" if differs is None else f", first wrong on {differs or 'the empty string'}"
    states = f"an automaton of {count_of(len(automaton.table), 'state')}{first_wrong}"
    yield AttributedError("", ANOTHER, None, states, rule.agreement), says == test.predicted


def _other(
    model: TrainedModel, string: str, shortest: Letters | None, *, positive: bool
) -> AttributedError:
    """The group of an error that no rule and no bound accounts for."""
    letters = model.letters(string)
    if len(letters) <= EDITED:
        nearest = nearest_right(model, letters, other_answer=True, max_edits=1)
        if nearest.answer is not None:
            return AttributedError(
                string, ONE_EDIT, None, _edit_of(model, letters, nearest.letters)
            )
    kind = "false positives" if positive else "false negatives"
    if shortest is None:
        return AttributedError(string, LONGER, None, kind)
    named = model.display(shortest) or "the empty string"
    return AttributedError(string, AS_SHORT, None, f"{kind}, the model's shortest error {named}")


def _edit_of(model: TrainedModel, before: Letters, after: Letters) -> str:
    """Such as `replace a by b`, `delete a` or `insert b`."""
    pairs = zip(before, after, strict=False)
    place = next((i for i, (x, y) in enumerate(pairs) if x != y), min(len(before), len(after)))
    alphabet = model.tokenizer.alphabet
    if len(after) < len(before):
        return f"delete {alphabet[before[place]]}"
    if len(after) > len(before):
        return f"insert {alphabet[after[place]]}"
    return f"replace {alphabet[before[place]]} by {alphabet[after[place]]}"


def attributions(
    model: TrainedModel,
    wrong: Sequence[str],
    sample: int = SAMPLE,
    *,
    not_learned: str | None = None,
) -> tuple[AttributedError, ...]:
    """The causes of a sample of a model's errors.

    Args:
        wrong: all test strings that it misclassifies, the shortest first, each as often as it
            occurs in the test set.
        sample: how many of them to look at, spread evenly.
        not_learned: how it shows that the model has not learned the trained lengths; None of one
            that has.
    """
    picked = [wrong[place] for place in spread_evenly(len(wrong), sample)]
    causes = _attributions(model, wrong, picked)
    if not_learned is None:
        return causes
    # The shortest stands for those of trained lengths, which others describe and do not excuse.
    return tuple(
        replace(cause, agreement=None, head=None, mechanism=NOT_LEARNED, tokens=not_learned)
        if place == 0 or cause.mechanism not in BESIDE_NOT_LEARNED
        else cause
        for place, cause in enumerate(causes)
    )


def _attributions(
    model: TrainedModel, wrong: Sequence[str], picked: Sequence[str]
) -> tuple[AttributedError, ...]:
    # What errors have in common is another question where they are outputs.
    if model.problem.writes or model.problem.at_places:
        return output_behaviours(model, wrong, picked)
    network = as_network(model)
    if network is not None:
        return tuple(_exact(network, string) for string in picked)
    return behaviours(model, wrong, picked)


def summed_up(attributions: Sequence[AttributedError]) -> list[Cause]:
    """The causes of some errors, the most frequent first; before all others *not learned*."""
    times: dict[tuple[str, int | None, str, float | None], int] = {}
    for attribution in attributions:
        key = (attribution.mechanism, attribution.head, attribution.tokens, attribution.agreement)
        times[key] = times.get(key, 0) + 1
    ranked = sorted(times.items(), key=lambda item: (item[0][0] != NOT_LEARNED, -item[1]))
    return [
        Cause(mechanism, head, tokens, count / len(attributions), count, agrees)
        for (mechanism, head, tokens, agrees), count in ranked
    ]


def _exact(network: Network, string: str) -> AttributedError:
    """The mechanism of one error of a model that has an exact account."""
    mechanism = mechanism_of_error(network, string)
    if mechanism is None:
        return AttributedError(string, ROUNDING)
    return AttributedError(string, mechanism.name, mechanism.head, tokens_of(mechanism))


def tokens_of(mechanism: Mechanism) -> str:
    """The tokens, or the unit, that a mechanism is about."""
    letter, by = mechanism.letter, mechanism.by
    match mechanism.name:
        case "dilution":
            return f"{letter} by {by}"
        case "value interference" if letter is None:
            return f"several for {by}"
        case "value interference":
            return f"{letter} for {by}" if by else f"{letter}"
        case "two heads on one letter":
            return f"{letter}, none on {by}"
        case "feed-forward saturation":
            return f"unit {mechanism.unit}"
    return ""
