"""Comparisons of configurations with a baseline: differences, intervals and tests."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, replace
from math import comb

import pandas as pd

from seqcls.errors import ConfigError
from seqcls.fields import language_fields
from seqcls.text import canonical_json, count
from sweeps.api.by_settings import MOST_READ
from sweeps.api.questions import MEASURES, ask, outcomes_of, why_unpaired
from sweeps.api.selecting import config_named, selection_of
from sweeps.results import LEARNED_AT
from sweeps.statistics.chance import EXACT, holm
from sweeps.statistics.differences import Outcomes
from sweeps.store.database import Store
from sweeps.store.reads import frames, queries
from sweeps.store.reads.overview import judge_on, longer_of, own_longer
from sweeps.store.reads.selection import Selection

MOST_DRAWN = 20_000
"""Maximum number of seeds, over all pairs, compared by random permutations: a few seconds."""


def proposed_baseline(store: Store, seeds: Mapping[int, int]) -> int | None:
    """Returns the configuration that changes the fewest settings, of those with many seeds.

    Args:
        seeds: the number of seeds by configuration; many is at least the median.

    Returns:
        Its id, the first of several; None of fewer than two configurations.
    """
    if len(seeds) < 2:
        return None
    configs = queries.configs(store, list(seeds))
    enough = sorted(seeds.values())[len(seeds) // 2]
    often = [x for x, number in seeds.items() if number >= enough]
    # The id breaks ties, so that the same database always proposes the same baseline.
    return min(often, key=lambda x: (len(configs[x].changed), x))


def networks_of(store: Store, config_ids: Sequence[int]) -> dict[int, str]:
    """Returns the settings of configurations without those of their tasks, as canonical JSON.

    Two with the same text are the same network, trained in the same way, on any task.
    """
    found = {}
    for config_id, config in queries.configs(store, list(config_ids)).items():
        of_task = {*language_fields(config.task), "plugins"}
        of_network = {
            x: y
            for x, y in config.changed.items()
            # A sampler may be specific to the task.
            if x not in of_task and not x.endswith("_sampler")
        }
        found[config_id] = canonical_json(of_network)
    return found


def differences(
    store: Store, selection: Selection, baseline: int, config_ids: Collection[int]
) -> pd.DataFrame:
    """Compares every configuration with the baseline, by each of `MEASURES` known of both.

    The tests are those of `sweeps.api.compare`. Two that were trained on different lengths are
    compared on the longer strings that both have in common.

    Args:
        selection: the seeds; all of them count, whatever their results.
        config_ids: the configurations, with or without the baseline.

    Returns:
        question, config_id, value, low, high (the difference from the baseline and its 95%
        interval, in [-1, 1]), p_value (two-sided), holm (corrected for all comparisons by this
        question), method, paired, and seeds and baseline_seeds (that are compared). No row where
        nothing can be compared, none by accuracy where that would exceed `MOST_DRAWN`, and none of
        configurations trained on other lengths where there are over `MOST_READ` models.
    """
    others = [x for x in config_ids if x != baseline]
    # Runs selected by their results would bias every share.
    scope = replace(selection, failing=False, outcomes=())
    runs = frames.finished_runs(store, frames.of_configurations(scope, [baseline, *others]))
    measured = outcomes_of(runs, selection.below)
    if baseline not in measured:
        others = []
    configs = queries.configs(store, [baseline, *others])
    lengths = own_longer(queries.config_texts(store, [baseline, *others]))
    # Only means of accuracies need drawn permutations; tests of shares are exact and cheap.
    only = [x for x in MEASURES if x != "beyond" or _work(measured, baseline) <= MOST_DRAWN]
    longer = {x: longer_of([lengths[y] for y in (x, baseline) if y in lengths]) for x in others}
    alike: dict[range | None, dict[int, dict[str, dict[int, float]]]] = {None: measured}
    for common in {*longer.values()} - {None}:
        those = [baseline, *(x for x in others if longer[x] == common)]
        own = runs[runs["config_id"].isin(those)]
        # An empty frame leaves these configurations out: on unlike lengths nothing is compared.
        judged = judge_on(store, own, common, selection.below) if len(own) <= MOST_READ else own[:0]
        alike[common] = outcomes_of(judged, selection.below)
    rows = []
    for other in others:
        sides = alike[longer[other]]
        if other not in sides:
            continue
        paired = why_unpaired(configs[other], configs[baseline]) is None
        compared = ask(sides[other], sides[baseline], paired=paired, only=only, plan=False)
        rows += [
            (name, other, *astuple(x.interval), x.p_value, x.method, x.paired, *x.seeds)
            for name, x in compared.items()
        ]
    columns = ["question", "config_id", "value", "low", "high", "p_value", "method", "paired"]
    table = pd.DataFrame(rows, columns=[*columns, "seeds", "baseline_seeds"])
    # Comparisons without a test must not count among those that Holm corrects for.
    table = table.dropna(subset=["p_value"])
    return _with_holm(table)


def _with_holm(table: pd.DataFrame) -> pd.DataFrame:
    """Adds the p-values corrected for all comparisons by the same question."""
    corrected = table.groupby("question")["p_value"].transform(lambda p: holm(p.tolist()))
    return table.assign(holm=corrected.astype(float))


MOST_PAIRED = 30
"""Maximum number of configurations of which every pair is compared: 435 pairs, a few seconds."""


def compare_all(
    store: Store,
    names: Sequence[str] = (),
    *,
    sweeps: Sequence[str] = (),
    learned_at: float = LEARNED_AT,
    below: float = 1.0,
) -> pd.DataFrame:
    """Compares every pair of configurations, by each of `MEASURES` known of both.

    Args:
        store: the database.
        names: the configurations, as `compare` takes them; by default, all of `sweeps`.
        sweeps: names of sweeps; with neither, all configurations of the database.
        learned_at: the accuracy on strings of trained lengths from which on a run has learned.
        below: the accuracy below which a run fails, on longer strings or on the whole test.

    Returns:
        a, b (names), question, value, low, high (a minus b, and its 95% interval, in [-1, 1]),
        p_value (two-sided), holm (corrected for all pairs of this question; Holm 1979), method,
        paired, a_seeds and b_seeds; the smallest p first.

    Raises:
        UnknownRunError: there is no such configuration or sweep.
        ConfigError: fewer than two configurations have a finished run, or more than `MOST_PAIRED`.
    """
    selection = selection_of(store, sweeps, learned_at=learned_at, below=below)
    if names:
        ids = list(dict.fromkeys(config_named(store, name) for name in names))
        selection = replace(selection, config_ids=tuple(ids))
    runs = frames.finished_runs(store, selection)
    ids = list(runs["config_id"].drop_duplicates())
    if not 1 < len(ids) <= MOST_PAIRED:
        raise ConfigError(
            f"{count(len(ids), 'configuration')} with finished runs: every pair of 2 to "
            f"{MOST_PAIRED} can be compared; name them, or a sweep"
        )
    parts = [
        # Each pair once: a configuration with those before it.
        differences(store, selection, second, ids[:place]).assign(b=second)
        for place, second in enumerate(ids)
        if place
    ]
    called = queries.names_of(store, ids)
    # Corrected anew over all pairs: `differences` corrected within one baseline.
    table = _with_holm(pd.concat(parts, ignore_index=True))
    table = table.assign(a=table["config_id"].map(called), b=table["b"].map(called))
    table = table.rename(columns={"seeds": "a_seeds", "baseline_seeds": "b_seeds"})
    columns = ["a", "b", "question", "value", "low", "high", "p_value", "holm", "method", "paired"]
    table = table.sort_values("p_value", kind="stable", ignore_index=True)
    return table[[*columns, "a_seeds", "b_seeds"]]


def _work(measured: Mapping[int, Mapping[str, Outcomes]], baseline: int) -> int:
    """Counts the seeds in pairs too large for all permutations to be enumerated."""
    own = {x: len(outcomes["beyond"]) for x, outcomes in measured.items()}
    pairs = (n + own.get(baseline, 0) for n in own.values())
    # C(20, 10) is 184,756, below EXACT: up to 20 seeds every permutation is enumerated.
    return sum(n for n in pairs if n > 20 and comb(n, n // 2) > EXACT)
