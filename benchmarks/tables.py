"""The common parts of the docs' tables of trained models.

These are the finished models of a sweep and their outcomes, the texts of cells, and functions that
write a table or a picture into the docs.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import vl_convert

from sweeps.api import lengths, runs
from sweeps.results import LEARNED_AT, Outcome
from sweeps.store.database import Store

DOCS = Path(__file__).resolve().parents[1] / "docs"

CELL = ["task", "model"]
LENGTH_PARTS = ("within", "beyond")


def results_file(name: str) -> Path:
    return DOCS / "results" / f"{name}.csv"


@dataclass(frozen=True)
class WithFresh:
    """A sweep, and one named `NAME_fresh` with other seeds and nothing else changed."""

    name: str

    @property
    def sweeps(self) -> tuple[str, ...]:
        return self.name, f"{self.name}_fresh"

    @property
    def results(self) -> Path:
        return results_file(self.name)


# Models and their outcomes.


def finished_runs(store: Store, sweep: str) -> pd.DataFrame:
    """The finished runs of a sweep, in its order."""
    found = runs(store, sweep)
    return found[found["state"] == "done"].sort_values(["config_id", "model_seed"])


def runs_with_fresh(store: Store, sweeps: Sequence[str]) -> pd.DataFrame:
    """The finished runs of these sweeps, in their order; fresh are those not of the first."""
    every = [finished_runs(store, name).assign(fresh=name != sweeps[0]) for name in sweeps]
    return pd.concat(every, ignore_index=True)


def counted_in(
    store: Store, found: pd.DataFrame, ranges: Sequence[tuple[int, int]]
) -> pd.DataFrame:
    """Runs with tested and wrong strings of each range of lengths."""
    scores = lengths(store, found["id"].tolist()) if ranges else pd.DataFrame()
    for own in ranges:
        chosen = scores[scores["length"].between(*own)].groupby("run_id")[["tested", "wrong"]].sum()
        found = found.join(chosen.add_suffix(f"_{range_name(own)}"), on="id")
    return found


def count_columns(ranges: Sequence[tuple[int, int]] = ()) -> list[str]:
    """The columns of tested and wrong strings: within trained lengths, beyond, and of ranges."""
    parts = [*LENGTH_PARTS, *map(range_name, ranges)]
    return [f"{name}_{part}" for part in parts for name in ("tested", "wrong")]


def range_name(ends: tuple[int, int]) -> str:
    """A range of lengths in the names of columns."""
    return "_".join(map(str, ends))


def name_model(run: Mapping[Any, Any]) -> str:
    """Returns the name of a run's model: its architecture, positions, blocks and factors."""
    name = " ".join([str(run["architecture"]).replace("_", " "), str(run["layers"])]).strip()
    if run["architecture"] == "transformer":
        blocks = run["num_blocks"]
        name = f"{run['positions']}, {blocks} block{'s' * (blocks > 1)}"
    return f"{name}, signed" if run["eigenvalue_range"] == "signed" else name


def accuracy(found: pd.DataFrame, part: str) -> "pd.Series[float]":
    """The share of test strings, within or beyond trained lengths, that each model is right on."""
    return 1 - found[f"wrong_{part}"] / found[f"tested_{part}"]


def with_outcomes(found: pd.DataFrame) -> pd.DataFrame:
    """Models with whether they learned the trained lengths, whether they generalize, and both in
    words.
    """
    learned = accuracy(found, "within") >= LEARNED_AT
    generalizes = learned & (found["wrong_beyond"] == 0) & (found["tested_beyond"] > 0)
    beyond = generalizes.map({True: Outcome.GENERALIZES, False: Outcome.FAILS_BEYOND})
    outcome = beyond.where(learned, Outcome.NOT_LEARNED)
    return found.assign(learned=learned, generalizes=generalizes, outcome=outcome)


# Texts.


def range_title(ends: tuple[int, int]) -> str:
    first, last = (f"{end:,}" for end in ends)
    return f"{first} tokens" if first == last else f"{first} to {last} tokens"


def own_seeds(own: pd.DataFrame, fresh: bool) -> str:
    """The seeds of models: `0 to 9`, or `101 to 112, 201 to 220, fresh`."""
    seeds = own["model_seed"].drop_duplicates().sort_values()
    spans = seeds.groupby((seeds.diff() != 1).cumsum()).agg(["first", "last"]).to_numpy()
    texts = [f"{first} to {last}" if first < last else f"{first}" for first, last in spans]
    return ", ".join([*texts, *(["fresh"] if fresh else [])])


def p_text(value: float) -> str:
    """A p-value in a sentence."""
    return f"p = {value:.2g}" if value >= 0.001 else "p < 0.001"


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table, its head the first line."""
    every = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in every)


def put(text: str, tables: Mapping[str, str]) -> str:
    """A page with each table between its marks, `<!-- name -->` and `<!-- end of name -->`."""
    for name, own in tables.items():
        marks = f"<!-- {name} -->", f"<!-- end of {name} -->"
        between = re.compile(f"({re.escape(marks[0])}\n).*?({re.escape(marks[1])})", re.DOTALL)
        text, number = between.subn(lambda x, t=own: f"{x[1]}\n{t}\n\n{x[2]}", text)  # type: ignore[misc]
        assert number == 1, name
    return text


# Pictures.


def picture(cells: pd.DataFrame, title: str, width: int) -> alt.LayerChart | alt.FacetChart:
    """Texts by task and model, with a share as their color, or gray where they are not able.

    Args:
        title: what is shared.
        width: of a cell, in pixels.
    """
    models, tasks = list(cells["model"].unique()), list(cells["task"].unique())
    base = alt.Chart(cells[[*CELL, "text", "able", "share"]]).encode(
        x=alt.X("model:N", sort=models, title=None, axis=alt.Axis(labelAngle=-40, orient="top")),
        y=alt.Y("task:N", sort=tasks, title=None),
    )
    scale = alt.Scale(scheme="viridis", domain=[0, 1])
    color = alt.Color(
        "share:Q", scale=scale, title=title, legend=alt.Legend(format="%", titleLimit=300)
    )
    gray = base.transform_filter(~alt.datum.able).mark_rect(color="#dddddd")
    colored = base.transform_filter(alt.datum.able).mark_rect().encode(color=color)
    dark = alt.datum.able & (alt.datum.share < 0.56)
    texts = base.mark_text(fontSize=11, lineBreak="\n", baseline="middle", dy=-6).encode(
        text="text:N",
        color=alt.when(dark).then(alt.value("white")).otherwise(alt.value("black")),
    )
    return alt.layer(gray, colored, texts).properties(
        width=width * len(models), height=36 * len(tasks)
    )


def write_picture(name: str, chart: alt.LayerChart | alt.FacetChart) -> None:
    text = vl_convert.vegalite_to_svg(json.dumps(chart.to_dict()))
    (DOCS / f"{name}.svg").write_text(text, encoding="utf-8")
