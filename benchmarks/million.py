"""A million runs in PostgreSQL: made, submitted to, claimed from, recorded in, and read.

python -m benchmarks.million URL [STEP ...]

of an empty database on a server; the steps are `make` (some minutes and 25 GB), `submit`, `claim`,
`record` and `pages`, all in this order where none is named. A later step works on what an earlier
one has made, whenever that was.

The first tenth of the runs is that of `benchmarks.large`, results drawn one by one. The others are
nine more sweeps that differ in `train_seed`; their runs have the results of the first tenth, and
digests of their own, so that `seqcls db verify` accepts all of them.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from multiprocessing import get_context
from typing import Any

import numpy as np
from sqlalchemy import Connection, create_engine, select

from benchmarks import pages
from benchmarks.large import AXES, ERRORS, SEEDS, Drawn, make_database
from sweeps.grid.grouping import make_groups
from sweeps.grid.spec import parse_spec
from sweeps.results import RunResult, run_digest
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads.stored import problem_of
from sweeps.store.reads.workers import queued_runs
from sweeps.store.tables import (
    Config,
    Run,
    SweepRun,
)

SWEEPS = 10
CLAIMERS = 8
CLAIM_SECONDS = 20.0

MORE: Mapping[str, Any] = {
    "name": "more",
    "model_seeds": "0..99",
    "axes": {"hidden_size": [2, 4, 8, 16, 32], "train_seed": list(range(100, 108))},
}
"""4,000 runs that are none of the others."""


def make(url: str) -> None:
    """Makes the runs, a sweep after another."""
    with _timed("make 100,000 runs"):
        store = make_database(url)
    _vacuum(store)
    with store.read() as connection:
        first = _runs_of(connection, 1)
    firsts = [first]
    for number in range(1, SWEEPS):
        spec = {
            "name": f"large, train_seed {number}",
            "model_seeds": f"0..{SEEDS - 1}",
            "axes": AXES,
            "fixed": {"train_seed": number},
        }
        with _timed(f"submit {len(first):,} runs beside {number * len(first):,}"):
            sweep_id = writer.submit(store, parse_spec(spec))
        with store.read() as connection:
            firsts.append(_runs_of(connection, sweep_id))
    with _timed("seal them"):
        _seal(store, firsts)
    for copy in firsts[1:]:
        with _timed(f"copy the results of {len(first):,} runs"), store.write() as connection:
            # What is copied refers to what is there; to look that up takes most of the time.
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
            _copy(connection, first, copy)
    with store.write() as connection:
        connection.exec_driver_sql("DROP TABLE drawn")
    _vacuum(store)


def _vacuum(store: Store) -> None:
    """Vacuums the database, as a server does by itself."""
    engine = create_engine(store.address, isolation_level="AUTOCOMMIT")
    with _timed("vacuum"), engine.connect() as connection:
        connection.exec_driver_sql("VACUUM ANALYZE")


def _runs_of(connection: Connection, sweep_id: int) -> Sequence[Any]:
    """A sweep's runs: id, model_seed, config_id, key, json."""
    query = select(Run.id, Run.model_seed, Run.config_id, Config.key, Config.json)
    query = query.join(Config).join(SweepRun)
    return connection.execute(query.where(SweepRun.sweep_id == sweep_id).order_by(Run.id)).all()


def _seal(store: Store, sweeps: Sequence[Sequence[Any]]) -> None:
    """Draws the results again, for the digests that they have in the other sweeps."""
    drawn = Drawn(np.random.default_rng(0), ERRORS)
    with store.write(quiet=True) as connection:
        connection.exec_driver_sql("CREATE TABLE drawn (run_id integer, digest text)")
        driver: Any = connection.connection.driver_connection
        with driver.cursor() as cursor, cursor.copy("COPY drawn FROM STDIN") as copy:
            for run, *others in zip(*sweeps, strict=True):
                for row in _sealed(drawn.outcome(run.id, problem_of(run.json)), others):
                    copy.write_row(row)


def _sealed(outcome: RunResult, runs: Sequence[Any]) -> Iterator[tuple[int, str]]:
    values = {**outcome.summary(), **outcome.records()}
    assert outcome.evaluation is not None
    for run in runs:
        test_set = outcome.evaluation.test_set
        yield run.id, run_digest(run.key, run.model_seed, values, {}, test_set)


def _copy(connection: Connection, first: Sequence[Any], copy: Sequence[Any]) -> None:
    """Gives every run of a sweep what the run at its place in the first sweep has."""
    later = copy[0].id - first[0].id
    assert [run.id - later for run in copy] == [run.id for run in first]
    of_first = f"BETWEEN {first[0].id} AND {first[-1].id}"
    own_columns = ("id", "config_id", "model_seed", "digest")
    names = [column.name for column in Run.__table__.columns if column.name not in own_columns]
    connection.exec_driver_sql(
        f"UPDATE run SET {', '.join(f'{name} = done.{name}' for name in names)}, "
        "digest = drawn.digest FROM run done, drawn "
        f"WHERE done.id {of_first} AND run.id = done.id + {later} AND drawn.run_id = run.id"
    )


@contextmanager
def _timed(what: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    print(f"  {what:50} {time.perf_counter() - started:7.1f} s", flush=True)


def submit(url: str) -> None:
    """Submits a sweep of 4,000 runs beside all others."""
    store = open_writer(url)
    with _timed("submit 4,000 runs"):
        sweep_id = writer.submit(store, parse_spec(MORE))
    with _timed("submit them again, with one seed less"):
        writer.submit(store, parse_spec({**MORE, "model_seeds": "0..98"}))
    with _timed("delete them"):
        writer.delete(store, sweep_id)


def claim(url: str) -> None:
    """Claims and gives back, in eight processes."""
    store = open_writer(url)
    sweep_id = writer.submit(store, parse_spec(MORE))
    with _timed("read what is queued, and make groups of it"):
        groups = make_groups(queued_runs(store, [sweep_id]))
    with get_context("spawn").Pool(CLAIMERS) as pool:
        # Once before it counts: the processes begin.
        pool.map(partial(_claims, url, sweep_id, seconds=1.0), range(CLAIMERS), chunksize=1)
        counts = pool.map(partial(_claims, url, sweep_id), range(CLAIMERS), chunksize=1)
    claims, runs, processor = (sum(count[index] for count in counts) for index in range(3))
    seconds = max(count[3] for count in counts)
    print(
        f"  {len(groups)} groups; {claims / seconds:.1f} claims, {runs / seconds:,.0f} runs a "
        f"second; {1e3 * processor / claims:.1f} ms of a processor a claim in the workers"
    )
    writer.delete(store, sweep_id)


def _claims(
    url: str, sweep_id: int, place: int, seconds: float = CLAIM_SECONDS
) -> tuple[int, int, float, float]:
    """Claims groups and gives each back: claims, runs, processor seconds, and seconds."""
    store = open_writer(url)
    worker_id = writer.register_worker(store)
    groups = make_groups(queued_runs(store, [sweep_id]))
    # Each begins elsewhere: all at once would want the same group.
    begun = len(groups) * place // CLAIMERS
    claims = runs = 0
    started, processor = time.perf_counter(), time.process_time()
    for group in cycle(groups[begun:] + groups[:begun]):
        claimed = writer.claim(store, worker_id, group)
        if claimed is not None:
            claims, runs = claims + 1, runs + len(claimed.runs)
            writer.release(store, worker_id, list(claimed.attempts))
        if time.perf_counter() - started > seconds:
            break
    processor = time.process_time() - processor
    writer.end_worker(store, worker_id)
    return claims, runs, processor, time.perf_counter() - started


def record(url: str) -> None:
    """Stores the results of 4,000 runs, drawn before; a group after another."""
    store = open_writer(url)
    sweep_id = writer.submit(store, parse_spec(MORE))
    worker_id = writer.register_worker(store)
    drawn = Drawn(np.random.default_rng(1), ERRORS)
    runs = seconds = 0.0
    for group in make_groups(queued_runs(store, [sweep_id])):
        claimed = writer.claim(store, worker_id, group)
        assert claimed is not None
        outcomes = [drawn.outcome(x.id, x.problem).seal(x.config.key, x.model_seed) for x in group]
        started = time.perf_counter()
        runs += writer.record(store, claimed, outcomes)
        seconds += time.perf_counter() - started
    print(f"  {runs:,.0f} runs recorded in {seconds:.1f} s, {runs / seconds:,.0f} a second")
    writer.end_worker(store, worker_id)
    with _timed("delete them"):
        writer.delete(store, sweep_id)


STEPS: Mapping[str, Callable[[str], None]] = {
    "make": make,
    "submit": submit,
    "claim": claim,
    "record": record,
    "pages": pages.measure,
}


def main(url: str, *steps: str) -> None:
    """Takes these steps, or all."""
    for step in steps or STEPS:
        print(f"{step}:", flush=True)
        STEPS[step](url)


if __name__ == "__main__":
    main(*sys.argv[1:])
