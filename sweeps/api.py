"""Sweeps from Python, in a notebook say, in as few words as at the command line.

from sweeps.api import errors, lengths, open_store, runs, submit, work

store = open_store("heads.db")
submit(store, "heads.toml")
work(store)
runs(store, sweep="heads")
"""

import builtins
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from seqcls.config import RunConfig, check_model_seed, default_fields
from seqcls.errors import ConfigError
from seqcls.interpretability.counts.cause import Explanation
from seqcls.interpretability.counts.explain import explain as explain_string
from seqcls.interpretability.counts.family import Curve, Map, area, curve, parse_family
from seqcls.interpretability.counts.network import Network
from seqcls.interpretability.counts.obstacle import obstacle
from seqcls.interpretability.strings.asked import AskedModel
from seqcls.interpretability.strings.families import (
    GroupCurve,
    GroupMap,
    group_curve,
    group_map,
    parse_groups,
)
from seqcls.results import Verdict
from seqcls.spelling import nearest
from sweeps.analysis.causes import SAMPLE, attribute, failing_runs
from sweeps.analysis.compared_configurations import Compared, compare_configs
from sweeps.analysis.opened_models import asked_model
from sweeps.grid.spec import load_specs, parse_spec
from sweeps.results.summaries import differing_fields
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_writer
from sweeps.store.reading import queries, sweep_queries
from sweeps.store.reading.selection import View
from sweeps.store.results import explained
from sweeps.store.strings import string_queries
from sweeps.work.options import WorkOptions, WorkSummary
from sweeps.work.progress import SweepProgress, progress
from sweeps.work.worker import work as work_on

__all__ = [
    "causes",
    "compare",
    "errors",
    "explain",
    "family",
    "figures",
    "lengths",
    "model",
    "open_store",
    "predict",
    "runs",
    "status",
    "submit",
    "verdict",
    "work",
]


FIRST = ["id", "sweeps", "model_seed", "state", "accuracy", "errors", "solved_length"]


def open_store(db: str | Path | None = None) -> Store:
    """The database, for reading and writing; made where there is none.

    Args:
        db: a file, or the URL of a PostgreSQL database; else `SEQCLS_DB`, else `runs.db`.

    Raises:
        StoreError: it cannot be opened, or was made by another version.
    """
    return open_writer(None if db is None else str(db))


def submit(store: Store, spec: str | Path | Mapping[str, Any]) -> list[str]:
    """Queues what a specification asks for and the database lacks.

    Args:
        store: the database.
        spec: a TOML file, a folder of them, a shipped one's name, or a table with the same keys.

    Returns:
        The names of the sweeps.

    Raises:
        SpecError: the specification cannot be read or is refused; nothing is queued.
    """
    specs = [parse_spec(spec)] if isinstance(spec, Mapping) else load_specs(str(spec))
    for own in specs:
        writer.submit(store, own)
    return [own.name for own in specs]


def work(
    store: Store,
    sweeps: str | Sequence[str] | None = None,
    *,
    workers: int = 0,
    engine: str = "auto",
    dask: str | None = None,
    progress_bar: bool | None = None,
) -> WorkSummary:
    """Trains what is queued, and returns when nothing is.

    Args:
        store: the database.
        sweeps: the name of a sweep, or several; all where it is None.
        workers: processes to train in; with 0 this one trains. In a script, more than 0 needs
            `if __name__ == "__main__":` around the call, since processes are spawned.
        engine: `auto`, `fused` or `torch`.
        dask: the address of a Dask scheduler whose workers train instead.
        progress_bar: whether to show how far it is; in a notebook, where it is None.

    Raises:
        UnknownRunError: there is no such sweep.
        StoreUnavailableError: the database cannot be written any longer.
        ClusterError: the cluster cannot be reached or was lost.
    """
    names = [sweeps] if isinstance(sweeps, str) else sweeps
    ids = None if names is None else [sweep_queries.find_sweep(store, name) for name in names]
    how = WorkOptions(workers, engine, dask=dask)
    if not (in_notebook() if progress_bar is None else progress_bar):
        return work_on(store, ids, how)
    from sweeps.cli.commands.sweeping import with_progress_bar

    return with_progress_bar(store, ids, how)


def in_notebook() -> bool:
    """Whether this is run in a cell of a notebook."""
    shell = getattr(builtins, "get_ipython", None)
    return shell is not None and type(shell()).__name__ == "ZMQInteractiveShell"


def status(store: Store) -> list[SweepProgress]:
    """How far every sweep is."""
    return progress(store.reader())


def runs(
    store: Store,
    sweep: str | None = None,
    model_seeds: Sequence[int] = (),
    *,
    failing: bool = False,
    **fields: Any,
) -> pd.DataFrame:
    """One row a run: its results, `accuracy` in [0, 1] and its configuration.

    What is asked for most stands first: the run, its results, the settings that differ. Times are
    timestamps in UTC.

    Args:
        store: the database.
        sweep: only this sweep's.
        model_seeds: only these; all where it is empty.
        failing: only runs with at least one misclassified test string.
        fields: values that fields of the configuration must have, as `hidden_size=16`.

    Raises:
        UnknownRunError: there is no such sweep.
        ConfigError: there is no such field, or a seed is no seed.
    """
    if sweep is not None:
        sweep_queries.find_sweep(store.reader(), sweep)
    for name in fields:
        if name not in RunConfig.model_fields:
            raise ConfigError(f"unknown field {name!r}: {nearest(name, list(default_fields()))}")
    for seed in model_seeds:
        check_model_seed(seed)
    sweeps = () if sweep is None else (sweep,)
    view = View(sweeps, tuple(model_seeds), failing=failing)
    frame = queries.runs(store.reader(), view, fields)
    frame["finished_at"] = pd.to_datetime(frame["finished_at"], utc=True, format="ISO8601")
    first = [*FIRST, *differing_fields(frame)]
    return frame[[*first, *(name for name in frame if name not in first)]]


def lengths(store: Store, run_ids: Sequence[int]) -> pd.DataFrame:
    """What runs came to at each length: run_id, length, tn, fp, fn, tp, tested, wrong (strings)."""
    return queries.length_scores(store.reader(), [int(run_id) for run_id in run_ids])


def errors(store: Store, run_ids: Sequence[int]) -> pd.DataFrame:
    """Misclassified test strings: run_id, string, length, label, logit (nats), occurrences."""
    return string_queries.errors_of(store.reader(), [int(run_id) for run_id in run_ids])


def model(store: Store, run: int | str, epoch: int | None = None) -> AskedModel:
    """A run's model, to be asked about strings; `seqcls.interpretability.strings` looks inside.

    Args:
        store: the database.
        run: its id, or its sweep and model seed, as `heads/2`.
        epoch: whose weights to use; the best one's if none is named.

    Raises:
        UnknownRunError: there is no such run, or it has no such weights.
    """
    return asked_model(store.reader(), queries.find_run(store.reader(), str(run)), epoch)


def predict(store: Store, run: int | str, strings: Sequence[str]) -> pd.DataFrame:
    """A model's answers: string, label (missing where it cannot be asked), predicted, logit.

    Args:
        store: the database.
        run: as `model` takes it.
        strings: as `ab{100}c{55}`.

    Raises:
        UnknownRunError: there is no such run, or it has no weights.
        InvalidStringError: a string that is not of this alphabet.
    """
    own = model(store, run)
    answers = own.ask_all([own.letters(string) for string in strings])
    return pd.DataFrame(
        {
            "string": list(strings),
            "label": answers.labels,
            "predicted": [
                bool(yes) if known else None
                for yes, known in zip(answers.predicted, answers.known, strict=True)
            ],
            "logit": answers.logits,
        }
    )


def explain(store: Store, run: int | str, string: str) -> Explanation:
    """The cause of a model's answer; `seqcls.interpretability.counts.explanation_text` tells it.

    Raises:
        UnknownRunError: as `predict`.
        ConfigError: of this model or task the explanation would not be true.
        InvalidStringError: the string is not of this alphabet.
    """
    own = model(store, run)
    return explain_string(Network.of(own.problem, own.weights), string)


def family(store: Store, run: int | str, strings: str) -> Curve | Map | GroupCurve | GroupMap:
    """Where the answer changes as the free counts of a family such as `<ab>{n}` grow.

    By letter counts where these decide, exactly and up to a million; else, or where the family has
    groups, by running its strings, up to 2,000.

    Raises:
        UnknownRunError: as `predict`.
        InvalidStringError: it is no family of this alphabet.
    """
    own = model(store, run)
    if "<" in strings or obstacle(own.problem) is not None:
        groups = parse_groups(own, strings)
        return group_curve(own, groups) if len(groups.names) == 1 else group_map(own, groups)
    network = Network.of(own.problem, own.weights)
    parsed = parse_family(strings, own.num_letters)
    return curve(network, parsed) if len(parsed.names) == 1 else area(network, parsed)


def causes(store: Store, sweep: str, sample: int = SAMPLE) -> pd.DataFrame:
    """Why the failing runs of a sweep fail: as stored, or else found and stored.

    Args:
        store: the database.
        sweep: its name.
        sample: errors of each run that are looked at.

    Returns:
        run_id, number, mechanism, head, tokens, share, strings, agreement; in each run the cause of
        most errors has the number 0.

    Raises:
        UnknownRunError: there is no such sweep.
    """
    ids = [int(own) for own in failing_runs(store.reader(), sweep)["id"]]
    attribute(store, ids, sample)
    return explained.causes(store.reader(), ids)


def figures(
    store: Store, run: int | str, strings: Sequence[str], epoch: int | None = None
) -> list[Any]:
    """Every figure of a model for some strings, as charts that a notebook shows.

    Args:
        store: the database.
        run: as `model` takes it.
        strings: to draw.
        epoch: whose model; the kept epoch's if none is named.

    Raises:
        UnknownRunError: as `predict`, or there are no weights of that epoch.
        InvalidStringError: a string that is not of this alphabet, or too long to be drawn.
    """
    # By its name: the book-keeping stands below the screen, whose charts it hands out here.
    drawing = import_module("dashboard.figures.command")
    reference = str(run)
    return [figure.chart for figure in drawing.drawn(store.reader(), reference, strings, epoch)]


def verdict(store: Store, run: int | str) -> Verdict:
    """What a model makes of all strings up to a length: as stored, or else tried and stored.

    Raises:
        UnknownRunError: there is no such run, or it is not finished.
    """
    from sweeps.cli.commands.models import check_exhaustively

    run_id = queries.find_run(store.reader(), str(run))
    found = queries.verdict(store.reader(), run_id)
    if found is None:
        found = check_exhaustively(store.reader(), run_id)
        writer.record_verdict(store, run_id, found)
    return found


def compare(store: Store, a: str, b: str) -> Compared:
    """Two configurations, seed by seed where seeds agree; differences are the first less the other.

    Args:
        store: the database.
        a: a sweep of one configuration, `heads:hidden_size=16`, or a run, as `seqcls compare` does.
        b: likewise.

    Raises:
        UnknownRunError: there is no such configuration, or no run of it is finished.
        ConfigError: a field or a value that there is not.
    """
    return compare_configs(store.reader(), a, b)
