"""Why the worst model of each configuration fails, as paragraphs."""

import html
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from dashboard import data
from dashboard.figures.history import History
from seqcls.config import RunConfig
from seqcls.errors import SeqclsError
from seqcls.interpretability.causes.shares import causes
from seqcls.interpretability.model.obstacle import obstacle
from seqcls.problem import resolve
from sweeps.store.databases.engine import Store
from sweeps.store.reading.models import stored_model
from sweeps.store.strings.string_queries import ErrorSearch

SHORTEST = 5


def why(store: Store, models: pd.DataFrame, named: dict[int, str], most: int) -> list[str]:
    """A paragraph for each configuration with an error, of its worst model.

    Args:
        store: the database.
        models: finished runs: config_id, run_id, model_seed, errors.
        named: what configurations are called, in order.
        most: configurations that are explained.
    """
    wrong = models[models["errors"] > 0].sort_values("errors", ascending=False)
    worst = {int(run["config_id"]): run for run in reversed(wrong.to_dict("records"))}
    failing = [config_id for config_id in named if config_id in worst]
    if not failing:
        return ["<p>No model misclassifies a test string.</p>"]
    told = [_paragraph(store, named[failed], failed, worst[failed]) for failed in failing[:most]]
    left = len(failing) - most
    return [*told, f"<p>And {left:,} more configurations fail.</p>"] if left > 0 else told


def _paragraph(store: Store, name: str, config_id: int, run: Mapping[Hashable, Any]) -> str:
    run_id = int(run["run_id"])
    errors = data.string_errors(run_id, ErrorSearch())["string"].tolist()
    shortest = ", ".join(
        f"<code>{html.escape(string or 'the empty string')}</code>" for string in errors[:SHORTEST]
    )
    return (
        f"<h3>{html.escape(name)}</h3>\n<p>Its worst model is run {run_id}, seed "
        f"{int(run['model_seed'])}: {int(run['errors']):,} of its test strings are misclassified; "
        f"the shortest: {shortest}.</p>\n{_causes(store, config_id, run_id, errors)}"
    )


def _causes(store: Store, config_id: int, run_id: int, errors: list[str]) -> str:
    stored = data.causes([run_id])
    if not stored.empty:
        return _stored(stored)
    config: RunConfig = data.some_configs((config_id,))[config_id]
    reason = obstacle(resolve(config))
    if reason is not None:
        return (
            "<p>Its cause is not known yet: <code>seqcls causes SWEEP</code> finds and keeps "
            f"what its errors have in common. ({html.escape(reason[0].upper() + reason[1:])}.)</p>"
        )
    try:
        history = History.of(stored_model(store, run_id))
    except SeqclsError as error:
        return f"<p>Its cause cannot be given: {html.escape(str(error))}.</p>"
    found = causes(history.networks[history.kept_epoch], errors)
    rows = "".join(
        f"<li>{share.errors:,} of {found.examined:,}: {html.escape(share.phrase)}, such as "
        f"<code>{html.escape(share.shortest)}</code></li>"
        for share in found.shares
    )
    return f"<ul>{rows}</ul>"


def _stored(causes: pd.DataFrame) -> str:
    """The causes that `seqcls causes` or a page has stored, the most frequent first."""
    looked_at = int(causes["strings"].sum())
    rows = "".join(
        f"<li>{row['share']:.0%}: {html.escape(row['mechanism'])}{_about(row)}</li>"
        for row in causes.to_dict("records")
    )
    return f"<p>Of {looked_at:,} errors that were looked at:</p><ul>{rows}</ul>"


def _about(row: Mapping[Hashable, Any]) -> str:
    parts = [] if pd.isna(row["head"]) else [f"head {row['head']:.0f}"]
    told = ": ".join([*parts, *filter(None, [row["tokens"]])])
    return f" ({html.escape(told)})" if told else ""
