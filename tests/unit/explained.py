"""Random networks of letter counts, and the readable model with states replaced."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from seqcls.interpretability.interventions import Mechanism
from seqcls.interpretability.readable_model import plain_model
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.base import Recorder
from seqcls.strings.tokenizer import CLS, FIRST_LETTER
from tests.oracles.counting import logits_of_counts

Patch = Callable[[np.ndarray], np.ndarray]


FIELDS = st.fixed_dictionaries(
    {
        "hidden_size": st.integers(1, 5),
        "num_attention_heads": st.integers(0, 3),
        "feed_forward_size": st.integers(0, 4),
        "layer_norm": st.sampled_from(["rms", "nn"]),
        "layer_norm_eps": st.sampled_from([0.0, 1e-2]),
        "no_attend_cls": st.booleans(),
    }
)
"""Networks of letter counts, of three letters."""


class Patched(Recorder):
    """Replaces some of the states that a forward pass names by others."""

    def __init__(self, patches: Mapping[str, Patch], prefix: str = "") -> None:
        super().__init__()
        self._patches = patches
        self._own_prefix = prefix

    def __call__(self, name: str, state: Tensor) -> Tensor:
        patch = self._patches.get(self._own_prefix + name)
        return state if patch is None else torch.from_numpy(patch(state.numpy().copy()))

    def within(self, name: str) -> "Patched":
        return Patched(self._patches, f"{self._own_prefix}{name}.")


def patched_logits(
    network: TrainedModel, counts: np.ndarray, patches: Mapping[str, Patch] | None = None
) -> np.ndarray:
    """Logits of the readable model with states replaced, for strings of every letter once.

    How often a letter occurs is added to the scores of `CLS` as a logarithm, -inf where it does
    not occur; that is the one thing taken from the theory of counts.
    """
    letters = range(FIRST_LETTER, FIRST_LETTER + network.config.num_letters)
    ids = torch.tensor([[CLS, *letters]] * len(counts))
    with np.errstate(divide="ignore"):
        logs = np.log(counts.astype(float))
    given = dict(patches or {})
    rescore = given.pop("blocks.0.attention.scores", None)

    def weigh(scores: np.ndarray) -> np.ndarray:
        scores = scores if rescore is None else rescore(scores)
        scores[:, :, 0, 1:] += logs[:, None]
        return scores

    given["blocks.0.attention.scores"] = weigh
    with torch.no_grad():
        return plain_model(network).run(ids, Patched(given), None).numpy()


def true_logits(network: TrainedModel, counts: np.ndarray) -> np.ndarray:
    """Logits of strings of any length, by letter counts in float64."""
    return logits_of_counts(network.problem.network, network.weights, counts)


def counterfactual_logits(
    network: TrainedModel, counts: np.ndarray, mechanisms: Sequence[Mechanism]
) -> np.ndarray:
    """Logits of strings in the readable model, with the change that their mechanisms describe."""
    times = np.insert(counts, 0, not network.config.no_attend_cls, axis=1)
    trained = network.problem.train.lengths[-1]
    return patched_logits(
        network,
        counts,
        {
            "blocks.0.attention.scores": lambda scores: _exchange(scores, mechanisms),
            "blocks.0.attention.weights": lambda weights: _reweigh(
                weights, times, trained, mechanisms
            ),
        },
    )


def _exchange(scores: np.ndarray, mechanisms: Sequence[Mechanism]) -> np.ndarray:
    for row, mechanism in enumerate(mechanisms):
        if mechanism.name == "two heads on one letter" and mechanism.head is not None:
            pair = [1 + "abc".index(x or "") for x in (mechanism.letter, mechanism.by)]
            scores[row, mechanism.head, 0, pair] = scores[row, mechanism.head, 0, pair[::-1]]
    return scores


def _reweigh(
    weights: np.ndarray, times: np.ndarray, trained: int, mechanisms: Sequence[Mechanism]
) -> np.ndarray:
    """Attention weights with diluted or hidden letters restored or removed.

    Args:
        times: how often each token type can be attended to.
        trained: tokens of the longest training string.
    """
    for row, mechanism in enumerate(mechanisms):
        heads = weights[row, :, 0] if mechanism.head is None else weights[row, mechanism.head, :1]
        if mechanism.name == "dilution":
            for own in heads:
                of_one = np.where(times[row] > 0, own / np.maximum(times[row], 1), 0)
                attended = of_one >= 0.9 * of_one.max()
                others = times[row][~attended].sum() / times[row][attended].sum()
                own[attended] *= max(others / trained, 1)
                own /= own.sum()
        if mechanism.name == "value interference":
            (own,) = heads
            own[1 + "abc".index(mechanism.letter or "")] = 0
            own /= own.sum() or 1
    return weights
