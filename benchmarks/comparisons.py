"""Published results and theorems, compared with the same networks trained here."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from benchmarks.tables import (
    WithFresh,
    accuracy,
    count_columns,
    counted_in,
    markdown,
    own_seeds,
    range_name,
    range_title,
    runs_with_fresh,
    with_outcomes,
)
from seqcls.interpretability.wording import percent
from sweeps.results import differing_fields
from sweeps.store.database import Store


@dataclass(frozen=True)
class Comparison(WithFresh):
    """A published result or theorem, and the sweep that tests it; fresh are model seeds."""

    page: ClassVar[str] = "known_results.md"
    ranges: tuple[tuple[int, int], ...]
    """Lengths beyond the trained ones that are reported, in tokens."""
    names: tuple[str, ...] = ()
    """Names of its configurations, in their order; by default the fields that differ."""
    named: str = "language"
    """The column of those names."""
    row_beginning: Callable[[Mapping[Hashable, Any]], Mapping[str, str]] | None = None
    """Returns the first cells of a table's row by column, published results included, given its
    fields and the prediction of theory; by default names or fields that differ."""

    def models(self, store: Store, sweeps: Sequence[str]) -> pd.DataFrame:
        """The rows of its CSV file, of those of its sweeps that a database holds."""
        with_theory = self.row_beginning is not None
        return compared_models(store, sweeps, self.ranges, predicted=with_theory)

    def tables(self, found: pd.DataFrame) -> dict[str, str]:
        """Its table, by the name of its mark."""
        return {self.name: comparison_table(self, found)}


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
"""By pattern, the name of a language of `known/next_symbols` and the result of Huang et al. (2025).
Brackets of a depth have no pattern, and generalize."""


def tell_language(row: Mapping[Hashable, Any]) -> dict[str, str]:
    """Returns the first cells of a language's row in the table of `known/next_symbols`."""
    if pd.isna(row["pattern"]) or not row["pattern"]:
        name, published = f"brackets, at most {row['max_depth']:.0f} open", GENERALIZES
    else:
        name, published = NEXT_SYMBOLS[row["pattern"]]
    return {"language": name, "published": published, "theory here": row["predicted"]}


def tell_depth(row: Mapping[Hashable, Any]) -> dict[str, str]:
    """Returns the first cells of a row in the table of `known/depth_hierarchy`: a model of d blocks
    generalizes to d + 2 blocks of letters (Yang, Cadilhac & Chiang 2025).
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
        predicted, if requested;
        tested and wrong strings, within (of trained lengths), beyond, and of each range of longer
        lengths; solved_length.
    """
    found = counted_in(store, runs_with_fresh(store, sweeps), ranges)
    theory = ["predicted"] if predicted else []
    named = [*differing_fields(found), "fresh", "model_seed", "epochs", *theory]
    return found[[*named, *count_columns(ranges), "solved_length"]]


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
    # A configuration's fresh seeds follow its others, regardless of their order in the sweep.
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
    return markdown([heads, *rows])


def outcome_cells(own: pd.DataFrame, ranges: Sequence[tuple[int, int]]) -> list[str]:
    """Returns the numbers of models that learned and that generalize, and the accuracies beyond of
    those that learned.
    """
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
