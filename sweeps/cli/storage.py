"""Commands on whole databases, on files of strings and predictions, and on the cache."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqcls.errors import ConfigError
from sweeps import api
from sweeps.cli.parameters import (
    BAD_INPUT,
    RUNS_FAILED,
    AsJson,
    Commands,
    Db,
    Epoch,
    Force,
    OptionalSweepNames,
    Run,
    filtered,
)
from sweeps.cli.printing import (
    count,
    open_database,
    open_run,
    print_json,
    print_record,
    print_table,
    show,
)
from sweeps.terminal import progress_bar, say

if TYPE_CHECKING:
    from sweeps.datasets.summary import Summary


PANEL = "Databases"

app = Commands()
db_app = Commands(no_args_is_help=True, help="Upgrade, check or complete a database.")
app.add_typer(db_app, name="db", rich_help_panel=PANEL)


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls pack --db runs.db")
def pack(db: Db = None) -> None:
    """Shrink the database to one small file that you can copy or share."""
    with progress_bar("packing"):
        path = api.pack(db)
    say(f"{path}: {path.stat().st_size:,} bytes")


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls merge theirs.db --db runs.db")
def merge(
    others: Annotated[
        list[str], typer.Argument(help="Databases to import from.", show_default=False)
    ],
    db: Db = None,
) -> None:
    """Import sweeps, with their runs and results, from other databases."""
    sources = [open_database(other) for other in others]
    store = api.open_store(db)
    trouble = False
    for source in sources:
        with progress_bar(f"merging {source.name}") as on_progress:
            merged = api.merge(store, source, on_progress)
        say(
            f"{source.name}: results of {count(merged.results, 'run')} taken over, {merged.same:,} "
            f"were here already, {merged.waiting:,} unfinished; into {store.name}"
        )
        for before, after in merged.renamed.items():
            say(f"its sweep {before!r} asks for other runs than the one here: now {after!r}")
        for conflict in merged.conflicts:
            say(f"kept as it was here: {conflict}", err=True)
        for damaged in merged.damaged:
            say(f"damaged in {source.name} and not taken over: {damaged}", err=True)
        trouble = trouble or bool(merged.conflicts or merged.damaged)
    raise typer.Exit(RUNS_FAILED if trouble else 0)


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls export results --format parquet")
@filtered
def export(
    chosen: dict[str, Any],
    folder: Annotated[Path, typer.Argument(help="The folder to write to.", show_default=False)],
    db: Db = None,
    kind: Annotated[
        str, typer.Option("--format", help="csv, parquet or jsonl (one line for each answer).")
    ] = "csv",
    spreadsheet: Annotated[
        bool,
        typer.Option(
            "--spreadsheet",
            help="Write ' before texts that a spreadsheet would compute as formulas (csv).",
        ),
    ] = False,
    force: Force = False,
) -> None:
    """Write runs, accuracy by length and misclassified strings to files."""
    store, sweeps = open_database(db), chosen.pop("sweeps", ())
    with progress_bar("exporting") as on_progress:
        written = api.export(
            store, folder, kind, sweeps, on_progress, spreadsheet=spreadsheet, force=force, **chosen
        )
    for path, rows in written.items():
        say(f"{path}: {count(rows, 'row')}")


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls give all_initializations/2 model")
def give(
    run: Run,
    folder: Annotated[Path, typer.Argument(help="The folder to write to.", show_default=False)],
    form: Annotated[
        str, typer.Option("--as", help="torch, or gpt2: as Hugging Face has it.")
    ] = "torch",
    db: Db = None,
    epoch: Epoch = None,
    force: Force = False,
) -> None:
    """Write a model as one file of PyTorch, its weights, and what trained it."""
    from sweeps.api.giving import describe_file

    store, run_id = open_run(db, run)
    for path in api.give(store, run_id, folder, epoch, form=form, force=force):
        say(str(path))
    say(f"computes: {describe_file(api.model(store, run_id, epoch).problem)}")


@app.command(rich_help_panel=PANEL, epilog="Example: seqcls verify --db runs.db")
def verify(db: Db = None, as_json: AsJson = False) -> None:
    """Check that the database still holds what was written to it, and name what is damaged."""
    store = open_database(db)
    with progress_bar("verifying") as on_progress:
        checked = api.verify(store, on_progress)
    if as_json:
        # Imported where it is used: it takes half a second.
        import pandas as pd

        rows = [{"what": damage.what, "how": damage.how} for damage in checked.damages]
        print_json(pd.DataFrame(rows, columns=["what", "how"]))
    else:
        for damage in checked.damages:
            say(str(damage))
        verdict = "nothing is damaged" if not checked.damages else "damaged as said above"
        say(f"{store.name}: {count(checked.runs, 'run')} checked, {verdict}")
        if checked.imported:
            say(
                f"of {count(checked.imported, 'imported run')}, digests and counts are recomputed "
                "from what is stored; none can be trained again"
            )
    raise typer.Exit(RUNS_FAILED if checked.damages else 0)


@db_app.command(epilog="Example: seqcls db convert old.db new.db")
def convert(
    old: Annotated[str, typer.Argument(help="A database of the version before.")],
    new: Annotated[str, typer.Argument(help="The database to make of it.")],
) -> None:
    """Read a database of the version before into a new one; the old one stays as it is."""
    with progress_bar("converting") as on_progress:
        store, runs = api.convert(old, new, on_progress)
    say(f"{store.name}: {count(runs, 'run')} converted from {old}")


@db_app.command(epilog="Example: seqcls db readers --db runs.db")
def readers(sweeps: OptionalSweepNames = None, db: Db = None) -> None:
    """Fit shortcut readers to tests that none were asked about, as workers do after training."""
    store = open_database(db)
    with progress_bar("fitting shortcut readers", "tests") as on_progress:
        fitted = api.fit_shortcuts(store, sweeps or None, on_progress)
    for test_set_id, reason in fitted.skipped.items():
        say(f"test set {test_set_id} is left out: {reason}", err=True)
    say(f"{store.name}: readers were fitted to {count(fitted.tests, 'test')}")


@db_app.command(epilog="Example: seqcls db check --db runs.db")
def check(db: Db = None) -> None:
    """Say what kind of database this is, what is in it and whether it can be written."""
    from sweeps.api.databases import describe_database

    for name, value in describe_database(db):
        say(f"{name:10}{value}")


SWEEPS = "Sweeps"

files_app = Commands()


@files_app.command(
    "import",
    rich_help_panel=SWEEPS,
    epilog="Example: seqcls import predictions.csv --sweep my-lab --dataset words.csv",
)
def import_(
    file: Annotated[
        str,
        typer.Argument(
            help="CSV, TSV, JSONL or Parquet with the columns model, seed, id or tokens, and "
            "prediction; score, split, config and config.NAME may be there.",
            show_default=False,
        ),
    ],
    sweep: Annotated[
        str, typer.Option("--sweep", help="The name of the sweep that these runs become.")
    ],
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", help="The file of the test strings.", show_default=False),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            help='Instead of a file, a task: parity, or \'{"task": "parity", "test_seed": 5}\'.',
            show_default=False,
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace runs that are already there.")
    ] = False,
    db: Db = None,
) -> None:
    """Import what models trained elsewhere predict for test strings, as runs."""
    fields = None if task is None else _task_fields(task)
    ids = api.import_predictions(
        db, file, sweep=sweep, dataset=dataset, task=fields, replace=replace
    )
    store = open_database(db)
    say(f"{file}: {count(len(ids), 'run')} imported into {store.name}, sweep {sweep!r}")


def _task_fields(task: str) -> Any:
    """A task's name, or the fields that JSON says."""
    if not task.lstrip().startswith("{"):
        return task
    try:
        return json.loads(task)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--task is no JSON: {str(error)[:100]}") from None


@files_app.command(
    rich_help_panel=SWEEPS,
    epilog="Example: seqcls load model.safetensors --task parity --set readout=mean",
)
def load(
    path: Annotated[
        str,
        typer.Argument(
            help="A safetensors file, or a folder with one, config.json and its vocabulary.",
            show_default=False,
        ),
    ],
    task: Annotated[
        str,
        typer.Option(
            "--task",
            help='The task that it is tested on: parity, or \'{"task": "parity", '
            '"test_max_length": 40, "train_max_length": 20}\'.',
            show_default=False,
        ),
    ],
    adapter: Annotated[
        str | None,
        typer.Option(
            "--as",
            help="What wrote it: gpt2, recurrent, transformer_encoder or seqcls.",
            show_default="by the names of its tensors",
        ),
    ] = None,
    tokens: Annotated[
        str | None,
        typer.Option(
            "--tokens",
            help="A JSON file: ids by token, or tokens in the order of their ids.",
            show_default="the task's tokens in their order",
        ),
    ] = None,
    sweep: Annotated[
        str, typer.Option("--sweep", help="The sweep that it is put into.")
    ] = "loaded",
    model: Annotated[
        str | None, typer.Option("--model", help="Its name.", show_default="that of the file")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Tells it from others of this name.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="What its tensors do not say, as heads=2 or readout=mean; repeatable."
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a run that is already there.")
    ] = False,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Load a model that was trained elsewhere, by its weights, as a run; say how it was read."""
    run = api.load_weights(
        db,
        path,
        task=_task_fields(task),
        sweep=sweep,
        adapter=adapter,
        tokens=tokens,
        settings=dict(map(_setting, settings or ())),
        model=model,
        seed=seed,
        replace=replace,
    )
    store = open_database(db)
    said = f"{path}: loaded into {store.name} as run {run}, sweep {sweep!r}"
    show(as_json, [said, *run.sentences], {"run": int(run), "sweep": sweep, **run.reading})


def _setting(given: str) -> tuple[str, Any]:
    """A setting as `name=value`, where the value is JSON or text."""
    name, equals, value = given.partition("=")
    if not equals:
        raise ConfigError(f"--set {given!r:.60}: expected name=value, as heads=2")
    try:
        return name, json.loads(value.lower() if value in ("True", "False") else value)
    except (ValueError, RecursionError):
        return name, value


@files_app.command(rich_help_panel=SWEEPS, epilog="Example: seqcls data words.csv")
def data(
    file: Annotated[
        str,
        typer.Argument(
            help="CSV, TSV, JSONL or Parquet with the columns tokens and label or target; a "
            "folder of FLaRe's; NAME_src.txt beside NAME_tgt.txt; or an automaton: .att, .dot, or "
            "JSON.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Say what is in a file of strings or of an automaton, and which lines are refused."""
    described = api.data(file)
    if as_json:
        print_record(described.record())
    else:
        _print(described)
    if described.refused:
        raise typer.Exit(BAD_INPUT)


def _print(summary: "Summary") -> None:
    import pandas as pd

    for problem in summary.refused:
        say(f"refused: {problem}", err=True)
    if summary.refused:
        return
    if summary.parts:
        frame = pd.DataFrame(summary.parts).rename(columns={"mean_length": "mean"})
        frame["mean"] = frame["mean"].map("{:.1f}".format)
        print_table(frame, f"{summary.path}: {summary.heading}")
    else:
        say(f"{summary.path}: {summary.heading}")
    for sentence in summary.sentences:
        say(sentence)
    say(f"digest {summary.digest}")
