"""Stores why finished runs fail and whether rounding decides them, as later analyses find."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, delete, insert, select

from seqcls.errors import UnknownRunError
from seqcls.interpretability.mechanisms import is_exact
from seqcls.results import Cause as FoundCause
from seqcls.results import Confusion
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import insert_new, one_of
from sweeps.store.reads.explained import SHORT_TRIED
from sweeps.store.tables import CauseRow, Perturbation, Run, RunState

if TYPE_CHECKING:
    pass


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


def copy_causes(source: Connection, target: Connection, target_ids: Mapping[int, int]) -> None:
    """Copies causes and perturbations of runs that have the same results in both databases.

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


def _replace(
    store: Store,
    table: type[CauseRow | Perturbation],
    run_id: int,
    rows: Sequence[Row],
) -> None:
    with store.change() as connection:
        state = select(Run.state).where(Run.id == run_id).with_for_update(key_share=True)
        if connection.scalar(state) != RunState.DONE:
            raise UnknownRunError(f"run {run_id} is no finished run; `seqcls runs` lists those")
        connection.execute(delete(table).where(table.run_id == run_id))
        if rows:
            connection.execute(insert(table), list(rows))
