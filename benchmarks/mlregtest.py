"""A sample of the languages of MLRegTest: what networks learn of each class, and on which tests."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from scipy import stats

from benchmarks.tables import (
    CELL,
    LENGTH_PARTS,
    WithFresh,
    count_columns,
    markdown,
    name_model,
    p_text,
    runs_with_fresh,
    with_outcomes,
)
from seqcls.interpretability.wording import percent, percents
from sweeps.results import LEARNED_AT
from sweeps.statistics.populations import BORDER, RANDOM, language_shares
from sweeps.store.database import Store
from sweeps.store.reads.shortcuts import shortcuts_by_drawn

LANGUAGE = ["language_class", "width", "language_seed"]

KINDS = {
    "random_within": "SR",
    "border_within": "SA",
    "random_beyond": "LR",
    "border_beyond": "LA",
}
"""The tests as MLRegTest names them: short or long strings, random or adversarial ones."""


@dataclass(frozen=True)
class Sample(WithFresh):
    """Random languages of classes by networks, and the page of them; fresh are language seeds."""

    page: str

    def models(self, store: Store, sweeps: Sequence[str]) -> pd.DataFrame:
        """The rows of its CSV file, of those of its sweeps that a database holds."""
        return sampled_models(store, sweeps)

    def tables(self, found: pd.DataFrame) -> dict[str, str]:
        """Its table and what it comes to, by the names of their marks."""
        models = languages_with_outcomes(found)
        reading = "\n".join(f"- {text}" for text in read_sample(models))
        made = {"reading": reading, "counting": counting_table(models)}
        return {f"{self.name}: {name}": text for name, text in made.items()}


SAMPLES = (Sample("mlregtest_sample", "mlregtest.md"),)


def sampled_models(store: Store, sweeps: Sequence[str]) -> pd.DataFrame:
    """One row a finished run of these sweeps, in their order.

    Returns:
        `LANGUAGE`, counting (the language's level, or outside), model (its name), fresh (whether it
        is not of the first sweep), model_seed and epochs; tested and wrong strings, within and
        beyond trained lengths; accuracies on the `KINDS` of tests; and what the reader of bigrams
        reaches of random and of border strings.
    """
    found = runs_with_fresh(store, sweeps)
    found["model"] = list(map(name_model, found.to_dict("records")))
    read = shortcuts_by_drawn(store, found["config_id"].unique().tolist())
    read = read[read["reader"] == "bigrams"]
    for name, ways in (("random", RANDOM), ("border", BORDER)):
        sums = read[read["drawn"].isin(ways)].groupby("config_id")[["tested", "right"]].sum()
        found[f"bigrams_{name}"] = found["config_id"].map(sums["right"] / sums["tested"])
    shares = [*KINDS, "bigrams_random", "bigrams_border"]
    found[shares] = found[shares].astype(float).round(4)
    named = [*LANGUAGE, "counting", "model", "fresh", "model_seed", "epochs"]
    return found[[*named, *count_columns(), *shares]]


def languages_with_outcomes(found: pd.DataFrame) -> pd.DataFrame:
    """Models with their language, and with their outcomes."""
    return with_outcomes(found).assign(language=list(map(str, found[LANGUAGE].to_numpy())))


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


# What the sample comes to.


def read_sample(models: pd.DataFrame) -> list[str]:
    """Summarizes the sample for its languages and for fresh ones, as sentences in Markdown."""
    named = _read_languages(models[~models["fresh"]])
    fresh = _read_languages(models[models["fresh"]]) if models["fresh"].any() else {}
    return [
        f"**{title}**: {text}." + (f" *Fresh*: {fresh[what][1]}." if fresh else "")
        for what, (title, text) in named.items()
    ]


def _read_languages(models: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Returns titles and texts on the effects of the kind of test, the class, the network and the
    border.

    Tests are over languages: Friedman's if languages are the same, else Kruskal and Wallis's.
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
    return f"The {what} {matters}", f"{text} ({p_text(p_value)})"
