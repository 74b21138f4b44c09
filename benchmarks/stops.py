"""Does it matter that training stops as soon as the trained lengths are right?

python -m benchmarks.stops [DATABASE]

writes the table of `docs/memory.md` from `docs/results/memory_stops.csv`, which it first writes
where a database is named that holds the sweep `memory_stops` (`seqcls sweep known/memory_stops`).
"""

import sys
from collections.abc import Sequence

import pandas as pd
from scipy import stats

from benchmarks.known import (
    DOCS,
    compared_models,
    markdown,
    name_model,
    put,
    results_file,
    with_outcomes,
)
from seqcls.interpretability.wording import percent
from sweeps.api import open_store

SWEEP = "memory_stops"
RESULTS = results_file(SWEEP)
LENGTHS = (33, 48)
"""Tokens of the longest test strings, three times those of training."""


def stops_table(models: pd.DataFrame) -> str:
    """A Markdown table: a row a network, of the same seeds stopped at once and later.

    p is of a sign test over the seeds that learned both ways and generalize one way alone.
    """
    models = with_outcomes(models.fillna({"layers": "", "eigenvalue_range": ""}))
    models["network"] = [name_model(row) for row in models.to_dict("records")]
    models["longest"] = 1 - models["wrong_33_48"] / models["tested_33_48"]
    rows = []
    for network, own in models.groupby("network", sort=False):
        early, late = (
            part.set_index("model_seed").sort_index() for _, part in own.groupby("train_more_steps")
        )
        both = early["learned"] & late["learned"]
        gained = int((both & late["generalizes"] & ~early["generalizes"]).sum())
        lost = int((both & early["generalizes"] & ~late["generalizes"]).sum())
        p_value = stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
        cells = [
            text
            for part in (early, late)
            for text in (
                f"{part['generalizes'].sum()} of {part['learned'].sum()}",
                percent(part["longest"][part["learned"]].median())
                if part["learned"].any()
                else "—",
            )
        ]
        rows.append([str(network), *cells, f"{p_value:.2g}"])
    heads = [
        "network",
        "generalize, stopped at once",
        "33 to 48",
        "2,000 steps later",
        "33 to 48",
        "p",
    ]
    return markdown([heads, *rows])


def main(databases: Sequence[str]) -> None:
    for db in databases:
        compared_models(open_store(db), [SWEEP], [LENGTHS]).to_csv(RESULTS, index=False)
    page = DOCS / "memory.md"
    text = put(page.read_text(encoding="utf-8"), {SWEEP: stops_table(pd.read_csv(RESULTS))})
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
