r"""Why a misclassified string fails, decided by changing one thing inside and asking again.

The *reference* of a string has each of its letters once. In this order, the first that holds is it:

- **dilution** (false negatives): in one head, a required letter gets less weight than in the
  reference. Given back its weight there (the others keep their proportions), the answer changes.
- **two heads on one letter**: the reference fails too, and all heads score the same letter highest.
  False positives: without that letter the answer changes, while the missing letter, added as often
  as the string is long, moves the logit less than `DEAF` times as much. False negatives: with the
  scores of that letter and another required one exchanged in one head, the answer changes.
- **value mixing** (false positives): hidden from one head, a letter that is there changes the
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

from seqcls.data import required_letters_of
from seqcls.inside.cause import Mechanism
from seqcls.inside.counterfactual import Subject
from seqcls.inside.network import Network
from seqcls.inside.obstacle import refuse
from seqcls.inside.shrink import Counts

DEAF = 0.1
FLOOR = 0.05


def mechanism_of(network: Network, counts: Counts) -> Mechanism:
    """The mechanism of a misclassified string.

    Raises:
        ConfigError: of this model or task it would not be true.
    """
    refuse(network.config)
    subject = Subject(network, np.array(counts, dtype=np.int64))
    asked: tuple[Callable[[Subject], Iterator[Mechanism]], ...] = (
        (_on_one_letter_positive, _mixing, _mixture, _saturation)
        if subject.wrong
        else (_dilution, _on_one_letter_negative, _pushed, _saturation)
    )
    for ask in asked:
        found = [x for x in ask(subject) if (x.logit_with > 0) != subject.wrong]
        if found:
            return max(found, key=lambda x: abs(x.logit_with - x.logit))
    together = "the attention of every head were that of the string with each letter once"
    return subject.mechanism("no single mechanism", together, subject.reference_logit)


def _dilution(subject: Subject) -> Iterator[Mechanism]:
    gains = subject.attention - subject.reference
    for head in subject.heads:
        for letter in required_letters_of(subject.network.config):
            if gains[head, 1 + letter] >= 0:
                continue
            weights = subject.attention[head].copy()
            given = subject.reference[head, 1 + letter]
            weights *= (1 - given) / (1 - weights[1 + letter])
            weights[1 + letter] = given
            name = subject.name(letter)
            yield subject.mechanism(
                "dilution",
                f"head {head} gave {name} the weight {given:.3g} that it has where each letter "
                "occurs once",
                subject.with_head(head, weights),
                head=head,
                letter=name,
                by=subject.network.kinds[int(gains[head].argmax())],
            )


def _on_one_letter_positive(subject: Subject) -> Iterator[Mechanism]:
    letter = subject.favourite()
    if letter is None or not subject.counts[letter] or not subject.reference_fails:
        return
    without = subject.with_counts(letter, 0)
    length = int(subject.counts.sum())
    for other in subject.missing:
        moved = abs(subject.with_counts(other, length) - subject.logit)
        if moved < DEAF * abs(without - subject.logit):
            yield subject.mechanism(
                "two heads on one letter",
                f"every {subject.name(letter)} were deleted",
                without,
                letter=subject.name(letter),
                by=subject.name(other),
            )


def _on_one_letter_negative(subject: Subject) -> Iterator[Mechanism]:
    letter = subject.favourite()
    if letter is None or not subject.reference_fails:
        return
    for head in subject.heads:
        for other in required_letters_of(subject.network.config):
            if other != letter:
                yield subject.mechanism(
                    "two heads on one letter",
                    f"head {head} scored {subject.name(other)} and {subject.name(letter)} each as "
                    "the other",
                    subject.exchanged(head, letter, other),
                    head=head,
                    letter=subject.name(letter),
                    by=subject.name(other),
                )


def _mixing(subject: Subject) -> Iterator[Mechanism]:
    for head in subject.heads:
        value = subject.network.value[head, 1:]
        for other in subject.missing:
            letter = min(
                subject.present, key=lambda x: _distance(value[x], value[other]), default=None
            )
            if letter is None or subject.with_value_of(head, letter, other) <= 0:
                continue
            yield subject.mechanism(
                "value mixing",
                f"head {head} did not see {subject.name(letter)}",
                subject.hidden_from(head, letter),
                head=head,
                letter=subject.name(letter),
                by=subject.name(other),
            )


def _mixture(subject: Subject) -> Iterator[Mechanism]:
    for head in subject.heads:
        value = subject.network.value[head]
        mixed, reference = (x[head] @ value for x in (subject.attention, subject.reference))
        for other in subject.missing:
            nearer = _distance(mixed, value[1 + other]) < _distance(reference, value[1 + other])
            all_on_it = np.eye(len(value))[1 + other]
            if nearer and subject.with_head(head, all_on_it) > 0:
                yield subject.mechanism(
                    "value mixing",
                    f"head {head} gave each letter the weight that it has where each occurs once",
                    subject.with_head(head, subject.reference[head]),
                    head=head,
                    by=subject.name(other),
                )


def _pushed(subject: Subject) -> Iterator[Mechanism]:
    if not subject.reference_fails:
        return
    for head in subject.heads:
        for letter in subject.present:
            if letter not in required_letters_of(subject.network.config):
                yield subject.mechanism(
                    "value mixing",
                    f"head {head} did not see {subject.name(letter)}",
                    subject.hidden_from(head, letter),
                    head=head,
                    letter=subject.name(letter),
                )


def _saturation(subject: Subject) -> Iterator[Mechanism]:
    if subject.reference_fails:
        return
    network = subject.network
    states = network.after_attention(np.stack([subject.attention, subject.reference]))
    forward = network.feed_forward(states)
    adds = network.classifier @ network.weights["blocks.0.feed_forward.output.weight"]
    for unit in range(network.config.feed_forward_size):
        inner, (here, there) = forward.input[0, unit], forward.activation[:, unit]
        if inner < 0 and abs(here) < FLOOR * abs(inner):
            yield subject.mechanism(
                "feed-forward saturation",
                f"unit {unit} had the activation {there:.3g} that it has where each letter occurs "
                "once",
                subject.logit + float(adds[unit] * (there - here)),
                unit=unit,
            )


def _distance(x: Float[np.ndarray, " head_size"], y: Float[np.ndarray, " head_size"]) -> float:
    return float(np.linalg.norm(x - y))
