"""Explanations of a model's answer to one string, as data and in plain sentences.

Every claim is checked by changing the string, or one thing inside the model, and asking again: see
`deletions` and `interventions` of `seqcls.interpretability`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from string import ascii_lowercase
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from seqcls.errors import InvalidStringError
from seqcls.interpretability import readable_model
from seqcls.interpretability.circuits import Circuits, head_circuits
from seqcls.interpretability.deletions import (
    MAX_ADDED,
    MinimalString,
    Removal,
    changes,
    minimal_string,
    without_part,
)
from seqcls.interpretability.domains import refuse
from seqcls.interpretability.interventions import VALUES, GivenString, Mechanism, mechanism_of
from seqcls.interpretability.mechanisms import ONE_LETTER
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.interpretability.wording import number, sign
from seqcls.prediction import not_a_number

ErrorKind = Literal["false positive", "false negative"]


class AttentionEntry(NamedTuple):
    """One token type as one head sees it from `CLS`."""

    kind: str
    count: int  # type: ignore[assignment]
    score: float
    weight: float
    """Attention to all tokens of the type together."""
    value: tuple[float, ...]
    adds: float
    """weight x what the value adds to the logit directly, past the feed-forward."""


class ScoreGap(NamedTuple):
    """The difference between one letter's score and the next one's in a head."""

    over: str
    under: str
    gap: float
    outweighed_by: float
    """e^gap: the number of `under` that weigh as much as one of `over`."""


class NearValue(NamedTuple):
    """A letter whose value in a head lies closest to that of another."""

    letter: str
    near_to: str
    distance: float
    next_nearest: str | None
    next_distance: float | None


class HeadReading(NamedTuple):
    """One head, looking at one string."""

    head: int
    order: tuple[str, ...]
    """All letters of the alphabet, those with the highest score first."""
    gaps: tuple[ScoreGap, ...]
    """Between neighbors in `order`."""
    seen: tuple[AttentionEntry, ...]
    """The token types that the string has and that can be attended to, the largest weight first."""
    values: tuple[tuple[float, ...], ...]
    """For every letter of the alphabet, in its order, whether the string has it or not."""
    near_values: tuple[NearValue, ...]
    """The near values, in the same order."""
    mixed_value: tuple[float, ...]


class Explanation(NamedTuple):
    """A string's answer and its cause."""

    string: str
    counts: tuple[int, ...]
    label: bool
    logit: float
    probability: float
    error: ErrorKind | None
    """None where the answer is right; then `smallest` and `mechanism` are absent too."""
    heads: tuple[HeadReading, ...]
    removals: tuple[Removal, ...]
    """Deletions, a letter of which no number does it left out."""
    additions: tuple[Removal, ...]
    """The same for more of a letter that the string has."""
    no_part: tuple[str, ...]
    """Letters of which any number may go, all of them together too, without a change of answer."""
    smallest: MinimalString | None
    mechanism: Mechanism | None
    """None of an error, too, that no one change turns."""

    def describe(self, model: TrainedModel) -> Iterator[str]:
        """Yields the findings, the most important first."""
        yield from explanation_text(self, model.tokenizer.display)


def explain(model: TrainedModel, string: str) -> Explanation:
    """Explains a model's answer to a string; of an error, by the one thing that makes it.

    Raises:
        ConfigError: of this model or task the explanation would not be true.
        InvalidStringError: the string is not of this alphabet.
    """
    refuse(model.problem)
    counts = model.tokenizer.counts(string)
    label = bool(model.problem.count_task.labels_of_counts(np.array([counts]))[0])
    read = GivenString(readable_model.from_counts(model, np.array([counts])), counts, label)
    states = {name: x.numpy() for name, x in readable_model.states(model, read.batch).items()}
    logit = float(states["logit"][0])
    if math.isnan(logit):
        raise InvalidStringError(not_a_number(string))
    failed = (logit > 0) != label
    return Explanation(
        string=string,
        counts=counts,
        label=label,
        logit=logit,
        # The exponential of 710 overflows; long before that the probability is 0.
        probability=1 / (1 + math.exp(-logit)) if logit > -700 else 0.0,
        error=("false negative" if label else "false positive") if failed else None,
        heads=tuple(_head(model, states, counts, head) for head in head_circuits(model)),
        removals=changes(model, counts, tuple(0 for _ in counts)),
        # A letter that does not occur stays out of it: its end is 0.
        additions=changes(model, counts, tuple(x and x + MAX_ADDED for x in counts)),
        no_part=tuple(model.tokenizer.alphabet[x] for x in without_part(model, counts)),
        smallest=minimal_string(model, counts) if failed else None,
        mechanism=mechanism_of(model, read) if failed else None,
    )


States = dict[str, Float[np.ndarray, "..."]]


def _head(
    model: TrainedModel, states: States, counts: tuple[int, ...], circuit: Circuits
) -> HeadReading:
    """One head's reading of a string, whose token types are `CLS` and the letters."""
    # Query 0 is `CLS`, where the answer is read.
    names, scores, values = circuit.token_types, circuit.scores[0], circuit.value
    weights, mixed = (
        states[f"blocks.0.attention.{x}"][0, circuit.head, 0] for x in ("weights", "mixed_value")
    )
    order = sorted(range(1, len(names)), key=lambda x: -scores[x])
    times = (int(not model.config.no_attend_cls), *counts)
    seen = [x for x in np.argsort(-weights, kind="stable").tolist() if times[x]]
    return HeadReading(
        head=circuit.head,
        order=tuple(names[x] for x in order),
        # Above 700 the exponential is no number that anybody could count to.
        gaps=tuple(
            ScoreGap(names[x], names[y], gap, float(np.exp(min(gap, 700.0))))
            for x, y in pairwise(order)
            for gap in [float(scores[x] - scores[y])]
        ),
        seen=tuple(
            AttentionEntry(
                names[x],
                times[x],
                float(scores[x]),
                float(weights[x]),
                tuple(values[x].tolist()),
                float(weights[x] * circuit.direct_logit[x]),
            )
            for x in seen
        ),
        values=tuple(map(tuple, values[1:].tolist())),
        near_values=_near_values(model.tokenizer.alphabet, values[1:]),
        mixed_value=tuple(mixed.tolist()),
    )


def _near_values(
    alphabet: Sequence[str], values: Float[np.ndarray, "letter head_size"]
) -> tuple[NearValue, ...]:
    distances = np.linalg.norm(values[:, None] - values, axis=2)
    found = []
    for letter, row in enumerate(distances):
        others = sorted((float(x), alphabet[k]) for k, x in enumerate(row) if k != letter)
        distance, near_to = others[0]
        next_distance, next_nearest = others[1] if len(others) > 1 else (None, None)
        found.append(NearValue(alphabet[letter], near_to, distance, next_nearest, next_distance))
    return tuple(found)


# In plain sentences, each with the numbers to check it by.

MAX_SHOWN_HEADS = 2
"""Heads that are described where no mechanism names one."""

MAX_SHOWN_LETTERS = 4
"""Letters of each head that are; all are in the data."""


def explanation_text(
    explanation: Explanation, display: Callable[[str], str] = str
) -> tuple[str, ...]:
    """The findings as sentences, the most important first.

    Args:
        explanation: of a string.
        display: how the tokenizer shows strings.
    """
    sentences = [_answer(explanation, display(explanation.string) or "The empty string")]
    if explanation.error is not None and any(explanation.counts):
        sentences.append(_cause(explanation, explanation.mechanism))
    sentences += [_describe_head(explanation, head) for head in _relevant(explanation)]
    sentences += [*_near(explanation), _flips(explanation), *_no_part(explanation)]
    smallest = explanation.smallest
    if smallest is not None and smallest.string != explanation.string:
        logit = f"(logit {number(smallest.logit)})"
        sentences.append(
            f"The smallest part that still fails is {display(smallest.string)} {logit}: with fewer "
            "of any one letter it is right."
            if smallest.string
            else f"The empty string fails too {logit}."
        )
    return tuple(sentences)


def _answer(explanation: Explanation, string: str) -> str:
    right, predicted = sign(explanation.label), sign(explanation.logit > 0)
    numbers = f"(logit {number(explanation.logit)}, probability {explanation.probability:.3g})"
    if explanation.error is None:
        return f"{string} is {right}, and the model agrees {numbers}."
    return (
        f"{string} is {right}, but the model predicts {predicted} {numbers}: a {explanation.error}."
    )


def _cause(explanation: Explanation, mechanism: Mechanism | None) -> str:
    if mechanism is None:
        return (
            "No single cause: neither dilution, nor the letter that all heads look for, "
            "nor the values of one head explain it alone."
        )
    return (
        f"{mechanism.name.capitalize()}: {_what(explanation, mechanism)}. "
        f"If {mechanism.counterfactual}, the logit would be {number(mechanism.logit_with)}: "
        f"{sign(mechanism.logit_with > 0)}."
    )


def _what(explanation: Explanation, mechanism: Mechanism) -> str:
    head, letter, by = mechanism.head, mechanism.letter, mechanism.by
    if mechanism.name == ONE_LETTER:
        heads = len(explanation.heads)
        which = "both" if heads == 2 else f"all {heads}"
        return f"{which} heads score {letter} highest, so none looks for {by}"
    if mechanism.name == VALUES:
        return f"head {head} takes {_some(explanation, letter)} for {by}"
    if head is None or letter is None:
        which = "no head alone, but all together" if head is None else f"head {head}"
        return f"{which} give too little weight to what they attend to"
    seen = explanation.heads[head].seen
    weight = next(x.weight for x in seen if x.kind == letter)
    drown = "drowns" if _count(explanation, by) == 1 else "drown"
    return (
        f"in head {head}, {_some(explanation, by)} {drown} {_some(explanation, letter)}, "
        f"whose weight is {number(weight)}"
    )


def _relevant(explanation: Explanation) -> tuple[HeadReading, ...]:
    mechanism = explanation.mechanism
    # Of many heads the one that the cause names is the most informative.
    if (
        len(explanation.heads) > MAX_SHOWN_HEADS
        and mechanism is not None
        and mechanism.head is not None
    ):
        return (explanation.heads[mechanism.head],)
    return explanation.heads[:MAX_SHOWN_HEADS]


def _describe_head(explanation: Explanation, head: HeadReading) -> str:
    sentence = f"Head {head.head} attends to {', then to '.join(head.order[:MAX_SHOWN_LETTERS])}"
    if head.gaps:
        gaps = (
            f"{gap.over} outscores {gap.under} by {number(gap.gap)}, so one {gap.over} weighs as "
            f"much as {number(gap.outweighed_by)} {gap.under}'s"
            for gap in head.gaps[: MAX_SHOWN_LETTERS - 1]
        )
        sentence += f": {'; '.join(gaps)}"
    weights = (
        f"{number(seen.weight)} on {_some(explanation, seen.kind)}"
        for seen in head.seen[: MAX_SHOWN_LETTERS + 1]
    )
    return (
        f"{sentence}. Here its attention is {', '.join(weights)}." if head.seen else f"{sentence}."
    )


def _near(explanation: Explanation) -> Iterator[str]:
    mechanism = explanation.mechanism
    if mechanism is None or mechanism.name != VALUES or mechanism.head is None:
        return
    head = explanation.heads[mechanism.head]
    letters = [x.letter for x in head.near_values]
    nearest = head.near_values[letters.index(mechanism.letter or "")]
    value, other = (head.values[letters.index(x)] for x in (nearest.letter, nearest.near_to))
    sentence = (
        f"In head {head.head} the value of {nearest.letter}, {_values(value)}, lies closest to "
        f"that of {nearest.near_to}, {_values(other)}: {number(nearest.distance)} apart"
    )
    if nearest.next_distance is not None:
        sentence += f", against {number(nearest.next_distance)} from that of {nearest.next_nearest}"
    yield f"{sentence}. The head's mixed value is {_values(head.mixed_value)}."


def _flips(explanation: Explanation) -> str:
    if not any(explanation.counts):
        return "There is no letter to attend to: the answer is that of CLS alone."
    changes = [
        f"{_several(x.left, x.letter)} instead of {x.count:,} (logit {number(x.logit)})"
        for x in (*explanation.removals, *explanation.additions)
    ]
    if not changes:
        return "No other number of any one letter that it has, up to a million, flips the answer."
    return f"The answer would flip with {'; or with '.join(changes)}; all else unchanged."


def _no_part(explanation: Explanation) -> Iterator[str]:
    if not explanation.no_part:
        return
    letters = " and ".join(_some(explanation, letter) for letter in explanation.no_part)
    one = sum(_count(explanation, letter) for letter in explanation.no_part) == 1
    has, fewer = ("has", "without it") if one else ("have", "with fewer of them, or none,")
    yield f"{letters[0].upper()}{letters[1:]} {has} no part in it: {fewer} it is the same."


def _some(explanation: Explanation, token_type: str | None) -> str:
    number_of = _count(explanation, token_type)
    return f"the {token_type}" if number_of == 1 else f"the {number_of:,} {token_type}'s"


def _several(number_of: int, letter: str) -> str:
    return f"no {letter}" if number_of == 0 else f"{number_of:,} {letter}" + "'s" * (number_of > 1)


def _count(explanation: Explanation, token_type: str | None) -> int:
    """The number of tokens of a type in the string; there is one `CLS`."""
    # The report's tasks are over the first letters of the alphabet.
    letters = dict(zip(ascii_lowercase, explanation.counts, strict=False))
    return letters.get(token_type or "", 1)


def _values(value: tuple[float, ...]) -> str:
    numbers = ", ".join(map(number, value))
    return numbers if len(value) == 1 else f"({numbers})"
