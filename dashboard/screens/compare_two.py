"""Two configurations, or two models: do they differ by more than chance, where, on what strings?"""

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from dashboard import data, elements, filters, layout, links
from dashboard.charts.colors import OKABE_ITO
from dashboard.choosing.pair import STRING, Pair, choose
from dashboard.text import verbatim
from dashboard.views import accuracy_by_length, scores, shortcuts
from dashboard.words import measures, names, outcomes
from dashboard.words.languages import first_strings
from seqcls.config import RunConfig
from seqcls.errors import SeqclsError
from seqcls.interpretability.wording import p_value_text, percent, percents
from seqcls.kinds import Words
from seqcls.problem import obstacle_of, resolve
from sweeps.api import models as questions
from sweeps.api.comparison_text import QUESTIONS, chance_of, seeds_text, shown_values
from sweeps.api.comparisons import Compared, compare_configs
from sweeps.api.old_pages.judging_runs import ComparedRuns, compare_runs
from sweeps.api.old_pages.reading import Selection
from sweeps.api.presentation import describe_proofs, display_strings
from sweeps.results import BORDER_MEDIANS, BORDER_SHARES, Outcome, describe_longer
from sweeps.statistics.chance import Difference
from sweeps.statistics.intervals import CONFIDENCE, ConfidenceInterval, PairTable

PLACES = ("the first", "the second")


def of_configurations(compared: Compared, names: tuple[str, str], judged: Selection) -> None:
    """Whether the two differ by more than chance, and what says so of each question.

    Args:
        compared: the two.
        names: what they are called.
        judged: has the accuracies from which on a seed has learned, and fails.
    """
    st.markdown(f"**{compared.verdict(PLACES)}**", help=_meaning(compared.config_ids, judged))
    rows = [
        {
            "Question": QUESTIONS[name].capitalize(),
            "First": values[0],
            "Second": values[1],
            "Difference": _format_difference(found.interval.value),
            "Difference, 95%": _span(found.interval),
            "More than chance?": _brief(found),
            "p": "" if found.p_value is None else p_value_text(found.p_value),
            "Test": found.method,
            "Seeds": seeds_text(found).removesuffix(" seeds"),
        }
        for name, found in compared.questions.items()
        for values in [shown_values(found)]
    ]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        column_config={
            "First": st.column_config.Column(help=verbatim(names[0]), width=68),
            "Second": st.column_config.Column(help=verbatim(names[1]), width=68),
            "Difference": st.column_config.Column(help="The first minus the second.", width=82),
            "p": st.column_config.Column(width=70),
            # All of a long one is read where the cell is opened.
            "Test": st.column_config.Column(width=154),
            "Seeds": st.column_config.Column(width=70),
        },
    )
    undecided = [
        f"- {QUESTIONS[name].capitalize()}: {verbatim(chance_of(found))}."
        for name, found in compared.questions.items()
        if _brief(found) in (NOT_MORE, TOO_FEW)
    ]
    st.markdown("\n".join(undecided))
    known = "learned" in compared.questions
    st.caption(
        f"First: {verbatim(names[0])}. Second: {verbatim(names[1])}. {verbatim(compared.pairing)} "
        f"{compared.longer_strings} "
        "Accuracies are means over seeds; each question is tested by itself."
        + " Whether they learned is not known of both, so the whole test is compared." * (not known)
        + "".join(
            f" {QUESTIONS[name].capitalize()}: {why}." for name, why in compared.absent.items()
        )
    )


NOT_MORE, TOO_FEW = "no", "too few seeds"


def _brief(found: Difference) -> str:
    """Whether there is more than chance, in a word or two."""
    if found.p_value is None:
        return "no such seed"
    if found.is_decided:
        return "yes"
    if found.is_nothing:
        return "no difference"
    return NOT_MORE if found.can_decide else TOO_FEW


def _meaning(config_ids: Sequence[int], judged: Selection) -> str:
    """What the outcomes are at these accuracies."""
    words = measures.words_of(config_ids).words
    return verbatim(outcomes.meaning(words, judged.learned_at, judged.below))


def _say_refuted(run_id: int) -> str:
    """What refutes a model, in brackets; nothing where no string does."""
    row = data.model(run_id)
    (said,) = describe_proofs(row, data.some_configs(tuple(row["config_id"].tolist())))
    return f" ({verbatim(said)})" if said.startswith("refuted") else ""


def of_models(compared: ComparedRuns, pair: Pair, judged: Selection) -> None:
    """Strings that both get wrong, or only one, and whether that may be chance."""
    first, second = (
        f"**{outcome}**{_say_refuted(run_id)}"
        for outcome, run_id in zip(compared.outcomes, compared.run_ids, strict=True)
    )
    unlearned = Outcome.NOT_LEARNED in compared.outcomes
    st.markdown(
        f"Outcome: {first} of the first, {second} of the second."
        + " Longer strings say nothing about what has not learned the trained ones." * unlearned
        + f" {describe_longer([compared.longer])}",
        help=_meaning(pair.config_ids, judged),
    )
    with st.container(horizontal=True, gap="medium", key="differences"):
        _difference("Difference of wrong shares", compared.difference, "Newcombe")
    if compared.table is None:
        st.caption(
            "The two are tested on different strings, so the shares are compared as independent "
            f"samples ({p_value_text(compared.p_value)}, Fisher's exact test)."
        )
        return
    st.caption(
        "Each different test string counts once, however often the test has it: a model always "
        "answers it the same way."
    )
    _sentence(compared.table, compared.p_value, "test strings", "are wrong")
    _paired_table(compared.table, pair.names, "is wrong", "is right")


def _difference(label: str, difference: ConfidenceInterval, by: str) -> None:
    st.metric(
        label,
        _format_difference(difference.value),
        delta=_span(difference),
        delta_color="off",
        delta_arrow="off",
        help=f"The first minus the second, with its {CONFIDENCE:.0%} interval ({by}).",
        width="content",
    )


def _format_difference(difference: float) -> str:
    return "" if difference != difference else _minus(percent(difference, 1, signed=True))


def _span(interval: ConfidenceInterval) -> str:
    if interval.low != interval.low:
        return "too few seeds"
    return _minus(percents(interval.low, interval.high))


def _minus(text: str) -> str:
    """Minus signs of a keyboard would read as dashes."""
    return text.replace("-", "\N{MINUS SIGN}")


def _sentence(table: PairTable, p_value: float, what: str, verb: str) -> None:
    """What McNemar's test says."""
    unlike = table.only_first + table.only_second
    if not unlike:
        st.markdown(f"The two differ on none of the {table.pairs:,} {what}.")
        return
    more = "first" if table.only_first > table.only_second else "second"
    chance = (
        f"More {verb} in the {more} than chance would explain"
        if p_value < 1 - CONFIDENCE
        else "Chance alone may explain the difference"
    )
    st.markdown(
        f"**{chance}** ({p_value_text(p_value)}, exact McNemar): of {table.pairs:,} {what}, "
        f"{unlike:,} {verb} in only one, {table.only_first:,} in the first and "
        f"{table.only_second:,} in the second."
    )


def _paired_table(table: PairTable, names: tuple[str, str], yes: str, no: str) -> None:
    """The four cells."""
    first, second = (verbatim(name) for name in names)
    rows = pd.DataFrame(
        {
            f"the second {yes}": [int(table.both), int(table.only_second)],
            f"the second {no}": [int(table.only_first), int(table.none)],
        },
        index=[f"the first {yes}", f"the first {no}"],
    )
    st.caption(f"First: {first}. Second: {second}.")
    st.dataframe(rows, width="content")


def _border(shares: Mapping[str, tuple[float, float]], of: str = "") -> None:
    """Accuracies on border pairs and on random strings, where a test has both."""
    if not shares:
        return
    rows = [
        [
            (BORDER_MEDIANS if of else BORDER_SHARES)[name],
            *("none" if pd.isna(x) else percent(x, 1) for x in both),
        ]
        for name, both in shares.items()
    ]
    title = ", ".join(filter(None, ["Accuracy by kind of string", of]))
    st.caption(title, help=measures.BORDER)
    st.dataframe(pd.DataFrame(rows, columns=["Test strings", "First", "Second"]), hide_index=True)


MEASURE = "accuracy"


def show_accuracy(pair: Pair, judged: Selection) -> None:
    """A line for each model, and for each of two configurations the median of its models.

    Args:
        pair: what is compared.
        judged: has the accuracy from which on a model has learned, and is not gray.
    """
    width = scores.first_width(pair.config_ids)
    if pair.run_ids is None:
        seeds, medians, most = _of_configurations(pair, judged, width)
        if most is not None:
            st.caption(
                f"The chart shows up to {most} models of each configuration, evenly from the worst "
                "to the best. Medians and intervals are over all of them."
            )
        color_of = names.colors(list(dict.fromkeys(pair.config_ids)))
        colors = dict(zip(pair.names, (color_of[x] for x in pair.config_ids), strict=True))
    else:
        seeds, medians = _of_models(pair.run_ids, pair.names, judged, width)
        colors = dict(zip(pair.names, OKABE_ITO, strict=False))
    measure = scores.offered_measures(pair.config_ids)
    title = next(name for name, known in measure.items() if known.name == MEASURE)
    readers, why_none = shortcuts.lines(
        tuple(pair.config_ids), dict(zip(pair.config_ids, pair.names, strict=True)), width
    )
    if why_none:
        st.caption(why_none)
    drawn = (seeds, medians, scores.limits(pair.config_ids), title, colors, readers)
    accuracy_by_length.show(drawn, colors, "by_length_of_two")


def _of_configurations(
    pair: Pair, judged: Selection, width: int
) -> tuple[pd.DataFrame, pd.DataFrame, int | None]:
    """The points of models, the medians, and how many models are drawn; None where all are."""
    ids = tuple(dict.fromkeys(pair.config_ids))
    named = names.configuration_names(ids)
    renamed = {named[x]: name for x, name in zip(pair.config_ids, pair.names, strict=True)}
    medians = scores.medians(judged, ids, width, MEASURE)
    most = scores.most_drawn(scores.counts(judged, ids), medians["middle"].nunique())
    seeds = scores.points_of_models(judged, ids, most, width, MEASURE)
    seeds, medians = (
        x.assign(configuration=x["configuration"].astype(str).map(renamed))
        for x in (seeds, medians)
    )
    return seeds, medians, most


def _of_models(
    run_ids: tuple[int, int], called: tuple[str, str], judged: Selection, width: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The line of each model, which is its own median."""
    parts = []
    for run_id, name in zip(run_ids, called, strict=True):
        points = scores.points(data.scores_by_length((run_id,), width), MEASURE)
        model = data.model(run_id, judged).iloc[0]
        seed, learned = int(model["model_seed"]), model["learned"]
        parts.append(points.assign(configuration=name, model_seed=seed, learned=learned))
    seeds = pd.concat(parts, ignore_index=True)
    kept = ["configuration", "middle", "median", "learned"]
    medians = seeds.rename(columns={"value": "median"})[kept]
    return seeds, medians.assign(low=float("nan"), high=float("nan"), n=1)


A_PAGE = 100
MOST_ASKED = 16
"""Models of either side that are asked about a string."""

EITHER, FIRST, SECOND = "Either", "First", "Second"


def show_strings(pair: Pair, strings: pd.DataFrame | None) -> str | None:
    """The table of strings; the one that is selected.

    Args:
        pair: what is compared.
        strings: as `sweeps.statistics.differences.string_differences`; None where the two are
            tested on different strings.
    """
    words = measures.words_of(pair.config_ids).words
    st.subheader(verbatim(f"{words.plural('').capitalize()} that only one gets wrong"))
    if strings is None:
        st.info(
            "Strings cannot be compared: the two are tested on different strings, so what one gets "
            "wrong may be unknown to the other."
        )
        return None
    alone = strings[(strings["wrong_a"] == 0) | (strings["wrong_b"] == 0)]
    side = links.choice("Wrong in", [EITHER, FIRST, SECOND], "wrong_in", EITHER)
    if side != EITHER:
        alone = alone[alone["wrong_a" if side == FIRST else "wrong_b"] > 0]
    if alone.empty:
        st.success("There is none.")
        return None
    return _strings_table(pair, alone, words)


def _strings_table(pair: Pair, strings: pd.DataFrame, words: Words) -> str | None:
    first = links.first_of_page(len(strings), A_PAGE, "two_page")
    shown = strings.iloc[first : first + A_PAGE]
    only = "models of only one configuration get" if pair.run_ids is None else "only one model gets"
    number = len(strings)
    st.caption(
        f"{number:,} different {verbatim(words.plural(''))} that {only} wrong, those of most "
        "models first. Select one to ask both about it."
        if number > 1
        else f"The only {verbatim(words.string)} that {only} wrong. Select it to ask both about it."
    )
    (kind, *_) = measures.kinds_of(pair.config_ids)
    counted = {
        "wrong_a": st.column_config.NumberColumn("Wrong in first", help=verbatim(pair.names[0])),
        "wrong_b": st.column_config.NumberColumn("Wrong in second", help=verbatim(pair.names[1])),
    }
    known = shown.dropna(axis="columns", how="all")
    return links.texts(
        display_strings(known, *_configs(pair)),
        known["string"].tolist(),
        STRING,
        columns={**measures.string_columns(kind), **counted},
        key=f"two strings {pair.config_ids} {pair.run_ids} {first}",
    )


def ask(pair: Pair, selected: str | None, strings: pd.DataFrame | None) -> None:
    """What both say of a string that is typed or selected."""
    st.subheader("Both on a string")
    text = st.text_input(
        "String to ask about",
        _display(pair, selected or _first(pair, strings)),
        key=f"two_asked {selected} {pair.config_ids} {pair.run_ids}",
        help="a{100} is the letter a, a hundred times; <ab>{50} is ab, fifty times.",
    )
    for column, place in zip(st.columns(2), (0, 1), strict=True):
        with column:
            _side(pair, place, text)


def _first(pair: Pair, strings: pd.DataFrame | None) -> str:
    if strings is not None and len(strings):
        return str(strings["string"].iloc[0])
    config = data.some_configs((pair.config_ids[0],))[pair.config_ids[0]]
    return "" if obstacle_of(config) else next(iter(first_strings(resolve(config).task, 1)), "")


def _configs(pair: Pair) -> list[RunConfig]:
    return list(data.some_configs(pair.config_ids).values())


def _display(pair: Pair, text: str) -> str:
    """A string as it is shown, by the alphabet of the two."""
    (shown,) = display_strings(pd.DataFrame({"string": [text]}), *_configs(pair))["string"]
    return str(shown)


def _side(pair: Pair, place: int, text: str) -> None:
    """The answers of one side's models."""
    models = data.models(Selection())
    of_side = models[models["config_id"] == pair.config_ids[place]]
    if pair.run_ids is not None:
        of_side = of_side[of_side["run_id"] == pair.run_ids[place]]
    st.caption(f"{('First', 'Second')[place]}: {verbatim(pair.names[place])}")
    asked = of_side.head(MOST_ASKED)
    try:
        rows = [_predictions(int(run_id), (text,)) for run_id in asked["run_id"]]
    except SeqclsError as error:
        st.info(f"No answer: {verbatim(str(error))}")
        return
    said = display_strings(pd.concat(rows, ignore_index=True), *_configs(pair))
    answers = measures.answers_frame(said).drop(columns="string")
    _say(answers)
    is_wrong = (~answers["correct"]).fillna(False).to_numpy(dtype=bool)
    # Of models that were trained elsewhere there may be no logits.
    answers = answers.dropna(axis="columns", how="all")
    kind = measures.kinds_of((pair.config_ids[place],))[0]
    st.dataframe(
        answers.assign(model_seed=asked["model_seed"].to_numpy())[["model_seed", *answers]],
        hide_index=True,
        column_config={
            **measures.string_columns(kind),
            "label": st.column_config.Column("Label"),
            "model_seed": st.column_config.NumberColumn("Seed", width=60),
            "predicted": st.column_config.Column("Predicted"),
            "correct": st.column_config.CheckboxColumn("Correct"),
            "logit": st.column_config.NumberColumn("Logit", format="%.4f"),
            **measures.answer_columns(kind),
        },
        height=layout.table_height(len(answers)),
    )
    if len(of_side) > MOST_ASKED:
        st.caption(f"The first {MOST_ASKED} of {len(of_side):,} models are asked.")
    wrong = asked[is_wrong]
    run_id = int((wrong if len(wrong) else asked)["run_id"].iloc[0])
    links.to_model(run_id, f"Look inside model {run_id} at this string", string=text)


_predictions = data.cached(questions.predict)


def _say(answers: pd.DataFrame) -> None:
    """How many models are right, where that is known."""
    known = answers["correct"].dropna()
    right, of = int(known.sum()), len(known)
    if not of:
        st.markdown("**The correct answer is not known**")
    elif of == 1:
        st.markdown("**right**" if right else "**wrong**")
    else:
        st.markdown(f"**{right} of {of} right**")


_configurations = data.cached(compare_configs)
_models = data.cached(compare_runs)


def show() -> None:
    st.title("Do these two differ?")
    judged = links.thresholds()
    pair = choose(judged)
    if pair is None:
        filters.say_none("Two trained models are needed: launch more, or wait for the first.")
    else:
        _show_comparison(pair, judged)


def _show_comparison(pair: Pair, judged: Selection) -> None:
    with st.spinner("Comparing", show_time=True):
        if pair.run_ids is None:
            configs = _configurations(pair.config_ids, pair.names, judged)
            elements.show_chips_apart(configs.fields)
            of_configurations(configs, pair.names, judged)
            _border(configs.border, "median over seeds")
            differing = configs.strings
        else:
            models = _models(*pair.run_ids, judged)
            elements.show_chips_apart(models.fields)
            of_models(models, pair, judged)
            _border(models.border)
            differing = models.strings
    if said := data.trained_on(pair.config_ids):
        st.caption(verbatim(said))
    st.subheader("By string length")
    show_accuracy(pair, judged)
    selected = show_strings(pair, differing)
    ask(pair, selected, differing)


show()
