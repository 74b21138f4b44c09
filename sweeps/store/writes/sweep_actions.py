"""What a user does with sweeps: submit, stop, resume, retry, delete, and write notes on them."""

import json
import re
import uuid
from collections.abc import Collection, Sequence
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
from sweeps.store.statements import (
    ConfigText,
    chunks,
    in_another_sweep,
    insert_sweep,
    put_configs,
    queue_runs,
    state_of_sweep,
)
from sweeps.store.tables import (
    Checkpoint,
    Config,
    Finding,
    Run,
    RunState,
    ShortcutRow,
    Sweep,
    SweepRun,
    SweepState,
    TestSetRow,
    TestString,
    now,
)
from sweeps.store.writes.test_sets import datasets_of, delete_unused, store_dataset

LONGEST_NAME = 200
LONGEST_NOTE = 20_000


def write_note(store: Store, sweep_id: int, title: str, note: str, tags: Sequence[str]) -> None:
    """Replaces a sweep's title, note and tags.

    Raises:
        StoreError: one of them is too long.
    """
    kept = sorted({tag.strip() for tag in tags} - {""})
    for what, text, most in (
        ("title", title, LONGEST_NAME),
        ("note", note, LONGEST_NOTE),
        *(("tag", tag, LONGEST_NAME) for tag in kept),
    ):
        if len(text) > most:
            raise StoreError(f"a {what} of {len(text):,} characters: expected {most:,} at most")
    written = {"title": title.strip(), "note": note.strip(), "tags": canonical_json(kept)}
    _update(store, [sweep_id], "members", **written)


def archive(store: Store, sweep_id: int, archived: bool) -> None:
    """Hides a sweep from lists, or takes that back; its runs stay as they are."""
    _update(store, [sweep_id], "members", archived_at=now() if archived else None)


# What a user does with sweeps: submit, stop, resume, retry, delete. Each is one transaction.

_AGENTS = re.compile(r"(agent|taken):([0-9]+):.+")
"""The launch token of a sweep that an agent launched, or that a person took from agents by
submitting it again, with the models that it was granted."""


def submit(
    store: Store, spec: SweepSpec, launch_token: str | None = None, *, instead_of: str | None = None
) -> int:
    """Makes the sweep of that name what the specification says; queues the runs that are new.

    Runs that the specification no longer has leave the sweep: those with results stay in the
    database, those not yet begun are deleted unless another sweep has them. A stopped sweep
    goes on.

    Args:
        launch_token: names a launch that may be asked for twice, by a double click say; the second
            time nothing is done.
        instead_of: the specification, as JSON, that it is made from; where the sweep has another by
            now, or is stopped, nothing is done.

    Returns:
        The sweep's id.

    Raises:
        ConfigError: a sweep of that name holds imported results.
    """
    members = list(spec.members())
    with store.write("configs", "members") as connection:
        take_turns(connection)
        if launch_token is not None:
            taken = Sweep.launch_token.endswith(f":{launch_token}", autoescape=True)
            launched = select(Sweep.id).where((Sweep.launch_token == launch_token) | taken)
            if (known := connection.scalar(launched)) is not None:
                return known
        token: str | None = launch_token or uuid.uuid4().hex
        there = select(Sweep.id, Sweep.launch_token).where(Sweep.name == spec.name)
        if instead_of is None:
            row = connection.execute(there).first()
            if row is not None and (match := _AGENTS.fullmatch(row.launch_token)) is not None:
                # It is the person's now; what agents had trained by it still counts.
                token = f"taken:{match[2]}:{token}"
        else:
            unchanged = (Sweep.spec == instead_of) & (state_of_sweep() == SweepState.DONE)
            if connection.execute(there.where(unchanged)).first() is None:
                return int(connection.scalar(there) or 0)
            # It stays whose it was.
            token = None
        sweep_id, _ = _put_sweep(connection, spec, members, token)
    return sweep_id


def launch_for_agent(store: Store, specs: Sequence[SweepSpec], most: int) -> tuple[int, int]:
    """Submits sweeps for an agent, all or none of them.

    Agents may have so many models trained in all, whichever of them asks, and whenever: those count
    that a sweep of theirs may grow to, but not those that were trained when it was launched. Only
    sweeps that agents launched are changed, and no run leaves one.

    Args:
        most: the models that agents may have trained in this database.

    Returns:
        How many more models are trained for it at most, and how many agents may still launch.

    Raises:
        ConfigError: too many models, the name of a sweep that is no agent's, or one that runs
            would leave; nothing is queued.
    """
    if (every := sum(spec.most_runs() for spec in specs)) > MAX_RUNS:
        raise ConfigError(
            f"the specification may grow to {every:,} models, expected at most {MAX_RUNS:,}; lower "
            "most_seeds"
        )
    with store.write("configs", "members") as connection:
        take_turns(connection)
        rows = connection.execute(select(Sweep.name, Sweep.launch_token, Sweep.spec)).all()
        counted_in = {name: _AGENTS.fullmatch(token) for name, token, _ in rows}
        spent = sum(int(match[2]) for match in counted_in.values() if match is not None)
        granted = {
            name: (int(match[2]), stored)
            for name, _, stored in rows
            if (match := counted_in[name]) is not None and match[1] == "agent"
        }
        for name in sorted({name for name, _, _ in rows} - granted.keys()):
            if any(name == spec.name for spec in specs):
                raise ConfigError(
                    f"there is a sweep {name!r} already, which no agent launched and none may "
                    "change; choose another name"
                )
        left = max(most - spent, 0)
        counted: set[tuple[str, int]] = set()
        for spec in specs:
            if spec.name in granted:
                counted |= _all_of(spec_as_written(json.loads(granted[spec.name][1])))
        new: dict[str, int] = {}
        for spec in specs:
            asked = _all_of(spec) - counted
            new[spec.name] = len(asked - _trained_or_granted(connection, {x for x, _ in asked}))
            counted |= asked
        total = sum(new.values())
        if total > left:
            listed = sum(spec.num_runs() for spec in specs)
            grows = any(spec.until for spec in specs)
            asks = (
                f"{count(listed, 'model')} and may grow until {total:,} are to train"
                if grows
                else count(total, "model")
            )
            fewer = "fewer seeds, or a smaller most_seeds," if grows else "fewer seeds,"
            raise ConfigError(
                f"the specification asks for {asks}, and {left:,} may still be launched; ask for "
                f"{fewer} or have the server started with a larger allowance"
            )
        for spec in specs:
            number = granted.get(spec.name, (0, ""))[0] + new[spec.name]
            token = f"agent:{number}:{uuid.uuid4().hex}"
            if (gone := _put_sweep(connection, spec, list(spec.members()), token)[1]) > 0:
                raise ConfigError(
                    f"{gone:,} of the runs of the sweep {spec.name!r} would leave it; keep them in "
                    "the specification, or choose another name"
                )
    return total, left - total


def _all_of(spec: SweepSpec) -> set[tuple[str, int]]:
    """The runs that a sweep has or may get: keys of configurations, and model seeds."""
    return {(config.key, seed) for config, seeds in spec.all_it_may_train() for seed in seeds}


def _trained_or_granted(connection: Connection, keys: Collection[str]) -> set[tuple[str, int]]:
    """Those runs of these configurations that are done, or in a sweep that an agent launched."""
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
    found: set[tuple[str, int]] = set()
    for some in chunks(sorted(keys)):
        rows = connection.execute(query.where(Config.key.in_(some)))
        found.update((key, seed) for key, seed in rows)
    return found


def _put_sweep(
    connection: Connection,
    spec: SweepSpec,
    members: Sequence[tuple[RunConfig, Seeds]],
    token: str | None,
) -> tuple[int, int]:
    """Makes the sweep of that name what a specification says; its id, and how many runs left it.

    Args:
        token: its launch token; None where it stays as it is.
    """
    configs = [config for config, _ in members]
    for digest in sorted({config.dataset for config in configs} - {""}):
        store_dataset(connection, dataset_of(digest))
    config_ids = config_ids_of(connection, configs)
    alike: dict[Seeds, list[int]] = {}
    for config_id, (_, seeds) in zip(config_ids, members, strict=True):
        alike.setdefault(seeds, []).append(config_id)
    seeded = [(ids, seeds) for seeds, every in alike.items() for ids in chunks(every)]
    # First, as workers do: this may wait for one that is changing a run, who waits for sweeps.
    for ids, seeds in seeded:
        insert_runs(connection, ids, seeds)
    sweep_id = _sweep_id(connection, spec, token)
    runs = select(SweepRun.run_id).where(SweepRun.sweep_id == sweep_id)
    before = connection.scalars(runs).all()
    connection.execute(delete_rows(SweepRun).where(SweepRun.sweep_id == sweep_id))
    for ids, seeds in seeded:
        add_members(connection, sweep_id, ids, seeds)
    gone = len(set(before) - set(connection.scalars(runs)))
    delete_runs(connection, _left_over(connection, before))
    return sweep_id, gone


def stop(store: Store, sweep_ids: Sequence[int]) -> None:
    """Has workers leave the runs of these sweeps that are not done."""
    _update(store, sweep_ids, stopped_at=now())


def resume(store: Store, sweep_ids: Sequence[int]) -> None:
    """Takes a stop back; a worker is needed to go on."""
    _update(store, sweep_ids, stopped_at=None)


def retry(store: Store, sweep_ids: Sequence[int]) -> int:
    """Queues the failed runs of these sweeps again, and those sweeps where they were stopped.

    Returns:
        How many runs that were.
    """
    members = select(SweepRun.run_id).where(SweepRun.sweep_id.in_(sweep_ids))
    with store.write() as connection:
        nothing = dict.fromkeys(("error", "worker_id", "started_at", "finished_at"))
        failed = update(Run).where(Run.id.in_(members), Run.state == RunState.FAILED)
        queued = failed.values(state=RunState.QUEUED, failures=0, **nothing)
        again = connection.execute(queued).rowcount
        connection.execute(update(Sweep).where(Sweep.id.in_(sweep_ids)).values(stopped_at=None))
    return again


def delete(store: Store, sweep_id: int) -> int:
    """Deletes a sweep, and those of its runs that no other sweep has.

    Returns:
        How many runs that were.
    """
    with store.write("configs", "members") as connection:
        take_turns(connection)
        members = select(SweepRun.run_id).where(SweepRun.sweep_id == sweep_id)
        doomed = connection.scalars(members.where(~in_another_sweep())).all()
        # Waits until no worker is storing results of these runs; SQLite has one writer anyway.
        for ids in chunks(sorted(doomed)):
            query = select(Run.id).where(Run.id.in_(ids)).order_by(Run.id)
            connection.execute(query.with_for_update())
        connection.execute(delete_rows(SweepRun).where(SweepRun.sweep_id == sweep_id))
        delete_runs(connection, doomed)
        connection.execute(delete_rows(Sweep).where(Sweep.id == sweep_id))
    return len(doomed)


def _left_over(connection: Connection, run_ids: Sequence[int]) -> list[int]:
    """Those of these runs that no sweep has any longer and that have not begun."""
    left: list[int] = []
    has_no_sweep = ~exists().where(SweepRun.run_id == Run.id)
    for ids in chunks(run_ids):
        query = select(Run.id).where(Run.id.in_(ids), Run.state == RunState.QUEUED, has_no_sweep)
        query = query.where(Run.attempt == 0).order_by(Run.id)
        left += connection.scalars(query.with_for_update())
    return left


def delete_runs(connection: Connection, run_ids: Sequence[int]) -> None:
    """Deletes runs with all that was stored of them, and configurations that no run has."""
    for ids in chunks(run_ids):
        for table in (Checkpoint, Finding):
            connection.execute(delete_rows(table).where(table.run_id.in_(ids)))
        connection.execute(delete_rows(Run).where(Run.id.in_(ids)))
    if run_ids:
        used = exists().where(Run.config_id == Config.id)
        # What was imported for later stays.
        datasets = datasets_of(connection, ~used)
        connection.execute(delete_rows(Config).where(~used))
        delete_unused(connection, datasets)
        tested = select(Config.test_set_id).where(Config.test_set_id.is_not(None))
        for strings in (TestString, ShortcutRow):
            connection.execute(delete_rows(strings).where(strings.test_set_id.not_in(tested)))
        connection.execute(delete_rows(TestSetRow).where(TestSetRow.id.not_in(tested)))


def _update(
    store: Store, sweep_ids: Sequence[int], *what: Literal["members"], **values: str | None
) -> None:
    with store.write(*what) as connection:
        connection.execute(update(Sweep).where(Sweep.id.in_(sweep_ids)).values(**values))


def _sweep_id(connection: Connection, spec: SweepSpec, token: str | None) -> int:
    rows = connection.execute(select(Sweep.id, Sweep.spec).where(Sweep.name == spec.name))
    known = rows.one_or_none()
    if known is not None:
        if are_imported(json.loads(known.spec).get("fixed", {})):
            raise ConfigError(
                f"sweep {spec.name!r} holds imported results; give the sweep to be trained "
                f"another name"
            )
        fields = {"description": spec.description, "spec": spec.submitted}
        if token is not None:
            fields["launch_token"] = token
        this = update(Sweep).where(Sweep.id == known.id)
        connection.execute(this.values(**fields, stopped_at=None))
        return int(known.id)
    return insert_sweep(connection, spec.name, spec.description, spec.submitted, launch_token=token)


def config_ids_of(connection: Connection, configs: Sequence[RunConfig]) -> list[int]:
    """The ids of these configurations, which are stored where they are not there yet."""
    test_sets = {test_set_key(config): canonical_json(test_set_json(config)) for config in configs}
    texts = [
        ConfigText(config.key, canonical_json(config.model_dump()), test_set_key(config))
        for config in {config.key: config for config in configs}.values()
    ]
    return list(put_configs(connection, test_sets, texts).values())


def insert_runs(
    connection: Connection, config_ids: Sequence[int], model_seeds: Sequence[int]
) -> None:
    """Queues every one of these configurations with every seed, where that is no run yet."""
    for seeds in chunks(model_seeds):
        queue_runs(connection, product(config_ids, seeds))


def add_members(
    connection: Connection, sweep_id: int, config_ids: Sequence[int], model_seeds: Sequence[int]
) -> None:
    """Adds every one of these configurations with every seed to the sweep."""
    for seeds in chunks(model_seeds):
        members = select(literal(sweep_id), Run.id).where(
            Run.config_id.in_(config_ids), Run.model_seed.in_(seeds)
        )
        connection.execute(insert(SweepRun).from_select(["sweep_id", "run_id"], members))
