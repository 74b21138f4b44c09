"""What came of remedies in this database: from failing seeds to their cause, to a change, to what
it mended.

Bounded, whatever the database holds: the configurations with most explained seeds are looked at.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
from sqlalchemy import func, select

from seqcls.config import RunConfig
from seqcls.interpretability.remedies import Suggestion, changed, suggestions
from seqcls.problem import obstacle_of, resolve
from sweeps.store.databases.engine import Store
from sweeps.store.databases.frames import frame
from sweeps.store.databases.statements import one_of
from sweeps.store.reading import queries
from sweeps.store.results import explained
from sweeps.store.schema.tables import Cause, Config, Run, RunState

MOST_CONFIGURATIONS = 12
MOST_SEEDS = 200
"""The most seeds of a configuration."""


@dataclass(frozen=True)
class Tried:
    """A remedy that was trained with seeds that failed without it."""

    suggestion: Suggestion
    config_id: int
    """The id of the configuration with the change."""
    seeds: int
    """Seeds that failed by the cause, and were trained with the change."""
    mended: int
    """Those of them that make no error with it."""
    broken: int
    """Seeds that made no error, and make some with it."""
    run_ids: tuple[int, ...]
    """The runs with the change of the seeds that failed by the cause."""


@dataclass(frozen=True)
class Loop:
    """Failing seeds of one configuration, the main cause of most, and what was tried against it."""

    config_id: int
    config: RunConfig
    finished: int
    failing: int
    mechanism: str
    run_ids: tuple[int, ...]
    """The seeds whose errors mainly come from it."""
    tried: tuple[Tried, ...]
    """The best first."""
    untried: tuple[Suggestion, ...]

    @property
    def best(self) -> Tried | None:
        """The remedy that mended most; None where none was tried."""
        return self.tried[0] if self.tried else None


def loops(store: Store) -> tuple[Loop, ...]:
    """What stored causes and trained remedies tell, the most telling first."""
    explained_runs = _explained(store)
    if explained_runs.empty:
        return ()
    ids = [int(x) for x in explained_runs["config_id"].unique()]
    configs = queries.configs(store, ids)
    # What a plug-in reads is unknown unless it is installed.
    configs = {key: config for key, config in configs.items() if obstacle_of(config) is None}
    all_loops = []
    others = _others(store, explained_runs, configs)
    runs = _runs(store, {*ids, *others.values()})
    for _, alike in explained_runs.groupby(["config_id", "mechanism"]):
        config_id, mechanism = int(alike["config_id"].iloc[0]), str(alike["mechanism"].iloc[0])
        if config_id in configs:
            config = configs[config_id]
            all_loops.append(_loop(config_id, config, mechanism, alike, runs, others))
    return tuple(sorted(all_loops, key=_mended_and_seeds, reverse=True))


def _mended_and_seeds(loop: Loop) -> tuple[int, int]:
    return (loop.best.mended if loop.best else -1, len(loop.run_ids))


def record(tried_loops: Iterable[Loop], suggestion: Suggestion) -> tuple[int, int]:
    """How often a remedy mended the cause that it is suggested for: in so many of so many seeds."""
    tried = [
        each for loop in tried_loops for each in loop.tried if _same(each.suggestion, suggestion)
    ]
    return sum(each.mended for each in tried), sum(each.seeds for each in tried)


def ranked(
    tried_loops: Iterable[Loop], suggested: Sequence[Suggestion]
) -> list[tuple[Suggestion, tuple[int, int]]]:
    """Suggestions with their records, those first that mended most; untried ones count as half."""
    known = tuple(tried_loops)
    records = [(each, record(known, each)) for each in suggested]
    return sorted(records, key=lambda each: -(each[1][0] + 1) / (each[1][1] + 2))


def _same(first: Suggestion, second: Suggestion) -> bool:
    """Whether both are the same remedy against the same cause, whatever the field was before."""
    names = ("mechanism", "field", "reason")
    return all(getattr(first, name) == getattr(second, name) for name in names)


def _explained(store: Store) -> pd.DataFrame:
    """run_id, config_id and the main mechanism of failing runs whose causes are stored."""
    most = (
        select(Run.config_id, func.count(Cause.run_id.distinct()).label("seeds"))
        .join(Run, Run.id == Cause.run_id)
        .group_by(Run.config_id)
        .order_by(func.count(Cause.run_id.distinct()).desc(), Run.config_id)
        .limit(MOST_CONFIGURATIONS)
    )
    with store.begin() as connection:
        ids = [row.config_id for row in connection.execute(most)]
        runs = [
            (run_id, config_id)
            for config_id in ids
            for run_id in connection.scalars(
                select(Run.id)
                .where(Run.config_id == config_id, Run.state == RunState.DONE, Run.wrong > 0)
                .order_by(Run.id)
                .limit(MOST_SEEDS)
            )
        ]
    of = pd.DataFrame(runs, columns=["run_id", "config_id"])
    causes = explained.causes(store, of["run_id"].tolist())
    shares = causes.groupby(["run_id", "mechanism"], sort=False)["share"].sum().reset_index()
    main = shares.sort_values("share", ascending=False, kind="stable").drop_duplicates("run_id")
    return main.merge(of, on="run_id").sort_values("run_id").reset_index(drop=True)


def _others(
    store: Store, explained_runs: pd.DataFrame, configs: dict[int, RunConfig]
) -> dict[str, int]:
    """The stored configurations with one suggested change, by key."""
    pairs = explained_runs[["config_id", "mechanism"]].drop_duplicates()
    keys = {
        changed(configs[config_id], each.fields).key
        for config_id, mechanism in pairs.itertuples(index=False)
        if config_id in configs
        for each in suggestions(resolve(configs[config_id]), [mechanism])
    }
    query = select(Config.key, Config.id).where(Config.key.in_(sorted(keys)))
    with store.begin() as connection:
        return {row.key: int(row.id) for row in connection.execute(query)}


def _runs(store: Store, config_ids: Iterable[int]) -> pd.DataFrame:
    columns = (Run.id, Run.config_id, Run.model_seed, Run.wrong)
    query = select(*columns).where(one_of(Run.config_id, set(config_ids)))
    return frame(store, query.where(Run.state == RunState.DONE))


def _loop(
    config_id: int,
    config: RunConfig,
    mechanism: str,
    alike: pd.DataFrame,
    runs: pd.DataFrame,
    others: dict[str, int],
) -> Loop:
    before = runs[runs["config_id"] == config_id]
    tried, untried = [], []
    for suggestion in suggestions(resolve(config), [mechanism]):
        other = others.get(changed(config, suggestion.fields).key)
        trained = runs[runs["config_id"] == other] if other is not None else runs.head(0)
        came = _came_of_it(suggestion, before, trained, set(alike["run_id"]))
        if came is None:
            untried.append(suggestion)
        else:
            tried.append(came)
    best_first = sorted(tried, key=lambda each: (each.broken - each.mended, each.broken))
    return Loop(
        config_id,
        config,
        len(before),
        int((before["wrong"] > 0).sum()),
        mechanism,
        tuple(int(x) for x in alike["run_id"]),
        tuple(best_first),
        tuple(untried),
    )


def _came_of_it(
    suggestion: Suggestion, before: pd.DataFrame, trained: pd.DataFrame, failed: set[int]
) -> Tried | None:
    both = before.merge(trained, on="model_seed", suffixes=("", "_after"))
    by_cause = both[both["id"].isin(failed)]
    if by_cause.empty:
        return None
    broken = both[(both["wrong"] == 0) & (both["wrong_after"] > 0)]
    return Tried(
        suggestion,
        int(trained["config_id"].iloc[0]),
        len(by_cause),
        int((by_cause["wrong_after"] == 0).sum()),
        len(broken),
        tuple(int(x) for x in by_cause["id_after"]),
    )
