"""Further seeds for sweeps with `until`, once all of theirs are done."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple

import numpy as np

from seqcls.errors import ConfigError
from seqcls.pairing import differing_starts
from sweeps.grid.seeds import Until
from sweeps.grid.spec import SweepSpec, spec_as_written
from sweeps.results import OutcomeCounts
from sweeps.statistics.intervals import PairTable
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.reads import sweep_queries


def grow(store: Store, sweep_ids: Sequence[int] | None = None) -> bool:
    """Queues more seeds of finished sweeps whose intervals are not narrow enough.

    Any worker that finds one finished does so; the first submission counts, and others would queue
    the same, since it follows from the counts.

    Returns:
        True if any sweep has grown.
    """
    has_grown = False
    for sweep_id, submitted in sweep_queries.sweeps_to_grow(store, sweep_ids).items():
        spec = spec_as_written(json.loads(submitted))
        if not spec.until:
            continue
        try:
            counts, pairs = known_of(store, sweep_id, spec)
        except ConfigError:
            # A machine that lacks a package leaves it to others.
            continue
        needed = Until.parse(spec.until).seeds_needed(counts, spec.most_seeds, pairs)
        if needed != [seed_counts.models for seed_counts in counts]:
            writer.submit(store, spec.with_seeds(needed), instead_of=submitted)
            has_grown = True
    return has_grown


def as_grown(store: Store, spec: SweepSpec) -> SweepSpec:
    """The specification that a sweep has grown to from this one; else this one.

    So a file can be submitted again to continue, without removing seeds.
    """
    stored = sweep_queries.specifications(store).get(spec.name) if spec.until else None
    if stored is None:
        return spec
    grown = spec_as_written(json.loads(stored))
    both = [(x.until, x.most_seeds, x.checkpoints, x.verdict) for x in (spec, grown)]
    seeds, more = ({x.key: set(y) for x, y in version.members()} for version in (spec, grown))
    # Only a sweep with the same settings and all of these seeds has grown from this one.
    is_grown = both[0] == both[1] and seeds.keys() == more.keys()
    is_grown = is_grown and all(own <= more[key] for key, own in seeds.items())
    return grown if is_grown else spec


def known_of(
    store: Store, sweep_id: int, spec: SweepSpec
) -> tuple[list[OutcomeCounts], PairTable | None]:
    """The outcome counts of each configuration, in the order of the specification; and, if two
    configurations are compared, the table of pairs of equal seeds.

    For the share that generalizes, only pairs count of which both learned. There is no table if
    nothing is compared, or equal seeds start the two from different weights.

    Raises:
        ConfigError: initial weights are unknown on a machine that lacks a package.
    """
    known, until = sweep_queries.seed_counts(store, sweep_id), Until.parse(spec.until)
    members = list(spec.members())
    counts = [
        OutcomeCounts(*np.sum([astuple(x) for x in known[config.key].values()], axis=0).tolist())
        if config.key in known
        else OutcomeCounts(len(seeds))
        for config, seeds in members
    ]
    if until.within is not None:
        return counts, None
    (first, own), (second, other) = members
    # One of the two may have got fewer seeds than the other.
    alike = set(own) <= set(other) or set(other) <= set(own)
    if not alike or differing_starts(first, second):
        return counts, None
    a, b = (
        {x: until.fraction(y) for x, y in known.get(z.key, {}).items()} for z in (first, second)
    )
    both = Counter((a[x][0] > 0, b[x][0] > 0) for x in a.keys() & b if a[x][1] and b[x][1])
    yes, no = True, False
    return counts, PairTable(both[yes, yes], both[yes, no], both[no, yes], both[no, no])
