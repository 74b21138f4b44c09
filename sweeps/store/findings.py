"""Findings about runs: exhaustive checks, proofs, causes, other rounding, failures.

All are stored in one table, as JSON with a digest each, by one writer, and read by one reader. A
finding that does not fit its digest is ignored.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, inspect, select

from seqcls.errors import UnknownRunError
from seqcls.results import Cause, Confusion, Verdict
from seqcls.text import canonical_json
from sweeps.results import ProofRecord, ProofResult, finding_digest
from sweeps.store.database import Store
from sweeps.store.statements import insert_rows, one_of
from sweeps.store.tables import Config, Finding, FindingKind, Run, RunState

ONE_BY_ONE = (FindingKind.PROOF, FindingKind.FAILURE)
"""Kinds whose findings of a run are replaced one by one, by number; those of other kinds are
replaced all together.
"""


class Found(NamedTuple):
    """A finding as it is stored, with its run's configuration and seed."""

    run_id: int
    kind: str
    number: int
    json: str
    digest: str
    certificate: bytes | None
    config_key: str
    model_seed: int

    @property
    def fields(self) -> dict[str, Any]:
        """Its fields: `sweeps.results.FINDINGS`."""
        fields: dict[str, Any] = json.loads(self.json)
        return fields

    @property
    def fits(self) -> bool:
        """True if it fits its digest."""
        made_of = (self.config_key, self.model_seed, self.kind, self.number, self.json)
        return finding_digest(*made_of, self.certificate) == self.digest

    @property
    def place(self) -> tuple[int, str, int]:
        """A key that two findings share if one replaces the other."""
        return self.run_id, self.kind, self.number if self.kind in ONE_BY_ONE else 0


def read_findings(connection: Connection, *conditions: ColumnElement[bool]) -> Iterator[Found]:
    """Yields the findings that meet these conditions, by run, kind and number."""
    query = (
        select(inspect(Finding).local_table, Config.key, Run.model_seed)
        .join(Run, Run.id == Finding.run_id)
        .join(Config, Config.id == Run.config_id)
        .where(*conditions)
        .order_by(Finding.run_id, Finding.kind, Finding.number)
    )
    for row in connection.execute(query):
        yield Found(*row)


def sound_findings(store: Store, *conditions: ColumnElement[bool]) -> list[Found]:
    """The findings of `read_findings` that fit their digests."""
    with store.read() as connection:
        return [found for found in read_findings(connection, *conditions) if found.fits]


def put_findings(
    connection: Connection,
    run_id: int,
    kind: str,
    found: Mapping[int, Mapping[str, Any]],
    certificate: bytes | None = None,
) -> None:
    """Stores findings of a run by number, in place of those that they replace."""
    of_run = select(Config.key, Run.model_seed).join(Run, Run.config_id == Config.id)
    key, model_seed = connection.execute(of_run.where(Run.id == run_id)).one()
    replaced = delete(Finding).where(Finding.run_id == run_id, Finding.kind == kind)
    if kind in ONE_BY_ONE:
        replaced = replaced.where(Finding.number.in_(found))
    connection.execute(replaced)
    rows = []
    for number, fields in found.items():
        text = canonical_json(fields)
        digest = finding_digest(key, model_seed, kind, number, text, certificate)
        rows.append((run_id, kind, number, text, digest, certificate))
    insert_rows(connection, Finding, rows)


def copy_findings(source: Connection, target: Connection, target_ids: Mapping[int, int]) -> None:
    """Copies findings of runs that have the same results in both databases.

    A proof that decided replaces one that did not. Findings that do not fit are not copied.

    Args:
        target: the database that is written; its other findings of a run and kind are unchanged.
        target_ids: run ids in the target by those in the source.
    """
    stored = read_findings(target, one_of(Finding.run_id, target_ids.values()))
    here = {found.place: found for found in stored}
    new = []
    for other in read_findings(source, one_of(Finding.run_id, target_ids)):
        found = other._replace(run_id=target_ids[other.run_id])
        if not found.fits:
            continue
        if (known := here.get(found.place)) is not None:
            ours, theirs = (x.fields.get("result") for x in (known, found))
            # Only proofs have a result; findings of other kinds are not replaced.
            if not ours == ProofResult.NOT_DECIDED != theirs:
                continue
            same = (Finding.run_id == known.run_id, Finding.kind == known.kind)
            target.execute(delete(Finding).where(*same, Finding.number == known.number))
        # The key and the seed behind these columns belong to other tables.
        new.append(found[: len(inspect(Finding).local_table.columns)])
    insert_rows(target, Finding, new)


def record_findings(
    store: Store, run_id: int, kind: str, found: Sequence[Cause | Confusion | ProofRecord | Verdict]
) -> None:
    """Stores findings about a finished run, in place of earlier ones of that kind; for proofs, in
    place of that by the same kind of automaton.

    Args:
        kind: one of `FindingKind`.

    Raises:
        UnknownRunError: the run no longer exists, or is not finished.
    """
    rows, certificate = dict[int, Mapping[str, Any]](), None
    for number, one in enumerate(found):
        fields = one._asdict() if isinstance(one, Confusion) else asdict(one)
        certificate = fields.pop("certificate", None)
        rows[fields.pop("of_language", number)] = fields
    # Locked, so that no other process deletes the run before the insert.
    state = select(Run.state).where(Run.id == run_id).with_for_update(key_share=True)
    with store.write() as connection:
        if connection.scalar(state) != RunState.DONE:
            raise UnknownRunError(
                f"run {run_id} is not finished; `seqcls runs` lists those that are"
            )
        put_findings(connection, run_id, kind, rows, certificate)
