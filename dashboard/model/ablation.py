"""Ablation: what is left without some parts, what each head is worth, and what can go."""

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import links
from dashboard.charts.model.exact_ablations import (
    accuracy_before_and_after,
    head_ranking,
    pruning_curve,
)
from dashboard.figures.exact_ablations import lengths_frame, pruning_frame, ranking_frame
from dashboard.model.choice import ABLATED, Chosen
from dashboard.model.drawing import stretch
from dashboard.model.opened import OpenedModel, remembered
from seqcls.evaluation import DistinctStrings, distinct_test_strings
from seqcls.interpretability.counts.ablation import Ablation, ablate, logits_after
from seqcls.interpretability.counts.network import Network
from seqcls.interpretability.counts.pruning import prune, rank_heads
from seqcls.tokens.strings import TokenStrings

FEW_PARTS = 8
"""Of so many heads and dimensions the pruning curve takes no time; of more, a button asks."""


def _logits_of_strings(
    network: Network, ablation: Ablation, strings: tuple[str, ...]
) -> np.ndarray:
    """Logits after ablation; a mean-ablated head's mean is that over the test strings."""
    test = distinct_test_strings(network.problem.test)
    counts = network.counts(strings)
    labels = network.problem.count_task.labels_of_counts(counts)
    both = np.concatenate([test.strings.counts, counts])
    together = DistinctStrings(
        TokenStrings.of_counts(counts.shape[1], both),
        # They do not occur in the test set, and so have no part in its means.
        occurrences=np.concatenate([test.occurrences, np.zeros(len(counts), dtype=np.int64)]),
        targets=np.concatenate([test.labels, labels]),
        texts=[*test.texts, *strings],
    )
    return logits_after(network, together, ablation)[len(test.labels) :]


logits_of_strings = remembered(_logits_of_strings)
ablated = remembered(ablate)
ranked = remembered(rank_heads)
pruned = remembered(prune)


def show(chosen: Chosen) -> None:
    """Heads and dimensions ablated, the ranking of heads, and the pruning curve."""
    model = chosen.model
    heads = range(model.config.num_attention_heads)
    dimensions = range(model.config.hidden_size)
    zeroed, averaged, cut = (
        _parts(column, name, options)
        for column, name, options in zip(
            st.columns(3), ABLATED, (heads, heads, dimensions), strict=True
        )
    )
    ablation = Ablation(frozenset(zeroed), frozenset(averaged) - frozenset(zeroed), frozenset(cut))
    _outcome(model, ablation, chosen)
    if len(heads):
        st.subheader("Ablating each head alone")
        costs = {"zero": ranked(model, "zero"), "mean": ranked(model, "mean")}
        unharmed = ablated(model, Ablation()).evaluation.wrong
        stretch(head_ranking(ranking_frame(costs), unharmed), "head_ranking")
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


def _parts(column: DeltaGenerator, name: str, options: range) -> list[int]:
    """The parts to ablate, which the link names."""
    # The link decides: another run's names nothing of this.
    st.session_state[name] = [part for part in links.linked(name) if part in options]
    label, told = LABELS[name]
    return column.multiselect(
        label,
        options,
        key=name,
        placeholder="None",
        help=told,
        on_change=lambda: links.put(name, st.session_state[name]),
    )


def _outcome(model: OpenedModel, ablation: Ablation, chosen: Chosen) -> None:
    outcome = ablated(model, ablation)
    before, after = (x.confusion for x in (outcome.before, outcome.evaluation))
    columns = st.columns(4)
    for column, name, counted in (
        (columns[0], "Test strings wrong", "wrong"),
        (columns[1], "False positives", "fp"),
        (columns[2], "False negatives", "fn"),
    ):
        now, then = (getattr(x, counted) for x in (after, before))
        column.metric(
            name, f"{now:,}", f"{now - then:+,}" if now != then else None, delta_color="inverse"
        )
    changes = np.abs(outcome.logits - outcome.logits_before)
    mean = float(np.average(changes, weights=outcome.occurrences))
    columns[3].metric("Mean change of a logit", f"{mean:.3g}")
    stretch(accuracy_before_and_after(lengths_frame(outcome)), "ablation_accuracy")
    _strings(model, ablation, chosen)


def _strings(model: OpenedModel, ablation: Ablation, chosen: Chosen) -> None:
    network = model.network
    before = network.logits(network.counts(chosen.strings))
    after = logits_of_strings(model, ablation, chosen.strings)
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
        steps = pruned(model)
    stretch(pruning_curve(pruning_frame(steps)), "pruning")
    st.caption(
        "Greedy pruning: each step removes the part whose removal leaves the fewest misclassified "
        "test strings. A removed head adds nothing; a removed dimension is zero throughout."
    )
