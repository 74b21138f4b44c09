"""The `seqcls` command. Heavy imports stand in the commands that need them: help is fast."""

import os
import signal
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from seqcls import __version__
from seqcls.errors import SeqclsError

MAX_SEED = 2**63 - 1

app = typer.Typer(
    name="seqcls",
    help="Train thousands of tiny sequence classifiers, and see which fail on longer strings.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Db = Annotated[
    str | None,
    typer.Option("--db", help="The database: a file or sqlite:///FILE. [env: SEQCLS_DB]"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Run = Annotated[str, typer.Argument(help="A run's id, or SWEEP/SEED.", show_default=False)]
Epoch = Annotated[
    int | None,
    typer.Option(help="The epoch whose weights to use.", show_default="the best one"),
]

Spec = Annotated[
    str,
    typer.Argument(
        help="A TOML file, a folder of them, or one that is shipped, such as `report`.",
        show_default=False,
    ),
]
Engine = Annotated[str, typer.Option(help="auto, fused or torch.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda; the fused engine needs no GPU.")]


def main() -> None:
    """Runs the command; a user's mistake ends in one line and exit status 2."""
    for end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, _terminated)
    try:
        app()
    except BrokenPipeError:
        # The reader of our output, such as `head`, has left. Nobody is there to be told.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (SeqclsError, OSError, UnicodeError) as error:
        _fail(str(error))


def _terminated(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def _fail(message: str) -> NoReturn:
    typer.echo(f"seqcls: {' '.join(message.split())}", err=True)
    sys.exit(2)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"seqcls {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Train thousands of tiny sequence classifiers, and see which fail on longer strings."""


@app.command()
def sweep(
    spec: Spec,
    db: Db = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes that train.", show_default="one per core"),
    ] = None,
    engine: Engine = "auto",
    device: Device = "auto",
    precision: Annotated[
        str | None,
        typer.Option(
            help="Train the same runs at this precision, float32 or float64, as a sweep beside it.",
            show_default="as the specification says",
        ),
    ] = None,
) -> None:
    """Train every run that a specification asks for and the database lacks."""
    from sweeps.commands import How, run_sweeps

    run_sweeps(spec, db, precision, How(workers or os.cpu_count() or 1, engine, device))


@app.command()
def engines(spec: Spec, engine: Engine = "auto", device: Device = "auto") -> None:
    """Say which engine trains each configuration of a specification, and why."""
    from sweeps.commands import How, show_engines

    show_engines(spec, How(1, engine, device))


@app.command()
def verdict(
    run: Run,
    db: Db = None,
    beyond: Annotated[
        bool, typer.Option("--beyond", help="What can be proved of strings of every length.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a model on every string up to its longest test length, and keep what was found."""
    if beyond:
        from sweeps.inside_commands import show_beyond

        show_beyond(db, run, as_json)
        return
    from sweeps.commands import show_verdict

    show_verdict(db, run, as_json)


@app.command()
def sensitive(db: Db = None, as_json: AsJson = False) -> None:
    """List the runs that single and double precision do not agree on."""
    from sweeps.commands import list_sensitive

    list_sensitive(db, as_json)


@app.command()
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
        bool, typer.Option("--failing", help="Only runs with a misclassified test string.")
    ] = False,
    where: Annotated[
        list[str] | None,
        typer.Option(help="Only where a field has this value, as hidden_size=16; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List runs with their results."""
    from sweeps.commands import list_runs

    list_runs(db, tuple(sweep or ()), tuple(seed or ()), failing, where or [], as_json)


@app.command()
def errors(run: Run, db: Db = None, as_json: AsJson = False) -> None:
    """List a run's misclassified test strings."""
    from sweeps.commands import list_errors

    list_errors(db, run, as_json)


@app.command()
def predict(
    run: Run,
    strings: Annotated[
        list[str], typer.Argument(help="Strings such as baac or ab{100}c{55}.", show_default=False)
    ],
    db: Db = None,
    epoch: Epoch = None,
    as_json: AsJson = False,
) -> None:
    """Give a model's probability that each string is in its language."""
    from sweeps.commands import predict_strings

    predict_strings(db, run, strings, epoch, as_json)


@app.command()
def pack(db: Db = None) -> None:
    """Make the database one small file that can be copied or shared."""
    from sweeps.store.engine import pack as pack_store

    path: Path = pack_store(db)
    typer.echo(f"{path}: {path.stat().st_size:,} bytes")


@app.command()
def dashboard(
    db: Db = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where it is served.")] = 8501,
) -> None:
    """Show the database in a browser: launch sweeps, compare them, find what fails."""
    from sweeps.screen import show_dashboard

    show_dashboard(db, port)


@app.command()
def explain(
    run: Run,
    string: Annotated[str, typer.Argument(help="Such as ab{100}c{55}.", show_default=False)],
    db: Db = None,
    epoch: Epoch = None,
    as_json: AsJson = False,
) -> None:
    """Say why a model answers a string as it does, and what would change the answer."""
    from sweeps.inside_commands import explain_string

    explain_string(db, run, string, epoch, as_json)


@app.command()
def family(
    run: Run,
    strings: Annotated[str, typer.Argument(help="Such as ab{n} or a{m}b{n}.", show_default=False)],
    db: Db = None,
    epoch: Epoch = None,
    as_json: AsJson = False,
) -> None:
    """Say where a model's answer changes as the free counts of a family of strings grow."""
    from sweeps.inside_commands import show_family

    show_family(db, run, strings, epoch, as_json)
