"""Counterfactual answers of a model in which one thing about its attention is changed.

Each intervention changes one thing and computes all that follows from it as it is (activation
patching; Vig et al., *Investigating Gender Bias in Language Models Using Causal Mediation
Analysis*, 2020). Where the answer turns, what was changed has made it.

- **Dilution**, of any attention. A softmax gives every token some weight, so what a head attends
  to gets less of it the more other tokens there are (Hahn 2020; Chiang & Cholak 2022). The
  intervention takes that away and nothing else: in one head, the tokens attended to get the weight
  that they would have if there were no more others for each of them than the longest training
  string can have.
- **Two heads on one letter**, of one block that reads letter counts. The *reference* of a string,
  with each of its letters once, fails too, and all heads score the same letter highest. A false
  positive: without that letter the answer turns, while the missing letter, added as often as the
  string is long, moves the logit less than `DEAF` times as much. A false negative: with the scores
  of that letter and another required one exchanged in one head, the answer turns.
- **Values**, on the same conditions. A false positive: hidden from one head, a letter of the string
  turns the answer. With a missing letter's value in place of its value the answer does not turn,
  and of all letters of the string it has the value nearest to that of the missing one.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from seqcls.interpretability import readable_model
from seqcls.interpretability.circuits import head_circuits
from seqcls.interpretability.mechanisms import DILUTION, ONE_LETTER
from seqcls.interpretability.readable_model import (
    Batch,
    logits,
    name_tokens,
    plain_model,
    run,
    states,
)
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.forms import form

ATTENDED = 0.9
"""Tokens of at least this share of the greatest weight are those attended to."""

STAYS = 0.9
"""So many of the strings that are answered rightly must still be so under an intervention."""

# A tenth: the missing letter must hardly count where the other one turns the answer.
DEAF = 0.1

VALUES = "value interference"

Head = tuple[int, int]
"""Its block and its number there."""


class Mechanism(NamedTuple):
    """The cause of an error, with an intervention that turns the answer."""

    name: str
    head: int | None
    """None where it is of all heads."""
    letter: str | None
    """The letter that is outnumbered, mistaken or that all heads attend to; None without one."""
    by: str | None
    """The token that outnumbers it, that it is taken for, or that no head looks for."""
    counterfactual: str
    """The change, in words."""
    logit: float
    """The logit of the string as it is."""
    logit_with: float
    """And with the change."""
    block: int = 0


class GivenString(NamedTuple):
    """A string as a model reads it, with its label."""

    batch: Batch
    """This string alone: its letter counts where the order has no part, else its tokens."""
    counts: tuple[int, ...]
    """The number of each letter of the alphabet."""
    label: bool

    @property
    def length(self) -> int:
        """Its letters."""
        return sum(self.counts)


def read_string(model: TrainedModel, letters: Sequence[int], label: bool) -> GivenString:
    """A string, by its letter counts where they suffice, which reads each letter once."""
    counts = np.bincount(letters, minlength=model.num_letters).tolist()
    return GivenString(readable_model.read_string(model, letters), tuple(counts), label)


# Dilution.


class Diluted(NamedTuple):
    """The heads whose attention is diluted in a string."""

    heads: tuple[Head, ...]
    """The head that decides alone; all of them where only all together do."""
    logit: float
    """The logit of the string with their attention not diluted."""


def longest_trained(model: TrainedModel) -> int:
    """Tokens of the longest string that may be in the training."""
    return model.problem.train.lengths[-1]


def find_dilution(model: TrainedModel, string: GivenString) -> Diluted | None:
    """The head whose diluted attention makes a failing string fail, or all of them together.

    Of several heads the one that moves the logit furthest. Nothing is diluted in strings that are
    no longer than those of the training, and in models without attention.
    """
    if string.length <= longest_trained(model) or form(plain_model(model), "attendable") is None:
        return None
    network = plain_model(model).config
    every = tuple(np.ndindex(network.num_blocks, network.num_attention_heads))
    # All heads together are a case of their own only where there are several.
    tried = [(head,) for head in every] + [every] * (len(every) > 1)
    found = [Diluted(heads, run_undiluted(model, string, heads)) for heads in tried]
    turning = [x for x in found if (x.logit > 0) == string.label]
    side = 1 if string.label else -1
    return max(turning, key=lambda x: (len(x.heads) == 1, side * x.logit), default=None)


def leaves_right(
    model: TrainedModel, strings: Sequence[GivenString], heads: Sequence[Head]
) -> bool:
    """True if strings that are answered rightly stay so with these heads' attention not diluted.

    Otherwise it turns answers, whichever they are. False without any string.
    """
    right = [(run_undiluted(model, x, heads) > 0) == x.label for x in strings]
    return bool(right) and sum(right) >= STAYS * len(right)


def run_undiluted(model: TrainedModel, string: GivenString, heads: Sequence[Head]) -> float:
    """The logit of a string with the attention of these heads not diluted."""
    attendable, times = _attendable(model, string.batch), string.batch.times[0]
    # Of the tokens that the model reads, one may be none of the string's own.
    others = max(longest_trained(model) + float(times.sum()) - string.length - 1, 1.0)
    change = partial(undilute, attendable=attendable, others=others, times=times)
    return _run_changed(model, string, "scores", heads, change)


def undilute(
    scores: Float[Tensor, "query key"],
    attendable: Bool[Tensor, "#query key"],
    others: float,
    times: Float[Tensor, " key"],
) -> Float[Tensor, "query key"]:
    """Scores of one head with the odds of the tokens attended to as beside fewer others.

    Their odds against the rest are multiplied by how many times more others there are, for each
    of them, than `others`; not where there are no more.

    Args:
        times: how often each token occurs.
    """
    attended = _find_attended(scores, attendable)
    number = (attended * times).sum(dim=1, keepdim=True).clamp_min(1)
    rest = (attendable * times).sum(dim=1, keepdim=True) - number
    # Never below 1: with fewer others than training has, nothing is diluted.
    odds = (rest / number / others).clamp_min(1).to(scores.dtype)
    # Adding log x to a score multiplies the token's odds by x.
    return torch.where(attended, scores + odds.log(), scores)


def find_outnumbered(
    model: TrainedModel, string: GivenString, head: Head
) -> tuple[str, str] | None:
    """The letter that a head attends to at the readout, and the other token with most of the rest
    of its weight; None where these are not two tokens.
    """
    (block, number), batch = head, string.batch
    names = [f"blocks.{block}.attention.{x}" for x in ("scores", "weights")]
    scores, weights = (x[0, number] for x in states(model, batch, names).values())
    # A mean is read at every position, so no one query decides.
    query = {"first": 0, "last": -1}.get(plain_model(model).config.readout)
    if query is None:
        return None
    attended = _find_attended(scores, _attendable(model, batch))[query]
    by_token: list[dict[str, float]] = [{}, {}]
    tokens = name_tokens(model, batch.ids[0].tolist())
    for name, weight, known in zip(tokens, weights[query], attended, strict=True):
        side = by_token[not known]
        side[name] = side.get(name, 0.0) + float(weight)
    one, other = (max(x, key=lambda name: x[name], default=None) for x in by_token)
    return None if one is None or other is None or one == other else (one, other)


def _find_attended(
    scores: Float[Tensor, "query key"], attendable: Bool[Tensor, "#query key"]
) -> Bool[Tensor, "query key"]:
    known = scores.masked_fill(~attendable, -torch.inf)
    # A share of the greatest weight is a difference of scores: its logarithm.
    return (known >= known.amax(dim=1, keepdim=True) + math.log(ATTENDED)) & attendable


def _attendable(model: TrainedModel, batch: Batch) -> Bool[Tensor, "#query key"]:
    """The tokens that each token may attend to, of the letters those that occur."""
    seen: Bool[Tensor, "#query key"] = form(plain_model(model), "attendable")(batch.ids)[0]
    return seen & (batch.times[0] > 0)


# One block that reads letter counts, of a task with required letters.


def mechanism_of(model: TrainedModel, string: GivenString) -> Mechanism | None:
    """The first kind of change that turns an error of one block alone, if any does.

    Raises:
        ConfigError: it is no model of one block, letter counts and required letters.
    """
    positive, negative = (_find_diluted, find_one_letter), (find_one_letter, _find_values)
    tried = positive if string.label else (*negative, _find_diluted)
    found = (strongest(find(model, string), string.label) for find in tried)
    return next(filter(None, found), None)


def strongest(found: Iterator[Mechanism], label: bool) -> Mechanism | None:
    """The change that turns the answer, of several the one that moves the logit furthest."""
    turning = [x for x in found if (x.logit_with > 0) == label]
    return max(turning, key=lambda x: abs(x.logit_with - x.logit), default=None)


def _find_diluted(model: TrainedModel, string: GivenString) -> Iterator[Mechanism]:
    if (found := find_dilution(model, string)) is None:
        return
    head = found.heads[0][1] if len(found.heads) == 1 else None
    names = None if head is None else find_outnumbered(model, string, found.heads[0])
    letter, by = names or (None, None)
    which = "every head" if head is None else f"head {head}"
    words = (
        f"{which} gave {letter or 'what it attends to'} the weight that it has beside no more "
        f"others than in a string as long as in training, {longest_trained(model)}"
    )
    logit = float(run(model, string.batch)[0])
    yield Mechanism(DILUTION, head, letter, by, words, logit, found.logit)


def find_one_letter(model: TrainedModel, string: GivenString) -> Iterator[Mechanism]:
    """Changes that turn the answer if all heads of a string look for one letter."""
    counts = np.array(string.counts)
    here, once = logits(model, np.stack([counts, np.minimum(counts, 1)])).tolist()
    alphabet = model.tokenizer.alphabet
    # The query is `CLS`, where the answer is read; the keys after it are the letters.
    favorites = [int(head.scores[0, 1:].argmax()) for head in head_circuits(model)]
    if (once > 0) == string.label or len(favorites) < 2 or len({*favorites}) > 1:
        return
    letter = favorites[0]
    others = [x for x in model.problem.required_letters if x != letter]
    if string.label:
        for head, other in np.ndindex(len(favorites), len(others)):
            names = alphabet[letter], alphabet[others[other]]
            words = f"head {head} scored {names[1]} and {names[0]} each as the other"
            # Only the two scores change places, and in this head alone.
            exchanged = np.arange(1 + len(alphabet))
            two = [1 + letter, 1 + others[other]]
            exchanged[two] = two[::-1]
            change = partial(torch.index_select, dim=1, index=torch.from_numpy(exchanged))
            logit = _run_changed(model, string, "scores", [(0, head)], change)
            yield Mechanism(ONE_LETTER, head, *names, words, here, logit)
    elif counts[letter]:
        for other in (x for x in others if not counts[x]):
            changed = np.stack([counts, counts])
            changed[0, letter], changed[1, other] = 0, string.length
            without, added = logits(model, changed).tolist()
            # As many of the missing letter as the string is long are still not seen.
            if abs(added - here) < DEAF * abs(without - here):
                words = f"every {alphabet[letter]} were deleted"
                names = alphabet[letter], alphabet[other]
                yield Mechanism(ONE_LETTER, None, *names, words, here, without)


def _find_values(model: TrainedModel, string: GivenString) -> Iterator[Mechanism]:
    here, alphabet = float(run(model, string.batch)[0]), model.tokenizer.alphabet
    there = np.flatnonzero(string.counts).tolist()
    missing = [x for x in model.problem.required_letters if not string.counts[x]]
    for head, value in enumerate(circuit.value[1:] for circuit in head_circuits(model)):
        for other in missing if there else []:
            # The letter whose value could best be taken for that of the missing one.
            letter = min(there, key=lambda x: float(np.linalg.norm(value[x] - value[other])))
            put = np.arange(1 + len(alphabet))
            put[1 + letter] = 1 + other
            change = partial(torch.index_select, dim=0, index=torch.from_numpy(put))
            if _run_changed(model, string, "value", [(0, head)], change) > 0:
                hide = partial(_hide, 1 + letter)
                logit = _run_changed(model, string, "weights", [(0, head)], hide)
                words = f"head {head} did not see {alphabet[letter]}"
                yield Mechanism(VALUES, head, alphabet[letter], alphabet[other], words, here, logit)


def _run_changed(
    model: TrainedModel,
    string: GivenString,
    state: str,
    heads: Sequence[Head],
    change: Callable[..., Tensor],
) -> float:
    """The logit where the state of a name is changed in each of some heads."""

    def change_state(name: str, _position: int | None, value: Tensor) -> Tensor:
        own = [head for block, head in heads if name == f"blocks.{block}.attention.{state}"]
        changed = value.clone() if own else value
        for head in own:
            changed[0, head] = change(value[0, head])
        return changed

    return float(run(model, string.batch, change_state)[0])


def _hide(token: int, weights: Float[Tensor, "query key"]) -> Float[Tensor, "query key"]:
    others = weights.index_fill(1, torch.tensor(token), 0)
    total = others.sum(dim=1, keepdim=True)
    # Where all weight was on the hidden token, nothing is left to share out.
    return others / torch.where(total == 0, 1.0, total)
