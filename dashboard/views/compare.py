"""Which configurations generalize to long strings, and which of their seeds fail."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from dashboard import data, filters
from dashboard.charts.accuracy_by_length import accuracy_by_length
from dashboard.charts.colors import OKABE_ITO
from seqcls.config import RunConfig
from seqcls.errors import SeqclsError
from sweeps import summaries

# Columns that are shown only where they say something.
RARE = ("unfinished", "failed")

TABLE_COLUMNS = {
    "sweeps": st.column_config.TextColumn("Sweeps", width=210, pinned=True),
    "seeds": st.column_config.NumberColumn("Seeds", help="Models that are trained and tested."),
    "unfinished": st.column_config.NumberColumn("Unfinished", help="Queued or in training."),
    "failed": st.column_config.NumberColumn(
        "Untrained", help="Models whose training failed; they are in no average."
    ),
    "failing_seeds": st.column_config.NumberColumn(
        "Failing", help="Models that misclassify at least one test string."
    ),
    "median_accuracy": st.column_config.NumberColumn(
        "Accuracy",
        help="Share of test strings classified rightly, the median over seeds.",
        format="percent",
    ),
    "median_solved_length": st.column_config.NumberColumn(
        "Solved length",
        help="Letters up to which a model misclassified no test string, the median over seeds.",
        format="%.0f",
    ),
    "false_positives": st.column_config.NumberColumn(
        "False positives", help="Test strings said to be in the language that are not; all seeds."
    ),
    "false_negatives": st.column_config.NumberColumn(
        "False negatives", help="Test strings said not to be in the language that are; all seeds."
    ),
}


def show() -> None:
    st.header("Which models generalize to longer strings?")
    try:
        chosen = filters.current()
        # The table sums up all seeds, failing or not; else every configuration would fail wholly.
        runs = data.runs(replace(chosen, failing=False))
        if not _glance(runs):
            return
        configurations = _table(runs, chosen.failing)
        if configurations is None:
            return
        _accuracy(runs, configurations, chosen.failing)
        _errors(runs, configurations)
    except SeqclsError as error:
        data.explain(error)


def _glance(runs: pd.DataFrame) -> bool:
    """Numbers of runs; False where there is nothing more to show."""
    done = runs[runs["state"] == "done"]
    if runs.empty:
        st.info("No run matches the filters. Clear them in the sidebar, or choose other seeds.")
        return False
    failing = int((done["errors"] > 0).sum())
    states = runs["state"].value_counts()
    columns = st.columns(4)
    columns[0].metric("Models trained and tested", len(done))
    columns[1].metric(
        "Failing models",
        f"{failing} ({failing / len(done):.0%})" if len(done) else "none yet",
        help="Models that misclassify at least one of their test strings.",
    )
    columns[2].metric("Queued or in training", states.get("queued", 0) + states.get("running", 0))
    columns[3].metric("Training failed", states.get("failed", 0))
    _training_failures(runs)
    if done.empty and "queued" not in states and "running" not in states:
        st.info("No model came out of these runs: training failed for all of them.")
    elif done.empty:
        st.info("None of these runs is finished yet, so there is nothing to compare. Train them:")
        st.code("seqcls sweep FILE.toml", language="bash")
    return not done.empty


def _training_failures(runs: pd.DataFrame) -> None:
    failed = runs[runs["state"] == "failed"]
    if failed.empty:
        return
    with st.expander(f"Why training failed ({len(failed)})"):
        shown = failed[["id", "sweeps", "model_seed", "error"]].copy()
        shown["sweeps"] = shown["sweeps"].map(", ".join)
        st.dataframe(shown, hide_index=True)


def _table(runs: pd.DataFrame, only_failing: bool) -> pd.DataFrame | None:
    """The table of configurations; returns the rows to draw, None where there are none."""
    table = summaries.by_configuration(runs).sort_values(
        ["failing_share", "median_accuracy"],
        ascending=[False, True],
        kind="stable",
        ignore_index=True,
    )
    if only_failing:
        table = table[table["failing_seeds"].fillna(0) > 0].reset_index(drop=True)
        if table.empty:
            st.success("None of these models misclassifies a test string.")
            return None
    st.subheader("Configurations")
    st.caption(
        "One row a configuration, the worst first; of its settings those that differ are shown. "
        "Accuracy and solved length are medians over its seeds, false positives and negatives "
        "sums. Select rows to draw only those."
    )
    shown = table.drop(
        columns=["config_id", "failing_share", *(x for x in RARE if not table[x].any())]
    )
    if shown["sweeps"].nunique() < len(shown):
        # Sweeps do not tell these rows apart; their settings do, and so come first.
        settings = [name for name in RunConfig.model_fields if name in shown]
        shown = shown[["sweeps", *settings, *shown.columns.drop(["sweeps", *settings])]]
        if shown["sweeps"].nunique() == 1:
            shown = shown.drop(columns="sweeps")
    selected = st.dataframe(
        shown,
        column_config=TABLE_COLUMNS,
        hide_index=True,
        on_select="rerun",
        selection_mode="multi-row",
        # Rows are selected by their place: other rows are another table, with nothing selected.
        key=f"configurations {table['config_id'].tolist()}",
    )
    rows = [row for row in selected["selection"]["rows"] if row < len(table)]
    chosen = table.iloc[rows] if rows else table[table["seeds"] > 0]
    if len(chosen) > len(OKABE_ITO):
        st.caption(
            f"Drawn are the first {len(OKABE_ITO)} of {len(chosen)} configurations: more colors "
            "could not be told apart. Select others to see them."
        )
    return chosen.head(len(OKABE_ITO))


def _accuracy(runs: pd.DataFrame, configurations: pd.DataFrame, only_failing: bool) -> None:
    st.subheader("Accuracy by string length")
    width = st.segmented_control(
        "Lengths in one point",
        [1, 5, 10, 20],
        default=10,
        required=True,
        key="width",
        bind="query-params",
        help="Few test strings have any one length; together they make a steadier line.",
    )
    done = runs[(runs["state"] == "done") & runs["config_id"].isin(configurations["config_id"])]
    if done.empty:
        st.info("None of the selected configurations has a model that is trained and tested.")
        return
    scores = data.length_scores(tuple(done["id"]))
    points = summaries.accuracy_by_length(scores, int(width))
    points["lengths"] = [
        f"{first}" if first == last else f"{first} to {last}"
        for first, last in zip(points["first_length"], points["last_length"], strict=True)
    ]
    names = _names(configurations)
    points = points.merge(
        done[["id", "config_id", "model_seed", "errors"]], left_on="run_id", right_on="id"
    )
    points["configuration"] = points["config_id"].map(names)
    points["accuracy"] = points["accuracy"].astype(float)
    points["configuration"] = pd.Categorical(points["configuration"], list(names.values()))
    medians = (
        points.groupby(["configuration", "middle", "lengths"], observed=True)["accuracy"]
        .agg(["median", "size"])
        .reset_index()
        .rename(columns={"median": "accuracy", "size": "seeds"})
    )
    drawn = points[points["errors"] > 0] if only_failing else points
    st.altair_chart(accuracy_by_length(drawn, medians, _limits(done)), width="stretch")
    st.caption(
        "Each thin line is one model, each thick line the median over all seeds of its "
        "configuration. Point at a line for its seed and exact numbers."
    )


def _names(configurations: pd.DataFrame) -> dict[int, str]:
    """What each configuration is called: its sweeps, with the settings that tell it from others."""
    names: dict[int, str] = {}
    settings = [name for name in RunConfig.model_fields if name in configurations]
    for row in configurations.to_dict("records"):
        alike = configurations[configurations["sweeps"] == row["sweeps"]]
        own = [f"{x}={row[x]}" for x in settings if alike[x].nunique() > 1]
        name = ", ".join([row["sweeps"] or f"configuration {row['config_id']}", *own])
        names[row["config_id"]] = name if name not in names.values() else f"{name} [{len(names)}]"
    return names


def _limits(runs: pd.DataFrame) -> pd.DataFrame:
    """Where training and validation lengths ended, one line a length."""
    known = data.configs()
    configs = [known[config_id] for config_id in runs["config_id"].unique()]
    ends = {
        "training": {config.longest_train_length for config in configs},
        "validation": {config.validation_max_length for config in configs},
    }
    return pd.DataFrame(
        [
            # One label a kind, at its last line: labels side by side would cover each other.
            {"length": length, "label": f"end of {part}" if length == max(lengths) else ""}
            for part, lengths in ends.items()
            for length in lengths
        ]
    )


def _errors(runs: pd.DataFrame, configurations: pd.DataFrame) -> None:
    failing = runs[(runs["errors"] > 0) & runs["config_id"].isin(configurations["config_id"])]
    if failing.empty:
        return
    st.subheader("Misclassified strings")
    names = _names(configurations)
    columns = failing[["id", "config_id", "model_seed", "errors"]].astype(int)
    labels = {
        run_id: f"{names[config_id]}, seed {seed}: {errors} misclassified"
        for run_id, config_id, seed, errors in columns.to_numpy().tolist()
    }
    run_id = st.selectbox("Failing model", labels, format_func=labels.__getitem__, key="run")
    errors = data.string_errors(run_id)
    errors.insert(1, "kind", errors["label"].map({0: "false positive", 1: "false negative"}))
    st.dataframe(
        errors,
        hide_index=True,
        column_config={
            "string": "String",
            "kind": "Kind",
            "length": st.column_config.NumberColumn("Length", help="Letters"),
            "label": st.column_config.NumberColumn("Label", help="1 means in the language."),
            "logit": st.column_config.NumberColumn(
                "Logit", help="Above 0 the model says 1.", format="%.4f"
            ),
            "occurrences": st.column_config.NumberColumn(
                "Occurrences", help="How often the string is in the test set."
            ),
        },
    )


show()
