"""Models of the atlas of memory beside what is published of them, and what they come to."""

import pandas as pd
from scipy import stats

from benchmarks.tables import (
    CELL,
    accuracy,
    own_seeds,
    p_text,
    range_name,
    range_title,
    with_outcomes,
)

PUBLISHED = {
    ("parity", "Transformers"): (
        "0 of 104 configurations (length_generalization); .022 / .003 (Grazzi et al. 2024)"
    ),
    ("parity", "DeltaNet, positive"): ".017 / .010 (Grazzi et al. 2024)",
    ("parity", "DeltaNet, signed"): "1.0 / .999 (Grazzi et al. 2024)",
    ("parity", "Gated DeltaNet, signed"): "11 of 12 configurations (length_generalization)",
    ("parity", "Mamba, positive"): ".000 / .000 (Grazzi et al. 2024)",
    ("parity", "Mamba, signed"): "1.0 / 1.0 (Grazzi et al. 2024)",
    ("parity", "hybrids"): "0 of 173 configurations, best .989 (length_generalization)",
    ("flip_flop", "Transformers"): (
        "0 of 48 configurations, best .976 (length_generalization); "
        "sporadic errors (Liu et al. 2023)"
    ),
    ("flip_flop", "LSTM"): "no error (Liu et al. 2023)",
    ("flip_flop", "Gated DeltaNet, signed"): "12 of 12 configurations (length_generalization)",
    ("flip_flop", "hybrids"): "55 of 102 configurations (length_generalization)",
    ("associative_recall", "Transformers"): "about .53 (length_generalization)",
    ("associative_recall", "Gated DeltaNet, signed"): "1 / .90 / .77 (length_generalization)",
    ("associative_recall", "hybrids"): "1 / .80 / .62 (length_generalization)",
    ("selective_copy", "Mamba, positive"): "solved (Gu & Dao 2023)",
    ("word_problem", "DeltaNet, signed"): "two blocks can (Siems et al. 2025)",
    ("copy", "Transformers"): (
        "two blocks: 100% / 99.75 to 99.95% / 96.15 to 99.9% (Huang et al. 2025)"
    ),
}
"""Published results with their sources, by task and family of models; the page defines them."""

FAR = 0.99
"""The share of far longer strings from which on a configuration counts in the study in progress."""


def family(model: str) -> str:
    """Returns the name of a model's family: its memory and the factors of that."""
    if model.startswith("hybrid"):
        return "hybrids"
    if "block" in model:
        return "Transformers"
    name = model.removesuffix(", signed")
    known = {"lstm": "LSTM", "deltanet": "DeltaNet", "gated deltanet": "Gated DeltaNet"}
    sign = "" if name == "lstm" else ", positive" if name == model else ", signed"
    return known.get(name, name.capitalize()) + sign


def by_family(found: pd.DataFrame) -> pd.DataFrame:
    """Models with their outcomes and what family they are of."""
    return with_outcomes(found).assign(family=found["model"].map(family))


def beside_published(found: pd.DataFrame, last: tuple[int, int]) -> pd.DataFrame:
    """One row a task and family of which something is published, as texts.

    Args:
        last: the lengths farthest beyond the trained ones, of which published shares speak.
    """
    every = by_family(found)
    every["far"] = every["learned"] & (accuracy(every, range_name(last)) >= FAR)
    far = f"{FAR:.0%} of {range_title(last)}"
    rows = []
    for (task, name), own in every.groupby(["task", "family"], sort=False):
        able, published = own[own["learned"]], (str(task).partition(",")[0], str(name))
        if published not in PUBLISHED:
            continue
        rows.append(
            {
                "task": str(task),
                "models": str(name),
                "seeds": own_seeds(own, fresh=False),
                "learned": f"{len(able)} of {len(own)}",
                "generalize": f"{able['generalizes'].sum()} of {len(able)}",
                far: f"{able['far'].sum()} of {len(able)}",
                "theory": ", ".join(own["predicted"].unique()),
                "published": PUBLISHED[published],
            }
        )
    return pd.DataFrame(rows)


def read_memories(found: pd.DataFrame) -> list[str]:
    """Summarizes the table in sentences whose words depend on its numbers."""
    every = by_family(found)
    seeds = every.groupby(CELL)["model_seed"].nunique()
    least, most = int(seeds.min()), int(seeds.max())
    number = f"{least}" if least == most else f"{least} to {most}"
    sentences = [
        f"**Trained**: {len(every)} models of {len(seeds)} cells, {number} "
        f"seed{'s' * (most > 1)} each."
    ]
    parity = every[every["task"] == "parity"]
    families = ["Gated DeltaNet, signed", "Transformers", "hybrids"]
    groups = [parity[parity["family"] == name]["generalizes"] for name in families]
    if all(map(len, groups)):
        sentences.append(f"**Parity at three times the length**: {_read_parity(*groups)}.")
    return sentences


def _read_parity(
    gated: "pd.Series[bool]", attending: "pd.Series[bool]", hybrids: "pd.Series[bool]"
) -> str:
    """Describes which models generalize on parity: Gated DeltaNet, Transformers and hybrids."""
    counts = [[int(own.sum()), int((~own).sum())] for own in (gated, hybrids)]
    p_value = stats.fisher_exact(counts).pvalue
    if not gated.any():
        loses = "hybrids have nothing to lose" if not hybrids.any() else "hybrids do"
    elif p_value >= 0.05:
        loses = "that hybrids lose it is not shown"
    else:
        loses = "hybrids lose it" if hybrids.mean() < gated.mean() else "hybrids do better"
    solves, others = map(_solving, (gated, attending))
    return (
        f"networks of signed Gated DeltaNet {solves}, Transformers {others}, and {loses} "
        f"({_count_of(hybrids)}; Fisher's exact test of the first and the last: {p_text(p_value)})"
    )


def _solving(own: "pd.Series[bool]") -> str:
    return (
        f"solve it in {_count_of(own)} seeds" if own.any() else f"never solve it ({_count_of(own)})"
    )


def _count_of(own: "pd.Series[bool]") -> str:
    return f"{int(own.sum())} of {len(own)}"
