"""Ablation: what is left without some parts, what each head is worth, and what can go."""

from operator import attrgetter

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import links
from dashboard.charts.model.ablations import (
    AblationTexts,
    accuracy_by_length,
    part_ranking,
    pruning_curve,
)
from dashboard.elements.placement import stretch
from dashboard.figures.ablation_frames import lengths_frame, pruning_frame, ranking_frame
from dashboard.model.choosing.run import ABLATED
from dashboard.model.choosing.strings import Chosen
from dashboard.model.opened import AnyModel, OpenedModel, remembered, say
from dashboard.server.visitors import ask
from seqcls.errors import SeqclsError
from seqcls.interpretability.ablation.ablation import judge_of, prune, rank
from seqcls.interpretability.ablation.by_counts import CountedJudge, dimensions_of, heads_of
from seqcls.interpretability.ablation.judge import Ablated, Ablation, AblationMethod
from seqcls.interpretability.model.trained_model import Answer, OutputAnswer, TrainedModel
from seqcls.models.parts import Part
from sweeps.analysis.answer_sentences import displayed

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


def _alone(model: TrainedModel, how: AblationMethod) -> tuple[Ablated, ...]:
    """The whole model, and what it is without each part alone."""
    judge = judge_of(model, SAMPLE)
    return judge.without({}), *rank(judge, judge.parts, how)


def _pruned(
    model: TrainedModel, how: AblationMethod = "zero", *, dimensions: bool = False
) -> tuple[Ablated, ...]:
    judge = judge_of(model, SAMPLE)
    return tuple(prune(judge, judge.parts + (dimensions_of(model) if dimensions else ()), how))


counted_judge = remembered(CountedJudge)
alone = remembered(_alone, "Ablating")
pruned = remembered(_pruned, "Pruning")


def show(chosen: Chosen) -> None:
    """By letter counts: heads and dimensions ablated, the ranking of heads, the pruning curve."""
    model = chosen.model
    heads, dimensions = heads_of(model.network), dimensions_of(model.network)
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
        (whole, *zeroed_alone), (_, *averaged_alone) = alone(model, "zero"), alone(model, "mean")
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
    st.session_state[name] = [part for part in links.linked(name) if part in numbers]
    label, help_text = LABELS[name]
    chosen = column.multiselect(
        label,
        numbers,
        key=name,
        placeholder="None",
        help=help_text,
        on_change=lambda: links.put(name, st.session_state[name]),
    )
    return [options[number] for number in chosen]


def _outcome(model: OpenedModel, ablation: Ablation, chosen: Chosen) -> None:
    judge, parts = counted_judge(model), frozenset(ablation.items())
    before = ask(("ablated", model.key, frozenset()), lambda: judge.without({}))
    after = ask(("ablated", model.key, parts), lambda: judge.without(ablation))
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
    before, after = network.logits(counts), counted_judge(model).logits(counts, ablation)
    logits = {"logit as trained": before, "ablated": after, "change": after - before}
    st.dataframe(
        displayed(pd.DataFrame({"string": chosen.strings, **logits}), model.config),
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
    steps = pruned(model, dimensions=True)
    stretch(pruning_curve(pruning_frame(steps, NAME)), "pruning")
    st.caption(
        "Greedy pruning: each step removes the part whose removal leaves the fewest misclassified "
        "test strings. A removed head adds nothing; a removed dimension is zero throughout."
    )


def show_by_strings(opened: AnyModel) -> None:
    """Shows the ablations of any model, by a sample of strings that are run: it takes seconds,
    so a button asks.
    """
    model = opened.model
    how = links.choice(
        "Ablation", list(METHODS), "way", "zero", format_func=lambda name: METHODS[name]
    )
    if not st.toggle("Ablate each part on its own", key="ablate", bind="query-params"):
        strings = _texts(model).words.plural("test")
        st.caption(f"Measured on {SAMPLE} distinct {strings}, spread evenly over their lengths.")
        return
    try:
        whole, *ranked = alone(opened, how)
    except SeqclsError as error:
        say(error)
        return
    if model.writes:
        st.caption(
            "Exact match by teacher forcing: right are the inputs for which every token of the "
            "target is the likeliest. What changes is the log-probability of the targets."
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
    number = "logit"
    if model.problem.no_language:
        number = OutputAnswer.number if model.writes else Answer.number
    return AblationTexts(model.problem.kind.words, number)


def _one_by_one(opened: AnyModel, how: AblationMethod) -> None:
    st.subheader("Pruning, the cheapest part first")
    if not st.toggle("Remove them one by one", key="prune", bind="query-params"):
        return
    try:
        steps = pruned(opened, how)
    except SeqclsError as error:
        say(error)
        return
    stretch(pruning_curve(pruning_frame(steps, TEXT), _texts(opened.model)), "network pruning")
