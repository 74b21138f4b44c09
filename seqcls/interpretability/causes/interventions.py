r"""Why a misclassified string fails, decided by changing one thing inside and asking again.

The *reference* of a string has each of its letters once. In this order, the first that holds is it:

- **dilution** (false negatives): in one head, a required letter gets less weight than in the
  reference. Given back its weight there (the others keep their proportions), the answer changes.
- **two heads on one letter**: the reference fails too, and all heads score the same letter highest.
  False positives: without that letter the answer changes, while the missing letter, added as often
  as the string is long, moves the logit less than `DEAF` times as much. False negatives: with the
  scores of that letter and another required one exchanged in one head, the answer changes.
- **value interference** (false positives): hidden from one head, a letter that is there changes the
  answer; with its value replaced by a missing letter's it does not, and of all values there its is
  the nearest to that letter's. Or several letters together: with one head's attention that of the
  reference the answer changes, with all of it on a missing letter it does not, and the head's mixed
  value lies nearer to that letter's than in the reference. (False negatives whose reference fails
  too: a letter that is not required, hidden from one head, changes the answer.)
- **feed-forward saturation**: the reference is right, and one unit lets through less than `FLOOR`
  of its input here; with its activation in the reference, the answer changes.

Where none of these holds, there is no single mechanism.
"""

from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float

from seqcls.interpretability.causes.counterfactuals import Counterfactuals
from seqcls.interpretability.causes.mechanisms import Mechanism
from seqcls.interpretability.minimal.deletions import Counts
from seqcls.interpretability.model.network import Network
from seqcls.interpretability.model.obstacle import refuse

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
        else (_dilution, _on_one_letter_negative, _pushed, _saturation)
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
                    patching.exchanged(head, letter, other),
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
            yield _hidden(patching, head, letter, by=patching.name(other))


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


def _pushed(patching: Counterfactuals) -> Iterator[Mechanism]:
    if not patching.reference_fails:
        return
    for head in patching.heads:
        for letter in patching.present:
            if letter not in patching.network.problem.required_letters:
                yield _hidden(patching, head, letter)


def _hidden(patching: Counterfactuals, head: int, letter: int, by: str | None = None) -> Mechanism:
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
