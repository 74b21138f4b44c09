"""Causes of a failing model's errors: those of `mechanisms`, and the way each is found.

Statements about all strings are tried on the test strings and on all that are no longer than the
training's, as far as `seqcls.interpretability.domains` tries them. Dilution and two heads on one
letter are shown by interventions; the other causes describe what errors have in common, not what
makes them. `CAUSES` has them in the order in which they are tried, and `docs/why.md` what each
needs to be found; the first that holds is given.

For **answers by form**, the agreement of reader and model beyond what both being right explains is
at least half of what it could be, by the lower end of its 95% interval. Bounds, of features or of
the length, are those of `seqcls.interpretability.rules`. **Order not seen** is also the last
one tried, of a model that sees letter counts alone and fails so on a short string.

For a model that has not learned the trained lengths no cause is given that depends on length: such
errors, and the shortest in any case, are **not learned**.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Int64

from seqcls.cache import remembered
from seqcls.counts import counts_suffice
from seqcls.evaluation import distinct_test_strings, readable
from seqcls.interpretability.domains import (
    TriedStrings,
    ask_tested,
    obstacle,
    short_strings,
    shortest_of,
    shortest_short_error,
    tested_strings,
)
from seqcls.interpretability.interventions import (
    Head,
    find_dilution,
    find_one_letter,
    find_outnumbered,
    leaves_right,
    longest_trained,
    read_string,
    strongest,
)
from seqcls.interpretability.mechanisms import (
    BESIDE_NOT_LEARNED,
    CONSTANT,
    DILUTION,
    EXPLAINS,
    FIRST_RIGHT,
    FORM,
    LONGER,
    NOT_FOUND,
    NOT_LEARNED,
    ONE_LETTER,
    ORDER,
    ROUNDING,
    RULE,
    SAMPLE,
    AttributedError,
    spread_evenly,
)
from seqcls.interpretability.rules import Group, agreement, rules, separations
from seqcls.interpretability.trained_model import MAX_LENGTH, Letters, TrainedModel
from seqcls.interpretability.wording import EMPTY
from seqcls.kinds.transduction import OutputAnswers, target_lengths
from seqcls.problem import Problem, resolve
from seqcls.results import Cause
from seqcls.shortcuts import READERS, agreement_of, read_test
from seqcls.strings.token_strings import TokenStrings, join_strings

# The shares that `docs/why.md` states in words.
RULE_AGREEMENT = 0.99
FORM_AGREEMENT, LEAST_KAPPA = 0.95, 0.5

CONTROLS = 20
"""Rightly answered strings on which an intervention is tried beside the error."""

DRAWN_STRINGS = 32
"""Strings of the other label, and as many orders of the same letters, that are tried."""

ALL_HEADS = "all heads"
"""The place of diluted attention, if it is in no single head."""


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
    # What errors have in common is another question where they are outputs.
    if model.problem.writes or model.problem.at_places:
        causes = _output_causes(model, wrong, picked)
    else:
        causes = _language_causes(model, wrong, picked)
    if not_learned is None:
        return causes
    # The shortest represents those of trained lengths, which others describe and do not excuse.
    return tuple(
        AttributedError(cause.string, NOT_LEARNED, None, not_learned)
        if place == 0 or cause.mechanism not in BESIDE_NOT_LEARNED
        else cause
        for place, cause in enumerate(causes)
    )


def summed_up(attributions: Sequence[AttributedError]) -> list[Cause]:
    """The causes of some errors, the most frequent first; before all others *not learned*."""
    times = Counter(error[1:] for error in attributions)
    ranked = sorted(times.items(), key=lambda item: (item[0][0] != NOT_LEARNED, -item[1]))
    return [
        Cause(mechanism, head, tokens, count / len(attributions), count, agrees)
        for (mechanism, head, tokens, agrees), count in ranked
    ]


def _language_causes(
    model: TrainedModel, wrong: Sequence[str], picked: Sequence[str]
) -> tuple[AttributedError, ...]:
    test, texts = ask_tested(model, wrong)
    short = short_strings(model)
    shortest = shortest_short_error(model, short, test)
    row_of = {text: row for row, text in enumerate(texts)}
    # What is right in double precision needs no other cause, so rounding is tried first.
    causes = _find_rounding(model, picked)
    left = [x for x in dict.fromkeys(picked) if x not in causes]
    if sees_counts_alone(model.problem):
        # No function of letter counts can avoid all of these.
        unseen = [x for x in left if same_letters_other_label(model.problem, model.letters(x))]
        causes |= {x: AttributedError(x, ORDER) for x in unseen}
        left = [x for x in left if x not in causes]
    labels = {x: bool(test.labels[row_of[x]]) for x in left}
    if shortest is None:
        # A model that fails on short strings, too, does not fail for their length.
        causes |= _find_dilution(model, test, texts, labels)
    causes |= _on_one_letter(model, {x: y for x, y in labels.items() if x not in causes})
    groups = [
        *_rule(model, test, short),
        *_form(model, test),
        *separations(model.task, test, short, by_length=shortest is None),
    ]
    first_unseen = _first_not_seen(model.problem, short)
    for string in (x for x in labels if x not in causes):
        row = row_of[string]
        # Groups are in the order of `CAUSES`, of which the first that holds is given.
        first = next((cause for cause, holds in groups if holds[row]), None)
        kind = "false positives" if test.predicted[row] else "false negatives"
        if first is not None:
            causes[string] = first._replace(string=string)
        elif first_unseen is not None:
            about = f"as in {model.display(first_unseen)}"
            causes[string] = AttributedError(string, ORDER, None, about)
        elif shortest is None:
            causes[string] = AttributedError(string, LONGER, None, kind)
        else:
            named = model.display(shortest) or "the empty string"
            about = f"{kind}; the model's shortest error of all is {named}"
            causes[string] = AttributedError(string, NOT_FOUND, None, about)
    return tuple(causes[string] for string in picked)


def _find_rounding(model: TrainedModel, strings: Sequence[str]) -> dict[str, AttributedError]:
    """The errors that are none in double precision."""
    # Nothing is more exact to compare double precision with.
    if not strings or model.config.precision == "float64":
        return {}
    exact = model.config.model_copy(update={"precision": "float64"})
    weights = {name: value.astype(np.float64) for name, value in model.weights.items()}
    answers = replace(model, problem=resolve(exact), weights=weights).ask_all(strings)
    right = [string for string, right in zip(strings, answers.right, strict=True) if right]
    return {string: AttributedError(string, ROUNDING) for string in right}


# Strings that a function of letter counts cannot distinguish, though the language does.


def sees_counts_alone(problem: Problem) -> bool:
    """True if the order of tokens decides in the language, but not in the model's answer."""
    return problem.task.order_sensitive and counts_suffice(problem.network, training=False) is None


def _first_not_seen(problem: Problem, tried: TriedStrings) -> Letters | None:
    """The shortest misclassified string of which another has its letters and its other label.

    None where there is none, or the model does not see counts alone.
    """
    if not sees_counts_alone(problem):
        return None
    _, rows = np.unique(tried.strings.counts, axis=0, return_inverse=True)
    positive = np.bincount(rows, tried.labels)[rows]
    # Strings with the same counts have both labels: some are positive, not all.
    unseen = tried.wrong & (positive > 0) & (positive < np.bincount(rows)[rows])
    return shortest_of(tried.strings, unseen)


def same_letters_other_label(problem: Problem, letters: Sequence[int]) -> Letters | None:
    """A string with the same letters and the other label, where one is found.

    A model that sees counts alone answers both alike, so it is wrong on one of them, whatever it
    has learned. None means only that none was found among `DRAWN_STRINGS` of the other label, as
    many orders of these letters, and these in the order of the alphabet.
    """
    task, alphabet = problem.language, len(problem.task.alphabet)
    given = TokenStrings.of_lists(alphabet, [letters])
    label = bool(task.labels(given)[0])
    # A fixed seed, so that the same error has the same cause each time.
    generator = np.random.default_rng(0)
    shuffled = [tuple(generator.permutation(letters).tolist()) for _ in range(DRAWN_STRINGS)]
    # Sorted letters are often what a language of ordered letters requires, and seldom drawn.
    others = [tuple(sorted(letters)), *_with_label(problem, len(letters), not label), *shuffled]
    ordered = TokenStrings.of_lists(alphabet, others)
    # What has no known label is no such string.
    labels = problem.targets_or(ordered, np.full(len(ordered), label))
    fits = (ordered.counts == given.counts).all(axis=1) & (labels != label)
    return others[int(fits.argmax())] if fits.any() else None


@remembered
def _with_label(problem: Problem, length: int, positive: bool) -> tuple[Letters, ...]:
    task = problem.language
    if not task.has(length, positive):
        return ()
    generator = np.random.default_rng(1)
    drawn = (task.draw(generator, length, positive) for _ in range(DRAWN_STRINGS))
    return tuple({tuple(string.tolist()): None for string in drawn})


# What interventions show.


def _find_dilution(
    model: TrainedModel, test: TriedStrings, texts: Sequence[str], labels: dict[str, bool]
) -> dict[str, AttributedError]:
    """The errors that are right once attention is not diluted, where that spares right answers.

    Args:
        labels: of errors.
    """
    lengths = test.strings.lengths
    # Attention between all pairs of tokens has to fit into memory.
    fits = (lengths > longest_trained(model)) & (lengths <= MAX_LENGTH)
    right = np.flatnonzero(fits & ~test.wrong).tolist()
    rows = [right[place] for place in spread_evenly(len(right), CONTROLS)]
    controls = [
        read_string(model, model.letters(texts[row]), bool(test.labels[row])) for row in rows
    ]
    short = {text for text, length in zip(texts, lengths, strict=True) if length <= MAX_LENGTH}
    spares: dict[tuple[Head, ...], bool] = {}
    causes = {}
    for text in (x for x in labels if x in short):
        string = read_string(model, model.letters(text), labels[text])
        if (found := find_dilution(model, string)) is None:
            continue
        # Whether right answers stay right depends on the heads alone: it is tried once for each.
        if found.heads not in spares:
            spares[found.heads] = leaves_right(model, controls, found.heads)
        if spares[found.heads] and len(found.heads) > 1:
            causes[text] = AttributedError(text, DILUTION, None, ALL_HEADS)
        elif spares[found.heads]:
            ((block, head),) = found.heads
            about = [" by ".join(find_outnumbered(model, string, found.heads[0]) or ())]
            # The only block needs no name, unless nothing else is known.
            about += [f"block {block}"] if model.config.num_blocks > 1 or not about[0] else []
            causes[text] = AttributedError(text, DILUTION, head, ", ".join(filter(None, about)))
    return causes


def _on_one_letter(model: TrainedModel, labels: dict[str, bool]) -> dict[str, AttributedError]:
    """The errors that two heads on one letter make."""
    if obstacle(model.problem) is not None:
        return {}
    causes = {}
    for text, label in labels.items():
        string = read_string(model, model.letters(text), label)
        if best := strongest(find_one_letter(model, string), label):
            about = f"{best.letter}, none on {best.by}"
            causes[text] = AttributedError(text, ONE_LETTER, best.head, about)
    return causes


# What errors have in common.


def _rule(model: TrainedModel, test: TriedStrings, short: TriedStrings) -> Iterator[Group]:
    """The rule that agrees best with the model, if any agrees well; the simplest of equals."""
    best: Group | None = None
    most = 0.0
    both, tested = join_strings([test.strings, short.strings]), len(test.strings)
    for text, says in rules(model.tokenizer.alphabet, both, test.predicted, test.times):
        constant = text.startswith("always")
        share = agreement(text, says[:tested], test.predicted, test.times).agreement
        # Rules come simplest first, so one that is only as good changes nothing.
        if share < (1 if constant else RULE_AGREEMENT) or share <= most:
            continue
        same, same_of_short = says[:tested] == test.predicted, says[tested:] == short.predicted
        explained = [
            alike for alike in (same[test.wrong], same_of_short[short.wrong]) if len(alike)
        ]
        # Of a model that answers no short string, since its logits are NaN, no rule is claimed.
        agrees = len(same_of_short) > 0 and same_of_short.mean() >= RULE_AGREEMENT
        if agrees and all(alike.mean() >= EXPLAINS for alike in explained):
            best = AttributedError("", CONSTANT if constant else RULE, None, text, share), same
            most = share
    if best is not None:
        yield best


def _form(model: TrainedModel, test: TriedStrings) -> Iterator[Group]:
    """The errors of the reader that agrees best with the model, if any agrees nearly always."""
    problem = model.problem
    within = np.isin(test.strings.lengths, problem.train.lengths)
    # Without errors there, readers' errors have nothing to agree with.
    if not (test.wrong & within).any():
        return
    every = distinct_test_strings(problem.test)
    numbers = every.numbers[readable(problem, every)]
    found = []
    for shortcut in read_test(problem):
        if shortcut.right is None:
            continue
        errs = ~shortcut.right[numbers]
        own = (test.labels[within], test.wrong[within], errs[within], test.times[within])
        agrees = agreement_of(*own)
        if agrees.share >= FORM_AGREEMENT and agrees.low >= LEAST_KAPPA:
            interval = f"{agrees.low:.2f} to {agrees.high:.2f}"
            text = f"{READERS[shortcut.reader]}, kappa {agrees.kappa:.2f} ({interval})"
            found.append((agrees.kappa, text, agrees.share, errs & test.wrong))
    if found:
        _, text, share, holds = max(found, key=lambda x: x[0])
        yield AttributedError("", FORM, None, text, share), holds


# What wrong outputs have in common: how they differ from their targets, and where.

MIN_WRONG = 5
"""With fewer wrong outputs nothing is concluded of them together: too many models would fit."""


def _output_causes(
    model: TrainedModel, wrong: Sequence[str], picked: Sequence[str]
) -> tuple[AttributedError, ...]:
    """The causes of some wrong outputs.

    Where all outputs that were looked at are the same string, that is the cause. Otherwise, where
    the first n tokens are right in `EXPLAINS` of them, for the greatest such n, and every test
    input whose target is longer is wrong, that is the cause of those it holds of. Any other error
    is called by its kind (`seqcls.kinds.transduction.error_kind`), and by where output and target
    part: within as many tokens as the targets of training had at most, or only after as many.

    Args:
        wrong: all test inputs whose outputs are wrong.
        picked: those to attribute.
    """
    strings = list(dict.fromkeys(picked))
    letters = [model.letters(string) for string in strings]
    judged = model.ask(TokenStrings.of_lists(model.num_letters, letters))
    at_places = model.problem.at_places
    assert isinstance(judged, OutputAnswers)
    outputs = {tuple(output) for output in judged.outputs}
    if not at_places and len(outputs) == 1 and len(judged.outputs) >= MIN_WRONG:
        (output,) = outputs
        about = f"always {model.display(output) or EMPTY}"
        return tuple(AttributedError(string, CONSTANT, None, about) for string in picked)
    # One that is right now hangs on rounding.
    causes = {string: AttributedError(string, ROUNDING) for string in strings}
    rows, positions = list(judged.errors), judged.first_wrong
    right_for = _first_right(model, wrong, positions)
    longest = model.problem.longest_target(model.problem.train.lengths[-1])
    for row, kind, position in zip(rows, judged.error_kinds, positions.tolist(), strict=True):
        string = strings[row]
        if right_for and position >= right_for:
            clause = "has a wrong token" if kind == "wrong token" else kind
            about = _describe_first(right_for, "place" if at_places else "token")
            about += f"; {clause}" if at_places else f"; the output {clause}"
            causes[string] = AttributedError(string, FIRST_RIGHT, None, about)
            continue
        side = "after" if position >= longest else "within"
        about = f"{side} the {longest} tokens of the longest target in training"
        if at_places:
            pair = np.array([[judged.predicted[row, position]], [judged.targets[row, position]]])
            answer, right = model.decode(pair)
            about = f"{answer} for {right}, {side} the {longest} places of training"
        causes[string] = AttributedError(string, kind, None, about)
    return tuple(causes[string] for string in picked)


def _first_right(
    model: TrainedModel, wrong: Sequence[str], first_wrong: Int64[np.ndarray, " wrong"]
) -> int:
    """After how many right tokens outputs go wrong, if all with a longer target do; else 0.

    Args:
        wrong: all test inputs whose outputs are wrong.
        first_wrong: the position of the first wrong token of those that are looked at.
    """
    # Of so few, any number of first tokens could be right by chance.
    if len(first_wrong) < MIN_WRONG:
        return 0
    # The greatest position that enough of them reach.
    first = int(np.sort(first_wrong)[int(len(first_wrong) * (1 - EXPLAINS) + 1e-9)])
    test, failing = tested_strings(model.problem), set(wrong)
    at_places = model.problem.at_places
    # The empty prefix is answered, too.
    lengths = test.strings.lengths + 1 if at_places else target_lengths(test.targets)
    longer = [text for text, length in zip(test.texts, lengths, strict=True) if length > first]
    return first if longer and failing.issuperset(longer) else 0


def _describe_first(number: int, unit: str) -> str:
    tokens = f"the first {unit} is" if number == 1 else f"the first {number} {unit}s are"
    return f"{tokens} right, and every output with a longer target is wrong"
