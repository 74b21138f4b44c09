"""Configurations: the results of their seeds, what theory predicts, and what was found out."""

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from dashboard import data, links
from dashboard.text import verbatim
from dashboard.views import shortcuts
from dashboard.words import names
from seqcls.interpretability.wording import percents
from seqcls.theory.table import NOT_KNOWN
from sweeps.api.reading import View
from sweeps.api.trials import Loop, TriedRemedy
from sweeps.statistics.intervals import wilson

MAX_LISTED = 12
"""Seeds that are named in a cell of the table."""


@data.shared
def table(view: View) -> pd.DataFrame:
    """One row a configuration that the view leaves, the worst first.

    Returns:
        config_id; seeds, unfinished, failed; failing, failing_share, failing_interval,
        failing_seeds; median_accuracy, interval, median_solved_length; false_positives,
        false_negatives; sweeps (names, joined), predicted, the columns of
        `shortcuts.best_readers` and `shortcuts.judge`, and the settings that differ. What no
        finished run tells is missing. Shares and medians are of all seeds in scope.
    """
    counts = data.configurations(view)
    summed = _with_medians(counts, data.medians(view, MAX_LISTED))
    summed = summed[summed["picked"] > 0].sort_values(
        ["failing_share", "median_accuracy"],
        ascending=[False, True],
        kind="stable",
        ignore_index=True,
    )
    config_ids = summed["config_id"].tolist()
    summed["sweeps"] = names.sweep_names(config_ids, data.memberships()).to_numpy()
    predicted = data.predictions(tuple(config_ids))
    summed["predicted"] = [predicted[config_id].verdict for config_id in config_ids]
    summed = summed.join(shortcuts.best_readers(config_ids))
    summed = summed.join(shortcuts.judge(summed))
    settings = names.settings_that_differ(config_ids).reset_index(drop=True)
    return summed.drop(columns=["picked", "low", "tested", "all_read"]).join(settings)


def _with_medians(counts: pd.DataFrame, medians: pd.DataFrame) -> pd.DataFrame:
    counts["failing_share"] = counts["failing"] / counts["seeds"].where(counts["seeds"] > 0)
    counts["failing_interval"] = [
        _wilson(int(failing), int(seeds)) if seeds else None
        for failing, seeds in zip(counts["failing"], counts["seeds"], strict=True)
    ]
    medians["interval"] = [
        None if pd.isna(low) else percents(low, high)
        for low, high in zip(medians["low"], medians["high"], strict=True)
    ]
    merged = counts.merge(medians.drop(columns="high"), how="left")
    merged["failing_seeds"] = [
        _list_seeds(seeds, failing) if failing else ""
        for seeds, failing in zip(merged["failing_seeds"], merged["failing"], strict=True)
    ]
    return merged


def _wilson(failing: int, seeds: int) -> str:
    share = wilson(failing, seeds)
    return percents(share.low, share.high, 0)


def _list_seeds(seeds: list[int], failing: int) -> str:
    """The first seeds that fail, of so many."""
    more = [f"and {failing - len(seeds)} more"] if failing > len(seeds) else []
    return ", ".join([*map(str, seeds), *more])


MOST_SAID = 12
"""Configurations that are named at most."""


def show_predictions(table: pd.DataFrame, named: Sequence[str]) -> None:
    """What is predicted of each configuration, and why; nothing where nothing is known.

    Args:
        table: a row a configuration: config_id, predicted, seeds, failing.
        named: what the configurations are called, row by row.
    """
    known = table.assign(configuration=named)[table["predicted"].to_numpy() != NOT_KNOWN]
    if known.empty:
        return
    predictions = data.predictions(tuple(known["config_id"]))
    against = known[(known["predicted"] == "cannot") & (known["failing"] < known["seeds"])]
    if len(against):
        st.caption(describe_contradiction(against["configuration"].tolist()))
    with st.expander("Predicted beside measured", key="predicted"):
        for row in known.head(MOST_SAID).to_dict("records"):
            said = predictions[row["config_id"]]
            right = row["seeds"] - row["failing"]
            st.markdown(
                f"{verbatim(row['configuration'])}: predicted **{said.verdict}**; measured: "
                f"{right:,} of {row['seeds']:,} do not fail."
            )
            source = f" {verbatim(said.source)}." if said.source else ""
            st.caption(f"{verbatim(said.sentence)}.{source}")
        if len(known) > MOST_SAID:
            st.caption(f"The first {MOST_SAID} of {len(known):,}; select others in the table.")


def describe_contradiction(named: Sequence[str]) -> str:
    """What to say where models do what is predicted to be impossible."""
    shown = "; ".join(map(verbatim, named[:MOST_SAID]))
    more = f"; and {len(named) - MOST_SAID:,} more" if len(named) > MOST_SAID else ""
    return (
        f"Predicted cannot, but not all models fail: {shown}{more}. Either the tested strings "
        "alone are solved, or a condition of the prediction does not hold."
    )


# What was found out so far: from failing seeds to their cause, to a remedy, to what came of it.

MOST_TOLD = 6
"""Cards."""

STORY_TITLE = "What was found out so far"


def show_story(failing: int, no_better: Mapping[int, str]) -> None:
    """Draws a card for each loop, or says what to do next.

    Args:
        failing: how many models fail.
        no_better: what is said of the configurations that are no better than a shortcut reader.
    """
    loops = data.loops()
    if not loops:
        if failing:
            with st.container(horizontal=True, vertical_alignment="center", key="next_step"):
                st.caption("It isn't known yet why these models fail.", width="content")
                st.page_link(links.FAILING_PAGE, label="Find the causes", icon=":material/search:")
        return
    shown = loops[:MOST_TOLD]
    named = _names(shown)
    with st.expander(f"{STORY_TITLE} ({len(loops)})", expanded=True):
        for loop in shown:
            with st.container(border=True):
                _card(loop, named, no_better.get(loop.config_id))
        if len(loops) > MOST_TOLD:
            st.caption(f"The {MOST_TOLD} that mended most, of {len(loops)}.")


def _names(loops: tuple[Loop, ...]) -> dict[int, str]:
    ids = {loop.config_id: None for loop in loops}
    return names.configuration_names(list(ids))


def _card(loop: Loop, named: dict[int, str], no_better: str | None) -> None:
    small = [named[loop.config_id], *([] if no_better is None else [f"{no_better}."])]
    told = [story_sentence(loop), *(f":small[{verbatim(text)}]" for text in small)]
    st.markdown("  \n".join(told))
    sweeps = _sweeps(loop.config_id)
    number = len(loop.run_ids)
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
            links.to_compare({}, sweeps=[*sweeps, *_sweeps(loop.best.config_id)])


def story_sentence(loop: Loop) -> str:
    """From the seeds to what came of it, as Markdown."""
    seeds = f"{len(loop.run_ids)} of {loop.finished} seeds"
    cause = f"*{verbatim(loop.mechanism)}* in {seeds}"
    if loop.best is not None:
        return f"{cause} → {_format_changes(loop.best)} → **{_outcome(loop.best)}**"
    if loop.untried:
        text = verbatim(loop.untried[0].text)
        return f"{cause} → try {text}: not tried yet"
    return f"{cause} → no known remedy applies"


def _format_changes(tried: TriedRemedy) -> str:
    changes = tried.suggestion.fields.items()
    return ", ".join(verbatim(f"{name}={value}") for name, value in changes)


def _outcome(tried: TriedRemedy) -> str:
    of = "" if tried.mended in (0, tried.seeds) else f" of {tried.seeds}"
    left_out = f", {tried.unlearned} not learned" if tried.unlearned else ""
    return f"{tried.mended}{of} mended, {tried.broken} broken{left_out}"


def _sweeps(config_id: int) -> list[str]:
    members = data.memberships()
    return [str(name) for name in members.loc[members["config_id"] == config_id, "sweep"]][:1]
