"""Ablation: what is left without some parts, what each head is worth, and what can go."""

from operator import attrgetter

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import links
from dashboard.charts.model.ablations import accuracy_by_length, part_ranking, pruning_curve
from dashboard.figures.ablations import lengths_frame, pruning_frame, ranking_frame
from dashboard.model.choice import ABLATED, Chosen
from dashboard.model.drawing import stretch
from dashboard.model.opened import OpenedModel, remembered
from seqcls.interpretability.ablation import Ablated, Ablation, AblationMethod, prune, rank
from seqcls.interpretability.counts.ablation import CountedJudge, dimensions_of, heads_of
from seqcls.interpretability.counts.network import Network
from seqcls.models.parts import Part

FEW_PARTS = 8
"""Of so many heads and dimensions the pruning curve takes no time; of more, a button asks."""

NAME = attrgetter("name")
"""Of a part, of which there is one block."""


def _judge(network: Network) -> CountedJudge:
    return CountedJudge(network)


def _ranked(network: Network, how: AblationMethod) -> tuple[Ablated, ...]:
    return rank(CountedJudge(network), heads_of(network), how)


def _pruned(network: Network, *, dimensions: bool) -> tuple[Ablated, ...]:
    parts = heads_of(network) + (dimensions_of(network) if dimensions else ())
    return tuple(prune(CountedJudge(network), parts))


judge_of = remembered(_judge)
ranked = remembered(_ranked)
pruned = remembered(_pruned)


def show(chosen: Chosen) -> None:
    """Heads and dimensions ablated, the ranking of heads, and the pruning curve."""
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
        frame = ranking_frame({"zero": ranked(model, "zero"), "mean": ranked(model, "mean")}, NAME)
        stretch(part_ranking(frame, judge_of(model).without({}).errors, "head"), "head_ranking")
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
    label, told = LABELS[name]
    chosen = column.multiselect(
        label,
        numbers,
        key=name,
        placeholder="None",
        help=told,
        on_change=lambda: links.put(name, st.session_state[name]),
    )
    return [options[number] for number in chosen]


def _outcome(model: OpenedModel, ablation: Ablation, chosen: Chosen) -> None:
    judge = judge_of(model)
    before, after = judge.without({}), judge.without(ablation)
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
    columns[3].metric("Mean change of a logit", f"{after.logit_change:.3g}")
    frame = lengths_frame({"as trained": before, "ablated": after})
    stretch(accuracy_by_length(frame, "letters"), "ablation_accuracy")
    _strings(model, ablation, chosen)


def _strings(model: OpenedModel, ablation: Ablation, chosen: Chosen) -> None:
    network = model.network
    counts = network.counts(chosen.strings)
    before, after = network.logits(counts), judge_of(model).logits(counts, ablation)
    st.dataframe(
        pd.DataFrame(
            {"string": chosen.strings, "logit as trained": before, "ablated": after,
             "change": after - before}
        ),
        hide_index=True,
        column_config={
            name: st.column_config.NumberColumn(format="%.4f")
            for name in ("logit as trained", "ablated", "change")
        },
    )  # fmt: skip


def _pruning(model: OpenedModel) -> None:
    config = model.config
    parts = config.num_attention_heads + config.hidden_size
    if parts > FEW_PARTS and not st.toggle(
        f"Prune {config.num_attention_heads} heads and {config.hidden_size} dimensions (seconds)",
        key="prune",
        bind="query-params",
    ):
        return
    with st.spinner("Pruning", show_time=True):
        steps = pruned(model, dimensions=True)
    stretch(pruning_curve(pruning_frame(steps, NAME)), "pruning")
    st.caption(
        "Greedy pruning: each step removes the part whose removal leaves the fewest misclassified "
        "test strings. A removed head adds nothing; a removed dimension is zero throughout."
    )
