"""Commands on trained models: their runs, errors, answers and checks."""

from typing import Annotated

import typer

from sweeps.cli.parameters import (
    MAX_SEED,
    AsJson,
    Columns,
    Db,
    Device,
    Engine,
    Epoch,
    Run,
    Spec,
    Wide,
)

MODELS = "Models"


def engines(
    spec: Spec,
    engine: Engine = "auto",
    device: Device = "auto",
    wide: Wide = False,
    columns: Columns = None,
    db: Db = None,
) -> None:
    """Say which engine trains each configuration of a specification, and why."""
    from sweeps.cli.commands.models import show_engines
    from sweeps.cli.commands.printing import Look

    show_engines(db, spec, engine, device, Look(wide, columns))


def verdict(
    run: Run,
    db: Db = None,
    beyond: Annotated[
        bool, typer.Option("--beyond", help="Show proofs for strings of every length instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a model on every string up to a length: by default, its longest test length.

    What is found of a language is kept.
    """
    if beyond:
        from sweeps.cli.commands.interpretability import show_certification

        show_certification(db, run, as_json)
        return
    from sweeps.cli.commands.models import show_verdict

    show_verdict(db, run, as_json)


def sensitive(
    references: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN|SWEEP]...",
            help="Runs or sweeps to retrain from initial values perturbed by one unit in the last "
            "place, and in double precision.",
            show_default="list what is stored",
        ),
    ] = None,
    db: Db = None,
    times: Annotated[
        int,
        typer.Option(
            min=1, max=1000, help="How many times to retrain each run from perturbed values."
        ),
    ] = 8,
    as_json: AsJson = False,
) -> None:
    """Find the runs whose outcome depends on rounding."""
    from sweeps.cli.commands.causes import list_sensitive, show_sensitivity

    if references:
        show_sensitivity(db, references, times, as_json)
        return
    list_sensitive(db, as_json)


def runs(
    db: Db = None,
    sweep: Annotated[
        list[str] | None, typer.Option("--sweep", help="Only runs of this sweep; repeatable.")
    ] = None,
    seed: Annotated[
        list[int] | None,
        typer.Option("--seed", min=0, max=MAX_SEED, help="Only this model seed; repeatable."),
    ] = None,
    failing: Annotated[
        bool, typer.Option("--failing", help="Only runs that get a test string wrong.")
    ] = False,
    fields: Annotated[
        list[str] | None,
        typer.Option(
            "--where", help="Only where a field has this value, as hidden_size=16; repeatable."
        ),
    ] = None,
    as_json: AsJson = False,
    wide: Wide = False,
    columns: Columns = None,
) -> None:
    """List runs with their results."""
    from sweeps.cli.commands.models import list_runs
    from sweeps.cli.commands.printing import Look

    wanted = (tuple(sweep or ()), tuple(seed or ()), failing, fields or [])
    list_runs(db, *wanted, as_json, Look(wide, columns))


def errors(
    run: Run,
    db: Db = None,
    sort: Annotated[
        str, typer.Option(help="length, string, logit or occurrences, smallest first.")
    ] = "length",
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="List at most this many.", show_default="all"),
    ] = None,
    as_json: AsJson = False,
    wide: Wide = False,
    columns: Columns = None,
) -> None:
    """List the test strings that a run gets wrong, the shortest first."""
    from sweeps.cli.commands.models import list_errors
    from sweeps.cli.commands.printing import Look

    list_errors(db, run, sort, limit, as_json, Look(wide, columns))


def predict(
    run: Run,
    strings: Annotated[
        list[str], typer.Argument(help="Strings such as baac or ab{100}c{55}.", show_default=False)
    ],
    db: Db = None,
    epoch: Epoch = None,
    beam: Annotated[
        int | None,
        typer.Option(
            help="For a transduction: the outputs of each input that a beam of this width finds, "
            "the likeliest first.",
            show_default="one, as it is tested",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Give a model's probability that each string is in its language, or its output for it."""
    from sweeps.cli.commands.models import predict_strings

    predict_strings(db, run, strings, epoch, beam, as_json)


COMMANDS = (engines, verdict, sensitive, runs, errors, predict)
"""In the order of the help."""
