"""Works out how stored runs do on trained and on longer lengths, where that is not stored yet."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, select, update

from seqcls.errors import SeqclsError
from seqcls.evaluation import judge_validation, range_counts
from seqcls.problem import Problem
from seqcls.weights import weights_of
from sweeps.processes import OnProgress
from sweeps.results import range_values
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import chunks, one_of
from sweeps.store.reads.stored import StoredRun, problem_of, read_runs
from sweeps.store.tables import Config, LengthScore, Run, RunState


def fill_from_lengths(connection: Connection) -> int:
    """Fills in what follows from the test results of finished runs at each length; of how many.

    Left as they are: runs whose test holds too few strings of trained lengths, those of models
    trained elsewhere, and those whose plug-in is not installed here.
    """
    filled = 0
    for config_id, problem in _find_unjudged(connection):
        scores: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        query = (
            select(LengthScore.run_id, LengthScore.length, LengthScore.tested, LengthScore.wrong)
            .join(Run, Run.id == LengthScore.run_id)
            .where(Run.config_id == config_id, Run.state == RunState.DONE)
            .where(Run.within_from.is_(None))
        )
        for run_id, *score in connection.execute(query):
            scores[run_id].append((score[0], score[1], score[2]))
        counted = {
            run_id: range_counts(problem, *np.array(rows, dtype=np.int64).T)
            for run_id, rows in scores.items()
        }
        rows = [
            {"updated_id": run_id, **{f"new_{x}": y for x, y in range_values(each).items()}}
            for run_id, each in counted.items()
            if each is not None
        ]
        if rows:
            values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in range_values(None)}
            updated = update(Run).where(Run.id == bindparam("updated_id")).values(values)
            connection.execute(updated, rows)
            filled += len(rows)
    return filled


def _find_unjudged(connection: Connection) -> Iterator[tuple[int, Problem]]:
    """The configurations that have finished runs of which the counts are not known, and may be."""
    query = (
        select(Config.id, Config.json)
        .where(
            Config.id.in_(
                select(Run.config_id).where(Run.state == RunState.DONE, Run.within_from.is_(None))
            )
        )
        .order_by(Config.id)
    )
    for config_id, text in connection.execute(query).all():
        problem = problem_of(text)
        if problem is not None and problem.knows_trained_lengths:
            yield config_id, problem


@dataclass
class JudgedRuns:
    """What became of the runs that had not been judged on trained lengths."""

    runs: int = 0
    """Those that are judged now."""
    skipped: dict[int, str] = field(default_factory=dict)
    """Why others are not, by their ids."""


def judge_stored(store: Store, on_progress: OnProgress | None = None) -> JudgedRuns:
    """Judges finished runs on trained lengths that are not yet, with their stored weights.

    Their validation strings of trained lengths are asked, where the test holds too few; the counts
    are covered by a new digest of the same results. Each configuration's runs are stored as they
    are judged.
    """
    judged = JudgedRuns()
    with store.change() as connection:
        judged.runs += fill_from_lengths(connection)
    with store.reader().begin() as connection:
        waiting = list(_find_unjudged(connection))
    for number, (config_id, problem) in enumerate(waiting):
        if on_progress is not None:
            on_progress(number, len(waiting))
        for ids in chunks(_ids_of(store, config_id)):
            _judge(store, problem, list(ids), judged)
    return judged


def _ids_of(store: Store, config_id: int) -> list[int]:
    query = select(Run.id).where(Run.config_id == config_id, Run.state == RunState.DONE)
    with store.reader().begin() as connection:
        return list(connection.scalars(query.where(Run.within_from.is_(None)).order_by(Run.id)))


def _judge(store: Store, problem: Problem, ids: list[int], judged: JudgedRuns) -> None:
    with store.reader().begin() as connection:
        runs = {run.run["id"]: run for run in read_runs(connection, ids)}
    sound: dict[int, StoredRun] = {}
    for run_id, run in runs.items():
        misfit = run.inconsistency()
        if misfit is None and run.run["best_epoch"] not in run.checkpoints:
            misfit = "its weights are not stored"
        if misfit is None:
            sound[run_id] = run
        else:
            judged.skipped[run_id] = misfit
    if not sound:
        return
    try:
        weights = [
            weights_of(problem, run.checkpoints[run.run["best_epoch"]]) for run in sound.values()
        ]
        counted = judge_validation(problem, weights)
    except SeqclsError as error:
        judged.skipped.update(dict.fromkeys(sound, str(error)))
        return
    with store.change() as connection:
        # Meanwhile another process may have judged or deleted them.
        here = set(
            connection.scalars(
                select(Run.id).where(
                    one_of(Run.id, list(sound)),
                    Run.state == RunState.DONE,
                    Run.within_from.is_(None),
                )
            )
        )
        for (run_id, run), validated in zip(sound.items(), counted, strict=True):
            scores = run.columns[LengthScore.__tablename__]
            by_length = [scores[name] for name in ("length", "tested", "wrong")]
            values = range_values(range_counts(problem, *by_length, validated=validated))
            if run_id not in here:
                continue
            now = replace(run, run={**run.run, **values})
            connection.execute(
                update(Run).where(Run.id == run_id).values(**values, digest=now.digest())
            )
            judged.runs += 1
