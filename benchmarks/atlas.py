"""The outcome of an atlas, as it stands in the docs: a CSV of every model, tables, a picture.

python -m benchmarks.atlas DATABASE FOLDER [SWEEP]

SWEEP is `atlas` if it is not named; `atlas_memories` and `atlas_transductions` are drawn alike. A
cell of what theory says cannot be expressed has a cross, one of what can be a dot.
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

MARKS = {"can": " •", "cannot": " ✗"}
"""The mark of what is predicted."""


def outcomes(db: str, sweep: str) -> pd.DataFrame:
    """One row a model, in the order of the sweep: task, model, model_seed, predicted, within and
    beyond (accuracy), fails, solved_length.

    `within` is of test strings as long as in training, `beyond` of longer ones.
    """
    store = open_store(db)
    found = runs(store, sweep)
    found = found[found["state"] == "done"].sort_values(["config_id", "model_seed"])
    scores = lengths(store, found["id"].tolist())
    scores["right"] = scores["tested"] - scores["wrong"]
    trained = scores["run_id"].map(found.set_index("id")["train_max_length"])
    parts = {"within": scores["length"] <= trained, "beyond": scores["length"] > trained}
    for name, rows in parts.items():
        sums = scores[rows].groupby("run_id")[["right", "tested"]].sum()
        found[name] = found["id"].map(sums["right"] / sums["tested"])
    found["model"] = list(map(name_model, found.to_dict("records")))
    found["fails"] = found["errors"] > 0
    columns = ["task", "model", "model_seed", "predicted", "within", "beyond", "fails"]
    return found[[*columns, "solved_length"]].reset_index(drop=True)


def name_model(run: Mapping[Hashable, Any]) -> str:
    """What a run's model is called, by its architecture, positions, blocks and factors."""
    name = str(run["architecture"]).replace("_", " ")
    if run["architecture"] == "transformer":
        blocks = run["num_blocks"]
        name = f"{run['positions']}, {blocks} block{'s' * (blocks > 1)}"
    return f"{name}, signed" if run["eigenvalue_range"] == "signed" else name


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """One row a task and model: medians over seeds, the range, and the failing share."""
    return (
        found.groupby(["task", "model"], sort=False)
        .agg(
            predicted=("predicted", "first"),
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
    """A Markdown table: a row a task, a column a model."""
    cells = found.pivot(index="task", columns="model", values=column)
    models, tasks = found["model"].unique(), found["task"].unique()
    rows = [
        f"| `{task}` | " + " | ".join(text.format(cells.at[task, model]) for model in models) + " |"
        for task in tasks
    ]
    head = f"| task | {' | '.join(models)} |"
    return "\n".join([head, "|---" * (len(models) + 1) + "|", *rows])


def picture(found: pd.DataFrame, least: float) -> alt.LayerChart | alt.FacetChart:
    """Median accuracy beyond the trained lengths, by task and model, with what is predicted.

    Args:
        found: of each cell, as `summary` has them.
        least: the accuracy that has the darkest color, such as that of guessing.
    """
    marked = found.assign(
        text=[
            f"{own['beyond']:.0%}{MARKS.get(own['predicted'], '')}"
            for own in found.to_dict("records")
        ]
    )
    models, tasks = list(found["model"].unique()), list(found["task"].unique())
    base = alt.Chart(marked).encode(
        x=alt.X("model:N", sort=models, title=None, axis=alt.Axis(labelAngle=-40, orient="top")),
        y=alt.Y("task:N", sort=tasks, title=None),
    )
    scale = alt.Scale(scheme="viridis", domain=[least, 1], clamp=True)
    title = "Median accuracy beyond the trained lengths"
    cells = base.mark_rect().encode(
        color=alt.Color(
            "beyond:Q", scale=scale, title=title, legend=alt.Legend(format="%", titleLimit=300)
        )
    )
    dark = alt.datum.beyond < least + 0.56 * (1 - least)
    texts = base.mark_text(fontSize=12).encode(
        text="text:N",
        color=alt.when(dark).then(alt.value("white")).otherwise(alt.value("black")),
    )
    return alt.layer(cells, texts).properties(width=62 * len(models), height=30 * len(tasks))


def main() -> None:
    db, folder = sys.argv[1], Path(sys.argv[2])
    sweep = sys.argv[3] if len(sys.argv) > 3 else "atlas"
    found = outcomes(db, sweep)
    found.round(4).to_csv(folder / f"{sweep}.csv", index=False)
    cells = summary(found)
    spec = json.dumps(picture(cells, least=0.0 if "transductions" in sweep else 0.5).to_dict())
    (folder / f"{sweep}.svg").write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
    for column, text in (
        *(("within", "{:.1%}"), ("beyond", "{:.1%}")),
        *(("failing", "{:.0%}"), ("solved_length", "{:.0f}"), ("seeds", "{}")),
    ):
        print(f"\n{column}\n\n{table(cells, column, text)}")


if __name__ == "__main__":
    main()
