"""The numbers of the docs' known results: every model in a CSV file, and what pages make of them.

python -m benchmarks.known [DATABASE ...]

writes the tables between the marks of the pages, and their pictures, from the CSV files in
`docs/results`. Where databases are named, it first writes the files of what they hold.
"""

import json
import re
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import vl_convert
from scipy import stats

from seqcls.interpretability.wording import percent, percents
from sweeps.api import lengths, open_store, runs
from sweeps.grid.spec import load_specs
from sweeps.results import LEARNED_AT, differing_fields
from sweeps.statistics.populations import BORDER, RANDOM, language_shares
from sweeps.store.database import Store
from sweeps.store.reads.shortcuts import shortcuts_by_drawn

DOCS = Path(__file__).resolve().parents[1] / "docs"

LEARNED_BY = 0.9
"""The share of its seeds by which a cell is learned."""

FRESH = 100
"""Seeds from here on are fresh: what the others came to is held against them."""

MARKS = {"can": "•", "cannot": "✗"}
"""The mark of what theory predicts; none where nothing is known."""

CELL = ["task", "model"]
LENGTH_PARTS = ("within", "beyond")


@dataclass(frozen=True)
class Atlas:
    """Tasks by models: the sweeps that train them, and the page that tells of them."""

    name: str
    page: str
    sweeps: tuple[str, ...]
    """The first has every cell; others those that it does not learn, at another learning rate, or
    other seeds."""
    ranges: tuple[tuple[int, int], ...] = ()
    """Lengths beyond the trained ones whose strings are counted by themselves, in tokens."""
    read_from: int = 5
    """What it comes to is told of seeds below this, and apart of the others."""

    @property
    def results(self) -> Path:
        return results_file(self.name)


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


@dataclass(frozen=True)
class Comparison(WithFresh):
    """What others have reported or proved, and the sweep that trains it; fresh are model seeds."""

    ranges: tuple[tuple[int, int], ...]
    """Lengths beyond the trained ones that are told of, in tokens."""
    names: tuple[str, ...] = ()
    """What its configurations are called, in their order; else by the fields that differ."""
    named: str = "language"
    """What those names are of."""
    page: str = "known_results.md"
    row_beginning: Callable[[Mapping[Hashable, Any]], Mapping[str, str]] | None = None
    """What a row of its table begins with, given its fields and what theory predicts: a text by
    column, what is published among them; else names or fields that differ."""


@dataclass(frozen=True)
class Sample(WithFresh):
    """Random languages of classes by networks, and the page of them; fresh are language seeds."""

    page: str


def results_file(name: str) -> Path:
    return DOCS / "results" / f"{name}.csv"


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

NAMED_FIELDS = {"flip_flop": "ignore_share", "regular": "pattern"}
"""The fields that are said beside a task's name."""

GENERALIZES, FAILS = "generalizes", "fails beyond"
NEEDS_PLACES = f"{FAILS} without positions"

NEXT_SYMBOLS = {
    "(aa)*": ("(aa)\\*", NEEDS_PLACES),
    "(aaaa)*": ("(aaaa)\\*", NEEDS_PLACES),
    "(abab)*": ("(abab)\\*", NEEDS_PLACES),
    "1*": ("Tomita 1", GENERALIZES),
    "(10)*": ("Tomita 2", GENERALIZES),
    "0*((11)+0+|1(11)*(00)+)*1*": ("Tomita 3", FAILS),
    "(1|01|001)*(()|0|00)": ("Tomita 4", GENERALIZES),
    "(00|11|(01|10)(00|11)*(01|10))*": ("Tomita 5", FAILS),
    "(01|(1|00)(10)*(0|11))*": ("Tomita 6", FAILS),
    "0*1*0*1*": ("Tomita 7", GENERALIZES),
    "a+b+c+d+e+": ("a⁺b⁺c⁺d⁺e⁺", GENERALIZES),
    "(a|b)*d(b|c)*": ("{a,b}\\*d{b,c}\\*", GENERALIZES),
    "(0|1|2)*02*": ("{0,1,2}\\*02\\*", NEEDS_PLACES),
}
"""By pattern, what a language of `known/next_symbols` is called, and what Huang et al. (2025) say
of it; of brackets of a depth, which have no pattern, that they generalize."""


def tell_language(row: Mapping[Hashable, Any]) -> dict[str, str]:
    """What the table of `known/next_symbols` says of a language."""
    if pd.isna(row["pattern"]) or not row["pattern"]:
        name, published = f"brackets, at most {row['max_depth']:.0f} open", GENERALIZES
    else:
        name, published = NEXT_SYMBOLS[row["pattern"]]
    return {"language": name, "published": published, "theory here": row["predicted"]}


def tell_depth(row: Mapping[Hashable, Any]) -> dict[str, str]:
    """What the table of `known/depth_hierarchy` says of a number of blocks and a language: one of
    d blocks generalizes to d + 2 blocks of letters (Yang, Cadilhac & Chiang 2025).
    """
    letters = str(row["pattern"]).count("+")
    return {
        "`num_blocks`": f"{row['num_blocks']}",
        "blocks of letters": str(letters),
        "published": GENERALIZES if letters <= row["num_blocks"] + 2 else FAILS,
        "theory here": row["predicted"],
    }


COMPARISONS = (
    Comparison("majority", ((41, 80), (81, 120))),
    Comparison("parity_one_block", ((41, 200),)),
    Comparison("first", ((1000, 1000),)),
    Comparison(
        "tomita",
        ((21, 100),),
        (
            "1: only 1s",
            "2: (10)\\*",
            "3: no odd run of 1s directly before an odd run of 0s",
            "4: no 000",
            "5: 0s and 1s both even",
            "6: as many 0s as 1s modulo 3",
            "7: 0\\*1\\*0\\*1\\*",
        ),
    ),
    Comparison("recurrent", ((41, 500),)),
    Comparison(
        "signed_eigenvalues",
        ((41, 128), (129, 256)),
        tuple(
            f"{name}, width {width}"
            for name in (
                *("DeltaNet, positive", "DeltaNet, signed", "Mamba, positive", "Mamba, signed"),
                *("sLSTM", "LSTM", "Transformer, rotary"),
            )
            for width in (16, 32)
        ),
        "model",
    ),
    Comparison("copying_small", ((21, 40), (41, 60))),
    Comparison("copying_controls", ((51, 100), (101, 150))),
    Comparison("binary_majority_word", ((51, 100), (101, 150))),
    Comparison("addition", ((23, 32), (33, 42))),
    Comparison("next_symbols", ((51, 100), (101, 150)), row_beginning=tell_language),
    Comparison("depth_hierarchy", ((51, 100), (101, 150)), row_beginning=tell_depth),
)


SAMPLES = (Sample("mlregtest_sample", "mlregtest.md"),)

KINDS = {
    "random_within": "SR",
    "border_within": "SA",
    "random_beyond": "LR",
    "border_beyond": "LA",
}
"""The tests as MLRegTest names them: short or long strings, random or adversarial ones."""


def finished_runs(store: Store, sweep: str) -> pd.DataFrame:
    """The finished runs of a sweep, in its order."""
    found = runs(store, sweep)
    return found[found["state"] == "done"].sort_values(["config_id", "model_seed"])


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
    counts = _counts(ranges)
    columns = [
        *(*CELL, "learning_rate", "model_seed", "predicted", "budget", "epochs"),
        *("validation_loss", *counts, "solved_length", "reader_within", "reader_beyond"),
    ]
    return found[columns].reset_index(drop=True)


def compared_models(
    store: Store,
    sweeps: Sequence[str],
    ranges: Sequence[tuple[int, int]],
    *,
    predicted: bool = False,
) -> pd.DataFrame:
    """One row a finished run of these sweeps, in their order.

    Returns:
        the fields that differ; fresh (whether it is not of the first sweep), model_seed, epochs;
        predicted, where it is asked for;
        tested and wrong strings, within (of trained lengths), beyond, and of each range of longer
        lengths; solved_length.
    """
    every = [finished_runs(store, name).assign(fresh=name != sweeps[0]) for name in sweeps]
    found = pd.concat(every, ignore_index=True)
    found = counted_in(store, found, ranges)
    theory = ["predicted"] if predicted else []
    named = [*differing_fields(found), "fresh", "model_seed", "epochs", *theory]
    return found[[*named, *_counts(ranges), "solved_length"]]


def counted_in(
    store: Store, found: pd.DataFrame, ranges: Sequence[tuple[int, int]]
) -> pd.DataFrame:
    """Runs with tested and wrong strings of each range of lengths."""
    scores = lengths(store, found["id"].tolist()) if ranges else pd.DataFrame()
    for own in ranges:
        chosen = scores[scores["length"].between(*own)].groupby("run_id")[["tested", "wrong"]].sum()
        found = found.join(chosen.add_suffix(f"_{range_name(own)}"), on="id")
    return found


def _counts(ranges: Sequence[tuple[int, int]]) -> list[str]:
    parts = [*LENGTH_PARTS, *map(range_name, ranges)]
    return [f"{name}_{part}" for part in parts for name in ("tested", "wrong")]


def range_name(ends: tuple[int, int]) -> str:
    """A range of lengths in the names of columns."""
    return "_".join(map(str, ends))


def name_task(run: Mapping[Any, Any]) -> str:
    """What a run's task is called, with the field in which those of one name differ."""
    field = NAMED_FIELDS.get(str(run["task"]))
    return f"{run['task']}, {field}={run[field]}" if field else str(run["task"])


def name_model(run: Mapping[Any, Any]) -> str:
    """What a run's model is called, by its architecture, positions, blocks and factors."""
    name = " ".join([str(run["architecture"]).replace("_", " "), str(run["layers"])]).strip()
    if run["architecture"] == "transformer":
        blocks = run["num_blocks"]
        name = f"{run['positions']}, {blocks} block{'s' * (blocks > 1)}"
    return f"{name}, signed" if run["eigenvalue_range"] == "signed" else name


def accuracy(found: pd.DataFrame, part: str) -> "pd.Series[float]":
    """The share of test strings, within or beyond trained lengths, that each model is right on."""
    return 1 - found[f"wrong_{part}"] / found[f"tested_{part}"]


def with_outcomes(found: pd.DataFrame) -> pd.DataFrame:
    """Models with whether they learned the trained lengths, and whether they generalize."""
    learned = accuracy(found, "within") >= LEARNED_AT
    generalizes = learned & (found["wrong_beyond"] == 0) & (found["tested_beyond"] > 0)
    return found.assign(learned=learned, generalizes=generalizes)


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
    """Whether nearly all seeds of a cell have learned the trained lengths."""
    return cells["learned"] >= LEARNED_BY * cells["seeds"]


def in_tables(atlas: Atlas, found: pd.DataFrame) -> pd.DataFrame:
    """The models that cells count: no fresh ones, but where ranges of lengths are told of."""
    return found if atlas.ranges else found[found["model_seed"] < FRESH]


def tables_of(atlas: Atlas, found: pd.DataFrame) -> dict[str, str]:
    """The atlas's tables and sums, by the names of their marks."""
    every, found = found, in_tables(atlas, found)
    cells = atlas_cells(found)
    made = {"sums": sums(cells)}
    if atlas.ranges:
        beside = beside_published(found, atlas.ranges[-1])
        parity = beside[beside["task"] == "parity"].drop(columns=["task", "seeds", "theory"])
        made["beside"] = markdown([list(parity.columns), *parity.to_numpy().tolist()])
        lines = "\n".join(f"- {text}" for text in read_memories(found))
        made["reading"] = f"{lines}\n\n![What is learned, and generalizes]({atlas.name}.svg)"
    else:
        made["reading"] = read_atlas(every, cells, atlas.read_from)
    return {f"{atlas.name}: {name}": text for name, text in made.items()}


def sums(cells: pd.DataFrame) -> str:
    """How many cells are learned, of those that theory excludes and of the others."""
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


# Memories beside what is published of them.

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
"""By the task and the family of models, with its source; the page says what is measured."""


def family(model: str) -> str:
    """What several models are called together: by the memory that they have, and its factors."""
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


FAR = 0.99
"""The share of far longer strings from which on a configuration counts in the study in progress."""


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
    """What the table comes to: sentences whose words are chosen by its numbers."""
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
    """Whether Gated DeltaNet solves it, Transformers do not, and hybrids lose it: which models
    generalize.
    """
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
        f"({_count_of(hybrids)}; Fisher's exact test of the first and the last: {_p(p_value)})"
    )


def _solving(own: "pd.Series[bool]") -> str:
    return (
        f"solve it in {_count_of(own)} seeds" if own.any() else f"never solve it ({_count_of(own)})"
    )


def _count_of(own: "pd.Series[bool]") -> str:
    return f"{int(own.sum())} of {len(own)}"


# Samples of languages.

LANGUAGE = ["language_class", "width", "language_seed"]


def sampled_models(store: Store, sweeps: Sequence[str]) -> pd.DataFrame:
    """One row a finished run of these sweeps, in their order.

    Returns:
        `LANGUAGE`, counting (the language's level, or outside), model (its name), fresh (whether it
        is not of the first sweep), model_seed and epochs; tested and wrong strings, within and
        beyond trained lengths; accuracies on the `KINDS` of tests; and what the reader of bigrams
        reaches of random and of border strings.
    """
    every = [finished_runs(store, name).assign(fresh=name != sweeps[0]) for name in sweeps]
    found = pd.concat(every, ignore_index=True)
    found["model"] = list(map(name_model, found.to_dict("records")))
    read = shortcuts_by_drawn(store, found["config_id"].unique().tolist())
    read = read[read["reader"] == "bigrams"]
    for name, ways in (("random", RANDOM), ("border", BORDER)):
        sums = read[read["drawn"].isin(ways)].groupby("config_id")[["tested", "right"]].sum()
        found[f"bigrams_{name}"] = found["config_id"].map(sums["right"] / sums["tested"])
    shares = [*KINDS, "bigrams_random", "bigrams_border"]
    counts = [f"{name}_{part}" for part in LENGTH_PARTS for name in ("tested", "wrong")]
    found[shares] = found[shares].astype(float).round(4)
    named = [*LANGUAGE, "counting", "model", "fresh", "model_seed", "epochs"]
    return found[[*named, *counts, *shares]]


def sample_tables(sample: Sample, found: pd.DataFrame) -> dict[str, str]:
    """The sample's table and what it comes to, by the names of their marks."""
    models = languages_with_outcomes(found)
    reading = "\n".join(f"- {text}" for text in read_sample(models))
    made = {"reading": reading, "counting": counting_table(models)}
    return {f"{sample.name}: {name}": text for name, text in made.items()}


def languages_with_outcomes(found: pd.DataFrame) -> pd.DataFrame:
    """Models with their language, and with their outcomes."""
    models = with_outcomes(found).assign(language=list(map(str, found[LANGUAGE].to_numpy())))
    outcomes = models["generalizes"].map({True: "generalizes", False: "fails beyond"})
    return models.assign(outcome=outcomes.where(models["learned"], "not learned"))


def sample_cells(found: pd.DataFrame) -> pd.DataFrame:
    """One row a class and network, of languages that are not fresh, as a picture has it."""
    models = languages_with_outcomes(found)
    named, by = models[~models["fresh"]], ["language_class", "model"]
    shares = language_shares(named, by).set_index(by)
    shares = shares.loc[list(named[by].drop_duplicates().itertuples(index=False, name=None))]
    texts = [
        "\n".join(_share(row, part) for part in ("learned", "generalize"))
        for row in shares.to_dict("records")
    ]
    cells = shares.rename(columns={"learned": "share"}).rename_axis(CELL).reset_index()
    return cells.assign(text=texts, able=True)


def counting_table(models: pd.DataFrame) -> str:
    """A Markdown table: a row a level of counting, a column a network; of the models of all
    languages, fresh ones too, how many learned, and the share with its interval over languages.
    """
    by = ["counting", "model"]
    shares = language_shares(models, by).set_index(by)
    texts = pd.Series([_share(x, "learned") for x in shares.to_dict("records")], shares.index)
    learned = models.groupby(by)["learned"].agg(["sum", "size"])
    heads = list(models["model"].unique())
    rows = []
    for name, own in models.groupby("counting"):
        cells = [
            f"{learned.loc[(name, x), 'sum']} of {learned.loc[(name, x), 'size']}: "
            f"{texts[(name, x)]}"
            for x in heads
        ]
        rows.append([f"{name}, {own['language'].nunique()} languages", *cells])
    return markdown([["counting", *heads], *rows])


def _share(row: Mapping[Hashable, Any], part: str) -> str:
    if not row[f"{part}_languages"]:
        return "—"
    ends = percents(row[f"{part}_low"], row[f"{part}_high"], 0)
    return f"{percent(row[part], 0)} ({ends})"


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table, its head the first line."""
    every = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in every)


def read_sample(models: pd.DataFrame) -> list[str]:
    """What the sample comes to, of its languages and of fresh ones: sentences in Markdown."""
    named = _read_languages(models[~models["fresh"]])
    fresh = _read_languages(models[models["fresh"]]) if models["fresh"].any() else {}
    return [
        f"**{title}**: {text}." + (f" *Fresh*: {fresh[what][1]}." if fresh else "")
        for what, (title, text) in named.items()
    ]


def _read_languages(models: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """What the kind of test, the class and the network come to, and the border: titles and texts.

    Tests are over languages: Friedman's where the same are asked, else that of Kruskal and Wallis.
    """
    cells = models.groupby(["language_class", "language", "model"])[list(KINDS)].median()
    kinds = ", ".join(f"{name} {percent(cells[x].median())}" for x, name in KINDS.items())
    at_border = cells["border_within"].unstack("model").dropna()
    networks = at_border.median()
    of_class = [own for _, own in at_border.mean(axis=1).groupby("language_class")]
    classes = pd.Series({own.index[0][0]: own.median() for own in of_class})
    flattered, longer = (
        cells[cells[f"random_{part}"] >= LEARNED_AT][f"border_{part}"] < LEARNED_AT
        for part in LENGTH_PARTS
    )
    pairs = models.drop_duplicates("language").groupby("language_class")["bigrams_border"].median()
    by_kind = stats.friedmanchisquare(*(cells[name] for name in KINDS)).pvalue
    by_class = stats.kruskal(*of_class).pvalue
    by_network = stats.friedmanchisquare(*(at_border[name] for name in at_border)).pvalue
    return {
        "kind": _tested("kind of test", by_kind, kinds),
        "class": _tested("class", by_class, f"at the border (SA), {_ends(classes)}"),
        "network": _tested("network", by_network, f"at the border (SA), {_ends(networks)}"),
        "border": (
            "Random strings alone say too much",
            f"of {len(flattered)} pairs of a language and a network with SR of at least "
            f"{percent(LEARNED_AT, 0)}, {int(flattered.sum())} have an SA below it; of "
            f"{len(longer)} with such an LR, {int(longer.sum())} have an LA below it",
        ),
        "readers": (
            "Pairs of letters, read without a network",
            f"at the border, a linear reader of bigrams reaches {_ends(pairs)}",
        ),
    }


def _ends(medians: "pd.Series[float]") -> str:
    """The greatest and the least of medians over languages."""
    return (
        f"{percent(medians.max())} ({medians.idxmax()}) to {percent(medians.min())} "
        f"({medians.idxmin()})"
    )


def _tested(what: str, p_value: float, text: str) -> tuple[str, str]:
    matters = "matters" if p_value < 0.05 else "makes no difference that chance would not"
    return f"The {what} {matters}", f"{text} ({_p(p_value)})"


def _p(value: float) -> str:
    return f"p = {value:.2g}" if value >= 0.001 else "p < 0.001"


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
    """What the atlas comes to, of the first seeds and of the others: a list in Markdown."""
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


def comparison_table(comparison: Comparison, found: pd.DataFrame) -> str:
    """A Markdown table: a row a configuration, and one of its fresh seeds.

    Of models that have not learned it has the accuracy on trained lengths, and none beyond.
    """
    every = with_outcomes(found)
    fields = [str(name) for name in found.columns[: found.columns.get_loc("fresh")]]
    if comparison.row_beginning is not None:
        texts = pd.DataFrame(
            list(map(comparison.row_beginning, every.to_dict("records"))), every.index
        )
        every, shown = every.join(texts), list(map(str, texts))
    elif comparison.names:
        codes = every.groupby(fields, sort=False, dropna=False).ngroup()
        every[comparison.named] = [comparison.names[code] for code in codes]
        shown = [comparison.named]
    else:
        every[fields] = every[fields].map(lambda x: "" if pd.isna(x) else f"`{x}`")
        shown = fields
    # A configuration's fresh seeds stand below its others, wherever their sweep has it.
    rows = []
    for _, both_groups in every.groupby(shown or (lambda _: 0), sort=False):
        for fresh, own in both_groups.groupby("fresh"):
            cells = [*own[shown].iloc[0], own_seeds(own, fresh=bool(fresh))]
            rows.append([*cells, *outcome_cells(own, comparison.ranges)])
    heads = [
        *(f"`{name}`" if name in fields else name for name in shown),
        *("seeds", "learned", "generalize"),
        *(range_title(ends) for ends in comparison.ranges),
    ]
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def range_title(ends: tuple[int, int]) -> str:
    first, last = (f"{end:,}" for end in ends)
    return f"{first} tokens" if first == last else f"{first} to {last} tokens"


def own_seeds(own: pd.DataFrame, fresh: bool) -> str:
    """The seeds of models: `0 to 9`, or `101 to 112, 201 to 220, fresh`."""
    seeds = own["model_seed"].drop_duplicates().sort_values()
    spans = seeds.groupby((seeds.diff() != 1).cumsum()).agg(["first", "last"]).to_numpy()
    texts = [f"{first} to {last}" if first < last else f"{first}" for first, last in spans]
    return ", ".join([*texts, *(["fresh"] if fresh else [])])


def outcome_cells(own: pd.DataFrame, ranges: Sequence[tuple[int, int]]) -> list[str]:
    """How many learned, and generalize; of those that learned, the accuracies beyond."""
    able = own[own["learned"]]
    learned = f"{len(able)} of {len(own)}"
    if len(able) < len(own):
        learned += f"; not learned: {three_shares(accuracy(own[~own['learned']], 'within'))}"
    if able.empty:
        return [learned, "—", *("—" for _ in ranges)]
    return [
        learned,
        f"{int(able['generalizes'].sum())} of {len(able)}",
        *(three_shares(accuracy(able, range_name(ends))) for ends in ranges),
    ]


def three_shares(shares: "pd.Series[float]") -> str:
    """The lowest, the median and the highest, or what all of them are."""
    if shares.nunique() == 1:
        return percent(shares.iloc[0])
    return " / ".join(map(percent, (shares.min(), shares.median(), shares.max())))


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


def put(text: str, tables: Mapping[str, str]) -> str:
    """A page with each table between its marks, `<!-- name -->` and `<!-- end of name -->`."""
    for name, own in tables.items():
        marks = f"<!-- {name} -->", f"<!-- end of {name} -->"
        between = re.compile(f"({re.escape(marks[0])}\n).*?({re.escape(marks[1])})", re.DOTALL)
        text, number = between.subn(lambda x, t=own: f"{x[1]}\n{t}\n\n{x[2]}", text)  # type: ignore[misc]
        assert number == 1, name
    return text


def pages() -> dict[str, str]:
    """The pages as the CSV files have them, by name."""
    made: dict[str, str] = {}
    for atlas in (x for x in ATLASES if x.results.exists()):
        text = made.get(atlas.page) or (DOCS / atlas.page).read_text(encoding="utf-8")
        made[atlas.page] = put(text, tables_of(atlas, pd.read_csv(atlas.results)))
    for own in (x for x in COMPARISONS if x.results.exists()):
        text = made.get(own.page) or (DOCS / own.page).read_text(encoding="utf-8")
        made[own.page] = put(text, {own.name: comparison_table(own, pd.read_csv(own.results))})
    for sample in (x for x in SAMPLES if x.results.exists()):
        text = made.get(sample.page) or (DOCS / sample.page).read_text(encoding="utf-8")
        made[sample.page] = put(text, sample_tables(sample, pd.read_csv(sample.results)))
    return made


def asked_cells(sweep: str) -> pd.MultiIndex:
    """The cells of a sweep that is shipped, in its order."""
    (spec,) = load_specs(f"known/{sweep}")
    fields = [dict(config) for config in spec.configs()]
    cells = [(name_task(own), name_model(own)) for own in fields]
    return pd.MultiIndex.from_tuples(dict.fromkeys(cells), names=CELL)


def write_results(db: str) -> None:
    """Writes the CSV files of the atlases and comparisons that a database holds."""
    store = open_store(db)
    names = {name for own in runs(store)["sweeps"] for name in own}
    for atlas in ATLASES:
        held = [name for name in atlas.sweeps if name in names]
        if held:
            found = pd.concat([trained_models(store, name, atlas.ranges) for name in held])
            found = found.drop_duplicates()
            # Their numbers in the database are in the order in which they came there.
            cells = pd.MultiIndex.from_frame(found[CELL])
            order = asked_cells(atlas.name).get_indexer(cells).argsort(kind="stable")
            found.iloc[order].to_csv(atlas.results, index=False)
    for own in COMPARISONS:
        if own.name in names:
            held = [name for name in own.sweeps if name in names]
            with_theory = own.row_beginning is not None
            found = compared_models(store, held, own.ranges, predicted=with_theory)
            found.to_csv(own.results, index=False)
    for sample in SAMPLES:
        if sample.name in names:
            held = [name for name in sample.sweeps if name in names]
            sampled_models(store, held).to_csv(sample.results, index=False)


def main(databases: Sequence[str]) -> None:
    for db in databases:
        write_results(db)
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
    for atlas in (x for x in ATLASES if x.results.exists()):
        found = in_tables(atlas, pd.read_csv(atlas.results))
        write_picture(atlas.name, atlas_picture(atlas_cells(found)))
        if atlas.ranges:
            beside = beside_published(found, atlas.ranges[-1])
            beside.to_csv(results_file(f"{atlas.name}_published"), index=False)
    for sample in (x for x in SAMPLES if x.results.exists()):
        cells = sample_cells(pd.read_csv(sample.results))
        write_picture(sample.name, picture(cells, "Learned", 118))


if __name__ == "__main__":
    main(sys.argv[1:])
