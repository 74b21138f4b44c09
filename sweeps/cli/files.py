"""Commands on files and databases: import, export, merge, verify, convert."""

import json
from itertools import chain
from pathlib import Path
from typing import Any

import typer

from seqcls.errors import ConfigError
from seqcls.text import count
from sweeps import api
from sweeps.cli.asking import summary_parts
from sweeps.cli.parameters import BAD_INPUT, RUNS_FAILED, Db, NewDb, OpenedModel, Panel, Texts
from sweeps.cli.printing import Answer, Table
from sweeps.terminal import progress_bar, say

files = Panel("Files")
db_app = Panel(None, no_args_is_help=True, help="Pack, merge, verify or convert a database.")


@files.add("import predictions.csv --sweep my-lab --dataset words.csv", name="import")
def import_(
    file: str,
    sweep: str | None = None,
    dataset: str | None = None,
    task: str | None = None,
    name: str | None = None,
    replace: bool = False,
    adapter: str | None = None,
    tokens: str | None = None,
    seed: int = 0,
    settings: list[str] | None = None,
    what: str | None = None,
    db: NewDb = None,
) -> Answer:
    """Import predictions or weights of models trained elsewhere, or strings as a dataset.

    Args:
        file: predictions: CSV, TSV, JSONL or Parquet with the columns model, seed, id or tokens,
            and prediction; score, split, config and config.NAME may be there. Weights: a
            safetensors file, or a folder with one, config.json and its vocabulary. Strings: what
            `seqcls data` takes.
        sweep: the sweep that these runs are stored in; default for weights: loaded.
        dataset: the file of the strings that the models are tested on.
        task: instead of a file, a task: parity, or '{"task": "parity", "test_max_length": 40,
            "train_max_length": 20}'.
        name: the name of the model, or of the strings; by default, as in the file.
        replace: replace runs that are already in the database.
        adapter: what wrote the weights: gpt2, recurrent, transformer_encoder or seqcls; by default,
            detected from the names of the tensors.
        tokens: for weights: a JSON file mapping tokens to ids, or listing tokens in the order of
            their ids; by default, the task's tokens in their order.
        seed: for weights: a number that tells several models of one name apart.
        settings: settings the tensors don't reveal, such as heads=2 or readout=mean; repeatable.
        what: what the file holds: predictions, weights or strings; by default, detected.
    """
    tested: dict[str, Any] = {
        "dataset": dataset,
        "task": task and _read_json(task, task.lstrip()[:1] == "{"),
    }
    kind = api.kind_of_file(file, what, tested=bool(sweep or dataset or task))
    if kind == "strings":
        summary = api.import_strings(db, file, name=name)
        stored = ""
        if not summary.refused:
            name = f"a specification names it as dataset = {summary.digest!r}"
            stored = f"stored in {api.open_reader(db).name}; {name}"
        parts = chain(summary_parts(summary), filter(None, [stored]))
        return Answer(summary.record(), parts, BAD_INPUT if summary.refused else 0)
    if kind == "predictions":
        if sweep is None:
            raise ConfigError("expected --sweep NAME: the sweep that these runs are stored in")
        ids = api.import_predictions(db, file, sweep=sweep, model=name, replace=replace, **tested)
        into = f"{api.open_reader(db).name}, sweep {sweep!r}"
        lines = [f"{file}: {count(len(ids), 'run')} imported into {into}"]
        return Answer({"runs": ids, "sweep": sweep}, lines)
    sweep, given = sweep or "loaded", {}
    for text in settings or ():
        setting, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--set {text!r:.60}: expected name=value, such as heads=2")
        # Python's spelling of truth values is accepted besides that of JSON.
        given[setting] = _read_json(value.lower() if value in ("True", "False") else value)
    how: dict[str, Any] = {"adapter": adapter, "tokens": tokens, "settings": given, "model": name}
    run = api.load_weights(db, file, sweep=sweep, seed=seed, replace=replace, **how, **tested)
    loaded = f"{file}: loaded into {api.open_reader(db).name} as run {run}, sweep {sweep!r}"
    record = {"run": int(run), "sweep": sweep, **run.reading}
    return Answer(record, [loaded, *run.sentences])


def _read_json(text: str, is_json: bool = False) -> Any:
    """Reads JSON; other text is returned unchanged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if is_json:
            raise ConfigError(f"--task is not valid JSON: {str(error)[:100]}") from None
        return text


@files.add("export results --format parquet")
def export(
    store: "api.Store",
    chosen: dict[str, Any],
    folder: Path,
    kind: str = "csv",
    spreadsheet: bool = False,
    force: bool = False,
) -> None:
    """Write runs, accuracy by length and misclassified strings to files.

    Args:
        kind: csv, parquet or jsonl (one line for each answer).
        spreadsheet: write ' before text that a spreadsheet would run as a formula (csv).
    """
    sweeps, how = chosen.pop("sweeps", ()), {"spreadsheet": spreadsheet, "force": force}
    with progress_bar("exporting") as on_progress:
        written = api.export(store, folder, kind, sweeps, on_progress, **how, **chosen)
    for path, rows in written.items():
        say(f"{path}: {count(rows, 'row')}")


@files.add("give all_initializations/2 model")
def give(opened: OpenedModel, folder: Path, form: str = "torch", force: bool = False) -> None:
    """Write a model as one PyTorch file, with its weights and how it was trained.

    Args:
        form: torch, one PyTorch file; or, for such a model, gpt2 (Hugging Face),
            transformer_encoder or recurrent (both PyTorch).
    """
    from sweeps.api.giving import describe_file

    store, run, epoch = opened.store, opened.run, opened.epoch
    for path in api.give(store, run, folder, epoch, form=form, force=force):
        say(str(path))
    say(f"computes: {describe_file(api.model(store, run, epoch).problem)}")


# A whole database.


@db_app.add("db pack --db runs.db")
def pack(db: Db = None) -> None:
    """Shrink the database to one small file that you can copy or share."""
    with progress_bar("packing"):
        path = api.pack(db)
    say(f"{path}: {path.stat().st_size:,} bytes")


@db_app.add("db merge theirs.db --db runs.db")
def merge(others: list[str], db: NewDb = None) -> None:
    """Import sweeps, with their runs and results, from other databases.

    Args:
        others: Databases to import from.
    """
    # All are opened first: a wrong name should leave no new database behind.
    sources = list(map(api.open_reader, others))
    store, trouble = api.open_store(db), False
    for source in sources:
        with progress_bar(f"merging {source.name}") as on_progress:
            merged = api.merge(store, source, on_progress)
        say(
            f"{source.name}: {count(merged.results, 'run')} added to {store.name}, {merged.same:,} "
            f"already present, {merged.waiting:,} unfinished"
        )
        for before, after in merged.renamed.items():
            say(f"{before!r} differs from the sweep of that name here; imported as {after!r}")
        for conflict in merged.conflicts:
            say(f"not replaced: {conflict}", err=True)
        for damaged in merged.damaged:
            say(f"damaged in {source.name}, not added: {damaged}", err=True)
        trouble = trouble or bool(merged.conflicts or merged.damaged)
    raise typer.Exit(RUNS_FAILED if trouble else 0)


@db_app.add("db verify --db runs.db")
def verify(store: "api.Store") -> Answer:
    """Check that the database still holds what was written to it, and name what is damaged."""
    with progress_bar("verifying") as on_progress:
        checked = api.verify(store, on_progress)
    verdict = "no damage found" if not checked.damages else "damaged as listed above"
    lines = [*map(str, checked.damages)]
    lines += [f"{store.name}: {count(checked.runs, 'run')} checked, {verdict}"]
    if checked.imported:
        lines.append(
            f"{count(checked.imported, 'imported run')} can't be trained again; their digests and "
            "counts were checked against what is stored"
        )
    rows = [{"what": damage.what, "how": damage.how} for damage in checked.damages]
    return Answer(rows, lines, RUNS_FAILED if checked.damages else 0)


@db_app.add("db cache --clear")
def cache(clear: bool = False) -> Answer:
    """Show this machine's cache of sampled strings and compiled code.

    Args:
        clear: delete everything in the cache.
    """
    import pandas as pd

    from seqcls import cache as disk_cache

    if clear:
        removed = disk_cache.clear()
        say(f"{disk_cache.cache_folder()}: {count(removed, 'byte')} removed.", err=True)
    rows = [(kind.name, kind.files, kind.size) for kind in disk_cache.cache_entries()]
    frame = pd.DataFrame(rows, columns=["what", "files", "bytes"])
    return Answer(frame, [Table(frame, f"kept in {disk_cache.cache_folder()}")])


@db_app.add("db check --db runs.db")
def check(db: Db = None) -> None:
    """Say what kind of database this is, what is in it and whether it can be written."""
    from sweeps.api.watching import describe_database

    for name, value in describe_database(api.open_reader(db)):
        say(f"{name:10}{value}")


@db_app.add("db convert old.db new.db")
def convert(old: str, new: str) -> None:
    """Convert a database of the previous version into a new one; the old one is not changed.

    Args:
        old: A database of the previous version.
        new: The new database.
    """
    with progress_bar("converting") as on_progress:
        store, runs = api.convert(old, new, on_progress)
    say(f"{store.name}: {count(runs, 'run')} converted from {old}")


@db_app.add("db readers --db runs.db")
def readers(store: "api.Store", sweeps: Texts = None) -> None:
    """Fit shortcut readers, which use only simple features, to tests that have none yet."""
    with progress_bar("fitting shortcut readers", "tests") as on_progress:
        fitted = api.fit_shortcuts(store, sweeps or None, on_progress)
    for test_set_id, reason in fitted.skipped.items():
        say(f"test set {test_set_id} skipped: {reason}", err=True)
    say(f"{store.name}: readers fitted to {count(fitted.tests, 'test')}")
