"""Why finished runs fail and whether rounding decides them, as it was found and stored."""

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Select, exists, func, or_, select

from seqcls.interpretability.mechanisms import NOT_LEARNED, is_exact
from seqcls.results import Confusion
from sweeps.results import LEARNED_AT, RANGE_COLUMNS, Outcome
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import frame, one_of
from sweeps.store.reads.selection import View, outcome
from sweeps.store.tables import CauseRow, Perturbation, Run, RunState

if TYPE_CHECKING:
    import pandas as pd


CELLS = Confusion._fields

FORMER_NAMES = {"value mixing": "value interference"}
"""What mechanisms were called when older rows were stored."""

SHORT_TRIED = " (short strings tried)"
"""Follows the stored name of what is no exact account: older rows without it, whose causes were
tried on the test strings alone, are not read."""


def causes(store: Store, run_ids: Sequence[int] | None = None) -> "pd.DataFrame":
    """The stored causes of these runs, or of all: run_id, number and the other columns.

    Without those of runs to which causes were attributed in an older way: on test strings alone, or
    without asking whether the run had learned.
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
    return stored[~stored["run_id"].isin(older)].reset_index(drop=True)


def not_learned(
    store: Store, run_ids: Collection[int], learned_at: float = LEARNED_AT
) -> "pd.DataFrame":
    """Those of these runs that have not learned: run_id, best_epoch and `RANGE_COLUMNS`.

    Causes are stored, and so are found by the default accuracy whatever a page asks for.
    """
    columns = (Run.id.label("run_id"), Run.best_epoch, *(getattr(Run, x) for x in RANGE_COLUMNS))
    query = select(*columns).where(one_of(Run.id, run_ids))
    return frame(
        store, query.where(outcome(View(learned_at=learned_at)) == Outcome.NOT_LEARNED.value)
    )


def failing_runs(store: Store, configurations: int, seeds: int) -> "pd.DataFrame":
    """Failing runs of the configurations of which most have causes: run_id, config_id.

    Args:
        configurations: the most of them, those with most explained seeds.
        seeds: the most runs of each.
    """
    import pandas as pd

    explained = func.count(CauseRow.run_id.distinct())
    most = (
        select(Run.config_id)
        .join(CauseRow, CauseRow.run_id == Run.id)
        .group_by(Run.config_id)
        .order_by(explained.desc(), Run.config_id)
        .limit(configurations)
    )
    failing = (Run.state == RunState.DONE, Run.wrong > 0)
    with store.begin() as connection:
        runs = [
            (run_id, config_id)
            for config_id in connection.scalars(most).all()
            for run_id in connection.scalars(
                select(Run.id)
                .where(Run.config_id == config_id, *failing)
                .order_by(Run.id)
                .limit(seeds)
            )
        ]
    return pd.DataFrame(runs, columns=["run_id", "config_id"])


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


def inconsistencies(connection: Connection) -> Iterator[tuple[str, str]]:
    """What does not fit the runs that it is about: what, and how that shows."""
    for table in (CauseRow, Perturbation):
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
