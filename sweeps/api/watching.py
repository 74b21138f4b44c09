"""Sweeps as pages show them: results, notes, losses and protocols."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
from sqlalchemy import select

from seqcls.config import are_imported
from seqcls.errors import SeqclsError
from seqcls.problem import missing_plugin, resolve
from sweeps.access import READ_ONLY_VARIABLE, is_read_only
from sweeps.api.protocols import protocols
from sweeps.records import read_rows
from sweeps.results import describe_counts
from sweeps.store.database import Store
from sweeps.store.opening import schema_version, why_not_permitted
from sweeps.store.reads import queries, sweep_queries
from sweeps.store.reads.overview import dataset_names as dataset_names
from sweeps.store.reads.queries import names_of
from sweeps.store.reads.stored import texts_of
from sweeps.store.reads.sweep_queries import failures as failures
from sweeps.store.reads.sweep_queries import specifications as specifications
from sweeps.store.reads.sweep_queries import sweep_names as sweep_names
from sweeps.store.reads.sweep_queries import sweep_record as sweep_record
from sweeps.store.reads.workers import dead_workers
from sweeps.store.statements import frame
from sweeps.store.tables import Run, RunState, Sweep, SweepRun
from sweeps.store.tables import SweepState as SweepState
from sweeps.work.background_worker import read_log as read_log
from sweeps.work.progress import counts


@dataclass(frozen=True)
class Note:
    """Title, note and tags of a sweep."""

    title: str = ""
    note: str = ""
    tags: tuple[str, ...] = ()
    archived_at: str | None = None
    """When it was archived, UTC in ISO 8601; None where it is not."""


def notes(store: Store) -> dict[int, Note]:
    """Returns the note of each sweep that has one, by id."""
    columns = (Sweep.id, Sweep.title, Sweep.note, Sweep.tags, Sweep.archived_at)
    rows = store.rows(select(*columns).order_by(Sweep.id))
    every = {row.id: Note(row.title, row.note, tuple(json.loads(row.tags)), row[4]) for row in rows}
    return {sweep_id: note for sweep_id, note in every.items() if note != Note()}


def sweeps(store: Store) -> pd.DataFrame:
    """Returns every sweep with its results, the newest first.

    Returns:
        sweep (its name), title, tags (separated by commas), models (all that it specifies), result
        (the numbers of models that learned and generalize, in words), submitted (the day, UTC),
        state, done and failed (models), archived, sweep_id.
    """
    outcomes, written = sweep_queries.sweep_outcomes(store), notes(store)
    days = dict(store.rows(select(Sweep.id, Sweep.created_at)))
    rows = []
    for sweep in reversed(counts(store)):
        note, result = written.get(sweep.id, Note()), "no model is finished yet"
        if (own := outcomes.get(sweep.id)) is not None:
            so_far = "so far " * (sweep.state != SweepState.DONE)
            result = so_far + describe_counts(own, "")
        result += "; stopped" * (sweep.state == SweepState.STOPPED)
        rows.append(
            {
                "sweep": sweep.name,
                "title": note.title,
                "tags": ", ".join(note.tags),
                "models": sweep.total,
                "result": result[0].upper() + result[1:],
                "submitted": str(days[sweep.id])[:10],
                "state": str(sweep.state),
                "done": sweep.done,
                "failed": sweep.failed,
                "archived": note.archived_at is not None,
                "sweep_id": sweep.id,
            }
        )
    return pd.DataFrame(rows)


def is_trained_here(submitted: str) -> bool:
    """True if a sweep's models are trained here, and not imported.

    Args:
        submitted: its stored specification.
    """
    specification = json.loads(submitted)
    return "model_seeds" in specification and not are_imported(specification.get("fixed", {}))


def protocol_of_sweep(store: Store, sweep: str, number: int) -> tuple[list[str], list[str]]:
    """Describes the training and test of one configuration of a sweep, and names all of them.

    Args:
        number: the position of the configuration, from 0.

    Raises:
        UnknownRunError: there is no such sweep.
    """
    sweep_id = sweep_queries.find_sweep(store, sweep)
    query = select(Run.id, Run.config_id).join(SweepRun, SweepRun.run_id == Run.id)
    runs = frame(store, query.where(SweepRun.sweep_id == sweep_id).order_by(Run.config_id, Run.id))
    ids = runs["config_id"].drop_duplicates().tolist()
    if not ids:
        return [], []
    # The number on a page may have been chosen of a larger sweep.
    config_id = ids[min(number, len(ids) - 1)]
    try:
        sentences = protocols(
            store, config_id, runs.loc[runs["config_id"] == config_id, "id"].tolist()
        )
    except SeqclsError as error:  # Of a package that is not here nothing is known.
        sentences = [str(error)]
    return sentences, [*names_of(store, ids).values()]


def describe_database(store: Store) -> Iterator[tuple[str, str]]:
    """Yields the properties of a database: kind, size, contents, and whether it can be written."""
    yield "database", store.name
    yield "schema", schema_version(store) or ""
    if store.path is not None:
        yield "size", f"{store.path.stat().st_size:,} bytes"
    states = [f"{number:,} {x}" for x, number in sorted(sweep_queries.runs_by_state(store).items())]
    yield "runs", ", ".join(states) or "none"
    if store.path is not None:
        refused = f"{READ_ONLY_VARIABLE} is set" if is_read_only() else None
        obstacle = refused or why_not_permitted(store.path)
        yield "writable", f"no: {obstacle}" if obstacle else "yes"


# Losses by epoch of a sweep's models, which a page shows while more are trained.

LOOKED_AT = 1_000
"""Number of the newest models of a sweep among which those to be read are chosen."""

MOST_EPOCHS = 200
"""Maximum number of epochs of a model, evenly spaced; its last is added."""


def losses(store: Store, sweep_id: int, configs: int, models: int) -> pd.DataFrame:
    """Returns the validation losses of a sweep's newest finished models, and of those in training
    that began first.

    Workers store losses of models in training every few seconds without raising a revision, so that
    the result must not be cached. Those of a dead worker stay until another takes the run.

    Args:
        configs: maximum number of configurations, those with the newest models.
        models: maximum number of models in either state, equally many of each configuration.

    Returns:
        run_id, config_id, configuration (its name), model_seed, state (`finished`, `in training` or
        `worker died`), epoch, loss (a mean over the strings, in nats), in the order of
        configurations, seeds and epochs of either state. Models that need a package that is not
        installed here have no row.
    """
    of_sweep = (
        select(Run.id.label("run_id"), Run.config_id, Run.model_seed, Run.worker_id)
        .join(SweepRun, SweepRun.run_id == Run.id)
        .where(SweepRun.sweep_id == sweep_id, Run.losses.is_not(None))
        .limit(LOOKED_AT)
    )
    training = of_sweep.where(Run.state == RunState.RUNNING).order_by(Run.started_at, Run.id)
    newest = (Run.finished_at.desc(), Run.id.desc())
    finished = of_sweep.where(Run.state == RunState.DONE).order_by(*newest)
    with store.read():
        found = [
            _with_losses(store, _first_models(frame(store, query), configs, models))
            for query in (training, finished)
        ]
        died = found[0]["worker_id"].isin(dead_workers(store))
    found[0]["state"] = died.map({False: "in training", True: "worker died"})
    found[1]["state"] = "finished"
    # An empty frame would change the types of the columns of the other.
    both = pd.concat([x for x in found if len(x)] or found[1:]).drop(columns="worker_id")
    shown = queries.configs(store, both["config_id"].drop_duplicates().head(configs).tolist())
    strings = {
        config_id: resolve(config).validation.epoch_size
        for config_id, config in shown.items()
        if missing_plugin(config) is None
    }
    both = both[both["config_id"].isin(strings)]
    named = names_of(store, [*strings]) if strings else {}
    per_string = both.pop("validation_loss") / both["config_id"].map(strings)
    return both.assign(loss=per_string, configuration=both["config_id"].map(named))


def _first_models(runs: pd.DataFrame, configs: int, models: int) -> pd.DataFrame:
    chosen: Sequence[int] = runs["config_id"].drop_duplicates().head(configs).tolist()
    rows = runs[runs["config_id"].isin(chosen)]
    return rows.groupby("config_id").head(max(1, models // max(1, len(chosen))))


def _with_losses(store: Store, runs: pd.DataFrame) -> pd.DataFrame:
    by_run = {run_id: read_rows(text) for run_id, text in texts_of(store, runs["run_id"], "losses")}
    lasts = {rows[-1][0] for rows in by_run.values() if rows}
    # Ceiling division: the longest training has at most MOST_EPOCHS points.
    step = max(1, -(-max(lasts, default=0) // MOST_EPOCHS))
    # Every model's last epoch is shown, or its line would end before its training did.
    shown = {*range(1, max(lasts, default=0) + 1, step), *lasts}
    rows = [
        (run_id, epoch, validation)
        for run_id, epochs in by_run.items()
        for epoch, _, validation in epochs
        if epoch in shown
    ]
    table = pd.DataFrame(rows, columns=["run_id", "epoch", "validation_loss"])
    merged = runs.merge(table.astype({"validation_loss": float}), on="run_id")
    return merged.sort_values(["config_id", "model_seed", "epoch"], ignore_index=True)
