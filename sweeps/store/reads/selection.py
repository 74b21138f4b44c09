"""Which runs a question is about."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, or_, select, true

from seqcls.text import canonical_json
from sweeps.results import LEARNED_AT, Outcome
from sweeps.store.statements import one_of
from sweeps.store.tables import Run, Sweep, SweepRun


@dataclass(frozen=True)
class Selection:
    """Which runs a question is about; what is empty restricts nothing.

    Sweeps, seeds and configurations say which runs there are at all. `failing` and `outcomes`
    pick among those by their results, and so change no share or median.
    """

    sweeps: tuple[str, ...] = ()
    model_seeds: tuple[int, ...] = ()
    config_ids: tuple[int, ...] | None = None
    run_ids: tuple[int, ...] | None = None
    without: tuple[str, ...] = ()
    """Sweeps whose runs are left out, but those that another sweep has too."""
    below: float = 1.0
    """A run fails where its accuracy is below this; at 1, where it misclassified any string."""
    learned_at: float = LEARNED_AT
    """A run has learned where its accuracy on strings of trained lengths is at least this."""
    failing: bool = False
    """Only failing runs."""
    outcomes: tuple[Outcome, ...] = ()
    """Only runs that have come to one of these; what is right at every length generalizes, too."""


def as_list(given: Any) -> list[Any]:
    """What a user gives as one or as several: a name, a number, or any collection of these."""
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    return list(given) if several else [given]


@dataclass(frozen=True)
class WrittenValue:
    """A value as a user writes it, whose type is that of the stored values it may mean."""

    text: str

    def matching(self, values: Iterable[Any]) -> list[Any]:
        """Those of these values that are written like this.

        Before others those whose JSON it is, so that `64` is the number and `"64"` the text
        wherever there are both; then those that pages and tables write like this; then equal ones,
        such as 0.001 for `1e-3`.
        """
        try:
            read = json.loads(self.text)
        # What a user writes may be nested deeper than Python's stack.
        except (ValueError, RecursionError):
            read = self.text
        ways: list[Callable[[Any], bool]] = [
            lambda value: canonical_json(value) == self.text,
            lambda value: str(value) == self.text,
            lambda value: is_value(value, read),
        ]
        known = [value for value in values if value is not None]
        for is_meant in ways:
            if found := [value for value in known if is_meant(value)]:
                return found
        return []


def is_value(stored: Any, value: Any) -> bool:
    """Whether a stored value is this one; True is not 1, and a list is its JSON."""
    if isinstance(value, list | tuple):
        return bool(stored == list(value) or stored == canonical_json(value))
    return isinstance(stored, bool) == isinstance(value, bool) and bool(stored == value)


def in_scope(selection: Selection) -> ColumnElement[bool]:
    """Whether a run is one of those that there are at all, whatever its results."""
    conditions: list[ColumnElement[bool]] = []
    members = select(SweepRun.run_id).join(Sweep, Sweep.id == SweepRun.sweep_id)
    if selection.sweeps:
        conditions.append(Run.id.in_(members.where(Sweep.name.in_(selection.sweeps))))
    if selection.without:
        left_out = members.where(Sweep.name.in_(selection.without))
        in_others = members.where(Sweep.name.not_in(selection.without))
        # A run of no sweep at all stays.
        conditions.append(or_(Run.id.not_in(left_out), Run.id.in_(in_others)))
    if selection.model_seeds:
        conditions.append(one_of(Run.model_seed, selection.model_seeds))
    if selection.config_ids is not None:
        conditions.append(one_of(Run.config_id, selection.config_ids))
    if selection.run_ids is not None:
        conditions.append(one_of(Run.id, selection.run_ids))
    # SQLAlchemy warns of an `and_` of nothing.
    return and_(true(), *conditions)
