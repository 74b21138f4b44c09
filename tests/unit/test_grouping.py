"""Groups of runs."""

import random

from seqcls.config import RunConfig
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.problem import resolve
from sweeps.grid.grouping import PlannedRun, make_groups


def planned(number: int, config: RunConfig) -> PlannedRun:
    return PlannedRun(number, config, number, every_epoch=False, verdict=False)


def test_the_same_groups_whoever_asks() -> None:
    configs = [RunConfig(), RunConfig(hidden_size=16), RunConfig(train_seed=1)]
    runs = [planned(number, configs[number % 3]) for number in range(300)]
    groups = make_groups(runs)
    random.Random(0).shuffle(runs)
    assert make_groups(runs) == groups
    assert sorted(run.id for group in groups for run in group) == list(range(300))
    for group in groups:
        engine = engine_named(choose_engine(resolve(group[0].config)).name)
        assert len(group) <= engine.group_size(resolve(group[0].config))
        assert len({run.config.group_key for run in group}) == 1


def test_the_longest_training_comes_first() -> None:
    short, long = RunConfig(max_num_epochs=2), RunConfig(max_num_epochs=100)
    groups = make_groups([planned(1, short), planned(2, long)])
    assert [group[0].id for group in groups] == [2, 1]


def test_a_group_is_as_large_as_the_engine_that_is_asked_for_likes() -> None:
    runs = [planned(number, RunConfig()) for number in range(100)]
    assert [len(group) for group in make_groups(runs, "fused")] == [16] * 6 + [4]
    assert [len(group) for group in make_groups(runs, "torch")] == [64, 36]
    dropout = [planned(number, RunConfig(dropout_rate=0.5)) for number in range(100)]
    assert [len(group) for group in make_groups(dropout)] == [64, 36]
