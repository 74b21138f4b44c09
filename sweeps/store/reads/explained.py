"""Why runs fail, whether rounding decides them, what is proved of them: as found and stored."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Select, and_, exists, func, or_, select

from seqcls.errors import SeqclsError
from seqcls.interpretability.mechanisms import BESIDE_NOT_LEARNED, NOT_LEARNED, is_exact
from seqcls.proofs.checker import digest
from seqcls.results import Confusion
from seqcls.weights import from_bytes
from sweeps.results import LEARNED_AT, RANGE_COLUMNS, Outcome, ProofRecord, ProofResult
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import frame, one_of
from sweeps.store.reads import frames
from sweeps.store.reads.selection import View
from sweeps.store.tables import (
    CauseRow,
    Checkpoint,
    Config,
    Perturbation,
    ProofRow,
    Run,
    RunState,
)

if TYPE_CHECKING:
    import pandas as pd


CELLS = Confusion._fields

FORMER_NAMES = {"value mixing": "value interference"}
"""What mechanisms were called when older rows were stored."""

SHORT_TRIED = " (short strings tried)"
"""Follows the stored name of what is no exact account: older rows without it, whose causes were
tried on the test strings alone, are not read."""


def causes(
    store: Store, run_ids: Sequence[int] | None = None, learned_at: float = LEARNED_AT
) -> "pd.DataFrame":
    """The stored causes of these runs, or of all: run_id, number and the other columns.

    Without those of runs to which causes were attributed in an older way: on test strings alone, or
    without asking whether the run had learned. They are stored as `LEARNED_AT` has it; by another
    accuracy a run that has learned does not fail by that, and one that has not fails by nothing
    that speaks of length.
    """
    stored = _read_rows(store, CauseRow, run_ids).replace({"mechanism": FORMER_NAMES})
    older = {
        run_id
        for run_id, name, tokens in zip(
            stored["run_id"], stored["mechanism"], stored["tokens"], strict=True
        )
        if not (name.endswith(SHORT_TRIED) or is_exact(name, tokens))
    }
    stored["mechanism"] = [name.removesuffix(SHORT_TRIED) for name in stored["mechanism"]]
    asked = stored.loc[stored["mechanism"] == NOT_LEARNED, "run_id"]
    unasked = set(stored["run_id"]) - set(asked)
    if unasked:
        older |= set(not_learned(store, unasked)["run_id"])
    known = stored[~stored["run_id"].isin(older)].reset_index(drop=True)
    return known if learned_at == LEARNED_AT else _judge(store, known, learned_at)


def _judge(store: Store, causes: "pd.DataFrame", learned_at: float) -> "pd.DataFrame":
    counts = not_learned(store, set(causes["run_id"]), learned_at).set_index("run_id")
    unlearned, told = causes["run_id"].isin(counts.index), causes["mechanism"] == NOT_LEARNED
    kept = causes[unlearned | ~told].copy()
    silent = unlearned & ~causes["run_id"].isin(causes.loc[told, "run_id"])
    # The first stands for the errors of trained lengths, as where causes are found.
    new = silent & ((causes["number"] == 0) | ~causes["mechanism"].isin(BESIDE_NOT_LEARNED))
    wrong = counts.reindex(kept.loc[new, "run_id"])
    shares = zip(wrong["wrong_within"], wrong["tested_within"], strict=True)
    kept.loc[new, ["mechanism", "head", "agreement"]] = [NOT_LEARNED, None, None]
    kept.loc[new, "tokens"] = [f"wrong on {x:,} of {n:,} of trained lengths" for x, n in shares]
    return kept.reset_index(drop=True)


def not_learned(
    store: Store, run_ids: Collection[int], learned_at: float = LEARNED_AT
) -> "pd.DataFrame":
    """Those of these runs that have not learned: run_id, best_epoch and `RANGE_COLUMNS`."""
    with store.begin() as connection:
        runs = frames.runs(connection, View(run_ids=tuple(run_ids), learned_at=learned_at))
    found = runs[runs["outcome"] == Outcome.NOT_LEARNED]
    return frames.whole(found)[["run_id", "best_epoch", *RANGE_COLUMNS]].reset_index(drop=True)


def most_explained(store: Store, view: View, most: int) -> list[int]:
    """The configurations of a view with most runs that fail and have causes, at most so many."""
    with store.begin() as connection:
        runs = frames.runs(connection, view)
        explained = set(connection.scalars(select(CauseRow.run_id).distinct()))
    found = runs[runs["picked"] & runs["failing"] & runs["run_id"].isin(explained)]
    counted = found.groupby("config_id").size().sort_values(ascending=False, kind="stable")
    return [int(config_id) for config_id in counted.index[:most]]


def perturbations(store: Store, run_ids: Sequence[int] | None = None) -> "pd.DataFrame":
    """The stored outcomes with other rounding: run_id, number, tn, fp, fn, tp (strings)."""
    return _read_rows(store, Perturbation, run_ids)


def sensitivity(store: Store, run_ids: Sequence[int] | None = None) -> "pd.DataFrame":
    """Those of these runs, or of all, that were trained again with other rounding.

    Returns:
        One row a run: run_id, times; wrong (misclassified test strings), least and most (the same
        over all trainings, the run's own among them), sensitive (whether any confusion matrix
        differs from the run's own).
    """
    import pandas as pd

    cells = (getattr(Run, cell) for cell in CELLS)
    stored = select(Run.id.label("run_id"), Run.wrong.label("as_trained"), *cells)
    again = perturbations(store, run_ids)
    runs = frame(store, stored.where(one_of(Run.id, set(again["run_id"]))))
    both = again.merge(runs, on="run_id", suffixes=("", "_as_trained"))
    differs = sum((both[cell] != both[f"{cell}_as_trained"]).astype(int) for cell in CELLS)
    both = both.assign(differs=differs > 0, wrong=both["fp"] + both["fn"])
    groups = both.groupby("run_id")
    summary = pd.DataFrame(
        {
            "times": groups.size(),
            "wrong": groups["as_trained"].first(),
            "least": groups[["wrong", "as_trained"]].min().min(axis=1),
            "most": groups[["wrong", "as_trained"]].max().max(axis=1),
            "sensitive": groups["differs"].any(),
        }
    )
    return summary.reset_index()


RECORDED = [field.name for field in fields(ProofRecord)]


def proof(store: Store, run_id: int, *, of_language: bool) -> ProofRecord | None:
    """What is stored of a run's proof by the language's automaton, or by a learned one; None where
    nothing is, or nothing that holds of the run.
    """
    with store.begin() as connection:
        found = stored_proofs(connection, [run_id]).get((run_id, int(of_language)))
    if found is None or found[1]:
        return None
    return ProofRecord(**{name: found[0][name] for name in RECORDED})


def forgettings(store: Store) -> dict[int, dict[str, Any]]:
    """What runs forget while a word repeats, as `seqcls.proofs.forgetting` found it when a string
    of that form refuted them, by their ids.
    """
    refuted = select(ProofRow.run_id).where(ProofRow.result == ProofResult.REFUTED)
    with store.begin() as connection:
        proofs = stored_proofs(connection, connection.scalars(refuted).all())
    found = {
        run_id: json.loads(row["details"]).get("forgetting")
        for (run_id, of_language), (row, why) in proofs.items()
        if of_language and why is None
    }
    return {run_id: record for run_id, record in found.items() if record}


ProofKey = tuple[int, int]
"""A run's id, and whether its proof is by the language's own automaton."""


def stored_proofs(
    connection: Connection, run_ids: Collection[int] | None = None
) -> dict[ProofKey, tuple[dict[str, Any], str | None]]:
    """The rows of these runs' proofs, or of all, and why each does not hold of its run; None where
    it does.
    """
    is_kept = and_(Checkpoint.run_id == Run.id, Checkpoint.epoch == Run.best_epoch)
    of_run = (Config.key, Run.model_seed, Run.wrong, Checkpoint.weights.label("kept"))
    query = (
        select(ProofRow.__table__, *of_run)
        .join(Run, Run.id == ProofRow.run_id)
        .join(Config, Config.id == Run.config_id)
        .outerjoin(Checkpoint, is_kept)
        .order_by(ProofRow.run_id, ProofRow.of_language)
    )
    if run_ids is not None:
        query = query.where(one_of(ProofRow.run_id, run_ids))
    found: dict[ProofKey, tuple[dict[str, Any], str | None]] = {}
    for values in connection.execute(query).mappings():
        row = dict(values)
        key, seed, wrong, kept = (row.pop(x) for x in ("key", "model_seed", "wrong", "kept"))
        if row["certificate"] is not None:
            row["certificate"] = bytes(row["certificate"])
        record = ProofRecord(**{name: row[name] for name in RECORDED})
        why = None
        if record.digest(key, seed) != row["digest"]:
            why = "its proof does not fit its digest"
        elif _digest_of(kept) not in (None, record.weights):
            why = "its proof is of other weights"
        elif record.of_language and record.result == ProofResult.PROVED and wrong:
            why = "it is proved right on every string, and got test strings wrong"
        found[row["run_id"], row["of_language"]] = row, why
    return found


def _digest_of(weights: bytes | None) -> str | None:
    """The digest of weights that can be read."""
    try:
        return None if weights is None else digest(from_bytes(bytes(weights)))
    except SeqclsError:
        return None


def inconsistencies(connection: Connection) -> Iterator[tuple[str, str]]:
    """What does not fit the runs that it is about: what, and how that shows."""
    for (run_id, _), (_, why) in stored_proofs(connection).items():
        if why is not None:
            yield f"run {run_id}", why
    for table in (CauseRow, Perturbation, ProofRow):
        is_done = exists().where(Run.id == table.run_id, Run.state == RunState.DONE)
        lost = select(table.run_id).where(~is_done).distinct()
        for run_id in connection.scalars(lost.order_by(table.run_id)):
            yield table.__tablename__, f"it has rows of run {run_id}, which is not finished"
    shares = select(CauseRow.run_id).group_by(CauseRow.run_id)
    for run_id in connection.scalars(shares.having(func.abs(func.sum(CauseRow.share) - 1) > 1e-9)):
        yield f"run {run_id}", "the shares of its causes do not sum to 1"
    for run_id in connection.scalars(_of_other_tests()):
        yield f"run {run_id}", "a perturbation of it was tested on another number of strings"


def _of_other_tests() -> Select[int]:
    positives = Perturbation.fn + Perturbation.tp != Run.fn + Run.tp
    negatives = Perturbation.tn + Perturbation.fp != Run.tn + Run.fp
    query = select(Perturbation.run_id).join(Run, Run.id == Perturbation.run_id)
    return query.where(Run.state == RunState.DONE, or_(positives, negatives)).distinct()


def _read_rows(
    store: Store, table: type[CauseRow | Perturbation], run_ids: Sequence[int] | None
) -> "pd.DataFrame":
    query = select(table.__table__).order_by(table.run_id, table.number)
    if run_ids is not None:
        query = query.where(one_of(table.run_id, run_ids))
    return frame(store, query)
