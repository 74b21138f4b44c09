"""Actions on sweeps: submit, train, watch, delete, estimate."""

import builtins
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from seqcls.engines.choice import choose_engine
from seqcls.errors import SeqclsError, SpecError, UnknownRunError
from seqcls.problem import resolve
from sweeps.api.selecting import selection_of
from sweeps.grid.spec import SweepSpec, at_precision, load_specs, parse_spec
from sweeps.naming import names_by_key
from sweeps.processes import OnProgress
from sweeps.results import OutcomeCounts, describe_counts
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import frames, sweep_queries
from sweeps.store.reads.selection import Selection, as_list
from sweeps.store.reads.sweep_queries import Sweeps, ids_or_all
from sweeps.store.reads.sweep_queries import missing_runs as missing_runs
from sweeps.store.reads.sweep_queries import runs_by_state as runs_by_state
from sweeps.store.reads.sweep_queries import runs_of_one_sweep_only as runs_of_one_sweep_only
from sweeps.store.reads.sweep_queries import sweep_ids as sweep_ids
from sweeps.store.tables import Run, RunState
from sweeps.terminal import progress_bar as bar_of
from sweeps.work import background_worker, machine
from sweeps.work import estimate as estimating
from sweeps.work.executors.dask_cluster import check_address
from sweeps.work.machine import WorkOptions, WorkSummary, check_device
from sweeps.work.more_seeds import as_grown
from sweeps.work.progress import SweepProgress, counts, progress
from sweeps.work.readers import FittedReaders, are_fitted_after_training, fit_readers, fit_when_idle
from sweeps.work.worker import work as work_on

if TYPE_CHECKING:
    import pandas as pd


_log = logging.getLogger(__name__)

Spec = str | Path | Mapping[str, Any] | Sequence[SweepSpec]
"""A TOML file, a folder of them, the name of a shipped one, a table with the same keys, or the
result of `read_specs`."""


def read_specs(spec: Spec, precision: str | None = None) -> list[SweepSpec]:
    """Reads and checks specifications; at another precision if one is given.

    Each is expanded once.

    Raises:
        SpecError: a specification cannot be read or is refused.
    """
    if isinstance(spec, str | Path):
        specs = load_specs(str(spec))
    elif isinstance(spec, Mapping):
        specs = [parse_spec(spec)]
    else:
        specs = [sweep_spec for sweep_spec in as_list(spec) if isinstance(sweep_spec, SweepSpec)]
        if len(specs) < len(as_list(spec)):
            raise SpecError(
                f"{spec!r:.60} is not a specification: expected a TOML file, a folder of them, the "
                "name of a shipped one, or a table with the same keys"
            )
    return [at_precision(x, precision) for x in specs] if precision is not None else specs


def submit(store: Store, spec: Spec) -> list[str]:
    """Queues the runs of a specification that the database lacks.

    The specification of an existing sweep is replaced: runs that are no longer part of it leave the
    sweep, which is logged as a warning.

    Args:
        spec: a TOML file, a folder of them, the name of a shipped one, or a table with the same
            keys.

    Returns:
        The names of the sweeps.

    Raises:
        SpecError: the specification cannot be read or is refused; nothing is queued.
    """
    specs = [as_grown(store, sweep_spec) for sweep_spec in read_specs(spec)]
    every = [config for sweep_spec in specs for config in sweep_spec.configs()]
    # The names of sweeps that are submitted together are distinct across all of them.
    names = names_by_key(every) if len(specs) > 1 else None
    for sweep_spec in specs:
        # Before it is submitted: afterwards the sweep's former runs are unknown.
        leaving = leaving_sentence(store, sweep_spec)
        writer.submit(store, sweep_spec, names=names)
        if leaving:
            _log.warning("%s", leaving)
    return [sweep_spec.name for sweep_spec in specs]


def launch_for_agent(store: Store, spec: Spec, most: int) -> dict[str, Any]:
    """Queues a specification of an agent, within the limit of models for all agents.

    An agent cannot change sweeps of people.

    Args:
        spec: as `submit` takes it.
        most: the maximum number of models that agents may train in this database.

    Returns:
        sweeps (names), models (to train, those that a sweep may grow by included), and
        may_still_be_launched (models of agents in this database).

    Raises:
        SpecError: the specification cannot be read or is refused.
        ConfigError: too many models, the name of a sweep that no agent launched, or one that runs
            would leave; nothing is queued.
    """
    specs = [as_grown(store, sweep_spec) for sweep_spec in read_specs(spec)]
    models, left = writer.launch_for_agent(store, specs, most)
    names = [sweep_spec.name for sweep_spec in specs]
    return {"sweeps": names, "models": models, "may_still_be_launched": left}


def leaving_sentence(store: Store, spec: SweepSpec) -> str:
    """Describes the runs that would leave the sweep of a specification's name; empty where none
    would.
    """
    if not (leaving := sweep_queries.leaving_runs(store, spec)):
        return ""
    runs = "1 run leaves" if len(leaving) == 1 else f"{len(leaving):,} runs leave"
    listed = ", ".join(map(str, [*leaving][:10])) + " …" * (len(leaving) > 10)
    deleted = sum(leaving.values())
    return (
        f"{runs} the sweep {spec.name!r}, whose specification has changed: {listed}; {deleted:,} "
        "not begun yet are deleted"
    )


def growth_sentence(spec: SweepSpec) -> str:
    """Describes the seeds that a specification may add to those that it lists."""
    return (
        f"{spec.name}: will add seeds until {spec.until!r}, up to {spec.most_seeds:,} per "
        "configuration."
    )


def check_training(how: WorkOptions, spec: Spec = ()) -> None:
    """Refuses a device, cluster or engine that cannot train, before anything is written.

    Raises:
        DeviceError: there is no such device.
        ClusterError: the address of the cluster is none.
        EngineError: there is no such engine, or it cannot train one of these configurations.
    """
    check_device(how.device)
    if how.dask is not None:
        check_address(how.dask)
    for sweep_spec in read_specs(spec):
        for config in sweep_spec.configs():
            choose_engine(resolve(config), how.engine, how.device)


def memory_warning(spec: Spec, workers: int = 1) -> str | None:
    """Returns a warning about models too large for this many processes on this machine, or None."""
    problems = {
        resolve(config) for sweep_spec in read_specs(spec) for config in sweep_spec.configs()
    }
    short = (machine.shortage(problem, workers=workers) for problem in problems)
    return next(filter(None, short), None)


def work(
    store: Store,
    sweeps: Sweeps | None = None,
    *,
    workers: int = 0,
    engine: str = "auto",
    device: str = "auto",
    dask: str | None = None,
    watch: bool = False,
    progress_bar: bool | None = None,
    shortcuts: bool = True,
) -> WorkSummary:
    """Trains queued runs until none are left, and fits shortcut readers, as by `fit_shortcuts`.

    Args:
        sweeps: the name of a sweep, or several; all where it is None.
        workers: number of processes; with 0 this one trains. In a script, more than 0 needs
            `if __name__ == "__main__":` around the call, since processes are spawned.
        engine: `auto`, `fused` or `torch`.
        device: `auto`, `cpu` or `cuda`.
        dask: the address of a Dask scheduler whose workers train instead.
        watch: wait for more runs when none are left.
        progress_bar: show the progress; by default, in a notebook.
        shortcuts: fit readers; never where `SEQCLS_SHORTCUTS` is off.

    Raises:
        UnknownRunError: there is no such sweep.
        StoreUnavailableError: the database cannot be written any longer.
        DeviceError: there is no such device.
        ClusterError: the cluster cannot be reached or was lost.
    """
    how = WorkOptions(workers, engine, device, dask, watch)
    check_training(how)
    ids = ids_or_all(store, sweeps)
    shortcuts = shortcuts and are_fitted_after_training()
    idle = fit_when_idle(store, ids) if shortcuts and watch else None
    if progress_bar is None:
        # The shell of a notebook.
        shell = getattr(builtins, "get_ipython", None)
        progress_bar = shell is not None and type(shell()).__name__ == "ZMQInteractiveShell"
    with bar_of("training", stays=True) if progress_bar else nullcontext() as on_progress:
        worked = work_on(store, ids, how, on_progress, idle)
    # An interrupted training does not wait for readers.
    if shortcuts and worked.signal is None:
        fit_after_training(store, ids, progress_bar=progress_bar)
    return worked


def describe_outcomes(
    store: Store, trained: Sweeps | WorkSummary | None = None, **chosen: Any
) -> str:
    """Counts finished runs that learned and generalize, as a clause; empty where none is finished.

    Args:
        store: the database.
        trained: sweeps, or the summary of a worker; all runs where it is None.
        chosen: as for `sweeps.api.selecting.selection_of`: `learned_at=0.95`.
    """
    if isinstance(trained, WorkSummary):
        own = (Run.worker_id == trained.worker_id) & (Run.state == RunState.DONE)
        selection = Selection(run_ids=tuple(store.column(select(Run.id).where(own))))
        which = ""
    else:
        names, which = sweep_queries.sweep_names(store), " runs"
        selection = selection_of(
            store, [names[x] for x in sweep_ids(store, trained or ())], **chosen
        )
    counts = OutcomeCounts.from_configurations(frames.configurations(frames.runs(store, selection)))
    return describe_counts(counts, which) if counts.models else ""


def fit_after_training(
    store: Store, sweeps: Sweeps | None = None, *, progress_bar: bool = False
) -> bool:
    """Fits shortcut readers unless that is turned off; failures are logged, and Ctrl-C ends it.

    Returns:
        True if it ended since runs were queued meanwhile.
    """
    if not are_fitted_after_training():
        return False
    bar = bar_of("fitting shortcut readers", "tests") if progress_bar else nullcontext()
    try:
        with bar as on_progress:
            ids = ids_or_all(store, sweeps)
            return fit_readers(store, ids, on_progress, until_queued=True).is_queued
    except KeyboardInterrupt:
        _log.info("shortcut readers are left for the next worker")
    except SeqclsError as error:
        _log.warning("shortcut readers are not fitted: %s", error)
    return False


def fit_shortcuts(
    store: Store, sweeps: Sweeps | None = None, on_progress: OnProgress | None = None
) -> FittedReaders:
    """Fits shortcut readers to tests of finished runs that have none yet, and stores the results.

    It takes seconds for each test.

    Args:
        sweeps: only tests of runs of these sweeps; of all where it is None.
        on_progress: called with the number of tests that are done, and of all.

    Returns:
        The number of tests, and why others have no readers.

    Raises:
        UnknownRunError: there is no such sweep.
    """
    return fit_readers(open_writer(store), ids_or_all(store, sweeps), on_progress)


def status(store: Store, sweeps: Sweeps | None = None) -> list[SweepProgress]:
    """Returns the progress of these sweeps, or of all.

    Raises:
        UnknownRunError: there is no such sweep.
    """
    return progress(store, counts(store, sweep_ids(store, sweeps or ()) or None))


def delete(store: Store, sweep: str | int) -> int:
    """Deletes a sweep and the runs that no other sweep has, and returns their number.

    Raises:
        UnknownRunError: there is no such sweep.
    """
    if isinstance(sweep, Iterable) and not isinstance(sweep, str):
        raise UnknownRunError(f"{sweep!r:.60}: expected the name of one sweep to delete")
    (sweep_id,) = sweep_ids(store, sweep)
    runs = writer.delete(open_writer(store), sweep_id)
    # A new sweep may get its id.
    background_worker.forget(store, sweep_id)
    return runs


def estimate(
    store: Store | None,
    spec: Spec,
    workers: int = 1,
    timer: estimating.Timer | None = estimating.time_group,
) -> estimating.Estimate:
    """Counts the runs of a specification, and estimates the time for those that are missing.

    Groups that were not trained on this machine are timed for a moment, in this process.

    Args:
        store: the database; None where there is none yet.
        spec: as `submit` takes it.
        workers: number of processes that train at once.
        timer: a function that times groups; None does not time them.

    Raises:
        SpecError: the specification cannot be read or is refused.
    """
    return estimating.estimate(store, read_specs(spec), workers, timer)


def engines(spec: Spec, engine: str = "auto", device: str = "auto") -> "pd.DataFrame":
    """Returns the engine that trains each configuration of a specification, and the reason.

    Args:
        spec: as `submit` takes it.
        engine: the one to train with, or `auto`.
        device: `auto`, `cpu` or `cuda`.

    Returns:
        configuration (its name), sweep, engine, the fields that differ from the defaults (missing
        where they do not), reason.

    Raises:
        SpecError: the specification cannot be read or is refused.
        EngineError: there is no such engine, or it cannot train one of these configurations.
    """
    import pandas as pd

    pairs = [
        (sweep_spec.name, config)
        for sweep_spec in read_specs(spec)
        for config in sweep_spec.configs()
    ]
    distinct = list(dict.fromkeys(config for _, config in pairs))
    named = names_by_key(distinct)
    choices = {x: choose_engine(resolve(x), engine, device) for x in distinct}
    rows = [
        {"configuration": named[x.key], "sweep": sweep, "engine": choices[x].name, **x.changed}
        for sweep, x in pairs
    ]
    return pd.DataFrame(rows, dtype=object).assign(reason=[choices[x].reason for _, x in pairs])
