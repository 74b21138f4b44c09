"""Training and validation loss by epoch."""

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import GREY, INK, OKABE_ITO
from dashboard.charts.style.encodings import SIDE, Drawing, reserved
from dashboard.charts.style.scales import class_color

PARTS = {"training": OKABE_ITO[0], "validation": OKABE_ITO[1]}
HEIGHT = 300


def losses(frame: pd.DataFrame, kept_epoch: int | None, shown_epoch: int) -> Drawing:
    """Loss on a log scale, with rules at the kept epoch and at the one that is shown.

    Args:
        frame: epoch, part (`training` or `validation`), loss (mean nats a string), sum (nats).
        kept_epoch: the epoch whose model is kept and tested.
        shown_epoch: the epoch of the other figures; 0 is before training.
    """
    drawn = frame[frame["loss"] > 0]  # a logarithm needs more than zero
    lines = (
        alt.Chart(drawn)
        .mark_line(point=True)
        .encode(
            x=alt.X(
                "epoch:Q",
                title="Epoch",
                scale=alt.Scale(domain=[0, int(frame["epoch"].max())], nice=False),
                axis=alt.Axis(tickMinStep=1, format="d"),
            ),
            y=alt.Y(
                "loss:Q", title="Loss (mean nats per string, log)", scale=alt.Scale(type="log")
            ),
            color=class_color("part", PARTS, "Loss on"),
            tooltip=[
                alt.Tooltip("epoch:Q", title="Epoch"),
                alt.Tooltip("part:N", title="Loss on"),
                alt.Tooltip("loss:Q", title="Mean (nats per string)", format=".6g"),
                alt.Tooltip("sum:Q", title="Sum (nats)", format=".6g"),
            ],
        )
    )
    return alt.layer(lines, *_marks(kept_epoch, shown_epoch)).properties(
        width=2 * SIDE, height=HEIGHT, title="Loss by epoch", **reserved(HEIGHT)
    )


def _marks(kept_epoch: int | None, shown_epoch: int) -> list[alt.Chart]:
    marks = [{"epoch": shown_epoch, "label": "shown", "place": "bottom"}]
    if kept_epoch is not None:
        marks.append({"epoch": kept_epoch, "label": "kept", "place": "top"})
    frame = pd.DataFrame(marks)
    rules = alt.Chart(frame).mark_rule(color=GREY, strokeDash=[4, 4]).encode(x="epoch:Q")
    labels = [
        alt.Chart(frame[frame["place"] == place])
        .mark_text(align="left", dx=4, dy=dy, color=INK)
        .encode(x="epoch:Q", y=alt.value(y), text="label:N")
        for place, y, dy in (("top", 0, 8), ("bottom", "height", -8))
    ]
    return [rules, *labels]
