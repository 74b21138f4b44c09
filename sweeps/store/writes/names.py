"""Unique names for configurations that are stored; stored names never change.

Processes that store configurations take turns, so that a free name stays free until it is stored.
"""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection, func, select

from seqcls.config import RunConfig
from sweeps.grid.spec import SweepSpec
from sweeps.naming import name_apart, name_configurations, name_with_change, names_by_key
from sweeps.store.reads.stored import config_of
from sweeps.store.statements import one_of
from sweeps.store.tables import Config
from sweeps.store.test_sets import names_of_datasets


def free_names(db: Connection, proposed: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """The names of configurations, by key: stored ones, and for new configurations unique ones.

    Args:
        proposed: the preferred name and the name of the sweep of each, by key.
    """
    names = _names_here(db, proposed)
    new = {key: both for key, both in proposed.items() if key not in names}
    alike = one_of(Config.name, {name for name, _ in new.values()})
    taken = set(db.scalars(select(Config.name).where(alike)))
    # All names are read only if one is taken, since longer forms of it may be taken, too.
    if taken:
        taken |= set(db.scalars(select(Config.name)))
    for key, both in new.items():
        names[key] = name_apart(*both, taken)
        taken.add(names[key])
    return names


def names_of_sweep(
    db: Connection, spec: SweepSpec, proposed: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The names of a sweep's configurations, by key; those of new ones tell them apart.

    Args:
        proposed: names that also tell them from those of other sweeps submitted together.
    """
    configs = {config.key: config for config in spec.configs()}
    names = _names_here(db, configs)
    if len(names) == len(configs):
        return names
    proposed = dict(proposed or names_by_key(configs.values()))
    parents = select(Config.key, Config.name, Config.id, Config.json)
    parents = parents.where(one_of(Config.key, set(spec.parents.values())))
    known = {row.key: row for row in db.execute(parents)}
    for key, config in configs.items():
        if (parent := known.get(spec.parents.get(key, ""))) is not None:
            before = config_of(parent.id, parent.json)
            proposed[key] = name_with_change(parent.name, before, config)
    return free_names(db, {key: (proposed[key], spec.name) for key in configs})


def names_of_imported(db: Connection, configs: Sequence[RunConfig], sweep: str) -> dict[str, str]:
    """The names of models trained elsewhere, by key: the given ones, extended by the settings that
    tell them from others of the same name.
    """
    first = (db.scalar(select(func.max(Config.id))) or 0) + 1
    proposed, here = names_by_key(configs, first), _names_here(db, {x.key for x in configs})
    for number, config in enumerate(configs, first):
        beside = {number: config}
        # Each round finds one more configuration of that name to tell this one from.
        while config.key not in here:
            alike = select(Config.id, Config.json).where(Config.name == proposed[config.key])
            other = db.execute(alike.where(Config.id.not_in(list(beside)))).first()
            if other is None:
                break
            beside[other.id] = config_of(*other)
            proposed[config.key] = name_configurations(beside, names_of_datasets(db))[number]
    return free_names(db, {key: (name, sweep) for key, name in proposed.items()})


def _names_here(db: Connection, keys: Collection[str]) -> dict[str, str]:
    query = select(Config.key, Config.name).where(one_of(Config.key, keys))
    return dict(db.execute(query).all())
