"""Dilution, shown by an intervention: attention to a few tokens that more and more others weaken.

A softmax gives every token some weight, so what a head attends to gets less of it the more other
tokens there are (Hahn 2020; Chiang & Cholak 2022). The intervention takes that away and nothing
else: in one head, the tokens attended to get the weight that they would have if there were no more
others for each of them than the longest training string can have. Where a failing string is then
answered rightly, the head's attention was diluted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from seqcls.interpretability.model.readable_model import (
    Changing,
    ids_of,
    plain_model,
    plain_network,
)
from seqcls.interpretability.model.trained_model import Letters, TrainedModel
from seqcls.models.transformer import Transformer, attendable_tokens

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
    def _plain(self) -> Transformer:
        network = plain_model(self.model)
        assert isinstance(network, Transformer)
        return network

    @cached_property
    def longest_trained(self) -> int:
        """Tokens of the longest string that may be in the training."""
        return self.model.problem.train.lengths[-1]

    def cause_of(self, letters: Letters, label: bool) -> Diluted | None:
        """The head whose diluted attention makes a failing string fail, or all of them together.

        Of several heads the one that moves the logit furthest. Nothing is diluted in strings that
        are no longer than those of the training, and in models without attention.

        Args:
            letters: a string that is misclassified.
            label: what would be right.
        """
        network = plain_network(self.model)
        if network.architecture != "transformer" or len(letters) <= self.longest_trained:
            return None
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
        attendable = attendable_tokens(self._plain.config, ids)[0]
        names = {f"blocks.{block}.attention.scores": block for block, _ in heads}
        # Of the tokens that the model reads, one may be none of the string's own.
        others = max(self.longest_trained + ids.shape[1] - len(letters) - 1, 1)

        def change(name: str, _position: int | None, state: Tensor) -> Tensor:
            if name not in names:
                return state
            changed = state.clone()
            for block, head in heads:
                if block == names[name]:
                    changed[0, head] = undiluted(state[0, head], attendable, others)
            return changed

        with torch.no_grad():
            return float(self._plain.run(ids, Changing(change), None))


def undiluted(
    scores: Float[Tensor, "position position"],
    attendable: Bool[Tensor, "#position position"],
    others: int,
) -> Float[Tensor, "position position"]:
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
