"""Why a misclassified string fails, decided by changing one thing inside and asking again.

The *reference* of a string has each of its letters once. In this order, the first that holds is
it:

- **dilution** (false negatives): in one head, a required letter gets less weight than in the
  reference. Given back its weight there (the others keep their proportions), the answer changes.
- **two heads on one letter**: the reference fails too, and all heads score the same letter
  highest. False positives: without that letter the answer changes, while the missing letter,
  added as often as the string is long, moves the logit less than `DEAF` times as much. False
  negatives: with the scores of that letter and another required one exchanged in one head, the
  answer changes.
- **value interference** (false positives): hidden from one head, a letter that is there changes
  the answer; with its value replaced by a missing letter's it does not, and of all values there
  its is the nearest to that letter's. Or several letters together: with one head's attention
  that of the reference the answer changes, with all of it on a missing letter it does not, and
  the head's mixed value lies nearer to that letter's than in the reference. (False negatives
  whose reference fails too: a letter that is not required, hidden from one head, changes the
  answer.)
- **feed-forward saturation**: the reference is right, and one unit lets through less than
  `FLOOR` of its input here; with its activation in the reference, the answer changes.

Where none of these holds, there is no single mechanism.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int64

from seqcls.interpretability.deletions import Counts
from seqcls.interpretability.mechanisms import Mechanism, MechanismName, spread_evenly
from seqcls.interpretability.network import Network, refuse, softmax

# What the logit of a string would be if one thing inside the network were otherwise.
#
# Each counterfactual changes one thing and computes all that follows from it as it is (activation
# patching; Vig et al., *Investigating Gender Bias in Language Models Using Causal Mediation
# Analysis*, 2020).


@dataclass(frozen=True, eq=False)
class Counterfactuals:
    """A misclassified string, and what the counterfactuals need of it."""

    network: Network
    counts: Int64[np.ndarray, " letter"]

    @cached_property
    def logit(self) -> float:
        return float(self.network.logits(self.counts[None])[0])

    @cached_property
    def wrong(self) -> bool:
        """The model's answer, which is the wrong one."""
        return self.logit > 0

    @cached_property
    def attention(self) -> Float[np.ndarray, "head token_type"]:
        return self._attention(self.counts)

    @cached_property
    def reference(self) -> Float[np.ndarray, "head token_type"]:
        return self._attention(np.minimum(self.counts, 1))

    @cached_property
    def reference_logit(self) -> float:
        return self.with_attention(self.reference)

    @cached_property
    def reference_fails(self) -> bool:
        return (self.reference_logit > 0) == self.wrong

    @property
    def present(self) -> list[int]:
        return np.flatnonzero(self.counts).tolist()

    @property
    def missing(self) -> list[int]:
        """Required letters that are not there."""
        return [x for x in self.network.problem.required_letters if not self.counts[x]]

    @property
    def heads(self) -> range:
        return range(self.network.config.num_attention_heads)

    def name(self, letter: int) -> str:
        return self.network.tokenizer.alphabet[letter]

    def with_attention(self, attention: Float[np.ndarray, "head token_type"]) -> float:
        return float(self.network.logits_of_attention(attention[None])[0])

    def with_counts(self, letter: int, count: int) -> float:
        changed = self.counts.copy()
        changed[letter] = count
        return float(self.network.logits(changed[None])[0])

    def with_head(self, head: int, weights: Float[np.ndarray, " token_type"]) -> float:
        """The logit where one head attends like this, the others as they do."""
        changed = self.attention.copy()
        changed[head] = weights
        return self.with_attention(changed)

    def hidden_from(self, head: int, letter: int) -> float:
        """The logit where one head does not see a letter."""
        scores = self.scores(head)
        scores[1 + letter] = -np.inf
        return self.with_head(head, softmax(scores))

    def with_value_of(self, head: int, letter: int, other: int) -> float:
        """The logit where one head reads another letter's value off a letter."""
        weights = self.attention[head].copy()
        weights[1 + other] += weights[1 + letter]
        weights[1 + letter] = 0
        return self.with_head(head, weights)

    def exchange_letters(self, head: int, letter: int, other: int) -> float:
        """The logit where one head scores two letters each as the other."""
        scores = self.network.scores[head, 0].copy()
        scores[[1 + letter, 1 + other]] = scores[[1 + other, 1 + letter]]
        return self.with_head(head, softmax(scores + self._log_counts(self.counts)))

    def scores(self, head: int) -> Float[np.ndarray, " token_type"]:
        return np.asarray(self.network.scores[head, 0] + self._log_counts(self.counts))

    def favourite(self) -> int | None:
        """The letter that all heads, at least two, score highest."""
        favourites = set(self.network.scores[:, 0, 1:].argmax(axis=1).tolist())
        return favourites.pop() if len(self.heads) > 1 and len(favourites) == 1 else None

    def mechanism(
        self, name: MechanismName, counterfactual: str, logit_with: float, **about: int | str | None
    ) -> Mechanism:
        known: dict[str, Any] = {"head": None, "letter": None, "by": None, "unit": None, **about}
        return Mechanism(
            name=name,
            counterfactual=counterfactual,
            logit=self.logit,
            logit_with=logit_with,
            **known,
        )

    def _log_counts(self, counts: Int64[np.ndarray, " letter"]) -> Float[np.ndarray, " token_type"]:
        return np.asarray(self.network.log_counts(counts[None])[0])

    def _attention(
        self, counts: Int64[np.ndarray, " letter"]
    ) -> Float[np.ndarray, "head token_type"]:
        return np.asarray(self.network.attention(self._log_counts(counts)[None])[0])


DEAF = 0.1
FLOOR = 0.05


def mechanism_of(network: Network, counts: Counts) -> Mechanism:
    """The mechanism of a misclassified string.

    Raises:
        ConfigError: of this model or task it would not be true.
    """
    refuse(network.problem)
    patching = Counterfactuals(network, np.array(counts, dtype=np.int64))
    questions: tuple[Callable[[Counterfactuals], Iterator[Mechanism]], ...] = (
        (_on_one_letter_positive, _interference, _mixture, _saturation)
        if patching.wrong
        else (_dilution, _on_one_letter_negative, _find_interference, _saturation)
    )
    for ask in questions:
        reversing = [x for x in ask(patching) if (x.logit_with > 0) != patching.wrong]
        if reversing:
            return max(reversing, key=lambda x: abs(x.logit_with - x.logit))
    together = "the attention of every head were that of the string with each letter once"
    return patching.mechanism("no single mechanism", together, patching.reference_logit)


def mechanism_of_error(network: Network, string: str) -> Mechanism | None:
    """The mechanism of a test error; None where in double precision the answer is right."""
    counts = network.tokenizer.counts(string)
    right = (network.logit_of(counts) > 0) == network.label_of(counts)
    return None if right else mechanism_of(network, counts)


def _dilution(patching: Counterfactuals) -> Iterator[Mechanism]:
    gains = patching.attention - patching.reference
    for head in patching.heads:
        for letter in patching.network.problem.required_letters:
            if gains[head, 1 + letter] >= 0:
                continue
            weights = patching.attention[head].copy()
            given = patching.reference[head, 1 + letter]
            weights *= (1 - given) / (1 - weights[1 + letter])
            weights[1 + letter] = given
            name = patching.name(letter)
            yield patching.mechanism(
                "dilution",
                f"head {head} gave {name} the weight {given:.3g} that it has where each letter "
                "occurs once",
                patching.with_head(head, weights),
                head=head,
                letter=name,
                by=patching.network.token_types[int(gains[head].argmax())],
            )


def _on_one_letter_positive(patching: Counterfactuals) -> Iterator[Mechanism]:
    letter = patching.favourite()
    if letter is None or not patching.counts[letter] or not patching.reference_fails:
        return
    without = patching.with_counts(letter, 0)
    length = int(patching.counts.sum())
    for other in patching.missing:
        moved = abs(patching.with_counts(other, length) - patching.logit)
        if moved < DEAF * abs(without - patching.logit):
            yield patching.mechanism(
                "two heads on one letter",
                f"every {patching.name(letter)} were deleted",
                without,
                letter=patching.name(letter),
                by=patching.name(other),
            )


def _on_one_letter_negative(patching: Counterfactuals) -> Iterator[Mechanism]:
    letter = patching.favourite()
    if letter is None or not patching.reference_fails:
        return
    for head in patching.heads:
        for other in patching.network.problem.required_letters:
            if other != letter:
                yield patching.mechanism(
                    "two heads on one letter",
                    f"head {head} scored {patching.name(other)} and {patching.name(letter)} each "
                    "as the other",
                    patching.exchange_letters(head, letter, other),
                    head=head,
                    letter=patching.name(letter),
                    by=patching.name(other),
                )


def _interference(patching: Counterfactuals) -> Iterator[Mechanism]:
    for head in patching.heads:
        value = patching.network.value[head, 1:]
        for other in patching.missing:
            letter = min(
                patching.present, key=lambda x: _distance(value[x], value[other]), default=None
            )
            if letter is None or patching.with_value_of(head, letter, other) <= 0:
                continue
            yield _hide(patching, head, letter, by=patching.name(other))


def _mixture(patching: Counterfactuals) -> Iterator[Mechanism]:
    for head in patching.heads:
        value = patching.network.value[head]
        mixed, reference = (x[head] @ value for x in (patching.attention, patching.reference))
        for other in patching.missing:
            nearer = _distance(mixed, value[1 + other]) < _distance(reference, value[1 + other])
            all_on_it = np.eye(len(value))[1 + other]
            if nearer and patching.with_head(head, all_on_it) > 0:
                yield patching.mechanism(
                    "value interference",
                    f"head {head} gave each letter the weight that it has where each occurs once",
                    patching.with_head(head, patching.reference[head]),
                    head=head,
                    by=patching.name(other),
                )


def _find_interference(patching: Counterfactuals) -> Iterator[Mechanism]:
    if not patching.reference_fails:
        return
    for head in patching.heads:
        for letter in patching.present:
            if letter not in patching.network.problem.required_letters:
                yield _hide(patching, head, letter)


def _hide(patching: Counterfactuals, head: int, letter: int, by: str | None = None) -> Mechanism:
    name = patching.name(letter)
    return patching.mechanism(
        "value interference",
        f"head {head} did not see {name}",
        patching.hidden_from(head, letter),
        head=head,
        letter=name,
        by=by,
    )


def _saturation(patching: Counterfactuals) -> Iterator[Mechanism]:
    if patching.reference_fails:
        return
    network = patching.network
    states = network.after_attention(np.stack([patching.attention, patching.reference]))
    forward = network.feed_forward(states)
    adds = network.classifier @ network.weights["blocks.0.feed_forward.output.weight"]
    for unit in range(network.config.feed_forward_size):
        inner, (here, there) = forward.input[0, unit], forward.activation[:, unit]
        if inner < 0 and abs(here) < FLOOR * abs(inner):
            yield patching.mechanism(
                "feed-forward saturation",
                f"unit {unit} had the activation {there:.3g} that it has where each letter occurs "
                "once",
                patching.logit + float(adds[unit] * (there - here)),
                unit=unit,
            )


def _distance(x: Float[np.ndarray, " head_size"], y: Float[np.ndarray, " head_size"]) -> float:
    return float(np.linalg.norm(x - y))


# What makes a model fail, summed up over its errors.

MOST_ERRORS = 300
"""Errors that are looked at, which takes a fraction of a second: some of them if there are more."""


@dataclass(frozen=True)
class Share:
    """The errors with one cause."""

    phrase: str
    """The cause, in words."""
    errors: int
    shortest: str


@dataclass(frozen=True)
class Causes:
    """The causes of a model's errors, the most frequent first."""

    examined: int
    errors: int
    """How many there are in all."""
    shares: tuple[Share, ...]


def causes(network: Network, strings: Sequence[str]) -> Causes:
    """Why a model fails.

    Args:
        strings: its misclassified strings, the shortest first.
    """
    picked = [strings[place] for place in spread_evenly(len(strings), MOST_ERRORS)]
    by_phrase: dict[str, list[str]] = {}
    for string in picked:
        by_phrase.setdefault(phrase_of(mechanism_of_error(network, string)), []).append(string)
    shares = [Share(phrase, len(errors), errors[0]) for phrase, errors in by_phrase.items()]
    shares.sort(key=lambda share: -share.errors)
    return Causes(len(picked), len(strings), tuple(shares))


def phrase_of(mechanism: Mechanism | None) -> str:
    """A mechanism, or rounding, in words that hold for many strings."""
    if mechanism is None:
        return "rounding: in double precision the answer is right"
    head, letter, by = mechanism.head, mechanism.letter, mechanism.by
    match mechanism.name:
        case "dilution":
            return f"dilution in head {head}: {letter} is drowned by {by}"
        case "value interference" if letter is None:
            return f"value interference in head {head}: its letters together are taken for {by}"
        case "value interference" if by is not None:
            return f"value interference in head {head}: {letter} is taken for {by}"
        case "value interference":
            return (
                f"value interference in head {head}: what it reads off {letter} outweighs the rest"
            )
        case "two heads on one letter":
            return f"two heads on one letter: all look for {letter}, none for {by}"
        case "feed-forward saturation":
            return f"feed-forward saturation: unit {mechanism.unit} lets next to nothing through"
    return "no single mechanism"
