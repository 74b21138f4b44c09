"""Simple rules that a model may follow: a fixed list, tried on all test strings.

Each rule says of a string whether it is positive, by something that is easily seen in it. That a
rule agrees with a model on every string shows what the model does on them, not how it does it. The
list, simplest first, each also with the answers exchanged where that is another rule:

1. always the same answer;
2. a token occurs; more than once; every token of the alphabet occurs;
3. the first, or the last, token is a given one;
4. the first and the last token are the same; two equal tokens stand beside one another;
5. the number of a token, or the length, is odd;
6. there are more of one token than of another;
7. the length, the number of a token or its share is above a bound: the bound that agrees best.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int64, Real

from seqcls.data import sampler_of
from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.strings.asked import AskedModel
from seqcls.strings import NO_LETTER, TokenStrings

Says = Bool[np.ndarray, " string"]


@dataclass(frozen=True)
class Rule:
    """One rule and how well it agrees with a model's answers on the test strings."""

    text: str
    """Such as `positive iff no 1 at all`."""
    agreement: float
    """The share of test strings, each counted as often as it occurs, in [0, 1]."""
    on_positive: float | None
    """The same among strings that the model says are positive; None where there are none."""
    on_negative: float | None


@dataclass(frozen=True)
class Rules:
    """Every rule of the list, the best first; of equally good ones the simplest."""

    rules: tuple[Rule, ...]
    strings: int
    """Test strings that were tried."""

    @property
    def best(self) -> Rule:
        return self.rules[0]


def fitting_rules(model: AskedModel) -> Rules:
    """How well each rule predicts a model's answers on all of its test strings.

    Strings that the model has no places for are left out.
    """
    test = distinct_test_strings(sampler_of(model.config, "test"))
    answers = model.ask(test.strings)
    known = np.flatnonzero(answers.known)
    strings, times = test.strings.take(known), test.occurrences[known]
    predicted = answers.predicted[known]
    found = [
        agreement(text, says, predicted, times)
        for text, says in candidates(model.tokenizer.alphabet, strings, predicted, times)
    ]
    # A stable sort: of equally good rules the simpler one stays before the other.
    ranked = sorted(found, key=lambda rule: -rule.agreement)
    return Rules(tuple(ranked), int(times.sum()))


def candidates(
    alphabet: str,
    strings: TokenStrings,
    predicted: Says,
    times: Int64[np.ndarray, " string"],
) -> Iterator[tuple[str, Says]]:
    """Every rule in words, with what it says of the strings; the simplest first.

    Args:
        alphabet: one character a token.
        strings: what the rules are tried on.
        predicted: the model's answers, by which bounds are chosen.
        times: how often each string counts.
    """
    yield "always positive", np.ones(len(strings), dtype=bool)
    yield "always negative", np.zeros(len(strings), dtype=bool)
    yield from _occurrences(alphabet, strings.counts)
    yield from _ends(alphabet, strings)
    for name, values in _numbers(alphabet, strings):
        yield f"positive iff {name} is odd", values % 2 == 1
        yield f"positive iff {name} is even", values % 2 == 0
    for (x, own), (y, other) in combinations(list(zip(alphabet, strings.counts.T, strict=True)), 2):
        for text, says in (
            (f"more {x} than {y}", own > other),
            (f"more {y} than {x}", other > own),
        ):
            yield f"positive iff {text}", says
            yield f"positive iff not {text}", ~says
    quantities = [(name, values.astype(float)) for name, values in _numbers(alphabet, strings)]
    shares = strings.counts / np.maximum(strings.lengths, 1)[:, None]
    quantities += [(f"the share of {x}", own) for x, own in zip(alphabet, shares.T, strict=True)]
    for name, values in quantities:
        yield from bounds(name, values, predicted, times)


def _occurrences(
    alphabet: str, counts: Int64[np.ndarray, "string letter"]
) -> Iterator[tuple[str, Says]]:
    for letter, own in zip(alphabet, counts.T, strict=True):
        yield f"positive iff there is a {letter}", own > 0
        yield f"positive iff no {letter} at all", own == 0
        yield f"positive iff there are two {letter} or more", own > 1
        yield f"positive iff there is at most one {letter}", own <= 1
    every = np.asarray((counts > 0).all(axis=1))
    yield "positive iff every token of the alphabet occurs", every
    yield "positive iff not every token of the alphabet occurs", ~every


def _ends(alphabet: str, strings: TokenStrings) -> Iterator[tuple[str, Says]]:
    letters, rows = strings.letters, np.arange(len(strings))
    if letters.shape[1] == 0:
        return
    first = letters[:, 0]
    last = letters[rows, np.maximum(strings.lengths - 1, 0)]
    for place, own in (("first", first), ("last", last)):
        for number, letter in enumerate(alphabet):
            yield f"positive iff the {place} token is {letter}", own == number
            yield f"positive iff the {place} token is not {letter}", own != number
    beside = (letters[:, 1:] == letters[:, :-1]) & (letters[:, 1:] != NO_LETTER)
    for text, says in (
        ("the first and the last token are the same", first == last),
        ("two equal tokens stand beside one another", beside.any(axis=1)),
    ):
        yield f"positive iff {text}", says
        yield f"positive iff not: {text}", ~says


def _numbers(
    alphabet: str, strings: TokenStrings
) -> Iterator[tuple[str, Int64[np.ndarray, " string"]]]:
    yield "the length", strings.lengths
    for letter, own in zip(alphabet, strings.counts.T, strict=True):
        yield f"the number of {letter}", own


def bounds(
    name: str,
    values: Float[np.ndarray, " string"],
    predicted: Says,
    times: Real[np.ndarray, " string"],
) -> Iterator[tuple[str, Says]]:
    """The bound that agrees best, with the positive strings above it, and likewise below."""
    known, rows = np.unique(values, return_inverse=True)
    if len(known) < 2:
        return
    positive = np.bincount(rows, times * predicted, len(known))
    negative = np.bincount(rows, times * ~predicted, len(known))
    # Agreeing with "above the k-th value": negatives up to it, and positives beyond it.
    above = np.cumsum(negative)[:-1] + positive.sum() - np.cumsum(positive)[:-1]
    for text, agreeing, over in (("above", above, True), ("at most", times.sum() - above, False)):
        bound = known[int(agreeing.argmax())]
        says = values > bound
        yield f"positive iff {name} is {text} {bound:.4g}", says if over else ~says


def agreement(text: str, says: Says, predicted: Says, times: Int64[np.ndarray, " string"]) -> Rule:
    """How well what a rule says of strings agrees with a model's answers."""
    same = says == predicted
    return Rule(
        text,
        float(times[same].sum() / max(times.sum(), 1)),
        _share(same, predicted, times),
        _share(same, ~predicted, times),
    )


def _share(same: Says, of: Says, times: Int64[np.ndarray, " string"]) -> float | None:
    total = int(times[of].sum())
    return float(times[same & of].sum() / total) if total else None
