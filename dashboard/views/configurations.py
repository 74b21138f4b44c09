"""Configurations: the results of their seeds, what theory predicts, and what was found out."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import data
from dashboard.charts.pointing import Named, chart_with_names, naming_tooltips
from dashboard.charts.scales import (
    model_outcome_color,
    model_outcome_dash,
    rows,
    title_params,
)
from dashboard.text import verbatim
from dashboard.views import seeds, shortcuts
from dashboard.words import names
from seqcls.interpretability.wording import percents
from seqcls.theory.table import NOT_KNOWN
from sweeps.api.old_pages.reading import Selection
from sweeps.results import Outcome, ProofResult, why_not_known
from sweeps.statistics.intervals import wilson
from sweeps.statistics.populations import CLASS

MAX_LISTED = 100
"""Seeds that are named in a cell of the table."""

SHARES = (
    ("failing", "seeds", "failing_share"),
    ("learned", "judged", "learned_share"),
    ("generalize", "judged_beyond", "generalizing_share"),
)
"""Columns of seeds, of those that they are a share of, and of the share."""


@data.shared
def table(view: Selection) -> pd.DataFrame:
    """One row a configuration that the view leaves, the worst first: by the share that
    generalizes, then by that which learned. Where none learned, or that is not known, it is last.

    Returns:
        config_id; seeds, unfinished, failed; judged, learned, judged_beyond, generalize (seeds,
        as `sweeps.store.reads.overview.configurations` counts them), learned_share,
        generalizing_share and generalizing_interval (of those that learned), learned_of and
        generalize_of (as text, such as 3 of 4), beyond_seeds and unlearned_seeds (that fail beyond
        trained lengths, that have not learned); failing, failing_share, failing_interval,
        failing_seeds; median_accuracy, interval, median_solved_length (not of models that have not
        learned); every_length (what proofs found, as text; empty without any); false_positives,
        false_negatives; sweeps (names, joined), predicted, the columns of
        `shortcuts.best_readers`, `shortcuts.border_medians` and `shortcuts.judge`, and the settings
        that differ. What no finished run tells is missing. Shares and medians are of all seeds in
        scope.
    """
    counts = data.configurations(view)
    summed = _with_medians(counts, data.medians(view, MAX_LISTED))
    summed = summed[summed["picked"] > 0].sort_values(
        ["generalizing_share", "learned_share", "failing_share", "median_accuracy"],
        ascending=[True, True, False, True],
        kind="stable",
        ignore_index=True,
    )
    summed["every_length"] = [
        ", ".join(
            f"{number:,} {said}" for number, said in zip(row, ProofResult, strict=True) if number
        )
        for row in summed[["proved", "refuted", "undecided"]].to_numpy().tolist()
    ]
    config_ids = summed["config_id"].tolist()
    summed["sweeps"] = names.sweep_names(config_ids, data.memberships()).to_numpy()
    predicted = data.predictions(tuple(config_ids))
    summed["predicted"] = [predicted[config_id].verdict for config_id in config_ids]
    summed = summed.join(shortcuts.best_readers(config_ids))
    summed = summed.join(shortcuts.border_medians(view), on="config_id")
    summed = summed.join(shortcuts.judge(summed))
    settings = names.settings_that_differ(config_ids)
    if CLASS not in settings and data.classes()[config_ids].nunique() > 1:
        settings = settings.assign(**{CLASS: data.classes()})
    # The settings come in the order of the ids, the rows by what became of their models.
    settings = settings.loc[config_ids].reset_index(drop=True)
    return summed.drop(columns=["picked", "low", "tested", "all_read"]).join(settings)


def _with_medians(counts: pd.DataFrame, medians: pd.DataFrame) -> pd.DataFrame:
    for part, of, share in SHARES:
        counts[share] = counts[part] / counts[of].where(counts[of] > 0)
    for part, of, interval in (
        ("failing", "seeds", "failing_interval"),
        ("generalize", "judged_beyond", "generalizing_interval"),
    ):
        pairs = zip(counts[part].tolist(), counts[of].tolist(), strict=True)
        counts[interval] = [_wilson(few, n) if n else None for few, n in pairs]
    counts["learned_of"] = _describe_shares(counts["learned"], counts["judged"])
    counts["generalize_of"] = _describe_shares(counts["generalize"], counts["judged_beyond"])
    medians["interval"] = [
        None if pd.isna(low) else percents(low, high)
        for low, high in zip(medians["low"], medians["high"], strict=True)
    ]
    merged = counts.merge(medians.drop(columns="high"), how="left")
    for listed, number in (
        ("failing_seeds", merged["failing"]),
        ("beyond_seeds", merged["judged_beyond"] - merged["generalize"]),
        ("unlearned_seeds", merged["judged"] - merged["learned"]),
    ):
        merged[listed] = [
            _list_seeds(first, few) if few else ""
            for first, few in zip(merged[listed], number, strict=True)
        ]
    return merged


def _wilson(few: int, seeds: int) -> str:
    share = wilson(few, seeds)
    return percents(share.low, share.high, 0)


def _describe_shares(few: "pd.Series[int]", of: "pd.Series[int]") -> list[str | None]:
    """So many of so many; missing where there is none to be one of them."""
    pairs = zip(few.tolist(), of.tolist(), strict=True)
    return [f"{part} of {whole}" if whole else None for part, whole in pairs]


def _list_seeds(seeds: list[int], number: int) -> str:
    """The first seeds of so many; three in a row and more as specifications write them: `0..4`."""
    spans: list[list[int]] = []
    for seed in seeds:
        if spans and seed == spans[-1][-1] + 1:
            spans[-1].append(seed)
        else:
            spans.append([seed])
    said = [f"{x[0]}..{x[-1]}" if len(x) > 2 else ", ".join(map(str, x)) for x in spans]
    more = [f"and {number - len(seeds)} more"] if number > len(seeds) else []
    return ", ".join([*said, *more])


def count_outcomes(table: pd.DataFrame) -> pd.DataFrame:
    """How many seeds of each row came to what: a column for each `Outcome`, in their order.

    Args:
        table: seeds, judged, learned, judged_beyond, generalize and proved, a row a configuration
            or more.
    """
    return pd.DataFrame(
        {
            Outcome.AT_EVERY_LENGTH: table["proved"],
            Outcome.GENERALIZES: table["generalize"] - table["proved"],
            Outcome.FAILS_BEYOND: table["judged_beyond"] - table["generalize"],
            Outcome.NOT_LEARNED: table["judged"] - table["learned"],
            Outcome.NOT_KNOWN: (
                table["seeds"] - table["judged"] + table["learned"] - table["judged_beyond"]
            ),
        }
    )


BAR, BAR_ROW, BARS_FURNITURE = 18, 26, 110
"""Pixels of a bar, of its row, and of what stands above and below all rows."""


def outcome_bars(table: pd.DataFrame, named: Named) -> alt.Chart:
    """A bar for each configuration: the shares of its tested seeds that came to each outcome.

    Args:
        table: as `count_outcomes` takes it.
        named: what the configurations are called, row by row.
    """
    counts = count_outcomes(table).set_axis(list(named))
    ends = counts.div(table["seeds"].to_numpy(), axis=0).cumsum(axis=1)
    frame = pd.DataFrame(
        {
            "configuration": [name for name in named for _ in Outcome],
            "outcome": [outcome.value for _ in named for outcome in Outcome],
            "models": counts.to_numpy().ravel(),
            "start": ends.shift(axis=1, fill_value=0.0).to_numpy().ravel(),
            "end": ends.to_numpy().ravel(),
            "of": table["seeds"].repeat(len(Outcome)).to_numpy(),
        }
    )
    frame = frame[frame["models"] > 0].assign(share=frame["models"] / frame["of"])
    x = alt.X(
        "start:Q",
        title="Share of tested models",
        axis=alt.Axis(format="%"),
        scale=alt.Scale(domain=[0, 1]),
    )
    # Thick rules: the dashes of a bar would run around it.
    bars = chart_with_names(frame, named).mark_rule(strokeWidth=BAR, strokeCap="butt")
    return bars.encode(
        x,
        alt.X2("end:Q"),
        rows(named, grid=False),
        model_outcome_color(values=seeds.outcomes_among(frame["outcome"])),
        model_outcome_dash(),
        tooltip=[
            *naming_tooltips(named),
            alt.Tooltip("outcome:N", title="Outcome"),
            alt.Tooltip("models:Q", title="Models"),
            alt.Tooltip("of:Q", title="Of tested models"),
            alt.Tooltip("share:Q", title="Share", format=".0%"),
        ],
    ).properties(
        height=BAR_ROW * len(named) + BARS_FURNITURE,
        title=title_params(
            "Do they fail to learn, or to generalize?",
            subtitle="What the seeds of each configuration came to. Of models that have not "
            "learned the trained lengths, longer strings say nothing.",
        ),
    )


def describe_unknown(table: pd.DataFrame, models: pd.DataFrame) -> str:
    """Why it is not known what some models came to; empty where it is known of all.

    Args:
        table: a row a configuration: config_id and as `count_outcomes` takes it.
        models: tested ones: run_id, config_id and outcome.
    """
    known = models[models["config_id"].isin(table["config_id"])]
    unknown = known[known["outcome"] == Outcome.NOT_KNOWN]
    first = unknown.drop_duplicates("config_id")
    configs = data.some_configs(tuple(first["config_id"]))
    tested = [data.model(int(run_id))["tested_within"].iloc[0] for run_id in first["run_id"]]
    reasons = dict.fromkeys(
        why_not_known(
            None if pd.isna(strings) else int(strings),
            knows_trained_lengths=configs[config_id].knows_trained_lengths,
        )
        for strings, config_id in zip(tested, first["config_id"], strict=True)
    )
    number = len(unknown)
    of = "1 model" if number == 1 else f"each of {number:,} models"
    return f"Not known of {of}: {'; or '.join(reasons)}." if number else ""


MOST_SAID = 12
"""Configurations that are named at most."""


def show_predictions(table: pd.DataFrame, named: Sequence[str]) -> None:
    """What is predicted of each configuration, and why; nothing where nothing is known.

    Args:
        table: as `table` gives it.
        named: what the configurations are called, row by row.
    """
    known = table.assign(configuration=named)[table["predicted"].to_numpy() != NOT_KNOWN]
    if known.empty:
        return
    predictions = data.predictions(tuple(known["config_id"]))
    against = known[(known["predicted"] == "cannot") & (known["failing"] < known["seeds"])]
    if len(against):
        st.caption(describe_contradiction(against["configuration"].tolist()))
    with st.expander("Predictions beside results", key="predicted"):
        for row in known.head(MOST_SAID).to_dict("records"):
            said = predictions[row["config_id"]]
            st.markdown(
                f"{verbatim(row['configuration'])}: predicted **{said.verdict}**; tested: "
                f"{_describe_measured(row)}."
            )
            source = f" {verbatim(said.source)}." if said.source else ""
            st.caption(f"{verbatim(said.sentence)}.{source}")
        if len(known) > MOST_SAID:
            st.caption(f"The first {MOST_SAID} of {len(known):,}; select others in the table.")


def _describe_measured(row: Mapping[Hashable, Any]) -> str:
    """What a configuration's seeds came to, in words."""
    if not row["judged"]:
        verb = "fails" if row["failing"] == 1 else "fail"
        return f"{row['failing']:,} of {row['seeds']:,} {verb}"
    learned = f"{row['learned']:,} of {row['judged']:,} learned"
    if not row["judged_beyond"]:
        return learned
    verb = "generalizes" if row["generalize"] == 1 else "generalize"
    if row["judged_beyond"] == 1:
        return f"{learned}, and it {verb if row['generalize'] else 'does not generalize'}"
    return f"{learned}, and {row['generalize']:,} of these {row['judged_beyond']:,} {verb}"


def describe_contradiction(named: Sequence[str]) -> str:
    """What to say where models do what is predicted to be impossible."""
    shown = "; ".join(map(verbatim, named[:MOST_SAID]))
    more = f"; and {len(named) - MOST_SAID:,} more" if len(named) > MOST_SAID else ""
    return (
        f"Predicted cannot, but not all models fail: {shown}{more}. Either the tested strings "
        "alone are solved, or a condition of the prediction does not hold."
    )
