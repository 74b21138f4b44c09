"""The strings that only one of the two gets wrong, and what both say of a string."""

import pandas as pd
import streamlit as st

from dashboard import data, layout, links
from dashboard.compare_two.choosing import STRING, Pair
from dashboard.text import verbatim
from dashboard.words import kind_words, measures
from dashboard.words.languages import first_strings
from seqcls.config import RunConfig
from seqcls.errors import SeqclsError
from seqcls.problem import obstacle_of, resolve
from sweeps.analysis.answer_sentences import displayed
from sweeps.questions import models as questions
from sweeps.store.reading.selection import View

A_PAGE = 100
MOST_ASKED = 16
"""Models of either side that are asked about a string."""

EITHER, FIRST, SECOND = "Either", "First", "Second"


def show(pair: Pair, strings: pd.DataFrame | None) -> str | None:
    """The table of strings; the one that is selected.

    Args:
        pair: what is compared.
        strings: as `sweeps.statistics.seed_by_seed.string_differences`; None where the two are
            tested on different strings.
    """
    words = kind_words.of(pair.config_ids).words
    st.subheader(f"{words.plural('').capitalize()} that only one gets wrong")
    if strings is None:
        st.info(
            "No string can be compared: the two are tested on different strings, so that what one "
            "gets wrong the other may never have been asked."
        )
        return None
    alone = strings[(strings["wrong_a"] == 0) | (strings["wrong_b"] == 0)]
    side = links.choice("Wrong in", [EITHER, FIRST, SECOND], "wrong_in", EITHER)
    if side != EITHER:
        alone = alone[alone["wrong_a" if side == FIRST else "wrong_b"] > 0]
    if alone.empty:
        st.success("There is none.")
        return None
    return _table(pair, alone, words.plural(""))


def _table(pair: Pair, strings: pd.DataFrame, what: str) -> str | None:
    first = links.first_of_page(len(strings), A_PAGE, "two_page")
    shown = strings.iloc[first : first + A_PAGE]
    of = "the models of one and not of the other" if pair.run_ids is None else "one model alone"
    st.caption(
        f"{len(strings):,} different {what} that {of} get{'' if pair.run_ids is None else 's'} "
        "wrong, those of most models first. Select one to ask both about it."
    )
    (kind, *_) = kind_words.kinds_of(pair.config_ids)
    counted = {
        "wrong_a": st.column_config.NumberColumn("Wrong in first", help=verbatim(pair.names[0])),
        "wrong_b": st.column_config.NumberColumn("Wrong in second", help=verbatim(pair.names[1])),
    }
    known = shown.dropna(axis="columns", how="all")
    return links.texts(
        displayed(known, *_configs(pair)),
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
    (shown,) = displayed(pd.DataFrame({"string": [text]}), *_configs(pair))["string"]
    return str(shown)


def _side(pair: Pair, place: int, text: str) -> None:
    """The answers of one side's models."""
    models = data.models(View())
    of_side = models[models["config_id"] == pair.config_ids[place]]
    if pair.run_ids is not None:
        of_side = of_side[of_side["run_id"] == pair.run_ids[place]]
    st.caption(f"{('First', 'Second')[place]}: {verbatim(pair.names[place])}")
    asked = of_side.head(MOST_ASKED)
    try:
        rows = [_predictions(int(run_id), (text,)) for run_id in asked["run_id"]]
    except SeqclsError as error:
        st.info(f"It cannot be asked: {verbatim(str(error))}")
        return
    said = displayed(pd.concat(rows, ignore_index=True), *_configs(pair))
    answers = measures.answers_frame(said).drop(columns="string")
    _say(answers)
    kind = kind_words.kinds_of((pair.config_ids[place],))[0]
    st.dataframe(
        answers.assign(model_seed=asked["model_seed"].to_numpy())[["model_seed", *answers]],
        hide_index=True,
        column_config={
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
    wrong = asked[(~answers["correct"]).fillna(False).to_numpy(dtype=bool)]
    run_id = int((wrong if len(wrong) else asked)["run_id"].iloc[0])
    links.to_model(run_id, f"Look inside model {run_id} at this string", string=text)


_predictions = data.cached(questions.predict)


def _say(answers: pd.DataFrame) -> None:
    """How many models are right, where that is known."""
    known = answers["correct"].dropna()
    right, of = int(known.sum()), len(known)
    if not of:
        st.markdown("**What is right of it is not known**")
    elif of == 1:
        st.markdown("**right**" if right else "**wrong**")
    else:
        st.markdown(f"**{right} of {of} right**")
