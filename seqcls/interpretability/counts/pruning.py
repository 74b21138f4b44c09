"""What a network can do without: heads ranked by their cost, and greedy pruning.

Pruning removes, again and again, the one part without which the fewest test strings are
misclassified (on a tie, the least test loss), as Michel, Levy and Neubig do with heads (*Are
Sixteen Heads Really Better than One?*, 2019).
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.counts.ablation import Ablation, logits_after
from seqcls.interpretability.counts.network import Network
from seqcls.results import Confusion

Parts = Literal["heads", "dimensions", "both"]


@dataclass(frozen=True)
class Cost:
    """What an ablation costs on the test set."""

    ablation: Ablation
    confusion: Confusion
    errors: int
    loss: float
    """Mean binary cross entropy, in nats."""
    logit_change: float
    """Mean |change of the logit|."""


@dataclass(frozen=True)
class PruningStep:
    """A network after one more part was removed; the first has all of them."""

    removed: str | None
    """`head 1` or `dimension 7`."""
    heads_left: int
    dimensions_left: int
    cost: Cost


def rank_heads(network: Network, how: Literal["zero", "mean"] = "zero") -> tuple[Cost, ...]:
    """The cost of removing each head alone, the dearest first."""
    judge = _Judge(network)
    heads = range(network.config.num_attention_heads)
    costs = [judge.cost(_of_head(head, how)) for head in heads]
    return tuple(sorted(costs, key=lambda x: (-x.errors, -x.logit_change)))


def prune(network: Network, parts: Parts = "both") -> tuple[PruningStep, ...]:
    """Removes the parts one by one, the cheapest first, until none is left."""
    judge = _Judge(network)
    heads = set(range(network.config.num_attention_heads)) if parts != "dimensions" else set()
    dimensions = set(range(network.config.hidden_size)) if parts != "heads" else set()
    step = PruningStep(
        removed=None,
        heads_left=network.config.num_attention_heads,
        dimensions_left=network.config.hidden_size,
        cost=judge.cost(Ablation()),
    )
    steps = [step]
    while heads or dimensions:
        now = steps[-1].cost.ablation
        tried = [(f"head {x}", _without_head(now, x)) for x in sorted(heads)]
        tried += [(f"dimension {x}", _without_dimension(now, x)) for x in sorted(dimensions)]
        costs = [(name, judge.cost(ablation)) for name, ablation in tried]
        name, cost = min(costs, key=lambda x: (x[1].errors, x[1].loss))
        heads -= cost.ablation.zeroed
        dimensions -= cost.ablation.zeroed_dimensions
        steps.append(
            PruningStep(
                removed=name,
                heads_left=steps[0].heads_left - len(cost.ablation.zeroed),
                dimensions_left=steps[0].dimensions_left - len(cost.ablation.zeroed_dimensions),
                cost=cost,
            )
        )
    return tuple(steps)


def _of_head(head: int, how: Literal["zero", "mean"]) -> Ablation:
    only = frozenset({head})
    return Ablation(zeroed=only) if how == "zero" else Ablation(averaged=only)


def _without_head(ablation: Ablation, head: int) -> Ablation:
    return replace(ablation, zeroed=ablation.zeroed | {head})


def _without_dimension(ablation: Ablation, dimension: int) -> Ablation:
    return replace(ablation, zeroed_dimensions=ablation.zeroed_dimensions | {dimension})


class _Judge:
    """The test set of a network, and its logits as it is."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._test = distinct_test_strings(network.problem.test)
        self._before = network.logits(self._test.strings.counts)

    def cost(self, ablation: Ablation) -> Cost:
        logits = logits_after(self._network, self._test, ablation)
        positive, occurrences = self._test.labels, self._test.occurrences
        found = confusion(logits, positive, occurrences)
        signed = np.where(positive, -logits, logits)
        return Cost(
            ablation=ablation,
            confusion=found,
            errors=found.wrong,
            loss=float(np.average(np.logaddexp(0, signed), weights=occurrences)),
            logit_change=float(np.average(np.abs(logits - self._before), weights=occurrences)),
        )


def confusion(
    logits: Float[np.ndarray, " string"],
    positive: Bool[np.ndarray, " string"],
    occurrences: Int64[np.ndarray, " string"],
) -> Confusion:
    """How often distinct strings with these logits are answered right and wrong."""
    cells = np.bincount(2 * positive + (logits > 0), occurrences, 4)
    return Confusion(*cells.astype(np.int64).tolist())
