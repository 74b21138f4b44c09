"""Which runs a page is about, and the SQL conditions that select them."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, Float, and_, case, cast, func, or_, select, true

from seqcls.text import canonical_json
from sweeps.results import GENERALIZING, LEARNED_AT, Outcome, ProofResult
from sweeps.store.databases.statements import one_of
from sweeps.store.findings import is_proof_with
from sweeps.store.tables import Finding, Run, RunState, Sweep, SweepRun

Kind = Literal["false positives", "false negatives"]


KINDS: tuple[Kind, ...] = ("false positives", "false negatives")


@dataclass(frozen=True)
class View:
    """Which runs a page is about; what is empty restricts nothing.

    Sweeps, seeds and configurations say which runs there are at all. `failing`, `outcomes` and
    `kind` pick among those by their results, and so change no share or median.
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
    kind: Kind | None = None
    """Only runs that made at least one error of this kind."""

    @property
    def picks(self) -> bool:
        """Whether runs are picked by their results."""
        return self.failing or self.kind is not None or bool(self.outcomes)


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


def model_columns(view: View) -> list[ColumnElement[Any]]:
    return [
        Run.id.label("run_id"),
        Run.config_id.label("config_id"),
        Run.model_seed.label("model_seed"),
        accuracy().label("accuracy"),
        Run.wrong.label("errors"),
        Run.fp.label("false_positives"),
        Run.fn.label("false_negatives"),
        Run.solved_length.label("solved_length"),
        case((fails(view), 1), else_=0).label("failing"),
        outcome(view).label("outcome"),
        case((has_learned(view), 1), (Run.tested_within > 0, 0)).label("learned"),
        share_right(Run.tested_within, Run.wrong_within).label("accuracy_within"),
        share_right(Run.tested_beyond, Run.wrong_beyond).label("accuracy_beyond"),
        case((condition_of(view), 1), else_=0).label("picked"),
    ]


def errors_made(view: View) -> ColumnElement[Any]:
    """How many errors a run made, of the view's kind if it has one."""
    errors: dict[Kind | None, ColumnElement[Any]] = {
        None: Run.wrong.expression,
        KINDS[0]: Run.fp.expression,
        KINDS[1]: Run.fn.expression,
    }
    return errors[view.kind]


def accuracy() -> ColumnElement[Any]:
    """The share of test strings that a run got right, in [0, 1]."""
    return share_right(Run.tested, Run.wrong)


def share_right(tested: Any, wrong: Any) -> ColumnElement[Any]:
    """The share of strings that are right, in [0, 1]; missing where there is none.

    A quotient, which is compared with thresholds as they are: 99 of 100 is 0.99, while as floats
    0.07 times 100 is more than 7.
    """
    return cast(tested - wrong, Float) / func.nullif(tested, 0)


def has_come_to(result: ProofResult) -> ColumnElement[bool]:
    """Whether what is stored of a run's proof by its language's automaton is this result.

    No run whose test found an error is proved, whatever is stored.
    """
    found = select(Finding.run_id).where(is_proof_with(result))
    if result == ProofResult.PROVED:
        return and_(Run.id.in_(found), func.coalesce(Run.wrong, 0) == 0)
    return Run.id.in_(found)


def outcome(view: View) -> ColumnElement[str]:
    """What a run has come to, one of `Outcome`; missing where it is not tested.

    By its test, but where it is proved right on every string.
    """
    within = share_right(Run.tested_within, Run.wrong_within)
    beyond = share_right(Run.tested_beyond, Run.wrong_beyond)
    return case(
        (Run.state != RunState.DONE, None),
        (has_come_to(ProofResult.PROVED), Outcome.AT_EVERY_LENGTH.value),
        (within.is_(None), Outcome.NOT_KNOWN.value),
        (within < view.learned_at, Outcome.NOT_LEARNED.value),
        (beyond.is_(None), Outcome.NOT_KNOWN.value),
        (beyond < view.below, Outcome.FAILS_BEYOND.value),
        else_=Outcome.GENERALIZES.value,
    )


def has_learned(view: View) -> ColumnElement[bool]:
    """Whether a finished run is right on enough strings of trained lengths."""
    within = share_right(Run.tested_within, Run.wrong_within)
    is_right = or_(within >= view.learned_at, has_come_to(ProofResult.PROVED))
    return and_(Run.state == RunState.DONE, is_right)


def outcome_counts(view: View) -> list[ColumnElement[int]]:
    """How many runs of a group are judged on trained lengths (judged), have learned (learned), are
    tested on longer strings besides (judged_beyond), and generalize (generalize). One that is
    proved right on every string is all of these.
    """
    count, learned = func.count(Run.id), has_learned(view)
    proved = has_come_to(ProofResult.PROVED)
    within, beyond = or_(Run.tested_within > 0, proved), or_(Run.tested_beyond > 0, proved)
    return [
        count.filter(Run.state == RunState.DONE, within).label("judged"),
        count.filter(learned).label("learned"),
        count.filter(learned, beyond).label("judged_beyond"),
        count.filter(outcome(view).in_(GENERALIZING)).label("generalize"),
    ]


def proof_counts() -> list[ColumnElement[int]]:
    """How many finished runs of a group are proved, refuted, and not decided (undecided)."""
    done = func.count(Run.id).filter
    names = {"proved": "PROVED", "refuted": "REFUTED", "undecided": "NOT_DECIDED"}
    return [
        done(Run.state == RunState.DONE, has_come_to(ProofResult[result])).label(name)
        for name, result in names.items()
    ]


def fails(view: View) -> ColumnElement[bool]:
    """Whether a finished run is right on too few of its test strings, of any length."""
    return and_(Run.state == RunState.DONE, accuracy() < view.below)


def in_scope(view: View) -> ColumnElement[bool]:
    conditions: list[ColumnElement[bool]] = []
    members = select(SweepRun.run_id).join(Sweep, Sweep.id == SweepRun.sweep_id)
    if view.sweeps:
        conditions.append(Run.id.in_(members.where(Sweep.name.in_(view.sweeps))))
    if view.without:
        left_out = members.where(Sweep.name.in_(view.without))
        kept = members.where(Sweep.name.not_in(view.without))
        # A run of no sweep at all stays.
        conditions.append(or_(Run.id.not_in(left_out), Run.id.in_(kept)))
    if view.model_seeds:
        conditions.append(one_of(Run.model_seed, view.model_seeds))
    if view.config_ids is not None:
        conditions.append(one_of(Run.config_id, view.config_ids))
    if view.run_ids is not None:
        conditions.append(one_of(Run.id, view.run_ids))
    return and_(true(), *conditions)


def condition_of(view: View) -> ColumnElement[bool]:
    conditions: list[ColumnElement[bool]] = []
    if view.failing:
        conditions.append(fails(view))
    if view.outcomes:
        proved = (Outcome.AT_EVERY_LENGTH,) * (Outcome.GENERALIZES in view.outcomes)
        wanted = [each.value for each in (*view.outcomes, *proved)]
        conditions.append(outcome(view).in_(wanted))
    if view.kind is not None:
        cell = Run.fp if view.kind == KINDS[0] else Run.fn
        conditions.append(and_(Run.state == RunState.DONE, cell > 0))
    return and_(true(), *conditions)
