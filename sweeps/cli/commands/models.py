"""What commands tell of trained models."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd
import typer

from seqcls.engines.choice import choose_engine
from seqcls.errors import ConfigError, UnknownRunError
from seqcls.problem import resolve
from seqcls.results import Verdict
from seqcls.spelling import nearest
from sweeps.analysis.configuration_lookup import condition
from sweeps.cli.commands.causes import perturbed_table
from sweeps.cli.commands.printing import Look, count, is_fitted, print_json, print_table
from sweeps.grid.spec import load_specs
from sweeps.results.summaries import differing_fields
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reading import queries, sweep_queries
from sweeps.store.reading.selection import View
from sweeps.store.results import explained
from sweeps.store.schema.tables import RunState
from sweeps.store.strings import string_queries

REASON = "reason"

SORTS = ("length", "string", "logit", "occurrences")
"""What errors are sorted by; where two are alike, by the next."""


def list_runs(
    db: str | None,
    sweeps: tuple[str, ...],
    model_seeds: tuple[int, ...],
    failing: bool,
    conditions: Sequence[str],
    as_json: bool,
    look: Look,
) -> None:
    """Prints the runs that meet all conditions."""
    fields = dict(condition(text, f"--where {text}") for text in conditions)
    store = open_reader(db)
    for name in sweeps:
        sweep_queries.find_sweep(store, name)
    frame = queries.runs(store, View(sweeps, model_seeds, failing=failing), fields)
    if as_json:
        print_json(frame.drop(columns="config_id"))
        return
    # In the order of their weight: a narrow terminal leaves the last out.
    shown = frame[["id", "sweeps", "model_seed", "accuracy", "fp", "fn", "solved_length"]].copy()
    shown["sweeps"] = shown["sweeps"].map(_in_short if is_fitted(look) else ", ".join)
    shown["accuracy"] = [_percent(value) for value in shown["accuracy"]]
    if (frame["state"] != RunState.DONE).any():
        shown.insert(3, "state", frame["state"])
    for name in differing_fields(frame):
        shown[name] = frame[name].map(toml_value)
    for name in ("state", "epochs", "best_epoch", "tn", "tp"):
        shown[name] = frame[name]
    print_table(shown, f"{count(len(frame), 'run')} in {store.name}", look)


def list_errors(
    db: str | None, reference: str, sort: str, limit: int | None, as_json: bool, look: Look
) -> None:
    """Prints a run's misclassified test strings, the first by a column of them."""
    if sort not in SORTS:
        raise ConfigError(f"--sort {sort}: {nearest(sort, list(SORTS))}")
    store = open_reader(db)
    run_id = queries.find_run(store, reference)
    status = queries.run_status(store, run_id)
    if status.state != RunState.DONE:
        reason = f": {status.error}" if status.error else ""
        raise UnknownRunError(f"run {run_id} is {status.state} and was not tested{reason}")
    frame = string_queries.string_errors(store, run_id)
    frame = frame.sort_values([sort, *(name for name in SORTS if name != sort)])
    strings = f"{len(frame):,} distinct strings, {frame['occurrences'].sum():,} in the test set"
    frame = frame if limit is None else frame.head(limit)
    if as_json:
        print_json(frame)
        return
    frame["string"] = frame["string"].replace("", '""')
    frame["logit"] = frame["logit"].map("{:.4f}".format)
    part = f"; the first {limit:,} by {sort}" if limit else ""
    title = f"misclassified by run {run_id}: {strings}{part}"
    print_table(frame[["string", "kind", "length", "logit", "occurrences", "label"]], title, look)


def predict_strings(
    db: str | None, reference: str, strings: Sequence[str], epoch: int | None, as_json: bool
) -> None:
    """Prints a model's logit and probability for each string."""
    store = open_reader(db)
    run_id = queries.find_run(store, reference)
    problem = resolve(queries.run_config(store, run_id))
    weights = queries.weights(store, run_id, epoch)
    # Imported where it is used: PyTorch takes a second or two to load.
    from seqcls.prediction import predict
    from sweeps.store.reading.models import of_run

    with of_run(run_id):
        predicted = predict(problem, weights, strings)
    frame = pd.DataFrame(
        [
            {"string": string, "probability": p.probability, "logit": p.logit}
            if p.answer is None
            else {"string": string, "answer": p.answer, "margin": p.logit}
            for string, p in zip(strings, predicted, strict=True)
        ]
    )
    if as_json:
        print_json(frame)
        return
    frame["string"] = frame["string"].replace("", '""')
    for name, form in {"probability": "{:.6f}", "logit": "{:.4f}", "margin": "{:.4f}"}.items():
        if name in frame:
            frame[name] = frame[name].map(form.format)
    print_table(frame, f"run {run_id}")


def show_engines(reference: str, engine: str, device: str, look: Look) -> None:
    """Prints which engine trains each configuration of the sweeps meant, and why."""
    frame = pd.DataFrame(
        [
            {
                "sweep": spec.name,
                "engine": choice.name,
                **{name: toml_value(value) for name, value in config.changed.items()},
                REASON: choice.reason,
            }
            for spec in load_specs(reference)
            for config in spec.configs()
            for choice in [choose_engine(resolve(config), engine, device)]
        ]
    )
    # Last, for it is long, and alike in most rows.
    frame.insert(len(frame.columns) - 1, REASON, frame.pop(REASON))
    print_table(frame, count(len(frame), "configuration"), look)


def show_verdict(db: str | None, reference: str, as_json: bool) -> None:
    """Prints what an exhaustive check of a run finds; checks and stores it where none is stored."""
    store = open_reader(db)
    run_id = queries.find_run(store, reference)
    found = queries.verdict(store, run_id)
    if found is None:
        found = check_exhaustively(store, run_id)
        writer.record_verdict(open_writer(db), run_id, found)
    if as_json:
        print_json(pd.DataFrame([asdict(found)]))
        return
    from seqcls.exhaustive import tries_empty

    empty = "with" if tries_empty(resolve(queries.run_config(store, run_id))) else "without"
    wrong = found.false_positives + found.false_negatives
    typer.echo(
        f"run {run_id}: of {found.inputs:,} {found.unit}s up to length {found.max_length}, "
        f"{empty} the empty string, {wrong:,} are misclassified ({found.false_positives:,} false "
        f"positives, {found.false_negatives:,} false negatives)"
        + (f"; the shortest is {found.shortest_error or 'the empty string'}" if wrong else "")
    )


def list_sensitive(db: str | None, as_json: bool) -> None:
    """Prints the runs whose confusion matrix depends on the precision, or on rounding."""
    store = open_reader(db)
    pairs = queries.sensitive(store)
    if as_json:
        print_json(pairs)
        return
    again = explained.sensitivity(store)
    if len(again):
        found = again[again["sensitive"]]
        title = (
            f"{len(found)} of {count(len(again), 'run')} trained again with other rounding come "
            "to another confusion matrix"
        )
        print_table(perturbed_table(store, found), title)
        if pairs.empty:
            return
    if pairs.empty:
        typer.echo(
            "no run is stored in both precisions; `seqcls sweep SPEC --precision float64` trains "
            "those of a sweep in double precision, `seqcls sensitive SWEEP` trains them again with "
            "other rounding"
        )
        return
    title = f"{pairs['sensitive'].sum()} of {len(pairs)} runs in both precisions have other"
    title += " confusion matrices"
    if not pairs["sensitive"].any():
        typer.echo(title)
        return
    shown = pairs[pairs["sensitive"]].drop(columns="sensitive")
    shown["sweeps"] = shown["sweeps"].map(", ".join)
    print_table(shown, title)


def check_exhaustively(store: Store, run_id: int) -> Verdict:
    """What a finished run's model makes of all strings: by letter counts, or string by string."""
    problem = resolve(queries.run_config(store, run_id))
    # Imported where it is used: the compiled engine takes half a second to load.
    from seqcls.exhaustive import unaffordable, verdicts
    from seqcls.interpretability.strings.verdict import string_verdict
    from sweeps.analysis.opened_models import asked_model, stored_weights

    if unaffordable(problem) is not None:
        return string_verdict(asked_model(store, run_id))
    return verdicts(problem, [stored_weights(store, run_id, problem)])[0]


def toml_value(value: Any) -> str:
    """A value as it is written in a specification: 0.0, true, "balanced"."""
    return json.dumps(value) if isinstance(value, bool | str) else str(value)


def _in_short(sweeps: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    return " +".join([*sweeps[:1], *([str(len(sweeps) - 1)] if len(sweeps) > 1 else [])])


def _percent(value: Any) -> str:
    return "" if pd.isna(value) else f"{value:.2%}"
