"""The `seqcls` command: its panels, its exit statuses, and the end of what goes wrong.

Heavy imports stand in the commands that need them: help is fast. On a damaged database commands
show what of it can be trusted, and name what cannot.
"""

import logging
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.models import CommandInfo

from seqcls import __version__
from seqcls.errors import (
    ClusterError,
    MachineError,
    SeqclsError,
    StoreDamagedError,
    StoreUnavailableError,
)
from sweeps import limits
from sweeps.cli import (
    any_model,
    automata,
    causes,
    interpretability,
    models,
    states,
    storage,
    sweeps,
)
from sweeps.cli.parameters import BAD_INPUT, UNAVAILABLE, AsJson, Db
from sweeps.processes import end_without_collecting, heeded, repeated
from sweeps.terminal import VisibleFormatter, name_database, say


class ShownWithoutDamage(TyperGroup):
    """All commands: one that fails on what nobody could have written is tried without that.

    One that lost its connection to a server is tried again, if nothing of it is kept or printed.
    """

    def main(self, args: Sequence[str] | None = None, *others: Any, **how: Any) -> Any:
        """Runs the command, more than once where that may help."""
        given = list(sys.argv[1:] if args is None else args)
        run = partial(repeated, partial(super().main, given, *others, **how))
        _forget_opened()
        try:
            return run()
        except Exception as error:
            if not _can_be_tried_without(error):
                raise
        return run()


def _forget_opened() -> None:
    # Where no command has opened a database yet, nothing is loaded for it.
    if (trust := sys.modules.get("sweeps.store.trust")) is not None:
        trust.forget_opened()


def _can_be_tried_without(error: Exception) -> bool:
    """Whether damage that was not known is to blame.

    Raises:
        StoreDamagedError: damage is, that is known and left out already.
    """
    expected = isinstance(error, SeqclsError | OSError | UnicodeError)
    if "sweeps.store.databases.engine" not in sys.modules:
        return False
    if expected and not isinstance(error, StoreDamagedError):
        return False
    from sweeps.store import trust

    if trust.learns_of_damage():
        return True
    if not expected and (known := trust.known_damage()) is not None:
        raise StoreDamagedError(known) from error
    return False


EXAMPLES: Mapping[str, str] = {
    "sweep": "seqcls sweep report -w 4",
    "submit": "seqcls submit heads.toml",
    "work": "seqcls work heads --watch",
    "status": "seqcls status heads --watch",
    "stop": "seqcls stop heads",
    "resume": "seqcls resume heads",
    "retry": "seqcls retry heads",
    "delete": "seqcls delete heads --yes",
    "estimate": "seqcls estimate heads.toml -w 8",
    "runs": "seqcls runs --sweep all_initializations --failing",
    "errors": "seqcls errors all_initializations/2 --limit 10",
    "predict": "seqcls predict all_initializations/2 baac 'ab{100}c{55}'",
    "verdict": "seqcls verdict all_initializations/2",
    "sensitive": "seqcls sensitive lower_magnitude_initializations",
    "engines": "seqcls engines report",
    "compare": "seqcls compare all_initializations increased_dimensionality",
    "theory": "seqcls theory regular --set alphabet=ab --set pattern='(ab)*'",
    "explain": "seqcls explain all_initializations/2 'ab{68}'",
    "family": "seqcls family all_initializations/2 'ab{n}'",
    "minimal": "seqcls minimal all_initializations/2 'ab{100}c{55}'",
    "rules": "seqcls rules all_initializations/2",
    "states": "seqcls states all_initializations/2 'ab{10}'",
    "patch": "seqcls patch all_initializations/2 'ab{100}c{55}'",
    "ablate": "seqcls ablate increased_num_attention_heads/0 --part head --prune",
    "automaton": "seqcls automaton increased_dimensionality/0",
    "causes": "seqcls causes lower_magnitude_initializations",
    "helps": "seqcls helps all_initializations/2",
    "figures": "seqcls figures all_initializations/2 aac baac -o figures",
    "report": "seqcls report all_initializations -o heads.html",
    "merge": "seqcls merge theirs.db --db runs.db",
    "site": "seqcls site public",
    "export": "seqcls export results --format parquet",
    "data": "seqcls data words.csv",
    "import": "seqcls import predictions.csv --sweep my-lab --dataset words.csv",
    "pack": "seqcls pack --db runs.db",
    "verify": "seqcls verify --db runs.db",
    "upgrade": "seqcls db upgrade --db old.db",
    "check": "seqcls db check --db runs.db",
    "cache": "seqcls cache --clear",
    "dashboard": "seqcls dashboard --db runs.db -p 8600",
}


def show_in_help(app: typer.Typer) -> None:
    """Has the help of every command of an application, and of those in it, end with its example."""
    for command in commands(app):
        if command.epilog is None and (example := EXAMPLES.get(name_of(command))):
            command.epilog = f"Example: {example}"


def commands(app: typer.Typer) -> Iterator[CommandInfo]:
    """All commands of an application, those of the applications in it too."""
    yield from app.registered_commands
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from commands(group.typer_instance)


def name_of(command: CommandInfo) -> str:
    """What a command is called on the command line."""
    called = command.name or (command.callback.__name__ if command.callback else "")
    return called.replace("_", "-")


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


for command in models.COMMANDS:
    app.command(rich_help_panel=models.MODELS)(command)

app.add_typer(interpretability.app)
app.add_typer(any_model.app)
app.add_typer(states.app)
app.add_typer(automata.app)
app.add_typer(causes.app)
app.add_typer(storage.files_app)
app.add_typer(storage.app)


@app.command(rich_help_panel="This machine")
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete everything in the cache.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what this machine keeps for reuse: strings and machine code."""
    from sweeps.cli.storage import show_cache

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
    from sweeps.serve import show_dashboard

    show_dashboard(db, port, host, read_only=read_only, base_path=base_path, names=names or ())


show_in_help(app)
