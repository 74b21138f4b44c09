"""What holds for any model, however it works: its answers, its errors and its training."""

import pandas as pd
import streamlit as st

from dashboard import data, layout
from dashboard.choosing.opened import key_of, say_of_input
from dashboard.choosing.strings import separated_by
from dashboard.data import explaining
from dashboard.figures.history import kept_sentence, losses, losses_by_part
from dashboard.placement import stretch
from dashboard.server.visitors import ask
from dashboard.text import verbatim
from dashboard.views import error_places
from dashboard.words import measures
from dashboard.words.languages import first_strings
from seqcls.config import RunConfig
from seqcls.problem import resolve
from sweeps.api import open_reader
from sweeps.api.old_pages import reading
from sweeps.api.old_pages.reading import ErrorSearch
from sweeps.api.presentation import display_strings

LISTED = 200
MOST_ASKED = 50


def show(run_id: int, config: RunConfig) -> None:
    """Strings to ask the model, what it got wrong in the test, and how its loss went."""
    errors = data.string_errors(run_id, ErrorSearch())
    _ask(run_id, config, errors)
    _errors(run_id, config, errors)
    _training(run_id, config)


def show_results(run_id: int, config: RunConfig) -> None:
    """What an imported model answered and got wrong in the test, and how its loss went."""
    errors = data.string_errors(run_id, ErrorSearch())
    _ask(run_id, config, errors)
    _errors(run_id, config, errors)
    _training(run_id, config)


@explaining(say_of_input)
def _ask(run_id: int, config: RunConfig, errors: pd.DataFrame) -> None:
    st.subheader("Ask the model")
    problem = resolve(config)
    tokenizer = problem.tokenizer
    first = [*map(tokenizer.display, errors["string"].head(3))]
    if problem.is_imported:
        st.caption("Its answers to its test strings are known, and to no others.")
    else:
        first += first_strings(problem.task, 3)
    typed = st.text_input(
        f"Strings, separated by {separated_by(config)}",
        tokenizer.line_of(dict.fromkeys(first)),
        key=f"asked {run_id}",
        help="a{100} is the letter a, a hundred times; <ab>{50} is ab, fifty times.",
    )
    strings = tuple(tokenizer.strings_of(typed))
    if not strings:
        return
    if len(strings) > MOST_ASKED:
        st.caption(f"Only the first {MOST_ASKED} of {len(strings)} strings are asked.")
    answers = _predictions(run_id, strings[:MOST_ASKED])
    st.dataframe(
        measures.answers_frame(display_strings(answers, config)).dropna(axis="columns", how="all"),
        hide_index=True,
        column_config={
            **measures.string_columns(problem.kind),
            **measures.answer_columns(problem.kind),
            "correct": st.column_config.CheckboxColumn("Correct"),
        },
    )


def _predictions(run_id: int, strings: tuple[str, ...]) -> pd.DataFrame:
    def predict_them() -> pd.DataFrame:
        # Imported where it is used: PyTorch takes a second or two to load.
        from sweeps.api.models import predict

        return predict(open_reader(), run_id, strings)

    return ask(("predictions", key_of(run_id), strings), predict_them)


def _errors(run_id: int, config: RunConfig, errors: pd.DataFrame) -> None:
    kind = resolve(config).kind
    missed = f"{kind.words.missed.capitalize()} {kind.words.plural('test')}"
    st.subheader(verbatim(missed))
    if errors.empty:
        st.success("There are none.")
        return
    error_places.show(run_id, errors, config)
    st.dataframe(
        measures.kinds_first(display_strings(errors.head(LISTED), config), kind),
        hide_index=True,
        column_config=measures.string_columns(kind),
        height=layout.table_height(len(errors)),
    )
    linked = errors[errors["string"] == st.query_params.get("string", "")]
    error_places.show_alignment(config, errors if linked.empty else linked)


def _training(run_id: int, config: RunConfig) -> None:
    frame = losses_by_part(config, reading.epochs(open_reader(), run_id))
    if frame.empty:
        return
    st.subheader("Training")
    kept = reading.run_status(open_reader(), run_id).best_epoch
    stretch(losses(frame, kept, kept or int(frame["epoch"].max())), "loss")
    if config.stop_when_right:
        st.caption(kept_sentence(config))
