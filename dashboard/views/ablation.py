"""Ablation: what is left without some parts, what each head is worth, and what can go."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import altair as alt
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import elements, links
from dashboard.charts.colors import GREY, OKABE_ITO
from dashboard.charts.scales import Drawing, class_color, reserve_height, share_axis, title_params
from dashboard.choosing.opened import AnyModel, OpenedModel, remembered, say
from dashboard.choosing.run import ABLATED
from dashboard.choosing.strings import Chosen
from dashboard.data import explaining
from dashboard.placement import stretch
from dashboard.server.visitors import ask
from dashboard.text import verbatim
from seqcls.interpretability.ablation import Ablated, ablate, backend_of, prune, rank
from seqcls.interpretability.backends import Ablation, AblationMethod, Counts
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.kinds import MISCLASSIFIED, Words
from seqcls.models.parts import Part, PartKind
from sweeps.api.presentation import display_strings

WIDTH = 10
"""Lengths in one point."""

Name = Callable[[Part], str]
"""What a part is called."""


def lengths_frame(models: Mapping[str, Ablated]) -> pd.DataFrame:
    """model, length, lengths, strings, wrong, accuracy: of some models by their names."""
    return pd.concat(
        [_by_length(ablated).assign(model=name) for name, ablated in models.items()],
        ignore_index=True,
    )


def _by_length(ablated: Ablated) -> pd.DataFrame:
    counts = {"strings": ablated.strings, "wrong": ablated.strings - ablated.right}
    # The empty string is in the first point, as on the page Compare.
    sums = pd.DataFrame(counts).groupby((ablated.lengths - 1).clip(min=0) // WIDTH).sum()
    first, last = sums.index * WIDTH + (sums.index > 0), (sums.index + 1) * WIDTH
    strings, wrong = sums["strings"], sums["wrong"]
    return pd.DataFrame(
        {
            "length": (first + last) / 2,
            "lengths": [f"{low} to {high}" for low, high in zip(first, last, strict=True)],
            "strings": strings,
            "wrong": wrong,
            "accuracy": 1 - wrong / strings,
        }
    )


def ranking_frame(ranked: Mapping[str, Sequence[Ablated]], name: Name) -> pd.DataFrame:
    """part, way, errors, accuracy, loss, logit_change: for each way, the dearest part first."""
    return pd.DataFrame(
        [
            {"part": name(ablated.parts[0]), "way": way, **_costs(ablated)}
            for way, outcomes in ranked.items()
            for ablated in outcomes
        ]
    )


def pruning_frame(steps: Sequence[Ablated], name: Name) -> pd.DataFrame:
    """removed, part (the last), errors, accuracy, loss, logit_change, and of each kind how many.

    Those are called `heads left` and so on.
    """
    kinds = Counter(part.kind for part in steps[-1].parts)
    return pd.DataFrame(
        [
            {
                "removed": len(ablated.parts),
                "part": name(ablated.parts[-1]) if ablated.parts else "nothing",
                **_costs(ablated),
                **{
                    f"{kind}s left": number - sum(part.kind == kind for part in ablated.parts)
                    for kind, number in kinds.items()
                },
            }
            for ablated in steps
        ]
    )


def _costs(ablated: Ablated) -> dict[str, float]:
    return {name: getattr(ablated, name) for name in ("errors", "accuracy", "loss", "logit_change")}


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
            alt.Tooltip("accuracy:Q", title="Accuracy", format=".2~%"),
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
            y=share_axis("accuracy", f"Accuracy on {words.plural('test')}", zero=False),
            color=class_color("model", colors, "Model", labelLimit=LABEL),
            tooltip=[
                alt.Tooltip("model:N", title="Model"),
                alt.Tooltip("lengths:N", title="Lengths"),
                alt.Tooltip("accuracy:Q", title="Accuracy", format=".2~%"),
                alt.Tooltip("wrong:Q", title=words.missed.capitalize()),
                alt.Tooltip("strings:Q", title=words.plural("test").capitalize()),
            ],
        )
        .properties(
            height=HEIGHT, title="Accuracy by length", **reserve_height(HEIGHT, legend=True)
        )
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
    title = title_params(
        f"What each {what}'s removal costs", subtitle="Dashed: the model as trained."
    )
    return alt.layer(bars, rule).properties(
        height=alt.Step(BAR), title=title, **reserve_height(BAR * len(frame), legend=True)
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
        **reserve_height(ROW * len(parts)),
    )


FEW_PARTS = 8
"""Up to so many heads and dimensions the pruning curve takes no time; of more, a button asks."""

NAME = attrgetter("name")
"""The name of a part, of which there is one block."""


TEXT = attrgetter("text")
"""The text of a part of any model."""

SAMPLE = 200
METHODS: dict[AblationMethod, str] = {
    "zero": "zero: the part adds nothing",
    "mean": "mean: it adds its mean",
}
PRUNED: tuple[PartKind, ...] = ("head", "dimension")
"""What can be ablated of a model of letter counts."""


def _alone(
    model: TrainedModel, how: AblationMethod, kinds: tuple[PartKind, ...] = ()
) -> tuple[Ablated, ...]:
    """The whole model, and what it is without each part alone."""
    backend = backend_of(model, SAMPLE)
    return ablate(backend, {}), *rank(backend, backend.parts(kinds), how)


def _prune(
    model: TrainedModel, how: AblationMethod, kinds: tuple[PartKind, ...] = ()
) -> tuple[Ablated, ...]:
    backend = backend_of(model, SAMPLE)
    return tuple(prune(backend, backend.parts(kinds), how))


counts_of = remembered(Counts)
alone = remembered(_alone, "Ablating")
pruned = remembered(_prune, "Pruning")


def show(chosen: Chosen) -> None:
    """By letter counts: heads and dimensions ablated, the ranking of heads, the pruning curve."""
    model = chosen.model
    heads, dimensions = (counts_of(model).parts([kind]) for kind in PRUNED)
    zeroed, averaged, cut = (
        _parts(column, name, options)
        for column, name, options in zip(
            st.columns(3), ABLATED, (heads, heads, dimensions), strict=True
        )
    )
    zeros: Ablation = dict.fromkeys([*zeroed, *cut], "zero")
    _outcome(model, {**dict.fromkeys(averaged, "mean"), **zeros}, chosen)
    if heads:
        st.subheader("Ablating each head alone")
        (whole, *zeroed_alone), (_, *averaged_alone) = (
            alone(model, how, ("head",)) for how in METHODS
        )
        frame = ranking_frame({"zero": zeroed_alone, "mean": averaged_alone}, NAME)
        stretch(part_ranking(frame, whole.errors, "head"), "head_ranking")
    st.subheader("Greedy pruning")
    _pruning(model)


LABELS = {
    "heads_off": ("Zero-ablated heads", "They add nothing to the residual stream."),
    "heads_frozen": (
        "Mean-ablated heads",
        "They add their mean over the test strings, whatever the string.",
    ),
    "dimensions_off": ("Zeroed dimensions", "They are zero throughout the residual stream."),
}
"""What the boxes are called, by their names in the link."""


def _parts(column: DeltaGenerator, name: str, options: tuple[Part, ...]) -> list[Part]:
    """The parts to ablate, which the link names."""
    # The link decides: another run's names nothing of this.
    numbers = range(len(options))
    st.session_state[name] = [part for part in links.numbers_of(name) if part in numbers]
    label, help_text = LABELS[name]
    with column:
        chosen = elements.choose_several(
            label,
            numbers,
            key=name,
            placeholder="None",
            help=help_text,
            on_change=lambda: links.put(name, st.session_state[name]),
        )
    return [options[number] for number in chosen]


def _outcome(model: OpenedModel, ablation: Ablation, chosen: Chosen) -> None:
    counts, parts = counts_of(model), frozenset(ablation.items())
    before = ask(("ablated", model.key, frozenset()), lambda: ablate(counts, {}))
    after = ask(("ablated", model.key, parts), lambda: ablate(counts, ablation))
    columns = st.columns(4)
    for column, name, counted in (
        (columns[0], "Test strings wrong", "wrong"),
        (columns[1], "False positives", "fp"),
        (columns[2], "False negatives", "fn"),
    ):
        now, then = (getattr(x.confusion, counted) for x in (after, before))
        column.metric(
            name, f"{now:,}", f"{now - then:+,}" if now != then else None, delta_color="inverse"
        )
    columns[3].metric("Mean logit change", f"{after.logit_change:.3g}")
    named = {"as trained": before} | ({"ablated": after} if ablation else {})
    stretch(accuracy_by_length(lengths_frame(named), "letters"), "ablation_accuracy")
    if ablation:
        _strings(model, ablation, chosen)
    else:
        st.caption("Nothing is ablated yet: choose heads or dimensions above to compare.")


def _strings(model: OpenedModel, ablation: Ablation, chosen: Chosen) -> None:
    network = model.network
    counts = network.counts(chosen.strings)
    before, after = network.logits(counts), counts_of(model).logits(counts, ablation)
    logits = {"logit as trained": before, "ablated": after, "change": after - before}
    st.dataframe(
        display_strings(pd.DataFrame({"string": chosen.strings, **logits}), model.config),
        hide_index=True,
        column_config={name: st.column_config.NumberColumn(format="%.4f") for name in logits},
    )


def _pruning(model: OpenedModel) -> None:
    config = model.config
    parts = config.num_attention_heads + config.hidden_size
    if parts > FEW_PARTS and not st.toggle(
        f"Prune {config.num_attention_heads} heads and {config.hidden_size} dimensions (seconds)",
        key="prune",
        bind="query-params",
    ):
        return
    steps = pruned(model, "zero", PRUNED)
    stretch(pruning_curve(pruning_frame(steps, NAME)), "pruning")
    st.caption(
        "Greedy pruning: each step removes the part whose removal leaves the fewest misclassified "
        "test strings. A removed head adds nothing; a removed dimension is zero throughout."
    )


@explaining(say)
def show_by_strings(opened: AnyModel) -> None:
    """Shows the ablations of any model, by a sample of strings that are run: it takes seconds,
    so a button asks.
    """
    model = opened.model
    how = links.choice(
        "Ablation", list(METHODS), "way", "zero", format_func=lambda name: METHODS[name]
    )
    if not st.toggle("Ablate each part on its own", key="ablate", bind="query-params"):
        strings = verbatim(_texts(model).words.plural("test"))
        st.caption(f"Measured on {SAMPLE} distinct {strings}, spread evenly over their lengths.")
        return
    whole, *ranked = alone(opened, how)
    if model.problem.lacks("outputs") is None:
        st.caption(
            "Exact match by teacher forcing: an input is right if every token of the target is the "
            "likeliest. What changes is the log-probability of the targets."
        )
    if model.problem.network.picture:
        st.caption("The encoder of pictures is not ablated: its convolutions are not parts.")
    st.subheader("Without each part alone")
    frame = ranking_frame({how: ranked}, TEXT)
    texts = _texts(model)
    stretch(part_ranking(frame, whole.errors, texts=texts), "network costs")
    named = {outcome.parts[0].text: outcome for outcome in ranked}
    chosen = st.selectbox(
        "Accuracy by length without", list(named), key="without", bind="query-params"
    )
    if chosen is not None:
        frame = lengths_frame({"as trained": whole, f"without {chosen}": named[chosen]})
        stretch(accuracy_by_length(frame, texts=texts), "network lengths")
    _one_by_one(opened, how)


def _texts(model: TrainedModel) -> AblationTexts:
    kind = model.problem.kind
    return AblationTexts(kind.words, kind.score_name)


@explaining(say)
def _one_by_one(opened: AnyModel, how: AblationMethod) -> None:
    st.subheader("Pruning, the cheapest part first")
    if not st.toggle("Remove them one by one", key="prune", bind="query-params"):
        return
    steps = pruned(opened, how)
    stretch(pruning_curve(pruning_frame(steps, TEXT), _texts(opened.model)), "network pruning")
