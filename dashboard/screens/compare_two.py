"""Two configurations, or two models: do they differ by more than chance, where, on what strings?"""

import streamlit as st

from dashboard import data
from dashboard.compare_two import accuracy_of_both, choosing, difference, differing_strings
from dashboard.compare_two.choosing import Pair
from dashboard.elements import chips
from dashboard.text import verbatim
from seqcls.errors import SeqclsError
from sweeps.analysis.compared_configurations import compare_configs
from sweeps.analysis.compared_runs import compare_runs

_configurations = data.cached(compare_configs)
_models = data.cached(compare_runs)


def show() -> None:
    st.title("Do these two differ?")
    try:
        pair = choosing.choose()
        if pair is not None:
            _compared(pair)
    except SeqclsError as error:
        data.explain(error)


def _compared(pair: Pair) -> None:
    with st.spinner("Comparing", show_time=True):
        if pair.run_ids is None:
            configs = _configurations(pair.config_ids, pair.names)
            chips.show_apart(configs.fields)
            difference.of_configurations(configs, pair.names)
            differing = configs.strings
        else:
            models = _models(*pair.run_ids)
            chips.show_apart(models.fields)
            difference.of_models(models, pair.names)
            differing = models.strings
    if said := data.trained_on(pair.config_ids):
        st.caption(verbatim(said))
    st.subheader("By string length")
    accuracy_of_both.show(pair)
    selected = differing_strings.show(pair, differing)
    differing_strings.ask(pair, selected, differing)


show()
