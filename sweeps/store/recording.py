"""What came out of a claim: results, failures, and what an exhaustive check has found."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from seqcls import results
from sweeps.grouping import MAX_FAILURES, PlannedRun
from sweeps.outcome import Outcome
from sweeps.store.claiming import Claim
from sweeps.store.digest import run_digest, verdict_digest
from sweeps.store.engine import Store
from sweeps.store.statements import sweeps_of, update_states
from sweeps.store.tables import (
    Base,
    Checkpoint,
    Config,
    Epoch,
    Failure,
    LengthScore,
    Run,
    RunState,
    StringError,
    Verdict,
    now,
)


def record(store: Store, claimed: Claim, outcomes: Sequence[Outcome]) -> int:
    """Stores a group's results and the change of its runs' state, all in one transaction.

    Fenced on run, attempt and worker: a run that was meanwhile given to another worker is left
    to that one.

    Returns:
        How many runs were recorded.
    """
    with store.begin() as connection:
        held = _held(connection, claimed)
        for run, outcome in zip(claimed.runs, outcomes, strict=True):
            if run.id not in held:
                continue
            if outcome.failure is None:
                _insert_results(connection, run, outcome)
            else:
                # Training again would diverge again: nothing in it is left to chance.
                _insert_failure(connection, claimed, run.id, outcome.failure, final=True)
        update_states(connection, sweeps_of(connection, select(Run.id).where(Run.id.in_(held))))
    return len(held)


def record_lost(store: Store, claimed: Claim, reason: str) -> None:
    """Stores that an attempt ended without a result; queues its runs again, but not for ever."""
    with store.begin() as connection:
        held = _held(connection, claimed)
        for run_id, failures in held.items():
            final = failures + 1 >= MAX_FAILURES
            _insert_failure(connection, claimed, run_id, reason, final=final)
        update_states(connection, sweeps_of(connection, select(Run.id).where(Run.id.in_(held))))


def record_verdict(store: Store, run_id: int, found: results.Verdict) -> None:
    """Stores what the exhaustive check of a finished run has found."""
    own = select(Config.key, Run.model_seed).join(Run, Run.config_id == Config.id)
    with store.begin() as connection:
        key, model_seed = connection.execute(own.where(Run.id == run_id)).one()
        connection.execute(delete(Verdict).where(Verdict.run_id == run_id))
        _insert_verdict(connection, run_id, key, model_seed, found)


def _held(connection: Connection, claimed: Claim) -> dict[int, int]:
    """Those runs of a claim that are still this worker's, with the failures of each."""
    # An id alone may stand for another run by now, where a sweep was deleted and another submitted.
    planned = {run.id: (run.model_seed, run.config.key) for run in claimed.runs}
    mine = (
        select(Run.id, Run.attempt, Run.failures, Run.model_seed, Config.key)
        .join(Config, Config.id == Run.config_id)
        .where(
            Run.id.in_(claimed.attempts),
            Run.state == RunState.RUNNING,
            Run.worker_id == claimed.worker_id,
        )
        .order_by(Run.id)
        .with_for_update(of=Run, key_share=True)
    )
    return {
        run_id: failures
        for run_id, attempt, failures, *found in connection.execute(mine)
        if attempt == claimed.attempts[run_id] and tuple(found) == planned[run_id]
    }


def _insert_results(connection: Connection, run: PlannedRun, outcome: Outcome) -> None:
    evaluation = outcome.evaluation
    assert evaluation is not None
    assert outcome.best_epoch is not None
    rows = _result_rows(outcome, evaluation)
    for table, own in rows.items():
        if own:
            connection.execute(insert(table).values(run_id=run.id), own)
    if outcome.verdict is not None:
        _insert_verdict(connection, run.id, run.config.key, run.model_seed, outcome.verdict)
    summary = {
        "epochs": len(outcome.train_losses),
        "best_epoch": outcome.best_epoch,
        "best_validation_loss": outcome.validation_losses[outcome.best_epoch - 1],
        "solved_length": evaluation.solved_length,
        **evaluation.confusion._asdict(),
    }
    digest = run_digest(
        run.config.key,
        run.model_seed,
        summary,
        epochs=rows[Epoch],
        lengths=rows[LengthScore],
        errors=rows[StringError],
        checkpoints=rows[Checkpoint],
    )
    done = {
        "state": RunState.DONE,
        "finished_at": now(),
        "error": None,
        "engine": outcome.engine,
        "train_seconds": outcome.train_seconds,
        "digest": digest,
        **summary,
    }
    connection.execute(update(Run).where(Run.id == run.id).values(done))


def _result_rows(
    outcome: Outcome, evaluation: results.Evaluation
) -> dict[type[Base], list[dict[str, Any]]]:
    losses = zip(outcome.train_losses, outcome.validation_losses, strict=True)
    return {
        Epoch: [
            {"epoch": epoch, "train_loss": train, "validation_loss": validation}
            for epoch, (train, validation) in enumerate(losses, start=1)
        ],
        LengthScore: [
            {"length": length, **confusion._asdict()}
            for length, confusion in evaluation.by_length.items()
        ],
        StringError: [error._asdict() for error in evaluation.errors],
        Checkpoint: [
            {"epoch": epoch, "weights": weights} for epoch, weights in outcome.checkpoints.items()
        ],
    }


def _insert_verdict(
    connection: Connection, run_id: int, key: str, model_seed: int, found: results.Verdict
) -> None:
    digest = verdict_digest(key, model_seed, found)
    connection.execute(insert(Verdict).values(run_id=run_id, digest=digest, **asdict(found)))


def _insert_failure(
    connection: Connection, claimed: Claim, run_id: int, reason: str, *, final: bool
) -> None:
    attempt = claimed.attempts[run_id]
    connection.execute(
        insert(Failure).values(run_id=run_id, attempt=attempt, at=now(), reason=reason)
    )
    changed: dict[str, Any] = {"failures": Run.failures + 1}
    if final:
        changed |= {"state": RunState.FAILED, "finished_at": now(), "error": reason}
    else:
        changed |= {"state": RunState.QUEUED, "worker_id": None, "started_at": None}
    connection.execute(update(Run).where(Run.id == run_id).values(changed))
