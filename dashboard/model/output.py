"""What a model writes for an input, token by token, what it attends to, and other outputs."""

import math

import pandas as pd
import streamlit as st

from dashboard.charts.model.output_attention import output_attention
from dashboard.drawing import place_together
from dashboard.figures.string_axes import DRAWN
from dashboard.model.opened import say
from dashboard.model.states import Look, one_of
from dashboard.text import verbatim
from seqcls.errors import SeqclsError
from seqcls.interpretability.model.trained_model import Letters, TrainedModel
from seqcls.interpretability.states.by_strings import attention_patterns, has_attention
from seqcls.interpretability.states.output_tokens import (
    OutputToken,
    likeliest_outputs,
    output_tokens,
)
from seqcls.tokens.tokenizer import FIRST_LETTER
from sweeps.analysis import state_frames
from sweeps.cli.commands.any_model import said_of

WIDTH = 5
"""Of the beam whose outputs are shown."""


def show(model: TrainedModel, letters: Letters) -> None:
    """Draws the section for one input."""
    try:
        answer = model.answer(letters)
        tokens = output_tokens(model, letters)
        st.markdown(verbatim(f"{said_of(answer)}."))
        _tokens(tokens)
        _attention(model, letters, tokens)
        _others(model, letters, str(answer.label))
    except SeqclsError as error:
        say(error)


def _tokens(tokens: tuple[OutputToken, ...]) -> None:
    st.subheader("Token by token")
    st.dataframe(
        pd.DataFrame(list(map(vars, tokens))),
        hide_index=True,
        width="content",
        column_config={
            "token": "Written",
            "probability": st.column_config.ProgressColumn(
                "Probability",
                help="Of the token, after the input and the tokens before it.",
                format="percent",
                min_value=0,
                max_value=1,
            ),
            "runner_up": st.column_config.TextColumn("Runner-up", help="The likeliest other one."),
            "runner_up_probability": st.column_config.ProgressColumn(
                "Its probability", format="percent", min_value=0, max_value=1
            ),
        },
    )
    if tokens[-1].token != "END":
        st.caption("The output was cut off: the model had not written END.")


def _attention(model: TrainedModel, letters: Letters, tokens: tuple[OutputToken, ...]) -> None:
    if not has_attention(model):
        st.caption(f"{verbatim(model.config.architecture)} names no attention.")
        return
    st.subheader("Attention while it writes")
    patterns = attention_patterns(model, letters)
    blocks, heads = patterns.weights.shape[:2]
    if len(patterns.tokens) > DRAWN:
        st.caption(
            f"Attention is drawn up to {DRAWN} tokens; input and output have "
            f"{len(patterns.tokens)}."
        )
        return
    options = [f"block {block}, head {head}" for block in range(blocks) for head in range(heads)]
    if not options:
        return
    chosen = one_of("Head", options, options[0], "head", Look())
    place = divmod(options.index(chosen), heads)
    frame = state_frames.output_attention_frame(patterns, len(letters) + 1, *place)
    written = [token.token for token in tokens]
    part = output_attention(frame, patterns.tokens, written, chosen)
    place_together([part], "output attention")
    st.caption(
        "Each row is a token as it is written: the weights are those of the token read last before "
        "it, SEP for the first. A head that copies from left to right shows a diagonal."
    )


def _others(model: TrainedModel, letters: Letters, target: str) -> None:
    st.subheader("Likeliest outputs")
    rows = []
    for output in likeliest_outputs(model, letters, WIDTH):
        text = model.text([token - FIRST_LETTER for token in output.tokens])
        rows.append(
            {
                "output": text or "the empty output",
                "right": output.ended and text == target,
                "ended": output.ended,
                "probability": math.exp(output.log_probability),
                "log_probability": output.log_probability,
            }
        )
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        width="content",
        column_config={
            "output": "Output",
            "right": st.column_config.CheckboxColumn("Right"),
            "ended": st.column_config.CheckboxColumn(
                "Ended", help="Whether the model wrote END; else the output was cut off."
            ),
            "probability": st.column_config.ProgressColumn(
                "Probability", format="percent", min_value=0, max_value=1
            ),
            "log_probability": st.column_config.NumberColumn("Log-probability", format="%.4f"),
        },
    )
    st.caption(f"Beam search with a beam of {WIDTH}: outputs as a whole, the likeliest first.")
