"""Sections of page Sweeps: all sweeps, the losses of one, its protocol."""

import altair as alt
import pandas as pd

from dashboard import marks
from dashboard.section import Panel, Section
from dashboard.style import SMALL
from dashboard.words.columns import Column, add_columns
from dashboard.words.sentences import add_sentences, no_sweep, say
from sweeps.api import Store, watching
from sweeps.api.watching import SweepState

add_columns(
    {
        "title": Column("Title", width=200),
        "tags": Column("Tags", width=110),
        "result": Column("What came of it", width=390),
        "submitted": Column("Submitted", help="The day, in UTC.", width=95),
        "training_failed": Column("Training failed", "whole", width=110),
        "why_failed": Column("Reason", width=480),
        "attempt": Column("Attempt", "whole", width=75),
        "run_id": Column("Run", "whole", width=70),
        "at": Column("When (UTC)", width=170),
        "now": Column("Now", help="The model's current state.", width=90),
    }
)
add_sentences(
    {
        "nothing_trained": "Nothing is in training.",
        "trained_now": "{n} {n:sweep is|sweeps are} in training.",
        "select_sweep": "Select a sweep to see its details, and to train more of it.",
        "all_archived": "All sweeps are archived.",
        "losses": "Each line is a model: solid where it is finished, dashed in training, dotted "
        "where its worker died, until another begins it anew.",
        "newest": " The newest {n} models are shown.",
    }
)

MOST_CONFIGURATIONS = 6
"""Panels of losses."""

MOST_MODELS = 96
"""Lines of losses."""

MOST_FAILURES = 200
"""Failed attempts that are listed."""

STATES = {"finished": [1, 0], "in training": [5, 3], "worker died": [1, 3]}
"""Dashes of a model's line."""


def sweeps(store: Store, archived: bool = False) -> Section:
    """Every sweep, the newest first, and what came of it.

    Args:
        archived: whether those that are archived are listed, too.
    """
    table = watching.sweeps(store).rename(columns={"failed": "training_failed"})
    if table.empty:
        return Section("", (no_sweep(),))
    if not archived:
        table = table[~table["archived"]].reset_index(drop=True)
    if table.empty:
        return Section("", (say("all_archived"),))
    going_on = int((table["state"] == SweepState.RUNNING).sum())
    now = say("trained_now", n=going_on) if going_on else say("nothing_trained")
    shown = ["sweep", "result", "models", "training_failed", "title", "tags", "submitted"]
    # What no sweep has, has no column.
    absent = [x for x in ("title", "tags", "training_failed") if not table[x].astype(bool).any()]
    failed = table["training_failed"]
    table = table.assign(training_failed=failed.where(failed > 0))
    table = table[[x for x in shown if x not in absent]]
    return Section("", (now, say("select_sweep")), table, opens="sweep")


def failures(store: Store, sweep_id: int) -> Section:
    """Every attempt to train a model of a sweep that failed, the latest first."""
    found = watching.failures(store, sweep_id, MOST_FAILURES)
    table = found.rename(columns={"state": "now", "model_seed": "seed", "reason": "why_failed"})
    return Section("What failed in training", table=table if len(table) else None)


def losses(store: Store, sweep_id: int, models: int) -> Section:
    """The validation losses of a sweep's newest models by epoch, a panel a configuration.

    Args:
        models: how many the sweep has that are finished or in training.
    """
    frame = watching.losses(store, sweep_id, MOST_CONFIGURATIONS, MOST_MODELS)
    # A logarithm needs more than zero.
    frame = frame[frame["loss"] > 0]
    if frame.empty:
        return Section("Validation loss by epoch")
    last, least, most = frame["epoch"].max(), frame["loss"].min(), frame["loss"].max()
    panels = tuple(
        Panel.of(_curves(own, last, least, most), str(name))
        for name, own in frame.groupby("configuration", sort=False)
    )
    shown = frame["run_id"].nunique()
    caption = say("losses") + say("newest", n=shown) * (models > MOST_MODELS)
    return Section("Validation loss by epoch", panels=panels, caption=caption)


def _curves(frame: pd.DataFrame, last: int, least: float, most: float) -> alt.Chart:
    """Losses of models of one configuration: run_id, model_seed, state, epoch, loss."""
    powers = [10.0**power for power in range(-8, 4) if least <= 10.0**power <= most]
    # Losses between two powers of ten would leave the axis without a number.
    axis = alt.Axis(domain=False, ticks=False, format=".2g", values=powers or [least, most])
    lines = alt.Chart(frame.drop(columns=["configuration", "config_id"]), height=SMALL).mark_line(
        color="~accent", strokeWidth=1.2, opacity=0.75, point={"size": 8, "color": "~accent"}
    )
    chart: alt.Chart = lines.encode(
        marks.x_axis("epoch:Q", "epoch", domain=[0, int(last)]),
        alt.Y(
            "loss:Q",
            title="nats per string",
            axis=axis,
            scale=alt.Scale(type="log", domain=[least, most]),
        ),
        detail="run_id:N",
        strokeDash=alt.StrokeDash(
            "state:N",
            legend=None,
            scale=alt.Scale(domain=[*STATES], range=[*STATES.values()]),
        ),
        tooltip=marks.tips(
            model_seed="Seed:", epoch="Epoch:", loss="Nats per string:.3g", state="Model"
        ),
    )
    return chart


def protocol(store: Store, sweep: str, number: int) -> tuple[Section, list[str]]:
    """The protocol of one configuration of a sweep, in words; and the names of all."""
    sentences, names = watching.protocol_of_sweep(store, sweep, number)
    return Section("", tuple(sentences)), names
