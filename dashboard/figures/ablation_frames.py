"""What is left of a model without some of its parts, as data frames for their charts."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from seqcls.interpretability.ablation.judge import Ablated
from seqcls.models.parts import Part

WIDTH = 10
"""Lengths in one point."""

Name = Callable[[Part], str]
"""What a part is called."""


def lengths_frame(models: Mapping[str, Ablated]) -> pd.DataFrame:
    """model, length, lengths, strings, wrong, accuracy: of some models by their names."""
    return pd.concat(
        [_by_length(ablated).assign(model=name) for name, ablated in models.items()],
        ignore_index=True,
    )


def _by_length(ablated: Ablated) -> pd.DataFrame:
    counts = {"strings": ablated.strings, "wrong": ablated.strings - ablated.right}
    # The empty string is in the first point, as on the page Compare.
    sums = pd.DataFrame(counts).groupby((ablated.lengths - 1).clip(min=0) // WIDTH).sum()
    first, last = sums.index * WIDTH + (sums.index > 0), (sums.index + 1) * WIDTH
    strings, wrong = sums["strings"], sums["wrong"]
    return pd.DataFrame(
        {
            "length": (first + last) / 2,
            "lengths": [f"{low} to {high}" for low, high in zip(first, last, strict=True)],
            "strings": strings,
            "wrong": wrong,
            "accuracy": 1 - wrong / strings,
        }
    )


def ranking_frame(ranked: Mapping[str, Sequence[Ablated]], name: Name) -> pd.DataFrame:
    """part, way, errors, accuracy, loss, logit_change: for each way, the dearest part first."""
    return pd.DataFrame(
        [
            {"part": name(ablated.parts[0]), "way": way, **_costs(ablated)}
            for way, outcomes in ranked.items()
            for ablated in outcomes
        ]
    )


def pruning_frame(steps: Sequence[Ablated], name: Name) -> pd.DataFrame:
    """removed, part (the last), errors, accuracy, loss, logit_change, and of each kind how many.

    Those are called `heads left` and so on.
    """
    kinds = Counter(part.kind for part in steps[-1].parts)
    return pd.DataFrame(
        [
            {
                "removed": len(ablated.parts),
                "part": name(ablated.parts[-1]) if ablated.parts else "nothing",
                **_costs(ablated),
                **{
                    f"{kind}s left": number - sum(part.kind == kind for part in ablated.parts)
                    for kind, number in kinds.items()
                },
            }
            for ablated in steps
        ]
    )


def _costs(ablated: Ablated) -> dict[str, float]:
    return {name: getattr(ablated, name) for name in ("errors", "accuracy", "loss", "logit_change")}
