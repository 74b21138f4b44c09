"""What is left of a model without some of its parts."""

from dataclasses import dataclass

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import GREY, OKABE_ITO
from dashboard.charts.style.encodings import Drawing, reserved
from dashboard.charts.style.scales import class_color, titled
from seqcls.kinds import MISCLASSIFIED, Words

HEIGHT = 260
BAR, ROW = 14, 18
WAYS = {"zero": OKABE_ITO[0], "mean": OKABE_ITO[4]}
LABEL = 320
"""Pixels of the name of a part at most."""
WHOLE_NAMES = alt.Axis(labelLimit=LABEL)


@dataclass(frozen=True)
class AblationTexts:
    """What the charts call a task's errors."""

    words: Words = MISCLASSIFIED
    number: str = "logit"
    """What ablation moves."""

    @property
    def costs(self) -> list[alt.Tooltip]:
        """What pointing at a part says that it costs."""
        return [
            alt.Tooltip("errors:Q", title=self.words.missed.capitalize(), format=","),
            alt.Tooltip("accuracy:Q", title="Accuracy", format=".2%"),
            alt.Tooltip("loss:Q", title="Loss (mean nats)", format=".4g"),
            alt.Tooltip("logit_change:Q", title=f"Mean change of the {self.number}", format=".4g"),
        ]

    @property
    def missed(self) -> str:
        """The title of the count of misses, such as `Test strings misclassified`."""
        return f"{self.words.plural('test').capitalize()} {self.words.missed}"


OF_LANGUAGES = AblationTexts()


def accuracy_by_length(
    frame: pd.DataFrame, tokens: str = "tokens", texts: AblationTexts = OF_LANGUAGES
) -> Drawing:
    """Accuracy by string length of a model as it was trained and ablated.

    Args:
        frame: model (its name, that of the whole one first), length (the middle of the bin),
            lengths (as text), strings, wrong, accuracy in [0, 1].
        tokens: what they are called.
        texts: of the task.
    """
    words = texts.words
    colors = dict(zip(dict.fromkeys(frame["model"]), (GREY, OKABE_ITO[0]), strict=False))
    return (
        alt.Chart(frame)
        .mark_line(point=True)
        .encode(
            x=alt.X(
                "length:Q",
                title=f"{words.string.capitalize()} length ({tokens})",
                scale=alt.Scale(zero=True),
            ),
            y=alt.Y(
                "accuracy:Q",
                title=f"Accuracy on {words.plural('test')}",
                axis=alt.Axis(format="%"),
                scale=alt.Scale(zero=False),
            ),
            color=class_color("model", colors, "Model", labelLimit=LABEL),
            tooltip=[
                alt.Tooltip("model:N", title="Model"),
                alt.Tooltip("lengths:N", title="Lengths"),
                alt.Tooltip("accuracy:Q", title="Accuracy", format=".2%"),
                alt.Tooltip("wrong:Q", title=words.missed.capitalize()),
                alt.Tooltip("strings:Q", title=words.plural("test").capitalize()),
            ],
        )
        .properties(height=HEIGHT, title="Accuracy by length", **reserved(HEIGHT, legend=True))
    )


def part_ranking(
    frame: pd.DataFrame,
    errors_as_trained: int,
    what: str = "part",
    texts: AblationTexts = OF_LANGUAGES,
) -> Drawing:
    """What removing each part alone costs.

    Args:
        frame: part, way (`zero`: it adds nothing, `mean`: always its mean), errors (test strings),
            accuracy in [0, 1], loss (mean nats), logit_change (mean absolute), the dearest first.
        errors_as_trained: of the model with all parts.
        what: the parts are.
        texts: of the task.
    """
    parts = list(dict.fromkeys(frame["part"]))
    bars = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            y=alt.Y("part:N", title=None, sort=parts, axis=WHOLE_NAMES),
            yOffset=alt.YOffset("way:N", sort=list(WAYS)),
            x=alt.X("errors:Q", title=f"{texts.missed} without it"),
            color=class_color("way", WAYS, f"The {what} is"),
            tooltip=[
                alt.Tooltip("part:N", title=what.capitalize()),
                alt.Tooltip("way:N", title="Is"),
                *texts.costs,
            ],
        )
    )
    rule = (
        alt.Chart(pd.DataFrame([{"errors": errors_as_trained}]))
        .mark_rule(color=GREY, strokeDash=[4, 4])
        .encode(x="errors:Q")
    )
    title = titled(f"What each {what}'s removal costs", subtitle="Dashed: the model as trained.")
    return alt.layer(bars, rule).properties(
        height=alt.Step(BAR), title=title, **reserved(BAR * len(frame), legend=True)
    )


def pruning_curve(frame: pd.DataFrame, texts: AblationTexts = OF_LANGUAGES) -> Drawing:
    """Misclassified test strings as parts are removed one by one, the cheapest first.

    Args:
        frame: removed (how many), part (the last one, as text), errors, accuracy, loss,
            logit_change, and how many are left of each kind, as `heads left`.
        texts: of the task.
    """
    parts = list(dict.fromkeys(frame["part"]))
    left = [name for name in map(str, frame) if name.endswith(" left")]
    base = alt.Chart(frame).encode(
        # A row a part: names along the horizontal axis would be turned and cut off.
        y=alt.Y("part:N", title="Removed, from the top", sort=parts, axis=WHOLE_NAMES),
        x=alt.X("errors:Q", title=texts.missed, scale=alt.Scale(zero=True)),
        order="removed:Q",
        tooltip=[
            alt.Tooltip("removed:Q", title="Parts removed"),
            alt.Tooltip("part:N", title="Last"),
            *texts.costs,
            *(alt.Tooltip(f"{name}:Q", title=name.capitalize()) for name in left),
        ],
    )
    line: alt.Chart = base.mark_line(point=True, color=OKABE_ITO[0])
    return line.properties(
        height=alt.Step(ROW),
        title="Pruning, the cheapest part first",
        **reserved(ROW * len(parts)),
    )
