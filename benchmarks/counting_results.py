"""Results of the study of counting: every model in a CSV file, and the tables of its page.

python -m benchmarks.counting_results [DATABASE ...]

writes the tables, sentences and picture of `docs/counting.md` from `docs/results/counting.csv`.
Where databases are named, it first adds the finished models of the study's sweeps that they hold:
the study may be trained in parts, on several machines.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from benchmarks.counting import CLASSES, FIXED, specifications
from benchmarks.tables import (
    DOCS,
    count_columns,
    finished_runs,
    markdown,
    name_model,
    put,
    results_file,
    with_outcomes,
    write_picture,
)
from seqcls.interpretability.wording import percent, percents
from sweeps.api import open_store, runs
from sweeps.statistics.populations import language_shares
from sweeps.store.database import Store

RESULTS = results_file("counting")

SWEEPS = {
    "counting": "published languages",
    "counting_fresh": "fresh languages",
    "counting_controls": "controls",
}
"""The sweeps of the study, and what their languages are called."""

MODEL = ["sweep", "alphabet", "pattern", "model", "model_seed"]
"""The columns that identify a model of the study."""

NETWORKS = ("none", "shifted", "rotary", "lstm")
"""Positions of Transformers, and the other architecture, as the page lists them."""

OUTCOMES = {"learned": "learned the trained lengths", "generalize": "of these generalize"}

LINES = {"R-triviality": CLASSES[:2], "counting": CLASSES[1:]}
"""The two lines between classes that a theorem draws, and the classes on both sides of each."""


def study_models(store: Store, sweeps: Sequence[str]) -> pd.DataFrame:
    """One row a finished run of these sweeps, in their order.

    Returns:
        sweep, alphabet, pattern, counting, model (its name), model_seed, epochs, num_parameters;
        tested and wrong strings, within and beyond trained lengths; solved_length.
    """
    every = [finished_runs(store, name).assign(sweep=name) for name in sweeps]
    found = pd.concat(every, ignore_index=True)
    is_shifted = found["position_draw"] == "shifted"
    found["positions"] = found["positions"].mask(is_shifted, "shifted")
    found["model"] = [
        name_model(row)
        + (", stops when right" if not row["train_more_steps"] else "")
        + (f", width {row['hidden_size']}" if row["hidden_size"] != FIXED["hidden_size"] else "")
        for row in found.to_dict("records")
    ]
    named = ["sweep", "alphabet", "pattern", "counting", "model", "model_seed", "epochs"]
    return found[[*named, "num_parameters", *count_columns(), "solved_length"]]


def add_models(databases: Sequence[str]) -> None:
    """Adds the models that databases hold to the file; one that is there already is replaced."""
    parts = [_read()] if RESULTS.exists() else []
    for db in databases:
        store = open_store(db)
        held = {name for own in runs(store)["sweeps"] for name in own}
        parts.append(study_models(store, [name for name in SWEEPS if name in held]))
    found = pd.concat(parts, ignore_index=True).drop_duplicates(MODEL, keep="last")
    names = ["sweep", "model", "counting", "pattern", "model_seed"]
    found.sort_values(names, key=_order).to_csv(RESULTS, index=False)


def _order(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Returns the sort keys of a column of the file; sweeps and networks have a fixed order."""
    if column.name == "sweep":
        return column.map(list(SWEEPS).index)
    if column.name == "model":
        return column.map(lambda name: f"{NETWORKS.index(name.split(',')[0])} {name}")
    return column


def _read() -> pd.DataFrame:
    return pd.read_csv(RESULTS, keep_default_na=False)


def judged(models: pd.DataFrame) -> pd.DataFrame:
    """The models with their class of counting, their language and their outcome."""
    classes = models["counting"].where(models["counting"].isin(CLASSES), CLASSES[1])
    return with_outcomes(models).assign(
        language=models["alphabet"] + " " + models["pattern"],
        class_name=classes,
    )


# The tables.


def study_tables(models: pd.DataFrame) -> dict[str, str]:
    """By mark, a Markdown table of each sweep: of the languages of each class the share of seeds
    that learned, and of these the share that generalizes, with 95% intervals over languages.
    """
    parts = {name: models[models["sweep"] == name] for name in SWEEPS}
    return {
        f"counting: {name}": _table(own) if len(own) else "Not trained yet."
        for name, own in parts.items()
    }


def _table(models: pd.DataFrame) -> str:
    shares = language_shares(models, ["model", "class_name"], least=1)
    shares = shares.set_index(["model", "class_name"])
    rows = []
    for key, own in models.groupby("model", sort=False):
        model = str(key)
        cells = [
            _cell(shares.loc[(model, name)]) if (model, name) in shares.index else "—"
            for name in CLASSES
        ]
        seeds = own.groupby("language")["model_seed"].nunique()
        rows.append([model, " to ".join(map(str, sorted({seeds.min(), seeds.max()}))), *cells])
    return markdown([["learned · of these generalize", "seeds", *CLASSES], *rows])


def _cell(row: Any) -> str:
    parts = []
    for part in OUTCOMES:
        if row[f"{part}_languages"]:
            ends = percents(row[f"{part}_low"], row[f"{part}_high"], 0)
            parts.append(f"{percent(row[part], 0)} ({ends}; {row[f'{part}_languages']:.0f})")
        else:
            parts.append("—")
    return " · ".join(parts)


# The two lines.


def read_lines(models: pd.DataFrame) -> list[str]:
    """Describe, for each sweep and network, which languages are learned and which generalize."""
    number = sum(map(_count_asked, specifications().values()))
    sentences = [f"- {len(models):,} of {number:,} models are trained so far."]
    for (sweep, model), own in models.groupby(["sweep", "model"], sort=False):
        if sweep == "counting_controls":
            continue
        parts = [
            f"{OUTCOMES[part]}: " + ", ".join(_line(own, part, line) for line in LINES)
            for part in OUTCOMES
        ]
        sentences.append(f"- **{model}, {SWEEPS[str(sweep)]}**: {'; '.join(parts)}.")
    return sentences


def _count_asked(spec: Mapping[str, Any]) -> int:
    """Returns the number of models of a specification."""
    return sum(int(x["model_seeds"].split("..")[1]) + 1 for x in spec["configurations"])


def _line(models: pd.DataFrame, part: str, line: str) -> str:
    """Describes the difference in the shares of seeds between languages on both sides of a line, by
    a permutation test of the means.
    """
    sides = [language_values(models[models["class_name"] == x], part) for x in LINES[line]]
    if min(map(len, sides)) < 2:
        return f"{line} cannot be judged (too few languages learned)"
    result = stats.permutation_test(
        sides, lambda x, y, axis: x.mean(axis) - y.mean(axis), vectorized=True, rng=0
    )
    shares = " against ".join(percent(float(side.mean()), 0) for side in sides)
    verdict = "separates" if result.pvalue < 0.05 else "is not shown to separate"
    return f"{line} {verdict} ({shares}, p = {result.pvalue:.2g})"


def language_values(models: pd.DataFrame, part: str) -> npt.NDArray[np.float64]:
    """Returns each language's share of seeds that learn, or of learners that generalize."""
    if part == "generalize":
        models = models[models["learned"]]
    column = "learned" if part == "learned" else "generalizes"
    return models.groupby("language")[column].mean().to_numpy(dtype=np.float64)


# The picture.


def picture(models: pd.DataFrame) -> alt.FacetChart:
    """A Vega-Lite chart: a point a language, a row a network and a column an outcome."""
    points = pd.DataFrame(_points(models))
    x = alt.X("class:N", sort=list(CLASSES), title=None, axis=alt.Axis(labelAngle=0))
    y = alt.Y("share:Q", title="share of seeds", axis=alt.Axis(format="%"))
    base = alt.Chart(points).encode(x=x, y=y, color=alt.Color("languages:N", title=None))
    dots = base.mark_circle(size=45, opacity=0.55).encode(xOffset="place:Q")
    means = base.mark_tick(size=46, thickness=3).encode(y="mean(share):Q")
    chart = alt.layer(dots, means).properties(width=300, height=130)
    return chart.facet(
        row=alt.Row("model:N", title=None, sort=list(points["model"].unique())),
        column=alt.Column("outcome:N", title=None, sort=list(OUTCOMES.values())),
    )


def _points(models: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for (sweep, model), own in models.groupby(["sweep", "model"], sort=False):
        if sweep == "counting_controls":
            continue
        for name in CLASSES:
            for part, title in OUTCOMES.items():
                values = language_values(own[own["class_name"] == name], part)
                # Languages of one share lie side by side, the fresh ones to the right.
                for place, share in enumerate(sorted(values)):
                    yield {
                        "languages": SWEEPS[str(sweep)],
                        "model": str(model),
                        "class": name,
                        "outcome": title,
                        "share": share,
                        "place": place + 14 * (sweep == "counting_fresh"),
                    }


def main(databases: Sequence[str]) -> None:
    if databases:
        add_models(databases)
    models = judged(_read())
    page = DOCS / "counting.md"
    tables = {**study_tables(models), "counting: lines": "\n".join(read_lines(models))}
    page.write_text(put(page.read_text(encoding="utf-8"), tables), encoding="utf-8")
    write_picture("counting", picture(models))


if __name__ == "__main__":
    main(sys.argv[1:])
