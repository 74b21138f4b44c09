"""Does it matter that training stops as soon as the trained lengths are right?

python -m benchmarks.stops [DATABASE]

writes sentences of `docs/memory.md` from `docs/results/memory_stops.csv`, which it first writes
where a database is named that holds the sweep `memory_stops` (`seqcls sweep known/memory_stops`).
"""

import sys
from collections.abc import Sequence

import pandas as pd
from scipy import stats

from benchmarks.comparisons import compared_models
from benchmarks.tables import DOCS, name_model, put, results_file, with_outcomes
from seqcls.interpretability.wording import percent
from sweeps.api import open_store

SWEEP = "memory_stops"
RESULTS = results_file(SWEEP)
LENGTHS = (33, 48)
"""Tokens of the longest test strings, three times those of training."""


def read_stops(models: pd.DataFrame) -> str:
    """Compares the same seeds, stopped immediately and later, as a list in Markdown.

    p is of a sign test over the seeds that learned both ways and generalize one way alone.
    """
    models = with_outcomes(models.fillna({"layers": "", "eigenvalue_range": ""}))
    models["network"] = [name_model(row) for row in models.to_dict("records")]
    models["longest"] = 1 - models["wrong_33_48"] / models["tested_33_48"]
    changed, unchanged, medians = [], 0, []
    for network, own in models.groupby("network", sort=False):
        early, late = (
            part.set_index("model_seed").sort_index() for _, part in own.groupby("train_more_steps")
        )
        both = early["learned"] & late["learned"]
        gained = int((both & late["generalizes"] & ~early["generalizes"]).sum())
        lost = int((both & early["generalizes"] & ~late["generalizes"]).sum())
        if str(network).endswith("signed"):
            medians.append([x["longest"][x["learned"]].median() for x in (early, late)])
        if gained + lost == 0:
            unchanged += 1
            continue
        p_value = stats.binomtest(gained, gained + lost).pvalue
        counts = (f"{x['generalizes'].sum()} of {x['learned'].sum()}" for x in (early, late))
        changed.append(f"{network}: {' and '.join(counts)} (p = {p_value:.2g})")
    ends = (f"{percent(min(x))} to {percent(max(x))}" for x in zip(*medians, strict=True))
    return (
        f"- **Generalize, of the seeds that learned, stopped at once and later**: "
        f"{'; '.join(changed)}; no change in {unchanged} other networks.\n"
        f"- **Median accuracy on 33 to 48 tokens, of {len(medians)} networks with signed factors**:"
        f" {', later '.join(ends)}."
    )


def main(databases: Sequence[str]) -> None:
    for db in databases:
        compared_models(open_store(db), [SWEEP], [LENGTHS]).to_csv(RESULTS, index=False)
    page = DOCS / "memory.md"
    text = put(page.read_text(encoding="utf-8"), {SWEEP: read_stops(pd.read_csv(RESULTS))})
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
