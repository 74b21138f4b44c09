"""The atlases of tasks by models: outcomes of each cell, and the pages and pictures of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from benchmarks.published_memories import beside_published, read_memories
from benchmarks.tables import (
    CELL,
    LENGTH_PARTS,
    count_columns,
    counted_in,
    finished_runs,
    markdown,
    name_model,
    own_seeds,
    picture,
    results_file,
    with_outcomes,
)
from sweeps.grid.spec import load_specs
from sweeps.store.database import Store

LEARNED_BY = 0.9
"""The share of its seeds by which a cell is learned."""

FRESH = 100
"""Seeds from here on are fresh: what the others came to is held against them."""

MARKS = {"can": "•", "cannot": "✗"}
"""The mark of what theory predicts; none where nothing is known."""

NAMED_FIELDS = {"flip_flop": "ignore_share", "regular": "pattern"}
"""The field that is named beside a task."""


@dataclass(frozen=True)
class Atlas:
    """Tasks by models: the sweeps that train them, and the page that reports them."""

    name: str
    page: str
    sweeps: tuple[str, ...]
    """The first has every cell; others those that it does not learn, at another learning rate, or
    other seeds."""
    ranges: tuple[tuple[int, int], ...] = ()
    """Lengths beyond the trained ones whose strings are counted by themselves, in tokens."""
    read_from: int = 5
    """Seeds below this are summarized apart from the others, which are fresh."""

    @property
    def results(self) -> Path:
        return results_file(self.name)

    def models(self, store: Store, sweeps: Sequence[str]) -> pd.DataFrame:
        """The rows of its CSV file: its own, replaced by those of the sweeps of a database."""
        known = [pd.read_csv(self.results)] if self.results.exists() else []
        trained = [trained_models(store, name, self.ranges) for name in sweeps]
        key = [*CELL, "learning_rate", "model_seed"]
        found = pd.concat([*known, *trained]).drop_duplicates(key, keep="last")
        # Their numbers in the database are in the order in which they came there.
        cells = pd.MultiIndex.from_frame(found[CELL])
        order = asked_cells(self.name).get_indexer(cells).argsort(kind="stable")
        return found.iloc[order]

    def tables(self, found: pd.DataFrame) -> dict[str, str]:
        """Its tables and sums, by the names of their marks."""
        every, found = found, in_tables(self, found)
        cells = atlas_cells(found)
        made = {"sums": sums(cells)}
        if self.ranges:
            beside = beside_published(found, self.ranges[-1])
            parity = beside[beside["task"] == "parity"].drop(columns=["task", "seeds", "theory"])
            made["beside"] = markdown([list(parity.columns), *parity.to_numpy().tolist()])
            lines = "\n".join(f"- {text}" for text in read_memories(found))
            made["reading"] = f"{lines}\n\n![What is learned, and generalizes]({self.name}.svg)"
        else:
            made["reading"] = read_atlas(every, cells, self.read_from)
        return {f"{self.name}: {name}": text for name, text in made.items()}


ATLASES = (
    Atlas("atlas", "atlas.md", ("atlas", "atlas_rates")),
    Atlas(
        "atlas_memories",
        "atlas.md",
        tuple(f"atlas_memories{x}" for x in ("", "_rates", "_fresh", "_rates_fresh")),
        read_from=FRESH,
    ),
    Atlas("atlas_transductions", "atlas.md", ("atlas_transductions",)),
    Atlas("memory", "memory.md", ("memory", "memory_fresh"), ((17, 32), (33, 48))),
)


def trained_models(
    store: Store, sweep: str, ranges: Sequence[tuple[int, int]] = ()
) -> pd.DataFrame:
    """One row a finished run, in the order of the sweep.

    Returns:
        task, model (its name), learning_rate, model_seed, predicted; budget (training strings at
        most) and epochs; validation_loss (nats); tested and wrong strings, within (of trained
        lengths), beyond, and of each range of longer lengths; solved_length; what the best shortcut
        reader reaches on the same test, in [0, 1], within and beyond.
    """
    found = counted_in(store, finished_runs(store, sweep), ranges)
    for part in LENGTH_PARTS:
        found[f"reader_{part}"] = found[f"shortcut_{part}"].round(4)
    found["task"] = list(map(name_task, found.to_dict("records")))
    found["model"] = list(map(name_model, found.to_dict("records")))
    found["budget"] = found["max_num_epochs"] * found["train_size"]
    found["validation_loss"] = found["best_validation_loss"].round(4)
    columns = [
        *(*CELL, "learning_rate", "model_seed", "predicted", "budget", "epochs"),
        *("validation_loss", *count_columns(ranges), "solved_length"),
        *(f"reader_{part}" for part in LENGTH_PARTS),
    ]
    return found[columns].reset_index(drop=True)


def asked_cells(sweep: str) -> pd.MultiIndex:
    """The cells of a sweep that is shipped, in its order."""
    (spec,) = load_specs(f"known/{sweep}")
    fields = [dict(config) for config in spec.configs()]
    cells = [(name_task(own), name_model(own)) for own in fields]
    return pd.MultiIndex.from_tuples(dict.fromkeys(cells), names=CELL)


def name_task(run: Mapping[Any, Any]) -> str:
    """Name of a run's task, with the field in which tasks of one name differ."""
    field = NAMED_FIELDS.get(str(run["task"]))
    return f"{run['task']}, {field}={run[field]}" if field else str(run["task"])


def cells_by_rate(found: pd.DataFrame) -> pd.DataFrame:
    """One row a task, model and learning rate, in their order.

    Returns:
        task, model, learning_rate, predicted, budget, seeds, learned and generalizes (how many
        of them); validation_loss, the median of all.
    """
    every = with_outcomes(found)
    key = [*CELL, "learning_rate"]
    cells = every.groupby(key, sort=False).agg(
        predicted=("predicted", "first"),
        budget=("budget", "first"),
        seeds=("model_seed", "size"),
        learned=("learned", "sum"),
        generalizes=("generalizes", "sum"),
        validation_loss=("validation_loss", "median"),
    )
    return cells.reset_index()


def atlas_cells(found: pd.DataFrame) -> pd.DataFrame:
    """One row a task and model: that of the learning rate with the lower validation loss."""
    rates = cells_by_rate(found)
    # Of cells with one rate the loss may not be known.
    losses = rates["validation_loss"].fillna(0.0)
    best_rows = losses.groupby([rates[name] for name in CELL], sort=False).idxmin()
    return rates.loc[best_rows].reset_index(drop=True)


def is_learned(cells: pd.DataFrame) -> "pd.Series[bool]":
    """True for cells nearly all of whose seeds learned the trained lengths."""
    return cells["learned"] >= LEARNED_BY * cells["seeds"]


def in_tables(atlas: Atlas, found: pd.DataFrame) -> pd.DataFrame:
    """The models that cells count: fresh ones only if ranges of lengths are reported."""
    return found if atlas.ranges else found[found["model_seed"] < FRESH]


# Texts of pages.


def sums(cells: pd.DataFrame) -> str:
    """Number of learned cells among those that theory excludes, and among the others."""
    excluded, able = cells["predicted"] == "cannot", is_learned(cells)
    open_cells, learned = int((~excluded).sum()), int((able & ~excluded).sum())
    sentence = f"Of {len(cells)} cells"
    if excluded.any():
        number = int((able & excluded).sum())
        sentence += (
            f" theory excludes {int(excluded.sum())} at every length, and of these "
            f"{number} {'is' if number == 1 else 'are'} learned at the trained lengths. Of the "
            f"other {open_cells}"
        )
    return sentence + (
        f", {learned} are learned by {LEARNED_BY:.0%} of their seeds ({learned / open_cells:.0%})."
    )


RECURRENT = ("rnn", "lstm")


def groups_of(every: pd.DataFrame) -> "dict[str, pd.Series[bool]]":
    """The models of an atlas that are counted together, by what they are called."""
    recurrent, excluded = every["model"].isin(RECURRENT), every["predicted"] == "cannot"
    groups = {"all models": every["learned"].notna()}
    if not excluded.any():
        return groups
    if recurrent.any():
        groups = {"Transformers": ~recurrent, "recurrent networks": recurrent}
    return groups | {"what theory excludes at every length": excluded}


def read_atlas(found: pd.DataFrame, cells: pd.DataFrame, read_from: int) -> str:
    """Summary of the atlas, of the first seeds and of the others: a list in Markdown."""
    every = with_outcomes(found.merge(cells[[*CELL, "learning_rate"]]))
    later = every["model_seed"] >= read_from
    lines = []
    for name, rows in groups_of(every).items():
        texts = []
        for own in (every[rows & ~later], every[rows & later]):
            general = own[own["generalizes"]]
            solved = f", on {_listed(general['task'].unique())}" if len(general) else ""
            texts.append(
                f"of seeds {own_seeds(own, fresh=False)}, {int(own['learned'].sum())} of "
                f"{len(own)} learned, and {len(general)} of these generalize{solved}"
            )
        lines.append(f"- **{name.capitalize()}**: {'; '.join(texts)}.")
    return "\n".join(lines)


def _listed(tasks: Iterable[str]) -> str:
    return ", ".join(f"`{task}`" for task in tasks)


# Pictures.


def picture_texts(cells: pd.DataFrame) -> list[list[str]]:
    """The two lines of each cell: what learned and is predicted, and what of that generalizes."""
    return [
        [
            f"{x['learned']} of {x['seeds']} {MARKS.get(x['predicted'], '')}".strip(),
            f"{x['generalizes']} of {x['learned']}" if x["learned"] else "—",
        ]
        for x in cells.to_dict("records")
    ]


def atlas_picture(cells: pd.DataFrame) -> alt.LayerChart | alt.FacetChart:
    """By task and model: what is predicted, how many learned, and how many of these generalize.

    Cells that are not learned are gray; the color of others is the share that generalizes.
    """
    shown = cells.assign(
        text=["\n".join(lines) for lines in picture_texts(cells)],
        able=is_learned(cells),
        share=cells["generalizes"] / cells["learned"].where(cells["learned"] > 0),
    )
    return picture(shown, "Generalizing, of those that learned", 66)
