"""What the causes of any model's errors are shown by."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from seqcls.cache import remembered
from seqcls.counts import counts_suffice
from seqcls.errors import ConfigError
from seqcls.interpretability.automaton import LearningBudget, obstacle
from seqcls.interpretability.automaton_learning import learn
from seqcls.interpretability.domains import TriedStrings
from seqcls.interpretability.readable_model import Changing, ids_of, plain_model
from seqcls.interpretability.rules import Bound, bounds
from seqcls.interpretability.trained_model import Letters, TrainedModel
from seqcls.models.base import Classifier
from seqcls.models.forms import form
from seqcls.problem import Problem
from seqcls.strings.token_strings import NO_LETTER, TokenStrings
from seqcls.tasks import Task
from seqcls.tasks.automaton import Automaton

# Strings that a function of letter counts cannot tell apart, though the language does.


DRAWN = 32
"""Strings of the other label, and as many orders of the same letters, that are tried."""


def sees_counts_alone(problem: Problem) -> bool:
    """Whether the order of tokens decides in the language, and not in the model's answer."""
    return problem.task.order_sensitive and counts_suffice(problem.network, training=False) is None


def first_not_seen(problem: Problem, tried: TriedStrings) -> Letters | None:
    """The first misclassified of some strings of which another has its letters and its other label.

    None where the model does not see counts alone.
    """
    if not sees_counts_alone(problem):
        return None
    _, rows = np.unique(tried.strings.counts, axis=0, return_inverse=True)
    positive = np.bincount(rows, tried.labels)[rows]
    unseen = np.flatnonzero(tried.wrong & (positive > 0) & (positive < np.bincount(rows)[rows]))
    if not len(unseen):
        return None
    letters = tried.strings.letters[unseen[0], : tried.strings.lengths[unseen[0]]]
    return tuple(letters.tolist())


def same_letters_other_label(problem: Problem, letters: Sequence[int]) -> Letters | None:
    """A string with the same letters and the other label, where one is found.

    A model that sees counts alone answers both alike, so it is wrong on one of them, whatever it
    has learned. None says only that none was found among `DRAWN` strings of the other label, as
    many orders of these letters, and these in the order of the alphabet.
    """
    task, alphabet = problem.language, len(problem.task.alphabet)
    given = TokenStrings.of_lists(alphabet, [letters])
    label = bool(task.labels(given)[0])
    generator = np.random.default_rng(0)
    shuffled = [tuple(generator.permutation(letters).tolist()) for _ in range(DRAWN)]
    others = [tuple(sorted(letters)), *_of_label(problem, len(letters), not label), *shuffled]
    ordered = TokenStrings.of_lists(alphabet, others)
    # What has no known label is no such string.
    labels = problem.targets_or(ordered, np.full(len(ordered), label))
    fits = (ordered.counts == given.counts).all(axis=1) & (labels != label)
    return others[int(fits.argmax())] if fits.any() else None


@remembered
def _of_label(problem: Problem, length: int, positive: bool) -> tuple[Letters, ...]:
    task = problem.language
    if not task.has(length, positive):
        return ()
    generator = np.random.default_rng(1)
    drawn = (task.draw(generator, length, positive) for _ in range(DRAWN))
    return tuple({tuple(string.tolist()): None for string in drawn})


# Errors of a model that has learned another regular language, as far as a small budget shows.

BUDGET = LearningBudget(rounds=40, states=20, strings=2**12, single=5_000)
"""Hypotheses of at most so many states are looked at: larger ones explain little. What ends the
learning is counted, so that a slow machine finds the same cause."""


def smallest_automaton(
    model: TrainedModel, test: TriedStrings, short: TriedStrings, agrees: float, explains: float
) -> Automaton | None:
    """The smallest automaton learned of a model that says what it says, and makes its errors.

    Args:
        agrees: the share of the strings of either on which they say the same.
        explains: the share of the errors of either.
    """
    if obstacle(model.problem) is not None:
        return None
    # Whole strings are asked: what answers is what was tested.
    try:
        learned = learn(model, BUDGET, stepped=False)
    except ConfigError:
        # Some of them have no answer, so it is no machine.
        return None
    for made in learned.rounds:
        if all(_holds(made.automaton, tried, agrees, explains) for tried in (test, short)):
            return made.automaton
    return None


def first_difference(model: TrainedModel, automaton: Automaton, short: TriedStrings) -> str | None:
    """The first short string on which an automaton and the language differ, if any."""
    said = automaton.accepting[automaton.states(short.strings)]
    rows = np.flatnonzero(said != short.labels)
    if not len(rows):
        return None
    row = rows[int(short.strings.lengths[rows].argmin())]
    return model.display([x for x in short.strings.letters[row].tolist() if x != NO_LETTER])


def _holds(automaton: Automaton, tried: TriedStrings, agrees: float, explains: float) -> bool:
    same = automaton.accepting[automaton.states(tried.strings)] == tried.predicted
    share = float(tried.times[same].sum() / max(tried.times.sum(), 1))
    return share >= agrees and (not tried.wrong.any() or bool(same[tried.wrong].mean() >= explains))


# Bounds of the length, or of a feature of the task, that tell a model's errors from right answers.
#
# A bound is sought for all errors; else for false positives and for false negatives, against right
# answers of the same label, or against those of both labels alike: that tells what is wrong of what
# gets the same answer. It is sought among the test strings and among all short ones. Where it is
# found, its balanced accuracy is at least `PARTS`. Among the other strings it is at least
# `HALFWAY`; without errors there, `PARTS` of the right answers lie on their side.

PARTS, HALFWAY = 0.9, 0.75

FEWEST = 5
"""With fewer errors, or right answers, no bound is sought, which would always be found."""

LENGTH = "the length"

Rows = Bool[np.ndarray, " string"]


@dataclass(frozen=True, eq=False)
class Separation:
    """A bound, and the strings beyond it."""

    kind: str
    """`false positives`, `false negatives`, or nothing of all errors."""
    name: str
    bound: Bound
    beyond: Rows
    """The errors of this kind among the test strings that lie beyond it."""

    @property
    def text(self) -> str:
        """Such as `false positives: the nesting depth is above 3`."""
        return f"{self.kind}: " * bool(self.kind) + f"{self.name} is {self.bound}"


@dataclass(frozen=True, eq=False)
class _Sides:
    """The errors and the right answers that a bound is to tell apart, and their features."""

    errors: Rows
    right: Sequence[Rows]
    """Groups that weigh the same."""
    features: Mapping[str, np.ndarray]

    @property
    def are_many(self) -> bool:
        return all(int(rows.sum()) >= FEWEST for rows in (self.errors, *self.right))

    @property
    def weights(self) -> Float[np.ndarray, " string"]:
        """Errors and right answers weigh the same."""
        weights = self.errors / self.errors.sum()
        for rows in self.right:
            weights = weights + rows / rows.sum() / len(self.right)
        return np.asarray(weights)

    def score(self, beyond: Rows) -> float:
        """Balanced accuracy; without errors, the share of right answers on their side."""
        spared = [float((~beyond)[rows].mean()) for rows in self.right if rows.any()]
        parts = [float(np.mean(spared))] if spared else []
        if self.errors.any():
            parts.append(float(beyond[self.errors].mean()))
        return float(np.mean(parts)) if parts else 1.0


def separations(
    task: Task, test: TriedStrings, short: TriedStrings, *, by_length: bool
) -> list[Separation]:
    """One of all errors, or else at most one of each kind.

    Args:
        by_length: whether a bound of the length may be one. If it may not, and tells errors apart
            better than any feature, there is none: the features would stand for the length.
    """
    features = [_features(task, tried) for tried in (test, short)]
    separations = []
    for kind in ("", "false positives", "false negatives"):
        best = max(_find_bounds(kind, (test, short), features), key=lambda x: x[0], default=None)
        if best is not None and (by_length or best[1] != LENGTH):
            _, name, bound = best
            errors = _sides(kind, test, features[0])[0].errors
            separations.append(
                Separation(kind, name, bound, errors & bound.says(features[0][name]))
            )
            if not kind:
                break
    return separations


def _find_bounds(
    kind: str,
    tried: tuple[TriedStrings, TriedStrings],
    features: Sequence[Mapping[str, np.ndarray]],
) -> Iterator[tuple[float, str, Bound]]:
    """Bounds that hold for both, each with how well; of the length last."""
    both = [_sides(kind, strings, values) for strings, values in zip(tried, features, strict=True)]
    for test, short in zip(*both, strict=True):
        for sought, other in ((test, short), (short, test)):
            if not sought.are_many:
                continue
            for name, values in sought.features.items():
                for bound in bounds(values.astype(float), sought.errors, sought.weights):
                    score = sought.score(bound.says(values))
                    least = HALFWAY if other.errors.any() else PARTS
                    if score >= PARTS and other.score(bound.says(other.features[name])) >= least:
                        yield score, name, bound


def _sides(kind: str, tried: TriedStrings, features: Mapping[str, np.ndarray]) -> list[_Sides]:
    if not kind:
        return [_Sides(tried.wrong, [~tried.wrong], features)]
    answer = kind == "false positives"
    same_answer, same_label = (
        ~tried.wrong & (tried.labels == label) for label in (answer, not answer)
    )
    errors = tried.wrong & (tried.labels != answer)
    return [_Sides(errors, right, features) for right in ([same_label], [same_label, same_answer])]


def _features(task: Task, tried: TriedStrings) -> dict[str, np.ndarray]:
    features = task.features(tried.strings)
    named = {
        f"the number of {x}" if x.endswith("'s") else f"the {x}": v for x, v in features.items()
    }
    return {**named, LENGTH: tried.strings.lengths}


# Dilution, shown by an intervention: attention to a few tokens that more and more others weaken.
#
# A softmax gives every token some weight, so what a head attends to gets less of it the more other
# tokens there are (Hahn 2020; Chiang & Cholak 2022). The intervention takes that away and nothing
# else: in one head, the tokens attended to get the weight that they would have if there were no
# more others for each of them than the longest training string can have. Where a failing string is
# then answered rightly, the head's attention was diluted.

ATTENDED = 0.9
"""Tokens of at least this share of the greatest weight are those attended to."""

STAYS = 0.9
"""So many of the strings that are answered rightly must still be so under the intervention."""

Head = tuple[int, int]
"""Its block and its number there."""


@dataclass(frozen=True)
class Diluted:
    """Where attention is diluted in a string."""

    heads: tuple[Head, ...]
    """The head that decides alone; all of them where only all together do."""
    logit: float
    """The logit of the string under the intervention on these heads."""


@dataclass(frozen=True, eq=False)
class Dilution:
    """The intervention on a model."""

    model: TrainedModel

    @cached_property
    def _plain(self) -> Classifier:
        return plain_model(self.model)

    @cached_property
    def longest_trained(self) -> int:
        """Tokens of the longest string that may be in the training."""
        return self.model.problem.train.lengths[-1]

    def cause_of(self, letters: Letters, label: bool) -> Diluted | None:
        """The head whose diluted attention makes a failing string fail, or all of them together.

        Of several heads the one that moves the logit furthest. Nothing is diluted in strings that
        are no longer than those of the training, and in models without attention.
        """
        if len(letters) <= self.longest_trained or form(self._plain, "attendable") is None:
            return None
        network = self._plain.config
        every = tuple(
            (block, head)
            for block in range(network.num_blocks)
            for head in range(network.num_attention_heads)
        )
        alone = [Diluted((head,), self.logit(letters, (head,))) for head in every]
        right = [diluted for diluted in alone if (diluted.logit > 0) == label]
        if right:
            return max(right, key=lambda diluted: diluted.logit if label else -diluted.logit)
        whole = Diluted(every, self.logit(letters, every)) if len(every) > 1 else None
        return whole if whole is not None and (whole.logit > 0) == label else None

    def leaves(self, strings: Sequence[Letters], heads: Sequence[Head]) -> bool:
        """Whether strings that are answered rightly stay so under the intervention on these heads.

        Otherwise it turns answers, whichever they are. Not known, and so no, without any string.
        """
        labels = self.model.ask_all(strings).targets.tolist() if strings else []
        stays = [
            (self.logit(letters, heads) > 0) == label
            for letters, label in zip(strings, labels, strict=True)
        ]
        return bool(stays) and sum(stays) >= STAYS * len(stays)

    def logit(self, letters: Letters, heads: Sequence[Head]) -> float:
        """The logit of a string with the attention of these heads not diluted."""
        ids = ids_of(self.model, [letters])
        attendable = form(self._plain, "attendable")(ids)[0]
        names = {f"blocks.{block}.attention.scores": block for block, _ in heads}
        # Of the tokens that the model reads, one may be none of the string's own.
        others = max(self.longest_trained + ids.shape[1] - len(letters) - 1, 1)

        def change(name: str, _position: int | None, state: Tensor) -> Tensor:
            if name not in names:
                return state
            changed = state.clone()
            for block, head in heads:
                if block == names[name]:
                    changed[0, head] = undilute(state[0, head], attendable, others)
            return changed

        with torch.no_grad():
            return float(self._plain.run(ids, Changing(change), None))


def undilute(
    scores: Float[Tensor, "query key"],
    attendable: Bool[Tensor, "#query key"],
    others: int,
) -> Float[Tensor, "query key"]:
    """Scores of one head with the odds of the tokens attended to as beside fewer others.

    Their odds against the rest are multiplied by how many times more others there are, for each
    of them, than `others`; not where there are no more.
    """
    known = scores.masked_fill(~attendable, -torch.inf)
    attended = known >= known.amax(dim=1, keepdim=True) + math.log(ATTENDED)
    attended &= attendable
    number = attended.sum(dim=1, keepdim=True).clamp_min(1)
    rest = attendable.sum(dim=1, keepdim=True) - number
    odds = (rest / number / others).clamp_min(1).to(scores.dtype)
    return torch.where(attended, scores + odds.log(), scores)
