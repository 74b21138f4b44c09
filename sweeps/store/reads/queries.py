"""Reads of runs, their configurations and their models, as data frames or plain values."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, select

from seqcls import results
from seqcls.config import MAX_MODEL_SEED, RunConfig, default_fields
from seqcls.errors import StoreDamagedError, UnknownRunError
from seqcls.imported import PREFIX, fields_known, in_columns
from seqcls.problem import unread_fields
from sweeps.records import LOSS_FIELDS, OUTPUT_COUNTS, read_rows
from sweeps.results import NULLABLE, RECORDS, exact_type
from sweeps.store.database import Store
from sweeps.store.findings import sound_findings
from sweeps.store.reads import frames
from sweeps.store.reads.selection import Selection, WrittenValue, is_value
from sweeps.store.reads.stored import IMPORTED_JSON, StoredRun, config_of, length_frame, read_runs
from sweeps.store.reads.sweep_queries import find_sweep
from sweeps.store.statements import one_of
from sweeps.store.tables import (
    Config,
    Finding,
    FindingKind,
    Revision,
    Run,
    RunState,
    Sweep,
    SweepRun,
    TestSetRow,
)

if TYPE_CHECKING:
    import pandas as pd


def revision(store: Store) -> int:
    """The number that every write raises, except heartbeats and losses of runs in training."""
    return int(store.value(select(Revision.runs)))


_OF_RUNS = [
    column.key
    for column in Run.__table__.columns
    if column.key not in ("id", "worker_id", "started_at", *RECORDS)
]
"""Columns of the table in a frame of runs."""


def runs(store: Store, selection: Selection | None = None) -> "pd.DataFrame":
    """One row a run: its columns, `accuracy` in [0, 1], `sweeps`, `num_parameters`, and its
    configuration's fields.

    Columns of results are missing where a run is not done. `accuracy_within` and
    `accuracy_beyond` are those on trained and on longer lengths, `outcome` is one of `Outcome`.
    `sweeps` is a tuple of names. If any run has a proof, `every_length` and `refuted_by` are
    included as in `frames.runs`.
    """
    chosen = selection or Selection()
    with store.read():
        found = frames.runs(store, chosen, _OF_RUNS)
        found = found[found["picked"]]
        # For all runs all configurations are read, without a list of ids in the query.
        config_ids = None if chosen == Selection() else found["config_id"].unique().tolist()
        known = configs(store, config_ids)
        names = frames.sweeps_of(store, found["run_id"].tolist())
    runs = found.rename(columns={"run_id": "id"}).reset_index(drop=True)
    runs["errors"] = runs["wrong"]
    runs["sweeps"] = [names.get(run_id, ()) for run_id in runs["id"]]
    shares = ["accuracy_within", "accuracy_beyond", "outcome", "errors", "accuracy", "sweeps"]
    # Few runs have a proof.
    proofs = ["every_length", "refuted_by"] if runs["every_length"].notna().any() else []
    sizes = sizes_of(store, list(known))
    runs["num_parameters"] = runs["config_id"].map(sizes).astype("Int64")
    runs = runs[["id", *_OF_RUNS, *shares, *proofs, "num_parameters"]]
    return runs.astype({"accuracy": "Float64"}).join(_fields_of(known), on="config_id")


def _fields_of(configs: Mapping[int, RunConfig]) -> "pd.DataFrame":
    """The fields of configurations, indexed by id, with settings of models trained elsewhere."""
    import pandas as pd

    rows, fields = in_columns(map(fields_known, configs.values())), default_fields()
    foreign = list(dict.fromkeys(x for row in rows for x in row if x.startswith(PREFIX)))
    columns, kind = [*fields, *foreign], object if foreign else None
    table = pd.DataFrame(rows, list(configs), columns, dtype=kind)
    if not foreign:
        return table
    # The type of each field's default: whole values of a float field stay floats.
    types = {name: NULLABLE[type(default)] for name, default in fields.items()}
    table = table.astype({**types, **{name: exact_type(table[name]) for name in foreign}})
    return table.assign(**{x: table[x].where(table[x].notna(), None) for x in foreign})


def length_scores(store: Store, run_ids: Sequence[int]) -> "pd.DataFrame":
    """These runs' counts at every length: run_id, length, tn, fp, fn, tp, tested, wrong; and
    right_length_given, edits and target_tokens, where any of the runs is of a transduction.
    """
    scores, counts = length_frame(store, run_ids), list(OUTPUT_COUNTS)
    if scores[counts].isna().all(axis=None):
        return scores.drop(columns=counts)
    return scores.astype(dict.fromkeys(counts, "Int64"))


def epochs(store: Store, run_id: int) -> "pd.DataFrame":
    """A run's losses so far: epoch, train_loss, validation_loss (sums over strings, in nats)."""
    import pandas as pd

    rows = read_rows(store.value(select(Run.losses).where(Run.id == run_id)))
    table = pd.DataFrame(rows, columns=list(LOSS_FIELDS))
    return table.astype({"epoch": int, "train_loss": float, "validation_loss": float})


def runs_named(store: Store, reference: str) -> list[int]:
    """The ids of the runs that a reference of `find_run` matches."""
    sweep, slash, seed = reference.rpartition("/")
    if not _is_reference(reference):
        return []
    query = select(Run.id).where(Run.id == int(seed))
    if slash:
        query = (
            select(Run.id)
            .join(SweepRun, SweepRun.run_id == Run.id)
            .join(Sweep, Sweep.id == SweepRun.sweep_id)
            .where(Sweep.name == sweep, Run.model_seed == int(seed))
        )
    return store.column(query)


def _is_reference(text: str) -> bool:
    sweep, slash, seed = text.rpartition("/")
    # ASCII, since Python accepts digits of other scripts. No seed has twenty digits, and `int`
    # raises an error on thousands of them.
    is_number = seed.isascii() and seed.isdigit() and len(seed) < 20
    return is_number and int(seed) <= MAX_MODEL_SEED and bool(sweep or not slash)


def find_run(store: Store, reference: int | str) -> int:
    """The id of the run named `12`, or `all_initializations/2`: a sweep and a model seed.

    Raises:
        UnknownRunError: there is no such run, or several.
        StoreDamagedError: its results do not fit their digest.
    """
    reference = str(reference)
    if not _is_reference(reference):
        raise UnknownRunError(
            f"no run {reference!r}: expected a run's id, such as 12, or a sweep and a model seed, "
            "such as all_initializations/2; `seqcls runs` lists them"
        )
    ids = runs_named(store, reference)
    if len(ids) > 1:
        raise UnknownRunError(
            f"{reference!r} means {len(ids)} runs of different configurations; name one by its "
            f"id: {', '.join(map(str, sorted(ids)[:10]))}"
        )
    if not ids:
        sweep, slash, _ = reference.rpartition("/")
        try:
            # Suggests a sweep if none has the name in the reference.
            if slash:
                find_sweep(store, sweep)
        except UnknownRunError as error:
            raise UnknownRunError(f"no run {reference!r}: {error}") from None
        raise UnknownRunError(f"no run {reference!r} in {store.name!r}; `seqcls runs` lists them")
    with store.read() as connection:
        for stored in read_runs(connection, ids):
            refuse_misfit(store, stored)
    return ids[0]


def refuse_misfit(store: Store, stored: StoredRun) -> None:
    """Refuses a finished run whose results do not fit their digest.

    Raises:
        StoreDamagedError: they are not as they were written.
    """
    if stored.run["state"] == RunState.DONE and (misfit := stored.misfit()) is not None:
        raise StoreDamagedError(
            f"{store.name!r}: run {stored.run['id']} is damaged: {misfit}; restore a copy, or "
            "train it again in another database"
        )


@dataclass(frozen=True)
class RunStatus:
    """The state of a run, and the reason of a failure."""

    model_seed: int
    state: str
    best_epoch: int | None
    error: str | None
    engine_reason: str | None
    """The reason why this engine trained it; for a model trained elsewhere, the epoch in which it
    diverged, or else the file of its predictions."""


def run_status(store: Store, run_id: int) -> RunStatus:
    """The status of a run that exists."""
    columns = (Run.model_seed, Run.state, Run.best_epoch, Run.error, Run.engine_reason)
    return RunStatus(*store.one(select(*columns).where(Run.id == run_id)))


def check_done(store: Store, run_id: int, lacks: str) -> RunStatus:
    """The status of a run that exists and is done.

    Args:
        lacks: what an unfinished run lacks, as a clause such as `has no weights`.

    Raises:
        UnknownRunError: it is not done.
    """
    status = run_status(store, run_id)
    if status.state != RunState.DONE:
        reason = f": {status.error}" if status.error else ""
        raise UnknownRunError(f"run {run_id} is {status.state} and {lacks}{reason}")
    return status


def configs(store: Store, config_ids: Sequence[int] | None = None) -> dict[int, RunConfig]:
    """These configurations, or all, by id; fields that one predates have their defaults."""
    texts = config_texts(store, config_ids)
    return {config_id: config_of(config_id, text) for config_id, text in texts.items()}


def sizes_of(store: Store, config_ids: Sequence[int]) -> dict[int, int | None]:
    """The number of parameters of configurations, by id; None where no weights are known."""
    query = select(Config.id, Config.num_parameters).where(one_of(Config.id, config_ids))
    return dict(store.rows(query))


def names_of(store: Store, config_ids: Sequence[int]) -> dict[int, str]:
    """The names of configurations by id, in the given order."""
    query = select(Config.id, Config.name).where(one_of(Config.id, config_ids))
    named = dict(store.rows(query))
    return {config_id: named[config_id] for config_id in config_ids}


def names_of_sweep(store: Store, sweep_id: int) -> dict[str, str]:
    """The names of a sweep's configurations, by key."""
    members = select(Run.config_id).join(SweepRun, SweepRun.run_id == Run.id)
    own = Config.id.in_(members.where(SweepRun.sweep_id == sweep_id))
    return dict(store.rows(select(Config.key, Config.name).where(own)))


def config_called(store: Store, name: str) -> int | None:
    """The id of the configuration of this name; None if there is none."""
    known = store.value(select(Config.id).where(Config.name == name))
    return None if known is None else int(known)


def foreign_settings(store: Store) -> set[str]:
    """The names of all settings of models trained elsewhere, such as `config.d_model`."""
    known = {x for config in configs_since(store, 0).values() for x in fields_known(config)}
    return {name for name in known if name.startswith(PREFIX)}


def configs_since(store: Store, config_id: int) -> dict[int, RunConfig]:
    """The stored configurations of models trained elsewhere, with ids above this one, by id."""
    query = select(Config.id, Config.json).where(Config.id > config_id)
    query = query.where(Config.json.contains(IMPORTED_JSON)).order_by(Config.id)
    configs = {}
    for known, text in store.rows(query):
        # Damaged ones are skipped; `seqcls db verify` names them.
        with suppress(StoreDamagedError):
            configs[known] = config_of(known, text)
    return configs


def has_run(store: Store, config: RunConfig, model_seed: int) -> bool:
    """True if there is a run of this configuration and seed."""
    return store.value(same_run(config, model_seed)) is not None


def same_run(config: RunConfig, model_seed: int) -> Select[int]:
    """The query for the id of the run of this configuration and seed."""
    query = select(Run.id).join(Config, Config.id == Run.config_id)
    return query.where(Config.key == config.key, Run.model_seed == model_seed)


def config_texts(store: Store, config_ids: Sequence[int] | None = None) -> dict[int, str]:
    """The stored fields of these configurations, or of all, as JSON by id, in order of ids."""
    query = select(Config.id, Config.json).order_by(Config.id)
    if config_ids is not None:
        query = query.where(one_of(Config.id, config_ids))
    return dict(store.rows(query))


def run_config(store: Store, run_id: int) -> RunConfig:
    """The configuration of a run that exists."""
    query = select(Config.id, Config.json).join(Run, Run.config_id == Config.id)
    return config_of(*store.one(query.where(Run.id == run_id)))


NO_WEIGHTS = (
    "it was trained elsewhere and imported, so its weights are not in this database: only what it "
    "predicted for its test strings is known"
)


def why_no_weights(config: RunConfig) -> str | None:
    """The reason why runs of a configuration have no weights here; None if they have."""
    return NO_WEIGHTS if config.is_imported else None


def test_set_digests(store: Store, config_ids: Sequence[int]) -> set[str | None]:
    """The distinct digests of the strings that configurations are tested on; None for those without
    results.
    """
    query = select(TestSetRow.digest).join(Config, Config.test_set_id == TestSetRow.id)
    return set(store.column(query.where(one_of(Config.id, config_ids))))


def verdict(store: Store, run_id: int) -> results.Verdict | None:
    """The result of a run's exhaustive check; None without a stored one."""
    is_verdict = Finding.kind == FindingKind.VERDICT
    stored = sound_findings(store, Finding.run_id == run_id, is_verdict)
    return results.Verdict(**stored[0].fields) if stored else None


def with_values(
    configs: Mapping[int, RunConfig], required: Iterable[tuple[str, Any]]
) -> dict[int, Mapping[str, Any]]:
    """The fields of those of these configurations that read these fields and have these values."""
    alike: dict[int, Mapping[str, Any]] = {x: fields_known(config) for x, config in configs.items()}
    for name, value in required:
        found = with_value(alike, name, value)
        alike = {x: fields for x, fields in found.items() if name not in unread_fields(configs[x])}
    return alike


def with_value(
    configs: Mapping[int, Mapping[str, Any]], name: str, value: Any
) -> dict[int, Mapping[str, Any]]:
    """Those of these configurations, given by their fields, in which a field has this value."""
    candidates = [value]
    if isinstance(value, WrittenValue):
        candidates = value.matching(stored.get(name) for stored in configs.values())
    return {
        config_id: stored
        for config_id, stored in configs.items()
        if any(is_value(stored.get(name), candidate) for candidate in candidates)
    }


def config_ids_of_sweep(store: Store, sweep_id: int) -> list[int]:
    """The sorted ids of a sweep's configurations."""
    query = select(Run.config_id).join(SweepRun, SweepRun.run_id == Run.id).distinct()
    return sorted(store.column(query.where(SweepRun.sweep_id == sweep_id)))


def config_id_of(store: Store, run_id: int) -> int:
    """The id of the configuration of a run that exists."""
    return int(store.one(select(Run.config_id).where(Run.id == run_id))[0])
