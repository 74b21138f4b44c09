"""Stores why runs fail, whether rounding decides them, what is proved of them, as it is found."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from seqcls.errors import UnknownRunError
from seqcls.interpretability.mechanisms import is_exact
from seqcls.results import Cause as FoundCause
from seqcls.results import Confusion
from sweeps.results import ProofRecord, ProofResult
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import insert_new, one_of
from sweeps.store.reads.explained import SHORT_TRIED, stored_proofs
from sweeps.store.tables import (
    CauseRow,
    Config,
    Perturbation,
    ProofRow,
    Run,
    RunState,
)

Row = dict[str, Any]


def record_causes(store: Store, run_id: int, causes: Sequence[FoundCause]) -> None:
    """Stores the causes of a finished run's errors, in place of those that were stored.

    Raises:
        UnknownRunError: the run no longer exists, or is not finished.
    """
    rows: list[Row] = [
        {
            "run_id": run_id,
            "number": number,
            "mechanism": cause.mechanism
            + SHORT_TRIED * (not is_exact(cause.mechanism, cause.tokens)),
            "head": cause.head,
            "tokens": cause.tokens,
            "share": cause.share,
            "strings": cause.strings,
            "agreement": cause.agreement,
        }
        for number, cause in enumerate(causes)
    ]
    _replace(store, CauseRow, run_id, rows)


def record_perturbations(store: Store, run_id: int, perturbations: Sequence[Confusion]) -> None:
    """Stores a finished run's results with other rounding, in place of those stored.

    Raises:
        UnknownRunError: as `record_causes`.
    """
    rows: list[Row] = [
        {"run_id": run_id, "number": i, **confusion._asdict()}
        for i, confusion in enumerate(perturbations)
    ]
    _replace(store, Perturbation, run_id, rows)


def record_proof(store: Store, run_id: int, proof: ProofRecord) -> None:
    """Stores what is proved of a finished run, in place of what was of the same kind of automaton.

    Raises:
        UnknownRunError: as `record_causes`.
    """
    query = select(Config.key, Run.model_seed).join(Run, Run.config_id == Config.id)
    with store.change() as connection:
        _require_done(connection, run_id)
        key, model_seed = connection.execute(query.where(Run.id == run_id)).one()
        _forget_proof(connection, run_id, proof.of_language)
        row = {"run_id": run_id, **asdict(proof), "digest": proof.digest(key, model_seed)}
        connection.execute(insert(ProofRow).values(row))


def copy_causes(source: Connection, target: Connection, target_ids: Mapping[int, int]) -> None:
    """Copies causes, perturbations and proofs of runs that have the same results in both databases.

    Of two proofs one that decided replaces one that did not; those that do not hold of
    their run are not copied.

    Args:
        target: the database that is written; what it has of a run stays.
        target_ids: run ids in the target by those in the source.
    """
    for table in (CauseRow, Perturbation):
        here = select(table.run_id).where(one_of(table.run_id, target_ids.values())).distinct()
        known = set(target.scalars(here))
        rows = source.execute(select(table.__table__).where(one_of(table.run_id, target_ids)))
        theirs = [(target_ids[row["run_id"]], row) for row in rows.mappings()]
        new = [{**row, "run_id": target_id} for target_id, row in theirs if target_id not in known]
        insert_new(target, table, new)
    proofs = stored_proofs(source, target_ids)
    holding = {key: row for key, (row, why) in proofs.items() if why is None}
    ours = stored_proofs(target, [target_ids[run_id] for run_id, _ in holding])
    for (run_id, of_language), row in holding.items():
        key = target_ids[run_id], of_language
        if key in ours and not (ours[key][0]["result"] == ProofResult.NOT_DECIDED != row["result"]):
            continue
        _forget_proof(target, *key)
        target.execute(insert(ProofRow).values({**row, "run_id": key[0]}))


def _replace(
    store: Store,
    table: type[CauseRow | Perturbation],
    run_id: int,
    rows: Sequence[Row],
) -> None:
    with store.change() as connection:
        _require_done(connection, run_id)
        connection.execute(delete(table).where(table.run_id == run_id))
        if rows:
            connection.execute(insert(table), list(rows))


def _forget_proof(connection: Connection, run_id: int, of_language: int) -> None:
    same = (ProofRow.run_id == run_id, ProofRow.of_language == of_language)
    connection.execute(delete(ProofRow).where(*same))


def _require_done(connection: Connection, run_id: int) -> None:
    state = select(Run.state).where(Run.id == run_id).with_for_update(key_share=True)
    if connection.scalar(state) != RunState.DONE:
        raise UnknownRunError(f"run {run_id} is no finished run; `seqcls runs` lists those")
