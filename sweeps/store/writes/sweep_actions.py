"""A user's actions on sweeps: submit, stop, resume, retry, delete, write notes, archive."""

import json
import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Literal

from sqlalchemy import Connection, exists, insert, literal, select, update
from sqlalchemy import delete as delete_rows

from seqcls.config import RunConfig, are_imported
from seqcls.errors import ConfigError, StoreError
from seqcls.fields import test_set_json, test_set_key
from seqcls.strings.datasets import dataset_of
from seqcls.text import canonical_json, count
from sweeps.grid.spec import SweepSpec, spec_as_written
from sweeps.grid.written_spec import MAX_RUNS, Seeds
from sweeps.store.database import Store, take_turns
from sweeps.store.opening import open_writer
from sweeps.store.reads.sweep_queries import Sweeps, sweep_ids
from sweeps.store.statements import in_another_sweep, insert_sweep, one_of, put_configs, queue_runs
from sweeps.store.tables import (
    Checkpoint,
    Config,
    DatasetRow,
    Finding,
    Run,
    RunState,
    ShortcutRow,
    Sweep,
    SweepRun,
    TestSetRow,
    TestString,
    now,
)
from sweeps.store.test_sets import store_dataset
from sweeps.store.writes.names import names_of_sweep

LONGEST_NAME = 200
LONGEST_NOTE = 20_000


def write_note(store: Store, sweep_id: int, title: str, note: str, tags: Sequence[str]) -> None:
    """Replaces a sweep's title, note and tags.

    Raises:
        StoreError: one of them is too long.
    """
    words = sorted({tag.strip() for tag in tags} - {""})
    for what, text in (("title", title), ("note", note), *(("tag", tag) for tag in words)):
        most = LONGEST_NOTE if what == "note" else LONGEST_NAME
        if len(text) > most:
            raise StoreError(f"a {what} of {len(text):,} characters: expected {most:,} at most")
    written = {"title": title.strip(), "note": note.strip(), "tags": canonical_json(words)}
    _update(store, [sweep_id], "members", **written)


def archive(store: Store, sweep_id: int, archived: bool) -> None:
    """Hides a sweep from lists, or shows it again; its runs are unchanged."""
    _update(store, [sweep_id], "members", archived_at=now() if archived else None)


# Actions on sweeps, each of which is one transaction.

_AGENTS = re.compile(r"(agent|taken):([0-9]+):.+")
"""The launch token of a sweep that an agent launched, or that a person took over by submitting it
again; the number is that of the models granted to agents."""


def submit(
    store: Store,
    spec: SweepSpec,
    launch_token: str | None = None,
    *,
    instead_of: str | None = None,
    names: Mapping[str, str] | None = None,
) -> int:
    """Creates or replaces the sweep of the specification's name, and queues its new runs.

    Runs that the specification no longer has leave the sweep: those with results stay in the
    database, those not yet begun are deleted unless another sweep has them. A stopped sweep is
    resumed.

    Args:
        launch_token: identifies a launch that may be requested twice, by a double click for
            example; the second time nothing is done.
        instead_of: the specification, as JSON, that this one replaces; if the sweep has another by
            now, or is not done, nothing is done.
        names: names of new configurations, by key, if several sweeps are submitted together; by
            default, names that tell them apart within the sweep.

    Returns:
        The sweep's id.

    Raises:
        ConfigError: a sweep of that name holds imported results.
    """
    # Expanded before the transaction, which would block others meanwhile.
    members = list(spec.members())
    with store.write("configs", "members") as connection:
        take_turns(connection)
        if launch_token is not None:
            # A sweep taken from an agent has the person's token behind the agent's grant.
            taken = Sweep.launch_token.endswith(f":{launch_token}", autoescape=True)
            launched = select(Sweep.id).where((Sweep.launch_token == launch_token) | taken)
            if (known := connection.scalar(launched)) is not None:
                return known
        token: str | None = launch_token or uuid.uuid4().hex
        there = select(Sweep.id, Sweep.launch_token).where(Sweep.name == spec.name)
        if instead_of is None:
            row = connection.execute(there).first()
            if row is not None and (match := _AGENTS.fullmatch(row.launch_token)) is not None:
                # It is the person's now, but the models granted to agents still count.
                token = f"taken:{match[2]}:{token}"
        else:
            member = (SweepRun.sweep_id == Sweep.id) & (SweepRun.run_id == Run.id)
            is_left = exists().where(member, Run.state.in_((RunState.QUEUED, RunState.RUNNING)))
            unchanged = (Sweep.spec == instead_of) & Sweep.stopped_at.is_(None) & ~is_left
            if connection.execute(there.where(unchanged)).first() is None:
                return int(connection.scalar(there) or 0)
            # The launch token is unchanged.
            token = None
        sweep_id, _ = _put_sweep(connection, spec, members, token, names)
    return sweep_id


def launch_for_agent(store: Store, specs: Sequence[SweepSpec], most: int) -> tuple[int, int]:
    """Submits sweeps for an agent, all or none of them.

    All agents share one allowance for this database. All models count that their sweeps may grow
    to, except those that were trained when a sweep was launched. Only sweeps that agents launched
    are changed, and no run leaves one.

    Args:
        most: the number of models that agents may have trained in this database.

    Returns:
        The number of models that this launch may train, and that agents may still launch.

    Raises:
        ConfigError: too many models, the name of a sweep that is no agent's, or one that runs
            would leave; nothing is queued.
    """
    # Checked before `_all_of` holds each of these runs in memory.
    if (every := sum(spec.most_runs() for spec in specs)) > MAX_RUNS:
        raise ConfigError(
            f"the specification may grow to {every:,} models, expected at most {MAX_RUNS:,}; lower "
            "most_seeds"
        )
    with store.write("configs", "members") as connection:
        take_turns(connection)
        query = select(Sweep.name, Sweep.launch_token, Sweep.spec)
        here = {row.name: row for row in connection.execute(query)}
        grants = {name: _AGENTS.fullmatch(row.launch_token) for name, row in here.items()}
        left = max(most - sum(int(match[2]) for match in grants.values() if match), 0)
        counted: set[tuple[str, int]] = set()
        for name in {spec.name for spec in specs} & here.keys():
            match = grants[name]
            if match is None or match[1] != "agent":
                raise ConfigError(
                    f"there is a sweep {name!r} already, which no agent launched and none may "
                    "change; choose another name"
                )
            counted |= _all_of(spec_as_written(json.loads(here[name].spec)))
        new: dict[str, int] = {}
        for spec in specs:
            requested = _all_of(spec) - counted
            new[spec.name] = len(
                requested - _trained_or_granted(connection, {x for x, _ in requested})
            )
            # A model in several of these sweeps counts once.
            counted |= requested
        if (total := sum(new.values())) > left:
            grows = "up to " if any(spec.until for spec in specs) else ""
            raise ConfigError(
                f"the specification asks for {grows}{count(total, 'model')}, and {left:,} may "
                "still be launched; ask for fewer seeds, or a smaller most_seeds, or have the "
                "server started with a larger allowance"
            )
        for spec in specs:
            match = grants.get(spec.name)
            number = new[spec.name] + (int(match[2]) if match else 0)
            # The token holds the number of granted models, which later launches count.
            token = f"agent:{number}:{uuid.uuid4().hex}"
            if (gone := _put_sweep(connection, spec, list(spec.members()), token)[1]) > 0:
                raise ConfigError(
                    f"{gone:,} of the runs of the sweep {spec.name!r} would leave it; keep them in "
                    "the specification, or choose another name"
                )
    return total, left - total


def _all_of(spec: SweepSpec) -> set[tuple[str, int]]:
    """The runs that a sweep has or may get, as (configuration's key, model seed)."""
    return {(config.key, seed) for config, seeds in spec.all_it_may_train() for seed in seeds}


def _trained_or_granted(connection: Connection, keys: Collection[str]) -> set[tuple[str, int]]:
    """The runs of these configurations that are done, or in a sweep that an agent launched."""
    by_agents = exists().where(
        SweepRun.run_id == Run.id,
        SweepRun.sweep_id == Sweep.id,
        Sweep.launch_token.startswith("agent:"),
    )
    query = (
        select(Config.key, Run.model_seed)
        .join(Run, Run.config_id == Config.id)
        .where((Run.state == RunState.DONE) | by_agents)
    )
    return {(key, seed) for key, seed in connection.execute(query.where(one_of(Config.key, keys)))}


def _put_sweep(
    connection: Connection,
    spec: SweepSpec,
    members: Sequence[tuple[RunConfig, Seeds]],
    token: str | None,
    names: Mapping[str, str] | None = None,
) -> tuple[int, int]:
    """Creates or replaces a sweep; returns its id, and the number of runs that left it.

    Args:
        token: its launch token; None to leave it unchanged.
        names: as for `submit`.
    """
    configs = [config for config, _ in members]
    for digest in sorted({config.dataset for config in configs} - {""}):
        store_dataset(connection, dataset_of(digest))
    alike: dict[Seeds, list[int]] = {}
    config_ids = config_ids_of(connection, configs, names_of_sweep(connection, spec, names))
    for config_id, (_, seeds) in zip(config_ids, members, strict=True):
        alike.setdefault(seeds, []).append(config_id)
    # Runs are locked before sweeps, in the same order as by workers, to prevent deadlocks.
    for seeds, ids in alike.items():
        queue_runs(connection, product(ids, seeds))
    there = select(Sweep.id, Sweep.spec).where(Sweep.name == spec.name)
    if (known := connection.execute(there).one_or_none()) is None:
        texts = (spec.name, spec.description, spec.submitted)
        sweep_id = insert_sweep(connection, *texts, launch_token=token)
    elif are_imported(json.loads(known.spec).get("fixed", {})):
        raise ConfigError(
            f"sweep {spec.name!r} holds imported results; give the sweep to be trained another name"
        )
    else:
        sweep_id = known.id
        changed = {"description": spec.description, "spec": spec.submitted, "stopped_at": None}
        changed |= {} if token is None else {"launch_token": token}
        connection.execute(update(Sweep).where(Sweep.id == sweep_id).values(changed))
    runs = select(SweepRun.run_id).where(SweepRun.sweep_id == sweep_id)
    before = connection.scalars(runs).all()
    connection.execute(delete_rows(SweepRun).where(SweepRun.sweep_id == sweep_id))
    for seeds, ids in alike.items():
        query = select(literal(sweep_id), Run.id).where(one_of(Run.config_id, ids))
        members_of = query.where(one_of(Run.model_seed, seeds))
        connection.execute(insert(SweepRun).from_select(["sweep_id", "run_id"], members_of))
    gone = set(before) - set(connection.scalars(runs))
    has_no_sweep = ~exists().where(SweepRun.run_id == Run.id)
    not_begun = (Run.state == RunState.QUEUED) & (Run.attempt == 0) & has_no_sweep
    left = select(Run.id).where(one_of(Run.id, gone), not_begun).order_by(Run.id)
    delete_runs(connection, connection.scalars(left.with_for_update()).all())
    return sweep_id, len(gone)


def stop(store: Store, sweeps: Sweeps) -> None:
    """Stops these sweeps: workers leave their remaining runs queued.

    Raises:
        UnknownRunError: there is no such sweep.
    """
    _update(store, sweep_ids(store, sweeps), stopped_at=now())


def resume(store: Store, sweeps: Sweeps) -> None:
    """Resumes these stopped sweeps; training needs a worker.

    Raises:
        UnknownRunError: there is no such sweep.
    """
    _update(store, sweep_ids(store, sweeps), stopped_at=None)


def retry(store: Store, sweeps: Sweeps) -> int:
    """Queues the failed runs of these sweeps again, and resumes the sweeps.

    Returns:
        The number of runs.

    Raises:
        UnknownRunError: there is no such sweep.
    """
    ids = sweep_ids(store, sweeps)
    members = select(SweepRun.run_id).where(SweepRun.sweep_id.in_(ids))
    with open_writer(store).write() as connection:
        nothing = dict.fromkeys(("error", "worker_id", "started_at", "finished_at"))
        failed = update(Run).where(Run.id.in_(members), Run.state == RunState.FAILED)
        # Counted from zero, or the first failure of the new attempts could be final.
        queued = failed.values(state=RunState.QUEUED, failures=0, **nothing)
        again = connection.execute(queued).rowcount
        connection.execute(update(Sweep).where(Sweep.id.in_(ids)).values(stopped_at=None))
    return again


def delete(store: Store, sweep_id: int) -> int:
    """Deletes a sweep, and those of its runs that no other sweep has.

    Returns:
        The number of runs.
    """
    with store.write("configs", "members") as connection:
        take_turns(connection)
        members = select(SweepRun.run_id).where(SweepRun.sweep_id == sweep_id)
        doomed = connection.scalars(members.where(~in_another_sweep())).all()
        # Waits until no worker is storing results of these runs; SQLite has a single writer.
        query = select(Run.id).where(one_of(Run.id, doomed)).order_by(Run.id)
        connection.execute(query.with_for_update())
        connection.execute(delete_rows(SweepRun).where(SweepRun.sweep_id == sweep_id))
        delete_runs(connection, doomed)
        connection.execute(delete_rows(Sweep).where(Sweep.id == sweep_id))
    return len(doomed)


def delete_runs(connection: Connection, run_ids: Sequence[int]) -> None:
    """Deletes runs with their contents; also configurations, datasets and test sets left unused."""
    if run_ids:
        for table in (Checkpoint, Finding):
            connection.execute(delete_rows(table).where(one_of(table.run_id, run_ids)))
        connection.execute(delete_rows(Run).where(one_of(Run.id, run_ids)))
        used = exists().where(Run.config_id == Config.id)
        # Datasets that were imported for later use are not deleted.
        names = Config.json.contains(DatasetRow.digest)
        named = select(DatasetRow.id).where(exists().where(names, ~used))
        datasets = connection.scalars(named).all()
        connection.execute(delete_rows(Config).where(~used))
        unnamed = one_of(DatasetRow.id, datasets) & ~exists().where(names)
        connection.execute(delete_rows(DatasetRow).where(unnamed))
        tested = select(Config.test_set_id).where(Config.test_set_id.is_not(None))
        for strings in (TestString, ShortcutRow):
            connection.execute(delete_rows(strings).where(strings.test_set_id.not_in(tested)))
        connection.execute(delete_rows(TestSetRow).where(TestSetRow.id.not_in(tested)))


def _update(
    store: Store, ids: Sequence[int], *what: Literal["members"], **values: str | None
) -> None:
    with open_writer(store).write(*what) as connection:
        connection.execute(update(Sweep).where(Sweep.id.in_(ids)).values(**values))


def config_ids_of(
    connection: Connection, configs: Sequence[RunConfig], names: Mapping[str, str]
) -> list[int]:
    """The ids of these configurations, which are stored if they are missing.

    Args:
        names: the name of each, by key.
    """
    test_sets = {test_set_key(config): canonical_json(test_set_json(config)) for config in configs}
    rows = {
        config.key: {
            "name": names[config.key],
            "json": canonical_json(config.model_dump()),
            "test_set_id": test_set_key(config),
        }
        for config in configs
    }
    return list(put_configs(connection, test_sets, rows).values())
