"""Simple rules that a model may follow: a fixed list, tried on all test strings.

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

import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int64, Integer, Real

from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.interpretability.wording import between, percent
from seqcls.strings.token_strings import NO_LETTER, TokenStrings
from seqcls.text import count

Says = Bool[np.ndarray, " string"]
Holds = Callable[[TokenStrings], Says]
Values = Callable[[TokenStrings], Real[np.ndarray, " string"]]


SHOWN = 10
"""Rules that are described; programs read them all."""


class Bound(NamedTuple):
    """A threshold, with the side that is positive: above the value, or at most it."""

    value: float
    above: bool

    def says(self, values: Real[np.ndarray, " string"]) -> Says:
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
        agreement(text, holds(strings), predicted, times)
        for text, holds in rules(model.tokenizer.alphabet, strings, predicted, times)
    ]
    # A stable sort: of equally good rules the simpler one stays before the other.
    ranked = sorted(agreements, key=lambda rule: -rule.agreement)
    return Rules(int(times.sum()), tuple(ranked))


def rules(
    alphabet: Sequence[str],
    strings: TokenStrings,
    predicted: Says,
    times: Int64[np.ndarray, " string"],
) -> Iterator[tuple[str, Holds]]:
    """Every rule in words, with its answers to any strings; the simplest first.

    Args:
        predicted: the model's answers, by which bounds are chosen.
    """
    # Every length is at least 0.
    yield "always positive", _compare(_length, operator.ge, 0)
    yield "always negative", _compare(_length, operator.lt, 0)
    for yes, no, holds in _properties(alphabet):
        yield f"positive iff {yes}", holds
        yield f"positive iff {no}", _compare(holds, operator.eq, False)
    shares = {f"the share of {x}": _share_of(letter) for letter, x in enumerate(alphabet)}
    for name, values in (_quantities(alphabet) | shares).items():
        for bound in bounds(values(strings).astype(float), predicted, times):
            # That there is a token, or two, is a rule of the list already.
            if name != "the length" and bound.value in ((0,) if name in shares else (0, 1)):
                continue
            compare = operator.gt if bound.above else operator.le
            yield f"positive iff {name} is {bound}", _compare(values, compare, bound.value)


def _properties(alphabet: Sequence[str]) -> Iterator[tuple[str, str, Holds]]:
    """Properties of strings: in words, their negation in words, and the strings that have them."""
    quantities = _quantities(alphabet)
    numbers = [(x, quantities[f"the number of {x}"]) for x in alphabet]
    for x, number in numbers:
        yield f"there is a {x}", f"no {x} at all", _compare(number, operator.ge, 1)
        words = f"there are two {x} or more", f"there is at most one {x}"
        yield *words, _compare(number, operator.ge, 2)
    every = "every token of the alphabet occurs"
    yield every, f"not {every}", lambda strings: np.asarray((strings.counts > 0).all(axis=1))
    for place, end in (("first", _first), ("last", _last)):
        for letter, x in enumerate(alphabet):
            words = f"the {place} token is {x}", f"the {place} token is not {x}"
            yield *words, _compare(end, operator.eq, letter)
    for text, holds in (
        ("the first and the last token are the same", _same_ends),
        ("two equal tokens stand beside one another", _has_double),
    ):
        yield text, f"not: {text}", holds
    for name, values in quantities.items():
        yield f"{name} is odd", f"{name} is even", _compare(values, _leaves, 1)
    # "More a than b" and "more b than a" are two rules, since both numbers may be the same.
    for pair in combinations(numbers, 2):
        for (one, more), (other, fewer) in (pair, pair[::-1]):
            text = f"more {one} than {other}"
            yield text, f"not {text}", _compare(more, operator.gt, fewer)


def _compare(values: Values, compare: Callable[..., Any], other: float | Values) -> Holds:
    """Compares the numbers of strings with one number, or with others of theirs."""
    return lambda strings: np.asarray(
        compare(values(strings), other(strings) if callable(other) else other)
    )


def _quantities(alphabet: Sequence[str]) -> dict[str, Values]:
    """The length and the numbers of tokens."""
    numbers = {f"the number of {x}": _number_of(letter) for letter, x in enumerate(alphabet)}
    return {"the length": _length, **numbers}


def _length(strings: TokenStrings) -> Int64[np.ndarray, " string"]:
    return strings.lengths


def _number_of(letter: int) -> Values:
    return lambda strings: strings.counts[:, letter]


def _share_of(letter: int) -> Values:
    return lambda strings: np.asarray(strings.counts[:, letter] / np.maximum(strings.lengths, 1))


def _leaves(number: np.ndarray, rest: int) -> np.ndarray:
    return np.asarray(number % 2 == rest)


def _first(strings: TokenStrings) -> Integer[np.ndarray, " string"]:
    """`NO_LETTER` of the empty string, as `_last`."""
    letters = strings.letters
    return letters[:, 0] if letters.shape[1] else np.full(len(strings), NO_LETTER)


def _last(strings: TokenStrings) -> Integer[np.ndarray, " string"]:
    if not strings.letters.shape[1]:
        return _first(strings)
    # The empty string has padding at 0, which is no letter.
    ends = np.maximum(strings.lengths - 1, 0)
    return np.asarray(strings.letters[np.arange(len(strings)), ends])


def _same_ends(strings: TokenStrings) -> Says:
    return np.asarray(_first(strings) == _last(strings))


def _has_double(strings: TokenStrings) -> Says:
    letters = strings.letters
    beside = (letters[:, 1:] == letters[:, :-1]) & (letters[:, 1:] != NO_LETTER)
    return np.asarray(beside.any(axis=1))


def bounds(
    values: Float[np.ndarray, " string"],
    predicted: Says,
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


def agreement(text: str, says: Says, predicted: Says, times: Int64[np.ndarray, " string"]) -> Rule:
    """The agreement of a rule's answers with a model's."""
    same = says == predicted
    sides = (
        float(times[same & side].sum() / total) if (total := times[side].sum()) else None
        for side in (predicted, ~predicted)
    )
    return Rule(text, float(times[same].sum() / max(times.sum(), 1)), *sides)
