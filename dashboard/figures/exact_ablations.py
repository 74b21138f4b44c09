"""Exact ablations as data frames for their charts."""

from collections.abc import Mapping, Sequence

import pandas as pd

from dashboard.charts.model.exact_ablations import MODELS
from seqcls.interpretability.counts.ablation import AblationResult
from seqcls.interpretability.counts.pruning import Cost, PruningStep
from seqcls.results import Evaluation

WIDTH = 10
"""Lengths in one point."""


def lengths_frame(outcome: AblationResult) -> pd.DataFrame:
    """model, length, lengths, strings, wrong, accuracy: before and after an ablation."""
    pair = zip(MODELS, (outcome.before, outcome.evaluation), strict=True)
    return pd.concat([_by_length(own).assign(model=name) for name, own in pair], ignore_index=True)


def _by_length(evaluation: Evaluation) -> pd.DataFrame:
    counts = {"strings": evaluation.tested_by_length, "wrong": evaluation.wrong_by_length}
    sums = pd.DataFrame(counts).groupby((evaluation.lengths - 1) // WIDTH).sum()
    first = sums.index * WIDTH + 1
    strings, wrong = sums["strings"], sums["wrong"]
    return pd.DataFrame(
        {
            "length": first + (WIDTH - 1) / 2,
            "lengths": [f"{low} to {low + WIDTH - 1}" for low in first],
            "strings": strings,
            "wrong": wrong,
            "accuracy": 1 - wrong / strings,
        }
    )


def ranking_frame(costs: Mapping[str, Sequence[Cost]]) -> pd.DataFrame:
    """head, way, errors, loss, logit_change: for each way, the dearest head first."""
    return pd.DataFrame(
        [
            {
                "head": f"head {head}",
                "way": way,
                "errors": cost.errors,
                "loss": cost.loss,
                "logit_change": cost.logit_change,
            }
            for way, ranked in costs.items()
            for cost in ranked
            for head in (cost.ablation.zeroed | cost.ablation.averaged)
        ]
    )


def pruning_frame(steps: Sequence[PruningStep]) -> pd.DataFrame:
    """removed, part, errors, loss, heads_left, dimensions_left."""
    return pd.DataFrame(
        [
            {
                "removed": number,
                "part": step.removed or "",
                "errors": step.cost.errors,
                "loss": step.cost.loss,
                "heads_left": step.heads_left,
                "dimensions_left": step.dimensions_left,
            }
            for number, step in enumerate(steps)
        ]
    )
