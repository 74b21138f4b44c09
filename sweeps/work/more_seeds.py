"""Sweeps that are to have as many seeds as it takes get more once theirs are done."""

import json
import logging
from collections import Counter
from collections.abc import Sequence

from seqcls.errors import SeqclsError
from seqcls.problem import differing_starts
from sweeps.grid.seeds import SeedCounts, Until
from sweeps.grid.spec import SweepSpec, spec_as_written
from sweeps.statistics.intervals import PairTable
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.reads import sweep_queries

_log = logging.getLogger(__name__)


def grow(store: Store, sweep_ids: Sequence[int] | None = None) -> bool:
    """Queues more seeds of finished sweeps where too little is known of them.

    Whatever worker finds one finished does so; the first is heard, and what others would queue
    follows from the same counts.

    Returns:
        Whether any sweep has grown.
    """
    has_grown = False
    for sweep_id, submitted in sweep_queries.sweeps_to_grow(store, sweep_ids).items():
        try:
            grown = grown_spec(store, sweep_id, spec_as_written(json.loads(submitted)))
        except SeqclsError as error:
            # A machine that lacks a package leaves it to others.
            _log.debug("sweep %s gets no more seeds: %s", sweep_id, error)
            continue
        if grown is not None:
            writer.submit(store, grown, instead_of=submitted)
            has_grown = True
    return has_grown


def as_grown(store: Store, spec: SweepSpec) -> SweepSpec:
    """The specification that a sweep has grown to from this one; else this one.

    A file is submitted again to go on; that takes no seeds back.
    """
    stored = sweep_queries.specifications(store).get(spec.name) if spec.until else None
    if stored is None:
        return spec
    grown = spec_as_written(json.loads(stored))
    if (grown.until, grown.most_seeds, grown.checkpoints, grown.verdict) != (
        spec.until,
        spec.most_seeds,
        spec.checkpoints,
        spec.verdict,
    ):
        return spec
    seeds, more = ({x.key: set(y) for x, y in each.members()} for each in (spec, grown))
    is_grown = seeds.keys() == more.keys() and all(own <= more[key] for key, own in seeds.items())
    return grown if is_grown else spec


def counts_of(store: Store, sweep_id: int, spec: SweepSpec) -> list[SeedCounts]:
    """What the seeds of each configuration have come to, in the order of the specification."""
    known = sweep_queries.seed_counts(store, sweep_id)
    return [known.get(config.key, SeedCounts(len(seeds))) for config, seeds in spec.members()]


def pairs_of(store: Store, sweep_id: int, spec: SweepSpec) -> PairTable | None:
    """What the pairs of seeds of two configurations that are to be told apart have come to.

    Of the share that generalizes, those of which both learned. None where nothing is told apart, or
    the same seed starts the two from different weights and so makes no pair.
    """
    until = Until.parse(spec.until)
    if until.within is not None:
        return None
    (first, own), (second, other) = spec.members()
    # One of the two may have got fewer seeds than the other.
    alike = set(own) <= set(other) or set(other) <= set(own)
    if not alike or differing_starts(first, second):
        return None
    known = sweep_queries.counts_of_seeds(store, sweep_id)
    a, b = ({x: until.of(y) for x, y in known.get(z.key, {}).items()} for z in (first, second))
    judged = [x for x in a.keys() & b if a[x][1] and b[x][1]]
    both = Counter((a[x][0] > 0, b[x][0] > 0) for x in judged)
    yes, no = True, False
    return PairTable(both[yes, yes], both[yes, no], both[no, yes], both[no, no])


def grown_spec(store: Store, sweep_id: int, spec: SweepSpec) -> SweepSpec | None:
    """The specification with more seeds of each configuration; None where those are enough.

    Args:
        sweep_id: the sweep, whose runs are all done.
    """
    if not spec.until:
        return None
    counts, pairs = counts_of(store, sweep_id, spec), pairs_of(store, sweep_id, spec)
    wanted = Until.parse(spec.until).seeds_wanted(counts, spec.most_seeds, pairs)
    if wanted == [each.seeds for each in counts]:
        return None
    return spec.with_seeds(wanted)
