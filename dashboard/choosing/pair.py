"""Which two configurations, or two models, are compared: both are in the link."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from dashboard import data, links
from dashboard.words import names
from seqcls.interpretability.wording import percent
from sweeps.api.old_pages.reading import Selection
from sweeps.results import GENERALIZING, JUDGED_BEYOND

CONFIGURATIONS, MODELS = "Configurations", "Models"
CONFIG, RUN = "config", "run"
"""The parameters of the link."""

STRING = "string"
SIDES = ("First", "Second")
MOST_OFFERED = 1_000
"""Configurations that are offered by name, and those of the link."""


@dataclass(frozen=True)
class Pair:
    """What is compared with what."""

    config_ids: tuple[int, int]
    run_ids: tuple[int, int] | None
    """Two models; None where all models of both configurations are compared."""
    names: tuple[str, str]


def choose(judged: Selection) -> Pair | None:
    """Boxes to choose the two; None where there are no two to choose.

    Args:
        judged: all runs, with the accuracies from which on one has learned, and fails.
    """
    models = data.models(judged)
    param, pair = _pair_of_link(models) or _apart(models)
    if len(pair) < 2:
        return None
    configs = pair if param == CONFIG else [_config_of(models, run_id) for run_id in pair]
    _what(models, param, pair)
    offered = list(dict.fromkeys([*configs, *models["config_id"].unique().tolist()]))
    for place, column in enumerate(st.columns(2)):
        with column:
            _configuration(place, offered[:MOST_OFFERED], configs, models, param, pair)
            if param == RUN:
                _seed(place, models[models["config_id"] == configs[place]], pair)
    ids, both = (configs[0], configs[1]), (pair[0], pair[1])
    return Pair(ids, both if param == RUN else None, _names(models, param, pair))


def _pair_of_link(models: pd.DataFrame) -> tuple[str, list[int]] | None:
    """The two of the link; None where it names none that is trained and tested."""
    for param, column in ((RUN, "run_id"), (CONFIG, "config_id")):
        known = set(models[column])
        given = links.numbers_of(param)[:2]
        if unknown := [str(x) for x in given if x not in known]:
            st.warning(
                f"The link asks for {param} {', '.join(unknown)}, which has no trained and tested "
                "model."
            )
        given = [x for x in given if x in known]
        if len(given) == 1:
            given.append((_other_model if param == RUN else _other)(models, given[0]))
        if given:
            return param, given
    return None


def _apart(models: pd.DataFrame) -> tuple[str, list[int]]:
    """The configuration that generalizes least, and the one of its language that does most."""
    ranked = _rank(models, best_first=False)
    if len(ranked) < 2:
        return RUN, models["run_id"].head(2).tolist()
    return CONFIG, [ranked[0], _other(models, ranked[0])]


def _rank(models: pd.DataFrame, *, best_first: bool) -> list[int]:
    """The configurations by the share that generalizes, then by that which learned, as on Compare.

    Of equal ones that of more seeds is first. Where a share is not known it is last, both ways.
    """
    judged = models["outcome"].isin(JUDGED_BEYOND)
    generalizes = models["outcome"].isin(GENERALIZING).astype(float).where(judged)
    shares = models.assign(
        generalizes=generalizes,
        learned=models["learned"].astype(float),
        right=1 - models["failing"],
        median=models.groupby("config_id")["accuracy"].transform("median"),
        more=1 / models.groupby("config_id")["run_id"].transform("size"),
    )
    by = ["generalizes", "learned", "right", "median", "more"]
    ranked = (
        shares.groupby("config_id")[by]
        .mean()
        .sort_values(by, ascending=[not best_first] * 4 + [True])
    )
    return ranked.index.tolist()


def _other(models: pd.DataFrame, config_id: int) -> int:
    """What a configuration is compared with until something is chosen: one of its language."""
    languages = data.languages()
    others = [each for each in _rank(models, best_first=True) if each != config_id]
    same = (each for each in others if languages.get(each) == languages.get(config_id))
    return next(same, others[0] if others else config_id)


def _other_model(models: pd.DataFrame, run_id: int) -> int:
    """What a model is compared with until something is chosen: the best of its configuration."""
    others = models[models["run_id"] != run_id]
    same = others[others["config_id"] == _config_of(models, run_id)]
    candidates = same if len(same) else others
    return int(candidates.sort_values("accuracy")["run_id"].iloc[-1]) if len(candidates) else run_id


def _config_of(models: pd.DataFrame, run_id: int) -> int:
    return int(models.loc[models["run_id"] == run_id, "config_id"].iloc[0])


def _names(models: pd.DataFrame, param: str, pair: Sequence[int]) -> tuple[str, str]:
    """What the two are called; apart even where they are the same."""
    if param == CONFIG:
        named = names.configuration_names(list(dict.fromkeys(pair)))
        first, second = (named[config_id] for config_id in pair)
    else:
        seeds = models.set_index("run_id")["model_seed"]
        first, second = (f"model {run_id} (seed {seeds[run_id]})" for run_id in pair)
    return first, second if second != first else f"{second}, again"


def _what(models: pd.DataFrame, param: str, pair: list[int]) -> None:
    """Whether all models of two configurations are compared, or one of each."""
    key = "two_what"
    st.session_state[key] = MODELS if param == RUN else CONFIGURATIONS

    def change() -> None:
        if st.session_state[key] == MODELS:
            _put_in_link(RUN, _same_seed(models, pair))
        else:
            _put_in_link(CONFIG, [_config_of(models, run_id) for run_id in pair])

    st.segmented_control(
        "Compare", [CONFIGURATIONS, MODELS], key=key, required=True, on_change=change
    )


def _same_seed(models: pd.DataFrame, configs: Sequence[int]) -> list[int]:
    """A model of each configuration: the worst of the first, and the one of the same seed."""
    first, second = (models[models["config_id"] == config_id] for config_id in configs)
    paired = first[first["model_seed"].isin(second["model_seed"])]
    a = (paired if len(paired) else first).sort_values("accuracy").astype(object).iloc[0]
    alike = second[second["model_seed"] == a["model_seed"]]
    b = (alike if len(alike) else second.sort_values("accuracy")).iloc[0]
    return [int(a["run_id"]), int(b["run_id"])]


def _configuration(
    place: int,
    offered: Sequence[int],
    configs: Sequence[int],
    models: pd.DataFrame,
    param: str,
    pair: Sequence[int],
) -> None:
    key = f"two_config_{place}"
    named = names.configuration_names(list(offered))
    st.session_state[key] = configs[place]

    def change() -> None:
        chosen = st.session_state[key]
        if param == RUN:
            theirs = models[models["config_id"] == chosen]
            chosen = int(theirs.sort_values("accuracy")["run_id"].iloc[0])
        _put_in_link(param, [chosen if x == place else kept for x, kept in enumerate(pair)])

    st.selectbox(
        f"{SIDES[place]} configuration",
        offered,
        format_func=named.__getitem__,
        key=key,
        on_change=change,
    )


def _seed(place: int, models: pd.DataFrame, pair: Sequence[int]) -> None:
    key = f"two_run_{place}"
    rows = models.set_index("run_id")
    st.session_state[key] = pair[place]

    def change() -> None:
        chosen = st.session_state[key]
        _put_in_link(RUN, [chosen if x == place else kept for x, kept in enumerate(pair)])

    said = {
        run["run_id"]: f"seed {run['model_seed']}: {percent(run['accuracy'])} right"
        for run in rows.reset_index().to_dict("records")
    }
    st.selectbox(
        f"{SIDES[place]} model",
        rows.index.tolist(),
        format_func=said.__getitem__,
        key=key,
        on_change=change,
    )


def _put_in_link(param: str, values: Sequence[int]) -> None:
    for other in {CONFIG, RUN, STRING} - {param}:
        if other in st.query_params:
            del st.query_params[other]
    links.put(param, values)
