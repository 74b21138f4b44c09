"""Commands that train, watch, stop, resume, grow and delete sweeps."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqcls.errors import ConfigError
from seqcls.text import as_argument, count
from sweeps import api
from sweeps.cli.parameters import (
    INTERRUPTED,
    LEARNED_AT,
    RUNS_FAILED,
    RUNS_LEFT,
    Db,
    NewDb,
    Panel,
    Texts,
)
from sweeps.cli.printing import Answer, Table, TableOptions, table_of
from sweeps.processes import retry_lost
from sweeps.terminal import format_duration, output, progress_bar, say

if TYPE_CHECKING:
    import pandas as pd

    from sweeps.api import Store
    from sweeps.grid.spec import SweepSpec
    from sweeps.work.machine import WorkOptions
    from sweeps.work.progress import SweepProgress

train = Panel("Train")


@train.add("work heads --watch")
def work(
    training: "WorkOptions", sweeps: Texts = None, db: NewDb = None, watch: bool = False
) -> None:
    """Train queued runs until none are left; any number of workers can do so at once.

    Args:
        watch: wait for more runs when all are done.
    """
    from sweeps.api.sweeping import check_training, sweep_ids

    sweeps = sweeps or []
    check_training(training)
    ids = None
    if sweeps or not watch:
        # Opened to read first: a database must exist to have these sweeps.
        ids = sweep_ids(api.open_reader(db), sweeps) or None
    _work(
        api.open_writer(db), ids, replace(training, watch=watch), ", ".join(sweeps) or "all sweeps"
    )


STATUS = ["name", "state", "done", "failed", "queued", "running", "seconds_left", "runs_per_second"]
"""The columns of a status; on a narrow terminal the last are left out."""

STATUS_SECONDS = 2.0
"""Seconds between updates of a watched status."""


@train.add("status heads --watch")
def status(
    store: "Store",
    look: TableOptions,
    sweeps: Texts = None,
    watch: bool = False,
    toml: bool = False,
    learned_at: float = LEARNED_AT,
    below: float = 1.0,
    as_json: bool = False,
) -> Answer:
    """Show how far along sweeps are, how fast they go and how long they will take.

    Args:
        watch: refresh until all are done.
        toml: print the specification of one sweep instead, to be changed and trained again.
    """
    from rich.console import Console
    from rich.live import Live

    from sweeps.api.watching import specifications
    from sweeps.grid.written_spec import toml_of

    if watch and (as_json or toml):
        other = "--json" if as_json else "--toml"
        raise ConfigError(f"--watch cannot be combined with {other}: leave one of them out")
    progress = api.status(store, sweeps or [])
    if toml:
        if not sweeps or len(progress) != 1:
            raise ConfigError("--toml: expected the name of one sweep")
        spec = specifications(store)[progress[0].name]
        return Answer(json.loads(spec), [toml_of(spec).rstrip()])

    def title() -> str:
        return f"{count(len(progress), 'sweep')} in {store.name}"

    if watch:
        with Live(console=Console(file=output()), refresh_per_second=4) as live:
            while True:
                live.update(table_of(_frame(progress), title()))
                if all(x.state in ("done", "stopped") and not x.running for x in progress):
                    break
                time.sleep(STATUS_SECONDS)
                # A sweep that is deleted meanwhile is left out.
                every = retry_lost(partial(api.status, store))
                progress = [x for x in every if not sweeps or x.name in sweeps]

    def parts() -> Iterator[str | Table]:
        if not watch:
            yield Table(_frame(progress)[STATUS], title(), look)
        names = [sweep.name for sweep in progress]
        yield from outcome_sentences(store, names, learned_at=learned_at, below=below)
        for sweep in progress if not watch else ():
            if sweep.orphaned:
                died = f"the worker of {count(sweep.orphaned, 'run')} died"
                say(f"{sweep.name}: {died}; `seqcls work` trains them again.", err=True)

    failed = any(sweep.failed for sweep in progress)
    return Answer(_frame(progress), parts(), RUNS_FAILED if failed else 0)


def _frame(progress: "list[SweepProgress]") -> "pd.DataFrame":
    import pandas as pd

    names = ["name", "state", "queued", "running", "orphaned", "done", "failed"]
    frame = pd.DataFrame([[getattr(x, name) for name in names] for x in progress], columns=names)
    rates = [x.runs_per_second and round(x.runs_per_second, 2) for x in progress]
    left = [x.seconds_left and round(x.seconds_left) for x in progress]
    return frame.astype(object).assign(
        runs_per_second=pd.Series(rates, dtype=object), seconds_left=pd.Series(left, dtype=object)
    )


@train.add("stop heads")
def stop(store: "Store", sweeps: list[str]) -> None:
    """Stop sweeps wherever they are being trained; what is in training is queued to start over.

    Args:
        sweeps: names of sweeps, as `seqcls status` lists them.
    """
    api.stop(store, sweeps)
    for sweep in retry_lost(partial(api.status, store, sweeps)):
        if sweep.state == "done":
            say(f"{sweep.name} was already done.")
        else:
            say(
                f"{sweep.name} is stopped: {sweep.done} of {count(sweep.total, 'run')} done; "
                f"`seqcls resume {as_argument(sweep.name)}` lifts the stop."
            )


@train.add("resume heads --failed")
def resume(store: "Store", sweeps: list[str], failed: bool = False) -> None:
    """Resume stopped sweeps, or retry failed runs.

    Args:
        sweeps: names of sweeps, as `seqcls status` lists them.
        failed: only queue failed runs again; stopped sweeps stay stopped.
    """
    if failed:
        again = api.retry(store, sweeps)
        say(f"{count(again, 'failed run')} queued again; `seqcls work` trains them.")
        return
    api.resume(store, sweeps)
    for sweep in retry_lost(partial(api.status, store, sweeps)):
        say(f"{sweep.name}: {count(sweep.queued, 'run')} queued; `seqcls work` trains them.")


@train.add("more heads --budget 4x")
def more(
    training: "WorkOptions",
    sweep: str,
    budget: str | None = None,
    until: str | None = None,
    seeds: Annotated[int | None, typer.Option(min=1)] = None,
    most: int | None = None,
    learned_at: float = LEARNED_AT,
    name: str | None = None,
    queue: bool = False,
    db: Db = None,
) -> None:
    """Train a sweep's seeds for longer where they have not learned, or more of them.

    Args:
        budget: train the seeds that have not learned for more epochs, as a new sweep: a multiple
            of the original epochs (4x) or a number (192).
        until: train more seeds until a share is known this precisely for each configuration:
            'generalizes ± 10 %' (or 'share ± 10 %') of the seeds that learned, 'learned ± 10 %' of
            all; or 'generalizes apart', until the shares of two configurations differ.
        seeds: train this many more seeds of each configuration.
        most: with --until: at most this many seeds per configuration, in all; by default, 500.
        name: the new sweep's name; by default, SWEEP-BUDGET.
    """
    from sweeps.api import budgets
    from sweeps.api.sweeping import growth_sentence, sweep_ids
    from sweeps.work.more_seeds import grow

    if sum(x is not None for x in (budget, until, seeds)) != 1:
        raise ConfigError("expected one of --budget 4x, --seeds 16 and --until 'share ± 10 %'")
    store = api.open_reader(db)
    if seeds is not None:
        train_specs([budgets.more_seeds(store, sweep, seeds)], db, None if queue else training)
        return
    if until is not None:
        store = api.open_writer(db)
        spec = budgets.seeds(store, sweep, until, most=most)
        say(growth_sentence(spec))
        if queue:
            # As a worker would: `status` shows the queued runs before one starts.
            grow(store, sweep_ids(store, sweep))
            say(f"`seqcls work {as_argument(sweep)}` trains them.")
        else:
            _work(store, sweep_ids(store, sweep), training, sweep)
        return
    planned = budgets.more_training(store, sweep, budget or "", learned_at=learned_at, name=name)
    if planned.spec is not None:
        # A read-only database is refused before the plan is printed.
        api.open_writer(db)
    for sentence in planned.sentences:
        say(sentence)
    if planned.spec is not None:
        train_specs([planned.spec], db, None if queue else training)


@train.add("delete heads --yes")
def delete(store: "Store", sweep: str, yes: bool = False) -> None:
    """Delete a sweep, with the runs that no other sweep has.

    Args:
        yes: don't ask for confirmation.
    """
    from sweeps.api.sweeping import runs_of_one_sweep_only

    runs = runs_of_one_sweep_only(store, sweep)
    if not yes:
        typer.confirm(
            f"Delete the sweep {sweep!r}, with {count(runs, 'run')} that no other sweep has and "
            f"all their results, from {store.name}?",
            abort=True,
        )
    say(f"{sweep}: deleted, with {count(api.delete(store, sweep), 'run')}.")


# Training or queueing of specifications.


def train_specs(specs: "list[SweepSpec]", db: str | None, training: "WorkOptions | None") -> None:
    """Trains the runs that the database lacks; only queues them where `training` is None."""
    from sweeps.api.overlaps import contradictions, majority, trained_on, without_near
    from sweeps.api.sweeping import check_training, missing_runs, runs_by_state, sweep_ids

    if training is not None:
        check_training(training, specs)
        # Looked up read-only first: a complete database is not modified.
        grow = any(spec.until for spec in specs)
        if not grow and (there := api.existing(db)) and missing_runs(there, specs) == 0:
            say(f"{name_sweeps(specs)}: all runs are in {there.name}.")
            for sentence in outcome_sentences(there, [spec.name for spec in specs]):
                say(sentence)
            return
    if training is None or training.dask is None:
        warn_of_memory(specs, 1 if training is None else max(training.workers, 1))
    store = api.open_writer(db)
    names = api.submit(store, specs)
    configs = [config for spec in specs for config in spec.configs()]
    sentences = [trained_on(configs)] if training else [majority(configs), contradictions(configs)]
    for sentence in filter(None, (*sentences, without_near(configs))):
        say(sentence, err=True)
    if training is not None:
        _work(store, sweep_ids(store, names), training, name_sweeps(specs))
        return
    # Only this read is repeated: the runs are queued by now.
    queued = retry_lost(partial(runs_by_state, store, names)).get(api.RunState.QUEUED, 0)
    runs = f"{count(queued, 'run')} queued in {store.name}"
    say(f"{name_sweeps(specs)}: {runs}; `seqcls work` trains them.")


def read_specs(reference: str, precision: str | None = None) -> "list[SweepSpec]":
    """Reads the specifications of a command, with a progress bar."""
    from sweeps.api.sweeping import read_specs

    with progress_bar(f"reading {reference}"):
        return read_specs(reference, precision)


def name_sweeps(specs: "list[SweepSpec]") -> str:
    """Returns the name of the only sweep, or the number of sweeps."""
    return specs[0].name if len(specs) == 1 else f"{len(specs)} sweeps"


def warn_of_memory(specs: "list[SweepSpec]", workers: int) -> None:
    """Warns of models that this machine has too little memory for."""
    from sweeps.api.sweeping import memory_warning

    if warning := memory_warning(specs, workers):
        say(f"seqcls: {warning}", err=True)


def outcome_sentences(store: "Store", sweeps: Sequence[str], **chosen: Any) -> Iterator[str]:
    """Yields a sentence about the outcomes of the finished runs of these sweeps."""
    from sweeps.api.sweeping import describe_outcomes

    if sweeps and (came_to := retry_lost(partial(describe_outcomes, store, sweeps, **chosen))):
        yield f"{came_to[0].upper()}{came_to[1:]}."


def _work(store: "Store", ids: list[int] | None, training: "WorkOptions", what: str) -> None:
    """Trains until nothing is left, and exits with the status of the result."""
    from sweeps.api.budgets import seed_sentences
    from sweeps.api.sweeping import describe_outcomes, fit_after_training, runs_by_state

    def what_is_left() -> str:
        states = runs_by_state(store, ids)
        runs = f"{states.get(api.RunState.DONE, 0)} of {count(sum(states.values()), 'run')}"
        return f"{runs} are done and stored; rerun the command to resume"

    goes_on, status = True, 0
    while goes_on:
        started = time.perf_counter()
        try:
            # With `watch` readers are fitted while it waits, else after the report below.
            worked = api.work(
                store, ids, progress_bar=True, shortcuts=training.watch, **asdict(training)
            )
        except KeyboardInterrupt:
            say(f"{what}: interrupted; {what_is_left()}", err=True)
            raise typer.Exit(INTERRUPTED) from None
        trained = f"trained {count(worked.recorded, 'run')} in "
        trained += format_duration(time.perf_counter() - started)
        came_to = retry_lost(partial(describe_outcomes, store, worked))
        say(f"{what}: {trained}, in {store.name}{': ' if came_to else ''}{came_to}.")
        for sentence in seed_sentences(store, ids):
            say(sentence)
        if worked.signal is not None:
            say(f"stopped: {what_is_left()}", err=True)
            raise typer.Exit(128 + worked.signal)
        states = runs_by_state(store, ids)
        for state, explanation in LEFT.items():
            if number := states.get(state):
                say(f"{count(number, 'run')} {explanation}.", err=True)
        status = RUNS_FAILED if states.get(api.RunState.FAILED) else 0
        if states.get(api.RunState.RUNNING) or states.get(api.RunState.QUEUED):
            status = RUNS_LEFT
        # Fitting ends once runs are queued meanwhile, which are then trained.
        goes_on = fit_after_training(store, ids, progress_bar=True)
    raise typer.Exit(status)


LEFT = {
    "running": "being trained by another worker",
    "queued": "left: stopped (`seqcls resume` lifts that; what was in training starts over), or in "
    "need of a package that is not installed here",
    "failed": "failed; `seqcls runs --json` gives each one's reason, `seqcls resume SWEEP "
    "--failed` queues them again",
}
"""Explanations of runs that are in these states after training."""
