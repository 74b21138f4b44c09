"""The outcome of `known/atlas`, as it stands in the docs: a CSV of every model, tables, a picture.

python -m benchmarks.atlas DATABASE FOLDER
"""

import json
import sys
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import vl_convert

from sweeps.api import lengths, open_store, runs

TRAINED = 20
"""Tokens of the longest training string of the atlas."""

TASKS = {
    "parity": "regular",
    "even_pairs": "regular",
    "first": "regular",
    "repeat_01": "regular",
    "cycle_navigation": "regular",
    "modular_arithmetic": "regular",
    "majority": "context-free",
    "dyck": "context-free",
    "marked_reversal": "context-free",
    "bucket_sort": "context-sensitive",
}
"""The languages, and the least class of the Chomsky hierarchy that each is in."""

MODELS = [
    *(
        f"{positions}, {blocks}"
        for blocks in ("1 block", "2 blocks")
        for positions in ("none", "sinusoidal", "rotary", "alibi")
    ),
    "rnn",
    "lstm",
]


def outcomes(db: str) -> pd.DataFrame:
    """One row a model: task, model, model_seed, within and beyond (accuracy), fails,
    solved_length.

    `within` is of test strings as long as in training, `beyond` of longer ones.
    """
    store = open_store(db)
    found = runs(store, "atlas")
    found = found[found["state"] == "done"].copy()
    scores = lengths(store, found["id"].tolist())
    scores["right"] = scores["tested"] - scores["wrong"]
    parts = {"within": scores["length"] <= TRAINED, "beyond": scores["length"] > TRAINED}
    for name, rows in parts.items():
        sums = scores[rows].groupby("run_id")[["right", "tested"]].sum()
        found[name] = found["id"].map(sums["right"] / sums["tested"])
    found["model"] = list(map(_model, found.to_dict("records")))
    found["fails"] = found["errors"] > 0
    columns = ["task", "model", "model_seed", "within", "beyond", "fails", "solved_length"]
    return found[columns].sort_values(columns[:3]).reset_index(drop=True)


def _model(run: Mapping[Hashable, Any]) -> str:
    if run["architecture"] != "transformer":
        return str(run["architecture"])
    blocks = run["num_blocks"]
    return f"{run['positions']}, {blocks} block{'s' * (blocks > 1)}"


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """One row a task and model: medians over seeds, the range, and the failing share."""
    return (
        found.groupby(["task", "model"])
        .agg(
            within=("within", "median"),
            beyond=("beyond", "median"),
            lowest=("beyond", "min"),
            highest=("beyond", "max"),
            failing=("fails", "mean"),
            solved_length=("solved_length", "median"),
            seeds=("model_seed", "size"),
        )
        .reset_index()
    )


def table(found: pd.DataFrame, column: str, text: str) -> str:
    """A Markdown table: a row a language, a column a model."""
    cells = {
        (own["task"], own["model"]): text.format(own[column]) for own in found.to_dict("records")
    }
    rows = [
        " | ".join([f"| `{task}`", *(cells.get((task, model), "") for model in MODELS)]) + " |"
        for task in TASKS
    ]
    head = f"| language | {' | '.join(MODELS)} |"
    return "\n".join([head, "|---" * (len(MODELS) + 1) + "|", *rows])


def picture(found: pd.DataFrame) -> alt.LayerChart | alt.FacetChart:
    """Median accuracy beyond the trained lengths, by language and model."""
    base = alt.Chart(found).encode(
        x=alt.X("model:N", sort=MODELS, title=None, axis=alt.Axis(labelAngle=-40, orient="top")),
        y=alt.Y("task:N", sort=list(TASKS), title=None),
    )
    scale = alt.Scale(scheme="viridis", domain=[0.5, 1], clamp=True)
    title = f"Median accuracy on {TRAINED + 1} to 60 tokens"
    cells = base.mark_rect().encode(
        color=alt.Color(
            "beyond:Q", scale=scale, title=title, legend=alt.Legend(format="%", titleLimit=300)
        )
    )
    dark = alt.datum.beyond < 0.78
    texts = base.mark_text(fontSize=12).encode(
        text=alt.Text("beyond:Q", format=".0%"),
        color=alt.when(dark).then(alt.value("white")).otherwise(alt.value("black")),
    )
    return alt.layer(cells, texts).properties(width=620, height=300)


def main() -> None:
    db, folder = sys.argv[1], Path(sys.argv[2])
    found = outcomes(db)
    found.round(4).to_csv(folder / "atlas.csv", index=False)
    cells = summary(found)
    spec = json.dumps(picture(cells).to_dict())
    (folder / "atlas.svg").write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
    for column, text in (("beyond", "{:.1%}"), ("failing", "{:.0%}"), ("solved_length", "{:.0f}")):
        print(f"\n{column}\n\n{table(cells, column, text)}")


if __name__ == "__main__":
    main()
