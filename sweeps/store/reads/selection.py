"""The selection of runs that a query is about."""

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
    """The runs that a query is about; empty fields restrict nothing.

    Sweeps, seeds and configurations determine the runs in scope. `failing` and `outcomes` pick
    among those by their results, and so change no share or median.
    """

    sweeps: tuple[str, ...] = ()
    model_seeds: tuple[int, ...] = ()
    config_ids: tuple[int, ...] | None = None
    run_ids: tuple[int, ...] | None = None
    without: tuple[str, ...] = ()
    """Sweeps whose runs are left out, except those that another sweep has too."""
    below: float = 1.0
    """The accuracy below which a run fails; at 1, any misclassified string is a failure."""
    learned_at: float = LEARNED_AT
    """The accuracy on strings of trained lengths from which on a run has learned."""
    failing: bool = False
    """True if only failing runs are picked."""
    outcomes: tuple[Outcome, ...] = ()
    """Only runs with one of these outcomes are picked; `GENERALIZES` includes `AT_EVERY_LENGTH`."""


def as_list(given: Any) -> list[Any]:
    """A list of what a user gives as one or as several: a name, a number, or any collection."""
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    return list(given) if several else [given]


@dataclass(frozen=True)
class WrittenValue:
    """A value as a user writes it, which takes the type of the stored values that it matches."""

    text: str

    def matching(self, values: Iterable[Any]) -> list[Any]:
        """Those of these values that the text denotes, by the first of three ways that finds any.

        First values with this JSON, so that `64` is the number and `"64"` the string where both
        occur; then those that pages and tables display like this; then equal ones, such as 0.001
        for `1e-3`.
        """
        try:
            read = json.loads(self.text)
        # A user's text may be nested deeper than Python's stack.
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
    """True if a stored value is this one; True is not 1, and a list equals its JSON."""
    if isinstance(value, list | tuple):
        return bool(stored == list(value) or stored == canonical_json(value))
    return isinstance(stored, bool) == isinstance(value, bool) and bool(stored == value)


def in_scope(selection: Selection) -> ColumnElement[bool]:
    """The condition that a run is in the scope of a selection, whatever its results."""
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
