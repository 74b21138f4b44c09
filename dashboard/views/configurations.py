"""Configurations: the results of their seeds, what theory predicts, and what was found out."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import data, links
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
from seqcls.interpretability.mechanisms import NOT_LEARNED
from seqcls.interpretability.wording import percents
from seqcls.theory.table import NOT_KNOWN
from sweeps.api.old_pages.judging_remedies import Loop
from sweeps.api.old_pages.reading import Selection
from sweeps.api.trials import RemedyTrial, sentences, why_left_out
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


# Findings so far: from failing seeds to their cause, to a remedy, to what came of it.

MOST_TOLD = 6
"""Cards."""

STORY_TITLE = "Findings so far"


def show_story(view: Selection, may_be_explained: bool, no_better: Mapping[int, str]) -> None:
    """Draws a card for each loop, folded to a line, or says what to do next.

    Args:
        view: which models.
        may_be_explained: whether some of them fail by causes that may be found.
        no_better: what is said of the configurations that are no better than a shortcut reader.
    """
    loops = data.loops(view)
    if not loops:
        if may_be_explained:
            with st.container(horizontal=True, vertical_alignment="center", key="next_step"):
                st.caption("It isn't known yet why these models fail.", width="content")
                st.page_link(links.FAILING_PAGE, label="Find the causes", icon=":material/search:")
        return
    named = names.configuration_names([loop.config_id for loop in loops])
    more = f": the {MOST_TOLD} that mended most, of {len(loops)}" if len(loops) > MOST_TOLD else ""
    st.caption(f"{STORY_TITLE}{more}")
    with st.container(gap="xxsmall", key="story"):
        for loop in loops[:MOST_TOLD]:
            name = verbatim(named[loop.config_id])
            with st.expander(f":gray[{name}] · {story_sentence(loop)}"):
                _card(loop, name, no_better.get(loop.config_id))


def _card(loop: Loop, name: str, no_better: str | None) -> None:
    small = [name, *([] if no_better is None else [verbatim(f"{no_better}.")])]
    st.markdown("  \n".join([story_sentence(loop), *(f":small[{text}]" for text in small)]))
    sweeps, number = data.sweeps_of_run(loop.run_ids[0])[:1], len(loop.run_ids)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.page_link(
            links.FAILING_PAGE,
            label=f"{number} failing seed{'' if number == 1 else 's'}",
            icon=":material/error:",
            query_params={"sweep": sweeps, "mechanism": loop.mechanism},
            help="The seeds that fail by this cause.",
        )
        links.to_model(loop.run_ids[0], "Why")
        if loop.best is None:
            return
        links.to_model(loop.best.run_ids[0], "With the remedy")
        if st.button("Compare", key=f"loop {loop.config_id} {loop.mechanism}", type="tertiary"):
            tried = data.sweeps_of_run(loop.best.run_ids[0])[:1]
            links.to_compare({}, sweeps=[*sweeps, *tried])


def story_sentence(loop: Loop) -> str:
    """From the seeds to what came of it, as Markdown."""
    seeds = f"{len(loop.run_ids)} of {loop.finished} seeds"
    if loop.explained < loop.failing:
        seeds = (
            f"{len(loop.run_ids)} of {loop.explained} failing seeds whose causes are known, of "
            f"{loop.failing} that fail"
        )
    cause = f"*{verbatim(loop.mechanism)}* in {seeds}"
    if loop.best is not None:
        return f"{cause} → {_format_changes(loop.best)} → **{_outcome(loop.best)}**"
    if loop.trials:
        said = verbatim("; ".join(sentences(loop.trials[0])))
        return f"{cause} → try {verbatim(loop.trials[0].suggestion.text)}: {said}"
    return f"{cause} → no known remedy applies"


def _format_changes(tried: RemedyTrial) -> str:
    changes = tried.suggestion.fields.items()
    return ", ".join(verbatim(f"{name}={value}") for name, value in changes)


def _outcome(tried: RemedyTrial) -> str:
    mended, seeds = sum(tried.results.values()), len(tried.results)
    mechanism = tried.suggestion.mechanism
    why = why_left_out(mechanism)
    left_out = f", {tried.left_out[0]} {why}" if tried.left_out[0] else ""
    if tried.comparison is not None and not tried.comparison.paired:
        lack = "have not learned" if mechanism == NOT_LEARNED else "fail"
        return f"{seeds - mended} of {seeds} seeds {lack} with it{left_out}"
    of = "" if mended in (0, seeds) else f" of {seeds}"
    return f"{mended}{of} mended, {tried.broken} broken{left_out}"
