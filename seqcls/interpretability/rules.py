"""Simple rules that a model may follow, a fixed list, and bounds beyond which it errs.

Each rule decides whether a string is positive, by something that is easily seen in it. That a
rule agrees with a model on every string shows what the model does on them, not how it does it. The
list, simplest first, each also with the answers exchanged where that is another rule:

1. always the same answer;
2. a token occurs; more than once; every token of the alphabet occurs;
3. the first, or the last, token is a given one;
4. the first and the last token are the same; two equal tokens are neighbors;
5. the number of a token, or the length, is odd;
6. there are more of one token than of another;
7. the length, the number of a token or its share is above a bound: the bound that agrees best.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int64, Real

from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.domains import TriedStrings
from seqcls.interpretability.mechanisms import BEYOND, LONGER, AttributedError
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.interpretability.wording import between, percent
from seqcls.strings.token_strings import NO_LETTER, TokenStrings
from seqcls.tasks import Task
from seqcls.text import count

Rows = Bool[np.ndarray, " string"]

SHOWN = 10
"""Rules that are described; programs read them all."""


class Bound(NamedTuple):
    """A threshold, with the side that is positive: above the value, or at most it."""

    value: float
    above: bool

    def says(self, values: Real[np.ndarray, " string"]) -> Rows:
        """True for each number that lies beyond it."""
        return np.asarray((values > self.value) == self.above)

    def __str__(self) -> str:
        number = int(self.value) if self.value.is_integer() else self.value
        return f"{'above' if self.above else 'at most'} {number}"


class Rule(NamedTuple):
    """One rule and how well it agrees with a model's answers on the test strings."""

    text: str
    """Such as `positive iff no 1 at all`."""
    agreement: float
    """The share of test strings, each counted as often as it occurs, in [0, 1]."""
    on_positive: float | None
    """The same among strings that the model predicts to be positive; None where there are none."""
    on_negative: float | None


class Rules(NamedTuple):
    """Every rule of the list, the best first; of equally good ones the simplest."""

    strings: int
    """Test strings that were tried."""
    rules: tuple[Rule, ...]

    @property
    def best(self) -> Rule:
        return self.rules[0]

    def describe(self, _: TrainedModel) -> Iterator[str]:
        """The rules that agree best with a model's answers."""
        tried = count(self.strings, "test string")
        yield f"rules tried on {tried}, by agreement with the model's answers"
        for rule in self.rules[:SHOWN]:
            shares = {"positive": rule.on_positive, "negative": rule.on_negative}
            sides = [
                f"{percent(share)} where it is predicted {name}"
                for name, share in shares.items()
                if share is not None
            ]
            yield f"  {percent(rule.agreement)}  {rule.text} ({', '.join(sides)})"


def fitting_rules(model: TrainedModel) -> Rules:
    """The agreement of each rule with a model's answers on all of its test strings.

    Strings that the model has no places for are left out.
    """
    model.problem.require_language()
    test = distinct_test_strings(model.problem.test)
    answers = model.ask(test.strings)
    known = np.flatnonzero(answers.known)
    strings, times = test.strings.take(known), test.occurrences[known]
    predicted = answers.predicted[known]
    agreements = [
        agreement(text, says, predicted, times)
        for text, says in rules(model.tokenizer.alphabet, strings, predicted, times)
    ]
    # A stable sort: of equally good rules the simpler one stays before the other.
    ranked = sorted(agreements, key=lambda rule: -rule.agreement)
    return Rules(int(times.sum()), tuple(ranked))


def rules(
    alphabet: Sequence[str],
    strings: TokenStrings,
    predicted: Rows,
    times: Int64[np.ndarray, " string"],
) -> Iterator[tuple[str, Rows]]:
    """Every rule in words, with its answers to strings; the simplest first.

    Args:
        predicted: the model's answers to the first strings, by which bounds are chosen.
        times: how often each of these counts.
    """
    positive = np.ones(len(strings), dtype=bool)
    yield "always positive", positive
    yield "always negative", ~positive
    numbers = {f"the number of {x}": strings.counts[:, n] for n, x in enumerate(alphabet)}
    quantities = {"the length": strings.lengths, **numbers}
    for yes, no, holds in _properties(alphabet, strings, quantities):
        yield f"positive iff {yes}", holds
        yield f"positive iff {no}", ~holds
    # The empty string has no shares.
    parts = strings.counts / np.maximum(strings.lengths, 1)[:, None]
    shares = {f"the share of {x}": parts[:, n] for n, x in enumerate(alphabet)}
    for name, values in (quantities | shares).items():
        for bound in bounds(values[: len(predicted)].astype(float), predicted, times):
            # That there is a token, or two, is a rule of the list already.
            if name == "the length" or bound.value not in ((0,) if name in shares else (0, 1)):
                yield f"positive iff {name} is {bound}", bound.says(values)


def _properties(
    alphabet: Sequence[str],
    strings: TokenStrings,
    quantities: Mapping[str, Int64[np.ndarray, " string"]],
) -> Iterator[tuple[str, str, Rows]]:
    """Properties in words, their negation in words, and the strings that have them."""
    counts, letters = strings.counts, strings.letters
    for x, number in zip(alphabet, counts.T, strict=True):
        yield f"there is a {x}", f"no {x} at all", number >= 1
        yield f"there are two {x} or more", f"there is at most one {x}", number >= 2
    every = "every token of the alphabet occurs"
    yield every, f"not {every}", np.asarray((counts > 0).all(axis=1))
    # The empty string has `NO_LETTER` at both ends.
    padded = np.pad(letters, ((0, 0), (0, 1)), constant_values=NO_LETTER)
    first, last = padded[:, 0], padded[np.arange(len(padded)), np.maximum(strings.lengths - 1, 0)]
    for place, end in (("first", first), ("last", last)):
        for letter, x in enumerate(alphabet):
            yield f"the {place} token is {x}", f"the {place} token is not {x}", end == letter
    doubles = (letters[:, 1:] == letters[:, :-1]) & (letters[:, 1:] != NO_LETTER)
    for text, holds in (
        ("the first and the last token are the same", first == last),
        ("two equal tokens stand beside one another", doubles.any(axis=1)),
    ):
        yield text, f"not: {text}", holds
    for name, values in quantities.items():
        yield f"{name} is odd", f"{name} is even", values % 2 == 1
    # "More a than b" and "more b than a" are two rules, since both numbers may be the same.
    for pair in combinations(enumerate(alphabet), 2):
        for (more, one), (fewer, other) in (pair, pair[::-1]):
            text = f"more {one} than {other}"
            yield text, f"not {text}", counts[:, more] > counts[:, fewer]


def bounds(
    values: Float[np.ndarray, " string"],
    predicted: Rows,
    times: Real[np.ndarray, " string"],
) -> Iterator[Bound]:
    """The bound that agrees best, with the positive strings above it, and the best one below."""
    known, rows = np.unique(values, return_inverse=True)
    # A bound between equal values separates nothing.
    if len(known) < 2:
        return
    positive = np.bincount(rows, times * predicted, len(known))
    negative = np.bincount(rows, times * ~predicted, len(known))
    # Agreeing with "above the k-th value": negatives up to it, and positives beyond it.
    above = np.cumsum(negative)[:-1] + positive.sum() - np.cumsum(positive)[:-1]
    # What disagrees with a bound agrees with the opposite one.
    for agreeing, over in ((above, True), (times.sum() - above, False)):
        place = int(agreeing.argmax())
        # The number that is printed is the one that is tried.
        yield Bound(float(between(*known[place : place + 2])), above=over)


def agreement(text: str, says: Rows, predicted: Rows, times: Int64[np.ndarray, " string"]) -> Rule:
    """The agreement of a rule's answers with a model's."""
    same = says == predicted
    sides = (
        float(times[same & side].sum() / total) if (total := times[side].sum()) else None
        for side in (predicted, ~predicted)
    )
    return Rule(text, float(times[same].sum() / max(times.sum(), 1)), *sides)


# Bounds of the length, or of a feature of the task, that separate errors from right answers.

FOUND_AT, HOLDS_AT = 0.9, 0.75

MIN_GROUP_SIZE = 5
"""With fewer errors, or right answers, no bound is sought, which would always be found."""

LENGTH = "the length"

KINDS = ("false positives", "false negatives")
"""Errors that a bound may be of, beside all of them."""

Features = Mapping[str, np.ndarray]


Group = tuple[AttributedError, Rows]
"""A cause of an error, and the test strings that it is the cause of."""


class _Sides(NamedTuple):
    """The errors and the right answers that a bound is to separate, and their features."""

    errors: Rows
    right: Sequence[Rows]
    """Groups that weigh the same."""
    features: Features

    @property
    def are_many(self) -> bool:
        return all(int(rows.sum()) >= MIN_GROUP_SIZE for rows in (self.errors, *self.right))

    @property
    def weights(self) -> Float[np.ndarray, " string"]:
        """Errors and right answers weigh the same."""
        shares = [rows / rows.sum() / len(self.right) for rows in self.right]
        return np.asarray(self.errors / self.errors.sum() + sum(shares))

    def score(self, beyond: Rows) -> float:
        """Balanced accuracy; without errors, the share of right answers on their side."""
        spared = [float((~beyond)[rows].mean()) for rows in self.right if rows.any()]
        parts = [float(np.mean(spared))] if spared else []
        if self.errors.any():
            parts.append(float(beyond[self.errors].mean()))
        return float(np.mean(parts)) if parts else 1.0


def separations(
    task: Task, test: TriedStrings, short: TriedStrings, *, by_length: bool
) -> Iterator[Group]:
    """Yields a bound that separates all errors, or else at most one for each kind.

    A bound is sought for all errors; else for false positives and for false negatives, against
    right answers of the same label, or against those of both labels alike, which separates errors
    from what gets the same answer. It is sought among the test strings and among all short ones.
    Where it is found, its balanced accuracy is at least `FOUND_AT`. Among the other strings it is
    at least `HOLDS_AT`; without errors there, `FOUND_AT` of the right answers lie on their side.

    Args:
        by_length: whether a bound of the length may be one. If it may not, and separates errors
            better than any feature, there is none: the features would be proxies of the length.
    """
    features = [_features(task, tried) for tried in (test, short)]
    for kind in ("", *KINDS):
        # The first of equals: a feature comes before the length.
        best = max(_find_bounds(kind, (test, short), features), key=lambda x: x[0], default=None)
        if best is not None and (by_length or best[1] != LENGTH):
            _, name, bound = best
            beyond = _sides(kind, test, features[0])[0].errors & bound.says(features[0][name])
            text = f"{kind}: " * bool(kind) + f"{name} is {bound}"
            cause = LONGER if name == LENGTH else BEYOND
            yield AttributedError("", cause, None, text), beyond
            # One bound for all errors is more informative than one for each kind.
            if not kind:
                return


def _find_bounds(
    kind: str, tried: tuple[TriedStrings, TriedStrings], features: Sequence[Features]
) -> Iterator[tuple[float, str, Bound]]:
    """Bounds that hold for both, each with how well; of the length last."""
    both = [_sides(kind, strings, values) for strings, values in zip(tried, features, strict=True)]
    for test, short in zip(*both, strict=True):
        # The strings that chose a bound cannot test it, so the others do.
        for sought, other in ((test, short), (short, test)):
            if not sought.are_many:
                continue
            least = HOLDS_AT if other.errors.any() else FOUND_AT
            for name, values in sought.features.items():
                for bound in bounds(values.astype(float), sought.errors, sought.weights):
                    score = sought.score(bound.says(values))
                    if score >= FOUND_AT and other.score(bound.says(other.features[name])) >= least:
                        yield score, name, bound


def _sides(kind: str, tried: TriedStrings, features: Features) -> list[_Sides]:
    if not kind:
        return [_Sides(tried.wrong, [~tried.wrong], features)]
    answer = kind == KINDS[0]
    # Answer of the errors: false positives are predicted positive, and their label is negative.
    same_answer, same_label = (
        ~tried.wrong & (tried.labels == label) for label in (answer, not answer)
    )
    errors = tried.wrong & (tried.labels != answer)
    return [_Sides(errors, right, features) for right in ([same_label], [same_label, same_answer])]


def _features(task: Task, tried: TriedStrings) -> dict[str, np.ndarray]:
    features = task.features(tried.strings)
    named = {
        # Features called such as a's are numbers of tokens.
        f"the number of {x}" if x.endswith("'s") else f"the {x}": v
        for x, v in features.items()
    }
    # Last, so that a feature that separates as well is found before.
    return {**named, LENGTH: tried.strings.lengths}
