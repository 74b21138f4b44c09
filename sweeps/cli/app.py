"""The `seqcls` command. Heavy imports stand in the commands that need them: help is fast."""

import logging
import os
import signal
import sys
import warnings
from typing import Annotated, NoReturn

import typer

from seqcls import __version__
from seqcls.errors import ClusterError, MachineError, SeqclsError, StoreUnavailableError
from sweeps import limits
from sweeps.cli import (
    any_model,
    automata,
    causes,
    databases,
    datasets,
    interpretability,
    states,
    sweeps,
)
from sweeps.cli.damage import ShownWithoutDamage
from sweeps.cli.examples import show_in_help
from sweeps.cli.exit_codes import BAD_INPUT, UNAVAILABLE
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
from sweeps.processes.garbage import end_without_collecting
from sweeps.processes.interruption import heeded
from sweeps.terminal import VisibleFormatter, name_database, say

MODELS = "Models"

EXIT_CODES = """Exit status: 0 success; 1 runs failed, or data is damaged or in conflict; 2 invalid
request, nothing written; 3 the database, the cluster or this machine is unavailable; 4 runs remain,
stopped or claimed by another worker; 128 + N ended by signal N."""

app = typer.Typer(
    cls=ShownWithoutDamage,
    name="seqcls",
    help="Train thousands of tiny sequence models, and see which fail on longer strings.",
    no_args_is_help=True,
    epilog=EXIT_CODES,
    pretty_exceptions_enable=False,
)
app.add_typer(sweeps.app)


def main() -> None:
    """Runs the command; what goes wrong is told in one line and by the exit status."""
    for end in (ends := heeded()):
        signal.signal(end, _terminated)
    _show_log()
    name_database(None)
    warnings.showwarning = _show_warning
    try:
        app()
    except BrokenPipeError:
        # The reader of our output, such as `head`, has left, so no message can reach it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except (ClusterError, MachineError, StoreUnavailableError, OSError) as error:
        _fail(error, UNAVAILABLE)
    except (SeqclsError, UnicodeError) as error:
        _fail(error, BAD_INPUT)
    finally:
        # What Python does at its very end cannot be interrupted without a traceback.
        for end in ends:
            signal.signal(end, signal.SIG_DFL)
        end_without_collecting()


def _terminated(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def _fail(error: Exception, status: int) -> NoReturn:
    if (reason := limits.reached(error)) is not None and reason not in str(error):
        error = MachineError(f"{error}: {reason}" if str(error) else reason)
        status = UNAVAILABLE
    say(f"seqcls: {' '.join(str(error).split())}", err=True)
    sys.exit(status)


def _show_log() -> None:
    # Only this program's own messages, not those of libraries.
    handler = logging.StreamHandler()
    handler.setFormatter(VisibleFormatter("seqcls: %(message)s"))
    logging.getLogger("sweeps").addHandler(handler)
    # SQLAlchemy reports whatever ends the closing of a connection; that a signal did is no news.
    others = logging.StreamHandler()
    others.addFilter(lambda record: not _is_ending(record))
    logging.getLogger("sqlalchemy").addHandler(others)


def _is_ending(record: logging.LogRecord) -> bool:
    return record.exc_info is not None and isinstance(
        record.exc_info[1], KeyboardInterrupt | SystemExit
    )


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    say(f"seqcls: {message}", err=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"seqcls {__version__}")
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
    """Train thousands of tiny sequence models, and see which fail on longer strings."""


@app.command(rich_help_panel=MODELS)
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


@app.command(rich_help_panel=MODELS)
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


@app.command(rich_help_panel=MODELS)
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


@app.command(rich_help_panel=MODELS)
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


@app.command(rich_help_panel=MODELS)
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


@app.command(rich_help_panel=MODELS)
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


app.add_typer(interpretability.app)
app.add_typer(any_model.app)
app.add_typer(states.app)
app.add_typer(automata.app)
app.add_typer(causes.app)
app.add_typer(datasets.app)
app.add_typer(databases.app)


@app.command(rich_help_panel="This machine")
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete everything in the cache.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what this machine keeps for reuse: strings and machine code."""
    from sweeps.cli.commands.storage.cache import show_cache

    show_cache(clear, as_json)


@app.command(rich_help_panel="Dashboard")
def dashboard(
    db: Db = None,
    port: Annotated[
        int, typer.Option("--port", "-p", min=1, max=65535, help="The port to serve on.")
    ] = 8501,
    host: Annotated[
        str,
        typer.Option(
            help="The address to serve on. There is no login: any but this machine's own needs "
            "--read-only."
        ),
    ] = "127.0.0.1",
    read_only: Annotated[
        bool,
        typer.Option(
            "--read-only",
            help="Write nothing and start no training, so that others may use the page.",
        ),
    ] = False,
    base_path: Annotated[
        str, typer.Option(help="The path below which a reverse proxy serves it, such as /models.")
    ] = "",
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            help="Another name by which browsers reach it, such as that of a reverse proxy; "
            "repeatable. Other names than this machine's are refused.",
        ),
    ] = None,
) -> None:
    """Open the database in a browser: launch sweeps, compare them, see what fails."""
    from sweeps.processes.serve import show_dashboard

    show_dashboard(db, port, host, read_only=read_only, base_path=base_path, names=names or ())


show_in_help(app)
