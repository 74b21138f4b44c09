"""Why each of a failing model's errors is one: by its mechanism, or by what it does.

Where `seqcls.interpretability.counts` has an exact account of a model, every error's mechanism is
shown by a counterfactual. So is `dilution` of any other Transformer, by an intervention on its
attention (`seqcls.interpretability.strings.dilution`) that answers the error rightly and leaves
test strings beyond the training's lengths that are answered rightly so. Of other errors only what
the model does is told, in groups, the first that holds:

- **constant answer**: it gives all test strings the same answer;
- **order not seen**: the model sees letter counts alone, and a string with the same letters has the
  other label: it is wrong on one of the two, whatever it has learned;
- **simple rule**: one rule of the fixed list in `seqcls.interpretability.strings.rules` says what
  the model says on at least `AGREES` of all test strings and on at least `EXPLAINS` of its errors;
- **errors beyond a bound**: they lie above, or at most at, one bound of the length or of a feature
  of the task, and what is answered rightly on the other side (balanced accuracy at least `PARTS`);
  of fewer errors than `FEWEST` no bound is sought, which would always be found;
- **one edit away**: of at most `EDITED` tokens, and a string one edit away is answered otherwise,
  and rightly; which edit is told;
- **longer than in training**, else **as long as in training**: false positives and negatives apart.

A behaviour says what the errors have in common, not what makes them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.config import RunConfig
from seqcls.data import count_task_of, sampler_of, task_of
from seqcls.evaluation import DistinctStrings, distinct_test_strings, readable_strings
from seqcls.interpretability.counts.cause import Mechanism
from seqcls.interpretability.counts.mechanism import mechanism_of
from seqcls.interpretability.counts.network import Network
from seqcls.interpretability.counts.obstacle import obstacle
from seqcls.interpretability.strings.asked import MAX_LENGTH, AskedModel, Letters
from seqcls.interpretability.strings.dilution import Dilution, Head
from seqcls.interpretability.strings.nearest import nearest_right
from seqcls.interpretability.strings.rules import agreement, bounds, candidates
from seqcls.interpretability.strings.same_letters import (
    same_letters_other_label,
    sees_counts_alone,
)
from seqcls.results import Cause

SAMPLE = 50
"""Errors of a run that are looked at, unless more are asked for."""

AGREES, EXPLAINS = 0.99, 0.9
PARTS, FEWEST = 0.9, 5
EDITED = 16

CONTROLS = 20
"""Rightly answered strings on which an intervention is tried beside the error."""

DILUTION = "dilution"
ROUNDING = "rounding"
CONSTANT = "constant answer"
ORDER = "order not seen"
RULE = "simple rule"
BEYOND = "errors beyond a bound"
ONE_EDIT = "one edit away"
LONGER = "longer than in training"
AS_LONG = "as long as in training"

BEHAVIOURS = (CONSTANT, ORDER, RULE, BEYOND, ONE_EDIT, LONGER, AS_LONG)


@dataclass(frozen=True)
class Attribution:
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


def summed_up(attributions: Sequence[Attribution]) -> list[Cause]:
    """The causes of some errors, the most frequent first."""
    found: dict[tuple[str, int | None, str, float | None], int] = {}
    for own in attributions:
        key = (own.mechanism, own.head, own.tokens, own.agreement)
        found[key] = found.get(key, 0) + 1
    ranked = sorted(found.items(), key=lambda item: -item[1])
    return [
        Cause(mechanism, head, tokens, count / len(attributions), count, agrees)
        for (mechanism, head, tokens, agrees), count in ranked
    ]


def attributions(
    model: AskedModel, wrong: Sequence[str], sample: int = SAMPLE
) -> tuple[Attribution, ...]:
    """The causes of a sample of a model's errors.

    Args:
        model: the model.
        wrong: all test strings that it misclassifies, the shortest first, each as often as it
            occurs in the test set.
        sample: how many of them to look at, spread evenly.
    """
    picked = [wrong[place] for place in spread_evenly(len(wrong), sample)]
    if obstacle(model.config) is None:
        network = Network.of(model.config, model.weights)
        return tuple(exact_attribution(network, string) for string in picked)
    return behaviours(model, wrong, picked)


def exact_attribution(network: Network, string: str) -> Attribution:
    """The mechanism of one error of a model that has an exact account."""
    counts = network.tokenizer.counts(string)
    label = bool(count_task_of(network.config).labels_of_counts(np.array([counts]))[0])
    # In double precision an error that hangs on rounding may be none.
    if (network.logits(np.array([counts]))[0] > 0) == label:
        return Attribution(string, ROUNDING)
    found = mechanism_of(network, counts)
    return Attribution(string, found.name, found.head, tokens_of(found))


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


@dataclass(frozen=True, eq=False)
class _Tested:
    """A model's answers on its distinct test strings, as far as it was tested on them."""

    test: DistinctStrings
    rows: Int64[np.ndarray, " string"]
    wrong: Bool[np.ndarray, " string"]

    @property
    def predicted(self) -> Bool[np.ndarray, " string"]:
        return np.asarray(self.test.labels[self.rows] ^ self.wrong)

    @property
    def times(self) -> Int64[np.ndarray, " string"]:
        return np.asarray(self.test.occurrences[self.rows])


def behaviours(
    model: AskedModel, wrong: Sequence[str], picked: Sequence[str]
) -> tuple[Attribution, ...]:
    """Which of some errors are diluted attention, and the behavioural groups of the others.

    Args:
        model: the model.
        wrong: all test strings that it misclassifies.
        picked: those to attribute.
    """
    tested = _tested(model.config, wrong)
    places = {text: place for place, text in enumerate(tested.test.texts)}
    at = np.searchsorted(tested.rows, [places[string] for string in picked])
    groups = [own for own in (_rule(model, tested), _bound(model, tested)) if own is not None]
    found = _diluted(model, tested, picked)
    for string, place in zip(picked, at.tolist(), strict=True):
        if string not in found:
            own = [group for group, holds in groups if holds[place]]
            found[string] = _attributed(model, string, own, bool(tested.predicted[place]))
    return tuple(found[string] for string in picked)


def _diluted(model: AskedModel, tested: _Tested, picked: Sequence[str]) -> dict[str, Attribution]:
    """The errors that are right once attention is not diluted, where that spares right answers."""
    dilution = Dilution(model)
    lengths, labels = tested.test.strings.lengths[tested.rows], tested.test.labels[tested.rows]
    fits = (lengths > dilution.longest_trained) & (lengths <= MAX_LENGTH)
    right = np.flatnonzero(fits & ~tested.wrong)
    spread = [right[place] for place in spread_evenly(len(right), CONTROLS)]
    controls = [model.letters(tested.test.texts[tested.rows[row]]) for row in spread]
    label_of = {tested.test.texts[tested.rows[row]]: bool(labels[row]) for row in fits.nonzero()[0]}
    spares: dict[tuple[Head, ...], bool] = {}
    found = {}
    for string in dict.fromkeys(own for own in picked if own in label_of):
        cause = dilution.cause_of(model.letters(string), label_of[string])
        if cause is None:
            continue
        if cause.heads not in spares:
            spares[cause.heads] = dilution.leaves(controls, cause.heads)
        if spares[cause.heads]:
            found[string] = _of_dilution(string, cause.heads)
    return found


def _of_dilution(string: str, heads: tuple[Head, ...]) -> Attribution:
    if len(heads) > 1:
        return Attribution(string, DILUTION, None, "all heads")
    ((block, head),) = heads
    return Attribution(string, DILUTION, head, f"block {block}")


def _attributed(
    model: AskedModel, string: str, groups: Sequence[Attribution], positive: bool
) -> Attribution:
    """One error: `groups` are those of the model that it belongs to, the first before others."""
    first = groups[0] if groups else None
    if first is None or first.mechanism != CONSTANT:
        letters = model.letters(string)
        if sees_counts_alone(model.config) and same_letters_other_label(model.config, letters):
            return Attribution(string, ORDER)
    if first is None:
        return _others(model, string, positive=positive)
    return Attribution(string, first.mechanism, None, first.tokens, first.agreement)


_Group = tuple[Attribution, Bool[np.ndarray, " string"]]


def _tested(config: RunConfig, wrong: Sequence[str]) -> _Tested:
    test = distinct_test_strings(sampler_of(config, "test"))
    rows = np.flatnonzero(readable_strings(config, test.strings))
    failing = set(wrong)
    return _Tested(test, rows, np.array([test.texts[row] in failing for row in rows], dtype=bool))


def _rule(model: AskedModel, tested: _Tested) -> _Group | None:
    """The rule that agrees best with the model, if any agrees well; the simplest of equals."""
    predicted, strings = tested.predicted, tested.test.strings.take(tested.rows)
    best: _Group | None = None
    for text, says in candidates(model.tokenizer.alphabet, strings, predicted, tested.times):
        constant = text.startswith("always")
        same = says == predicted
        share = agreement(text, says, predicted, tested.times).agreement
        if share < (1 if constant else AGREES) or same[tested.wrong].mean() < EXPLAINS:
            continue
        if best is None or share > (best[0].agreement or 0):
            name = CONSTANT if constant else RULE
            best = Attribution("", name, None, text, share), same
    return best


def _bound(model: AskedModel, tested: _Tested) -> _Group | None:
    """The bound of the length or of a feature that tells errors from right answers best."""
    if tested.wrong.all() or int(tested.wrong.sum()) < FEWEST:
        return None
    strings, wrong = tested.test.strings.take(tested.rows), tested.wrong
    best: tuple[float, str, Bool[np.ndarray, " string"]] | None = None
    for name, values in _features(model, strings.lengths, tested).items():
        for text, holds in _bounds_of(name, values, wrong):
            balanced = float((holds[wrong].mean() + (~holds)[~wrong].mean()) / 2)
            if best is None or balanced > best[0]:
                best = balanced, text, holds
    if best is None or best[0] < PARTS:
        return None
    return Attribution("", BEYOND, None, best[1]), best[2]


def _features(
    model: AskedModel, lengths: Int64[np.ndarray, " string"], tested: _Tested
) -> dict[str, np.ndarray]:
    own = task_of(model.config).features(tested.test.strings.take(tested.rows))
    named = {f"the number of {x}" if x.endswith("'s") else f"the {x}": v for x, v in own.items()}
    return {"the length": lengths, **named}


def _bounds_of(
    name: str, values: np.ndarray, wrong: Bool[np.ndarray, " string"]
) -> Iterator[tuple[str, Bool[np.ndarray, " string"]]]:
    """Bounds with the errors beyond them, errors and right answers weighing the same."""
    weights = np.where(wrong, 1 / max(int(wrong.sum()), 1), 1 / max(int((~wrong).sum()), 1))
    for text, says in bounds(name, values.astype(float), wrong, weights):
        yield text.removeprefix("positive iff "), says


def _others(model: AskedModel, string: str, *, positive: bool) -> Attribution:
    """The group of an error that no rule and no bound accounts for."""
    letters = model.letters(string)
    if len(letters) <= EDITED:
        near = nearest_right(model, letters, other_answer=True, max_edits=1)
        if near.answer is not None:
            return Attribution(string, ONE_EDIT, None, _edit_of(model, letters, near.letters))
    longer = len(letters) > sampler_of(model.config, "train").longest
    kind = "false positives" if positive else "false negatives"
    return Attribution(string, LONGER if longer else AS_LONG, None, kind)


def _edit_of(model: AskedModel, before: Letters, after: Letters) -> str:
    """Such as `replace a by b`, `delete a` or `insert b`."""
    pairs = zip(before, after, strict=False)
    place = next((i for i, (x, y) in enumerate(pairs) if x != y), min(len(before), len(after)))
    alphabet = model.tokenizer.alphabet
    if len(after) < len(before):
        return f"delete {alphabet[before[place]]}"
    if len(after) > len(before):
        return f"insert {alphabet[after[place]]}"
    return f"replace {alphabet[before[place]]} by {alphabet[after[place]]}"
