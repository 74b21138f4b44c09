"""Why small Transformers fail on long strings, told step by step with the shipped models.

Every number in it is read off the database.
"""

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import page
from dashboard.choosing.opened import OpenedModel
from dashboard.links import COMPARE_PAGE, FAILING_PAGE, to_model
from dashboard.placement import stretch
from dashboard.text import verbatim
from dashboard.views.ablation import pruned
from dashboard.views.families import answers_of, curve_frame, family_curve, flips_frame
from dashboard.views.guide import (
    compare,
    failing,
    find,
    learned_sentence,
    of_report,
    show_figures,
    whole_report,
)
from dashboard.views.why import explained
from seqcls.interpretability.family import Curve
from seqcls.interpretability.sentences import explanation_text, family_text

DEFAULT = "all_initializations"
WIDER = "increased_dimensionality"
SMALLER_START = "lower_magnitude_initializations"
SMALLER_OUTPUTS = "default_embeddings_initialization"
MORE_HEADS = "increased_num_attention_heads"
ENUMERATED = "all_fixed_length_sequences"


def task() -> None:
    st.markdown(
        "A string is in the language if it holds at least one `a` **and** at least one `b`; other "
        "letters, here `c`, are noise. The models see strings of up to 10 letters in training and "
        "of up to 200 in the test. What have they learned: the rule, or something that looks like "
        "it on short strings?"
    )
    st.markdown(
        "Strings are written with counts: `ab{100}c{55}` is an `a`, a hundred `b`s and 55 `c`s. A "
        "*false negative* is in the language but rejected; a *false positive* is the reverse."
    )
    st.markdown(
        "These are two questions. Does a model *learn* the lengths that it is trained on? And does "
        f"one that has learned *generalize* to longer strings? {learned_sentence(whole_report())} "
        "Errors on longer strings of one that has not learned say nothing about length."
    )
    st.page_link(COMPARE_PAGE, label="All models in the database", icon=":material/bar_chart:")


def one_string() -> None:
    st.markdown(
        "Each model is one Transformer block without positions. A token `CLS` stands before the "
        "string, gathers what it needs from the letters by attention, passes through the "
        "feed-forward, and is read by a linear classifier. With two hidden dimensions and two "
        "heads of size one, all of it can be drawn. Here are `aac`, which lacks a `b`, and "
        "`baac`, in a model that makes no error (seed 5):"
    )
    model = find(DEFAULT, 5)
    if model is None:
        return
    show_figures(model, ("aac", "baac"), (8,), "guide_one")
    st.markdown(
        "One head looks for `a`. The other looks for `b`, and where there is none it falls on "
        "what is next best. The two values that come back place `CLS` on one side of the "
        "classifier's boundary or the other:"
    )
    show_figures(model, ("aac", "baac"), (10, 13), "guide_one")
    logits = model.network.logits(model.network.counts(("aac", "baac"))).tolist()
    st.markdown(f"The logits are {logits[0]:.4f} and {logits[1]:.4f}: no, and yes.")
    to_model(
        model.run_id, "Follow these strings through all figures", view="Figures", string="baac"
    )


def why_they_differ() -> None:
    st.markdown(
        "Two models that differ in nothing but the seed of their initial weights: seed 5 is right "
        "on every test string, seed 2 is not. Both have a head that prefers `a` over `b`. What "
        "differs is by how much. A softmax counts a letter with score *s* that occurs *n* times as "
        "*n* times *e* to the *s*, so a lead of *g* is used up by *e* to the *g* of the others."
    )
    good, bad = find(DEFAULT, 5), find(DEFAULT, 2)
    if good is None or bad is None:
        return
    for model, seed in ((good, 5), (bad, 2)):
        st.markdown(f"**Seed {seed}**: {verbatim(_leads(model))}")
    st.markdown("So one `a` among more and more `b`s is lost in the one and not in the other:")
    for model, seed in ((good, 5), (bad, 2)):
        curve = answers_of(model, "ab{n}")
        assert isinstance(curve, Curve)
        st.markdown(f"**Seed {seed}.** {verbatim(' '.join(family_text(curve)))}")
        chart = family_curve(curve_frame(curve), flips_frame(curve), curve.limit, "n", "ab{n}", 150)
        stretch(chart, f"guide_family_{seed}")
    to_model(bad.run_id, "Try your own families", view="Breaking point", family="ab{n}")


def _leads(model: OpenedModel) -> str:
    scores = model.network.scores[:, 0, 1:3]
    leads = scores[:, 0] - scores[:, 1]
    said = "; ".join(
        f"head {head} scores {'a' if lead > 0 else 'b'} higher by {abs(lead):.2f}, so that one "
        f"weighs as much as {np.exp(min(abs(lead), 700)):,.0f} of the other"
        for head, lead in enumerate(leads.tolist())
    )
    return f"{said}."


def two_ways_to_fail() -> None:
    st.markdown(
        "There are two ways to be wrong on a long string. *Dilution*: the letter that counts is "
        "there, but so many others are that its share of the attention is gone. *Value "
        "interference*: it is not there, but the values of others average to something that looks "
        "like it. Seed 2 shows both. In its own words:"
    )
    model = find(DEFAULT, 2)
    if model is None:
        return
    for string in ("ab{100}c{55}", "bbc{152}"):
        for sentence in explanation_text(explained(model, string))[:2]:
            st.markdown(f"- {verbatim(sentence)}")
        to_model(model.run_id, f"Why {verbatim(string)} fails", string=string)
    st.markdown(
        "The values of head 0 tell the second story: that of `c` lies near that of `a`, so that "
        "many `c`s pull the mean towards what an `a` would have given."
    )
    show_figures(model, ("aac", "ab", "ab{100}c{55}", "bbc{152}"), (6, 7), "guide_two")
    st.markdown(
        "A large lead in scores can hide such values forever: if the head finds the letter that "
        "it looks for, nothing else is heard. Scores decide how far a model generalizes, values "
        "which errors it can make at all."
    )


def data_matters() -> None:
    st.markdown(
        "Is completeness the cure? Two models were trained on *every* string of nine letters: "
        "19,683, of which 1,023 are negative. The others draw 9,984 strings afresh each epoch, of "
        "one to ten letters, so that every combination of `a` and `b`, present or not, has its "
        "share."
    )
    frame = compare((DEFAULT, ENUMERATED), "guide_data")
    st.markdown(
        f"Of the models that saw every string, {failing(frame, ENUMERATED)} fail. No string of "
        "nine letters has more than eight `b`s to one `a`, and where one string in twenty is "
        "negative, little tells a model what *not* to attend to. The report concludes that "
        "balanced and diverse strings generalize better than complete ones."
    )
    st.markdown(verbatim(_seed_by_seed(frame)))


def _seed_by_seed(frame: pd.DataFrame) -> str:
    """The errors of both ways of training, for the seeds that were trained both ways."""
    table = frame.pivot(index="model_seed", columns="sweep", values="errors").dropna()
    if table.empty or len(table.columns) < 2:
        return ""
    told = "; ".join(
        f"seed {seed} misclassifies {int(row[DEFAULT]):,} after balanced strings and "
        f"{int(row[ENUMERATED]):,} after all of nine letters"
        for seed, row in table.iterrows()
    )
    return f"Seed by seed, {told}. {_few(len(table))} nothing; train more."


def _few(seeds: int) -> str:
    number = {2: "Two", 3: "Three", 4: "Four"}.get(seeds, str(seeds))
    return "One seed settles" if seeds == 1 else f"{number} seeds settle"


def initialization() -> None:
    st.markdown(
        "The failing seeds above started from other weights, so the initial weights matter. Token "
        "embeddings are drawn from a standard normal distribution, whose vectors get longer with "
        "the hidden size: at 16 dimensions, about 2.8 times as long as at 2. Scores are products "
        "of such vectors, so wide models start with large leads."
    )
    frame = compare((DEFAULT, WIDER, SMALLER_START, SMALLER_OUTPUTS), "guide_start")
    st.markdown(
        f"Of the wide models {failing(frame, WIDER)} fail. But is that the width? Drawn smaller, "
        f"at the same width, {failing(frame, SMALLER_START)} fail. With standard normal "
        f"embeddings and only the outputs of both halves smaller, it is "
        f"{failing(frame, SMALLER_OUTPUTS)}. A part of what looks like the benefit of width is "
        "the benefit of large initial weights."
    )
    st.markdown("See how large the parameters are, and how they grow, epoch by epoch:")
    model = find(SMALLER_START, 2)
    if model is not None:
        to_model(
            model.run_id, "Magnitudes of all parameters", view="Figures", figures_of="Training"
        )


def dimension() -> None:
    st.markdown(
        "Width as such does help. A head's query and keys are directions in the hidden space; with "
        "two dimensions, what separates `a` from `b` for one head hampers another. With 16 there "
        "is room. In the smaller initialization that room is not always used: in seed 2 both heads "
        "look for `b`, so neither looks for `a`, and every string with a `b` is taken for one "
        "with both. That is wrong on strings of any length: this seed has not learned the task, so "
        "that it does not fail by length."
    )
    model = find(SMALLER_START, 2)
    if model is None:
        return
    show_figures(model, ("b", "ab"), (8,), "guide_wide")
    string = "b{5}c{5}"
    for sentence in explanation_text(explained(model, string))[:2]:
        st.markdown(f"- {verbatim(sentence)}")
    to_model(model.run_id, "Look at this model", string=string)


def heads() -> None:
    st.markdown(
        "If a head can be wasted on a letter that another head covers, more heads help: with 16 "
        "draws the chance that no head finds `a` is small. Same width, same small start, 16 heads:"
    )
    frame = compare((SMALLER_START, MORE_HEADS), "guide_heads")
    st.markdown(
        f"{failing(frame, SMALLER_START).capitalize()} fail with 2 heads, and "
        f"{failing(frame, MORE_HEADS)} with 16."
    )
    model = find(MORE_HEADS, 0)
    if model is None:
        return
    steps = pruned(model, "zero", ("head",))
    spare = sum(step.errors <= steps[0].errors for step in steps[1:])
    st.markdown(
        f"Most heads are spares, as ablating them shows: of the {len(steps) - 1} of seed "
        f"0, {spare} can go, the cheapest first, before the test shows an error more."
    )
    to_model(model.run_id, "Ablate heads of a model with 16", view="Ablation")


def copying() -> None:
    st.markdown(
        "So far a model answered yes or no. In a *transduction* it writes a string: it reads the "
        "input and a separator, then gives one token after another, each from all before it, until "
        "it gives `END`. The task `copy` asks for the input itself. An output is right only if "
        "every token is, and `END` stands where it belongs."
    )
    st.markdown(
        "A long copy can fail in four ways: the output *stops early*, *goes on* after the target, "
        "*repeats* its last tokens until it is cut off, or has a *wrong token*. With the target's "
        "length imposed, an output that is only too short or too long may become right: the page "
        "Compare draws the share of exact matches with and without. The page Failing models shows "
        "input, target and output token by token, and where outputs go wrong first."
    )
    st.markdown(
        "This trains models of one block and of two to copy strings in which no token occurs "
        "twice, of up to 20 tokens in training and up to 60 in the test:"
    )
    st.code("seqcls sweep known/copying_small", language="bash")
    st.page_link(FAILING_PAGE, label="Where models go wrong", icon=":material/error:")


STEPS = {
    "The task": task,
    "One string through the model": one_string,
    "Why one seed generalizes and another does not": why_they_differ,
    "Two ways to fail": two_ways_to_fail,
    "Data": data_matters,
    "Initialization": initialization,
    "Dimension": dimension,
    "Heads": heads,
    "Copying": copying,
}


def show() -> None:
    st.title("Why do small Transformers fail on long strings?")
    st.caption(
        "The argument of Richard Stebbing's report *Transformer Sequence Classification* (2022), "
        "in eight steps, with its models as your database has them; a ninth is about copying."
    )
    if of_report(DEFAULT).empty:
        st.info(
            "This database has none of the report's models, which this guide is about. "
            "`seqcls sweep report` trains them, in about a minute."
        )
        st.page_link(page.NEW_SWEEP, label="Train them", query_params={"start": "report"})
        return
    for number, (title, step) in enumerate(STEPS.items(), start=1):
        st.subheader(f"{number}. {title}", anchor=f"step-{number}")
        step()


show()
