"""Stored findings: causes of failure, sensitivity to rounding, proofs."""

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnClause, Text, literal_column, select

from seqcls.interpretability.mechanisms import BESIDE_NOT_LEARNED, CAUSES, NOT_LEARNED
from seqcls.results import Confusion
from sweeps.results import FINDINGS, LEARNED_AT, RANGE_COLUMNS, Outcome, ProofRecord, ProofResult
from sweeps.store.database import Store
from sweeps.store.findings import sound_findings
from sweeps.store.reads import frames
from sweeps.store.reads.selection import Selection
from sweeps.store.statements import fetch, frame, one_of
from sweeps.store.tables import Finding, FindingKind, Run
from sweeps.store.views import OBJECTS

if TYPE_CHECKING:
    import pandas as pd


CELLS = Confusion._fields


def causes(
    store: Store, run_ids: Sequence[int] | None = None, learned_at: float = LEARNED_AT
) -> "pd.DataFrame":
    """The stored causes of these runs, or of all: run_id, number and the columns of `FINDINGS`.

    They are stored for the threshold `LEARNED_AT`. For another one, `NOT_LEARNED` is removed from
    runs that reach it, and replaces causes that concern length in runs that do not. Runs with a
    cause outside the vocabulary, found by another version, are left out.
    """
    known = _read_rows(store, FindingKind.CAUSE, run_ids).astype({"head": "Int64"})
    known["mechanism"] = known["mechanism"].astype("str")
    foreign = known.loc[~known["mechanism"].isin([*CAUSES]), "run_id"]
    known = known[~known["run_id"].isin(foreign)].reset_index(drop=True)
    return known if learned_at == LEARNED_AT else _judge(store, known, learned_at)


def _judge(store: Store, causes: "pd.DataFrame", learned_at: float) -> "pd.DataFrame":
    counts = not_learned(store, set(causes["run_id"]), learned_at).set_index("run_id")
    unlearned, stored_unlearned = (
        causes["run_id"].isin(counts.index),
        causes["mechanism"] == NOT_LEARNED,
    )
    judged = causes[unlearned | ~stored_unlearned].copy()
    silent = unlearned & ~causes["run_id"].isin(causes.loc[stored_unlearned, "run_id"])
    # The first cause stands for the errors of trained lengths, as in the search for causes.
    new = silent & ((causes["number"] == 0) | ~causes["mechanism"].isin(BESIDE_NOT_LEARNED))
    wrong = counts.reindex(judged.loc[new, "run_id"])
    shares = zip(wrong["wrong_within"], wrong["tested_within"], strict=True)
    judged.loc[new, ["mechanism", "head", "agreement"]] = [NOT_LEARNED, None, None]
    judged.loc[new, "tokens"] = [f"wrong on {x:,} of {n:,} of trained lengths" for x, n in shares]
    return judged.reset_index(drop=True)


def not_learned(
    store: Store, run_ids: Collection[int], learned_at: float = LEARNED_AT
) -> "pd.DataFrame":
    """Those of these runs that have not learned, with run_id, best_epoch and `RANGE_COLUMNS`."""
    runs = frames.runs(store, Selection(run_ids=tuple(run_ids), learned_at=learned_at))
    found = runs[runs["outcome"] == Outcome.NOT_LEARNED]
    return frames.whole(found)[["run_id", "best_epoch", *RANGE_COLUMNS]].reset_index(drop=True)


def runs_with_causes(store: Store) -> set[int]:
    """The ids of the runs that `causes` lists."""
    found = select(Finding.run_id).where(Finding.kind == FindingKind.CAUSE)
    with store.read() as connection:
        fields = OBJECTS[connection.dialect.name]
        mechanism: ColumnClause[str] = literal_column(f"{fields} ->> 'mechanism'", Text)
        foreign = found.where(mechanism.not_in([*CAUSES]))
        query = found.distinct().where(Finding.run_id.not_in(foreign))
        _, rows = fetch(connection, query)
    return {run_id for (run_id,) in rows}


def most_explained(store: Store, selection: Selection, most: int) -> list[int]:
    """The ids of up to `most` selected configurations with most failing runs with causes."""
    runs = frames.runs(store, selection)
    explained = runs["run_id"].isin(runs_with_causes(store))
    found = runs[runs["picked"] & runs["failing"] & explained]
    counted = found.groupby("config_id").size().sort_values(ascending=False, kind="stable")
    return [int(config_id) for config_id in counted.index[:most]]


def sensitivity(store: Store, run_ids: Sequence[int] | None = None) -> "pd.DataFrame":
    """The sensitivity of those of these runs, or of all, that were retrained with other rounding.

    Returns:
        One row a run: run_id, times; wrong (misclassified test strings), least and most (the range
        of wrong over all trainings, including the run's own), sensitive (True if any confusion
        matrix differs from the run's own).
    """
    cells = (getattr(Run, cell) for cell in CELLS)
    stored = select(Run.id.label("run_id"), Run.wrong.label("as_trained"), *cells)
    again = _read_rows(store, FindingKind.PERTURBATION, run_ids)
    runs = frame(store, stored.where(one_of(Run.id, set(again["run_id"]))))
    both = again.merge(runs, on="run_id", suffixes=("", "_as_trained"))
    own, others = (both[[f"{x}{end}" for x in CELLS]].to_numpy() for end in ("_as_trained", ""))
    both = both.assign(found=both["fp"] + both["fn"], differs=(own != others).any(axis=1))
    summary = both.groupby("run_id").agg(
        times=("found", "size"),
        wrong=("as_trained", "first"),
        least=("found", "min"),
        most=("found", "max"),
        sensitive=("differs", "any"),
    )
    # The run's own training counts, too.
    summary["least"] = summary[["least", "wrong"]].min(axis=1)
    summary["most"] = summary[["most", "wrong"]].max(axis=1)
    return summary.reset_index()


def proof(store: Store, run_id: int, *, of_language: bool) -> ProofRecord | None:
    """The stored proof of a run by the language's automaton, or by a learned one; None without one
    that fits its digest.
    """
    kind, number = Finding.kind == FindingKind.PROOF, Finding.number == int(of_language)
    stored = sound_findings(store, Finding.run_id == run_id, kind, number)
    made = (ProofRecord(x.number, certificate=x.certificate, **x.fields) for x in stored)
    return next(made, None)


def forgettings(store: Store) -> dict[int, dict[str, Any]]:
    """The records of `seqcls.proofs.forgetting` of refuted runs, by run id."""
    is_proof = (Finding.kind == FindingKind.PROOF) & (Finding.number == 1)
    # Quotes within JSON strings are escaped.
    is_refuted = Finding.json.contains(f'"result":"{ProofResult.REFUTED}"')
    refuted = sound_findings(store, is_proof, is_refuted)
    forgets = {x.run_id: json.loads(x.fields["details"]).get("forgetting") for x in refuted}
    return {run_id: record for run_id, record in forgets.items() if record}


def _read_rows(store: Store, kind: FindingKind, run_ids: Sequence[int] | None) -> "pd.DataFrame":
    import pandas as pd

    query = select(Finding.run_id, Finding.number, Finding.json).where(Finding.kind == kind)
    if run_ids is not None:
        query = query.where(one_of(Finding.run_id, run_ids))
    with store.read() as connection:
        _, rows = fetch(connection, query.order_by(Finding.run_id, Finding.number))
    # Parsed all together: a hundred thousand runs have several hundred thousand findings.
    fields = json.loads(f"[{','.join([text for *_, text in rows])}]")
    table = pd.DataFrame(fields, columns=[*FINDINGS[kind]])
    for place, name in enumerate(("run_id", "number")):
        values = [row[place] for row in rows]
        table.insert(place, name, pd.Series(values, dtype="int64" if rows else object))
    return table
