"""Storing the outcomes of claims: results, failures, exhaustive checks."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

from sqlalchemy import Connection, Update, bindparam, select, update

from seqcls.errors import MachineError, in_short
from seqcls.results import EpochLosses
from seqcls.weights import num_parameters
from sweeps.grid.grouping import MAX_FAILURES, PlannedRun
from sweeps.records import read_rows, rows_text
from sweeps.results import RunResult
from sweeps.store.database import Store
from sweeps.store.findings import put_findings
from sweeps.store.statements import insert_rows, one_of
from sweeps.store.tables import Checkpoint, Config, FindingKind, Run, RunState, now
from sweeps.store.test_sets import missing_test_set, store_test_set
from sweeps.store.writes.claiming import Claim


def record(store: Store, claimed: Claim, outcomes: Sequence[RunResult]) -> int:
    """Stores a group's results and the change of its runs' state, all in one transaction.

    Fenced on run, attempt and worker: a run that was meanwhile given to another worker is left
    to that one.

    Returns:
        The number of runs recorded.

    Raises:
        MachineError: they were tested on other strings than the stored ones; nothing is stored.
    """
    config = claimed.runs[0].config
    tested = {x.evaluation.test_set for x in outcomes if x.evaluation is not None}
    drawn = missing_test_set(store, config) if tested else None
    with store.write() as connection:
        held = _held_runs(connection, claimed)
        # Misclassified strings are stored by number, which would denote other strings.
        if tested and held and tested != {store_test_set(connection, config, drawn)}:
            raise MachineError(
                "this machine draws other test strings than those that the database holds: use one "
                "version of seqcls, of NumPy and of every plug-in on all machines; no run is "
                "charged with it"
            )
        pairs = zip(claimed.runs, outcomes, strict=True)
        mine = [(run, outcome) for run, outcome in pairs if run.id in held]
        for run, outcome in mine:
            if outcome.failure is not None:
                # Final, since training is deterministic and would fail again.
                _insert_failure(connection, claimed, run.id, outcome.failure, final=True)
        insert_results(connection, [pair for pair in mine if pair[1].failure is None])
    return len(held)


def record_lost(store: Store, claimed: Claim, reason: str) -> None:
    """Stores that an attempt ended without a result; queues its runs, up to `MAX_FAILURES`."""
    with store.write() as connection:
        held = _held_runs(connection, claimed)
        for run_id, failures in held.items():
            final = failures + 1 >= MAX_FAILURES
            _insert_failure(connection, claimed, run_id, reason, final=final)


def record_losses(store: Store, losses: Sequence[tuple[Claim, Sequence[EpochLosses]]]) -> None:
    """Stores losses of the runs of a worker's claims, for pages to show; fenced like results.

    They are replaced when a run's training ends. The revision is not raised, or pages would read
    everything again and again during training.
    """
    new: dict[int, dict[int, tuple[float, float]]] = {}
    for claimed, epochs in losses:
        for epoch in epochs:
            of_run = new.setdefault(claimed.runs[epoch.member].id, {})
            of_run[epoch.epoch] = (epoch.train_loss, epoch.validation_loss)
    with store.write(quiet=True) as connection:
        held = _held_runs(connection, *(claimed for claimed, _ in losses)).keys() & new.keys()
        known = select(Run.id, Run.losses).where(one_of(Run.id, held))
        for run_id, text in connection.execute(known).all():
            # Merged, since stored losses are sent again after a broken connection.
            every = {epoch: both for epoch, *both in read_rows(text)} | new[run_id]
            written = rows_text((epoch, *both) for epoch, both in sorted(every.items()))
            connection.execute(update(Run).where(Run.id == run_id).values(losses=written))


def _held_runs(connection: Connection, *claims: Claim) -> dict[int, int]:
    """The number of failures, by run id, of those claimed runs that the worker still holds."""
    attempts = {run_id: x for claimed in claims for run_id, x in claimed.attempts.items()}
    # Locked in the order of ids, as everywhere, so that no two workers deadlock.
    mine = (
        select(Run.id, Run.attempt, Run.failures)
        .where(Run.id.in_(attempts), Run.state == RunState.RUNNING)
        .where(Run.worker_id == claims[0].worker_id)
        .order_by(Run.id)
        .with_for_update(key_share=True)
    )
    rows = connection.execute(mine)
    return {run_id: failures for run_id, x, failures in rows if x == attempts[run_id]}


def insert_results(connection: Connection, done: Sequence[tuple[PlannedRun, RunResult]]) -> None:
    """Stores these runs' results, with one statement per table."""
    weights = [(run.id, *one) for run, outcome in done for one in outcome.checkpoints.items()]
    insert_rows(connection, Checkpoint, weights)
    changes = [
        {
            "updated_id": run.id,
            "state": RunState.DONE,
            "error": None,
            "finished_at": now(),
            **{x: getattr(outcome, x) for x in ("engine", "engine_reason", "train_seconds")},
            "digest": outcome.digest,
            **outcome.summary(),
            **outcome.records(),
        }
        for run, outcome in done
    ]
    if changes:
        connection.execute(_update_of(tuple(changes[0])), changes)
    # All runs of a configuration have the same number of parameters.
    of_configs = {run.config: (run.id, outcome.checkpoints) for run, outcome in done}
    for run_id, checkpoints in of_configs.values():
        if checkpoints:
            own = select(Run.config_id).where(Run.id == run_id).scalar_subquery()
            new = update(Config).where(Config.id == own, Config.num_parameters.is_(None))
            number = num_parameters(next(iter(checkpoints.values())))
            connection.execute(new.values(num_parameters=number))
    for run, outcome in done:
        if outcome.verdict is not None:
            put_findings(connection, run.id, FindingKind.VERDICT, {0: asdict(outcome.verdict)})


@cache
def _update_of(names: tuple[str, ...]) -> Update:
    """The UPDATE of these columns of a run; cached, since building it is slower than running it."""
    updated_id, *changed = names
    values: dict[str, Any] = {name: bindparam(name) for name in changed}
    return update(Run).where(Run.id == bindparam(updated_id)).values(values)


def _insert_failure(
    connection: Connection, claimed: Claim, run_id: int, reason: str, *, final: bool
) -> None:
    attempt, reason = claimed.attempts[run_id], in_short(reason)
    failed = {attempt: {"at": now(), "reason": reason}}
    put_findings(connection, run_id, FindingKind.FAILURE, failed)
    changed: dict[str, Any] = {"failures": Run.failures + 1, "losses": None}
    if final:
        changed |= {"state": RunState.FAILED, "finished_at": now(), "error": reason}
    else:
        changed |= {"state": RunState.QUEUED, "worker_id": None, "started_at": None}
    connection.execute(update(Run).where(Run.id == run_id).values(changed))
