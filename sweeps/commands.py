"""What the commands do, and how they show it."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd
import typer
from pydantic import TypeAdapter, ValidationError
from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from seqcls.config import RunConfig, nearest
from seqcls.engines.choice import choose_engine
from seqcls.engines.machine_code import compile_ahead, is_compiled
from seqcls.errors import ConfigError, DeviceError, StoreMissingError, UnknownRunError
from seqcls.results import Verdict
from sweeps.spec import SweepSpec, at_precision, load_specs
from sweeps.store import queries, writer
from sweeps.store.engine import Store, locate, open_reader, open_writer
from sweeps.store.tables import RunState
from sweeps.summaries import differing_fields
from sweeps.worker import work

WIDE = 10_000
"""Columns of output that nobody has to read on a screen."""


@dataclass(frozen=True)
class How:
    """How the runs of a sweep are to be trained."""

    workers: int
    engine: str
    device: str


def run_sweeps(reference: str, db: str | None, precision: str | None, how: How) -> None:
    """Trains what is missing of the sweeps meant, with a progress bar."""
    specs = load_specs(reference)
    if precision is not None:
        specs = [at_precision(spec, precision) for spec in specs]
    _check(specs, how)
    # Looked up read-only first: a complete database is not touched at all.
    if _missing(specs, db) == 0:
        typer.echo(f"{_sweeps(specs)}: all runs are in {locate(db)}.")
        return
    store = open_writer(db)
    sweep_ids = [writer.submit(store, spec) for spec in specs]
    _compile_where_needed(specs, how)
    started = time.perf_counter()
    before = queries.counts_by_state(store, sweep_ids)
    try:
        _work_with_progress_bar(store, sweep_ids, how)
    except KeyboardInterrupt:
        _say_what_is_left(store, sweep_ids)
        raise typer.Exit(130) from None
    after = queries.counts_by_state(store, sweep_ids)
    done = after.get(RunState.DONE, 0) - before.get(RunState.DONE, 0)
    typer.echo(
        f"{_sweeps(specs)}: trained {done} runs in {time.perf_counter() - started:.0f} s, "
        f"{sum(after.values())} in all, in {store.name}."
    )
    _warn_of_others(after)


def list_runs(
    db: str | None,
    sweeps: tuple[str, ...],
    model_seeds: tuple[int, ...],
    failing: bool,
    conditions: Sequence[str],
    as_json: bool,
) -> None:
    """Prints the runs that meet all conditions."""
    fields = dict(map(_condition, conditions))
    store = open_reader(db)
    _check_sweeps(store, sweeps)
    frame = queries.runs(store, queries.RunFilter(sweeps, model_seeds, failing, fields))
    if as_json:
        _print_json(frame.drop(columns="config_id"))
        return
    results = ["tn", "fp", "fn", "tp", "accuracy", "solved_length", "epochs", "best_epoch"]
    shown = frame[["id", "sweeps", "model_seed", "state", *results]].copy()
    shown["sweeps"] = shown["sweeps"].map(", ".join)
    shown["accuracy"] = [_percent(value) for value in shown["accuracy"]]
    for name in differing_fields(frame):
        shown[name] = frame[name]
    plural = "" if len(frame) == 1 else "s"
    _print_table(shown, f"{len(frame)} run{plural} in {store.name}")


def list_errors(db: str | None, reference: str, as_json: bool) -> None:
    """Prints a run's misclassified test strings."""
    store = open_reader(db)
    run_id = queries.find_run(store, reference)
    status = queries.run_status(store, run_id)
    if status.state != RunState.DONE:
        reason = f": {status.error}" if status.error else ""
        raise UnknownRunError(f"run {run_id} is {status.state} and was not tested{reason}")
    frame = queries.string_errors(store, run_id)
    frame.insert(1, "kind", frame["label"].map({0: "false positive", 1: "false negative"}))
    if as_json:
        _print_json(frame)
        return
    frame["logit"] = frame["logit"].map("{:.4f}".format)
    strings = f"{len(frame)} distinct strings, {frame['occurrences'].sum()} in the test set"
    _print_table(frame, f"run {run_id}: misclassified are {strings}")


def predict_strings(
    db: str | None, reference: str, strings: Sequence[str], epoch: int | None, as_json: bool
) -> None:
    """Prints a model's logit and probability for each string."""
    store = open_reader(db)
    run_id = queries.find_run(store, reference)
    config = queries.run_config(store, run_id)
    weights = queries.weights(store, run_id, epoch)
    # Imported where it is used: PyTorch takes a second or two to load.
    from seqcls.prediction import predict

    predicted = predict(config, weights, strings)
    frame = pd.DataFrame(
        [
            {"string": string, "probability": p.probability, "logit": p.logit}
            for string, p in zip(strings, predicted, strict=True)
        ]
    )
    if as_json:
        _print_json(frame)
        return
    frame["string"] = frame["string"].replace("", '""')
    frame["probability"] = frame["probability"].map("{:.6f}".format)
    frame["logit"] = frame["logit"].map("{:.4f}".format)
    _print_table(frame, f"run {run_id}")


def show_engines(reference: str, how: How) -> None:
    """Prints which engine trains each configuration of the sweeps meant, and why."""
    frame = pd.DataFrame(
        [
            {"sweep": spec.name, "engine": choice.name, "reason": choice.reason, **config.changed}
            for spec in load_specs(reference)
            for config in spec.configs()
            for choice in [choose_engine(config, how.engine, how.device)]
        ]
    )
    _print_table(frame, f"{len(frame)} configurations")


def show_verdict(db: str | None, reference: str, as_json: bool) -> None:
    """Prints what an exhaustive check of a run finds; checks and stores it where none is stored."""
    store = open_reader(db)
    run_id = queries.find_run(store, reference)
    found = queries.verdict(store, run_id)
    if found is None:
        found = _check_exhaustively(store, run_id)
        writer.record_verdict(open_writer(db), run_id, found)
    if as_json:
        _print_json(pd.DataFrame([asdict(found)]))
        return
    wrong = found.false_positives + found.false_negatives
    typer.echo(
        f"run {run_id}: of {found.multisets:,} multisets up to length {found.max_length}, "
        f"{wrong:,} are misclassified ({found.false_positives:,} false positives, "
        f"{found.false_negatives:,} false negatives)"
        + (f"; the shortest is {found.shortest_error}" if wrong else "")
    )


def list_sensitive(db: str | None, as_json: bool) -> None:
    """Prints the runs whose confusion matrix depends on the precision."""
    store = open_reader(db)
    pairs = queries.sensitive(store)
    if as_json:
        _print_json(pairs)
        return
    if pairs.empty:
        typer.echo(
            "no run is stored in both precisions; `seqcls sweep SPEC --precision float64` trains "
            "those of a sweep in double precision"
        )
        return
    shown = pairs[pairs["sensitive"]].drop(columns="sensitive")
    shown["sweeps"] = shown["sweeps"].map(", ".join)
    title = f"{len(shown)} of {len(pairs)} runs in both precisions have other confusion matrices"
    _print_table(shown, title)


def _check_exhaustively(store: Store, run_id: int) -> Verdict:
    config = queries.run_config(store, run_id)
    # Imported where it is used: the compiled engine takes half a second to load.
    from seqcls.verdict import unaffordable, verdicts
    from seqcls.weights import from_bytes

    obstacle = unaffordable(config)
    if obstacle is not None:
        raise ConfigError(f"run {run_id} is not checked exhaustively: {obstacle}")
    return verdicts(config, [from_bytes(queries.weights(store, run_id))])[0]


def _missing(specs: list[SweepSpec], db: str | None) -> int | None:
    try:
        return queries.missing_runs(open_reader(db), specs)
    except StoreMissingError:
        return None


def _work_with_progress_bar(store: Store, sweep_ids: list[int], how: How) -> None:
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("training", total=None)

        def update(done: float, total: int) -> None:
            progress.update(task, completed=done, total=total)

        work(
            store,
            sweep_ids,
            workers=how.workers,
            engine=how.engine,
            device=how.device,
            on_progress=update,
        )


def _check(specs: list[SweepSpec], how: How) -> None:
    """Refuses what cannot be trained like this before anything is written."""
    if how.device not in ("auto", "cpu", "cuda"):
        raise DeviceError(f"device {how.device!r}: expected auto, cpu or cuda")
    if how.device == "cuda":
        # Imported where it is used: only PyTorch knows whether there is a GPU.
        from seqcls.engines.stacked import choose_device

        choose_device(how.device)
    for spec in specs:
        for config in spec.configs():
            choose_engine(config, how.engine, how.device)


def _compile_where_needed(specs: list[SweepSpec], how: How) -> None:
    """Compiles the fused engine before the workers begin, who would each do it."""
    configs = [config for spec in specs for config in spec.configs()]
    fused = [c for c in configs if choose_engine(c, how.engine, how.device).name == "fused"]
    for precision in sorted({config.precision for config in fused}):
        if not is_compiled(precision):
            typer.echo(f"compiling for this machine ({precision}), once: about a minute", err=True)
            compile_ahead(precision)


def _check_sweeps(store: Store, names: Sequence[str]) -> None:
    known = queries.sweeps(store)["name"].tolist()
    for name in names:
        if name not in known:
            raise ConfigError(f"no sweep {name!r} in {store.name!r}: {nearest(name, known)}")


def _condition(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if name not in RunConfig.model_fields:
        raise ConfigError(f"--where {text}: {nearest(name, list(RunConfig.model_fields))}")
    if not equals:
        raise ConfigError(f"--where {text}: expected FIELD=VALUE, as in hidden_size=16")
    annotation: Any = RunConfig.model_fields[name].annotation
    try:
        return name, TypeAdapter(annotation).validate_strings(value)
    except ValidationError as error:
        expected = error.errors()[0]["msg"].removeprefix("Input should be ")
        raise ConfigError(f"--where {text}: expected {expected}") from None


def _sweeps(specs: list[SweepSpec]) -> str:
    return specs[0].name if len(specs) == 1 else f"{len(specs)} sweeps"


def _say_what_is_left(store: Store, sweep_ids: list[int]) -> None:
    counts = queries.counts_by_state(store, sweep_ids)
    typer.echo(
        f"stopped: {counts.get(RunState.DONE, 0)} of {sum(counts.values())} runs are done and "
        "stored; the same command goes on with the rest",
        err=True,
    )


def _warn_of_others(counts: dict[str, int]) -> None:
    if failed := counts.get(RunState.FAILED):
        typer.echo(f"{failed} runs failed; `seqcls runs --json` gives each one's reason.", err=True)
    if running := counts.get(RunState.RUNNING):
        typer.echo(f"{running} runs are being trained by another worker.", err=True)


def _percent(value: Any) -> str:
    return "" if pd.isna(value) else f"{value:.2%}"


def _print_json(frame: pd.DataFrame) -> None:
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    typer.echo(json.dumps(records, indent=1, allow_nan=False))


def _print_table(frame: pd.DataFrame, title: str) -> None:
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE, pad_edge=False)
    for name in frame.columns:
        numeric = pd.api.types.is_numeric_dtype(frame[name])
        table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for row in frame.itertuples(index=False):
        # Text, so that brackets in a string are not read as markup.
        table.add_row(*(Text("" if pd.isna(value) else str(value)) for value in row))
    # Into a file or another program a line may be as long as it is.
    Console(width=None if Console().is_terminal else WIDE).print(table)
