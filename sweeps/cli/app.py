"""The `seqcls` command: its panels, its exit statuses, and the end of what goes wrong.

Heavy imports stand in the commands that need them: help is fast.
"""

import logging
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from seqcls import __version__, plugins
from seqcls.errors import (
    ClusterError,
    MachineError,
    SeqclsError,
    StoreDamagedError,
    StoreUnavailableError,
)
from seqcls.text import count
from sweeps.cli import (
    any_model,
    automata,
    causes,
    interpretability,
    models,
    states,
    storage,
    strings,
    sweeps,
)
from sweeps.cli.parameters import BAD_INPUT, UNAVAILABLE, AsJson, Commands, Db, option
from sweeps.processes import end_without_collecting, ending_signals, retry_lost
from sweeps.terminal import (
    VisibleFormatter,
    begin_output,
    end_output,
    keep_output_apart,
    name_database,
    output,
    say,
)


class TriedAgain(TyperGroup):
    """All commands: one that lost its connection to a server is tried again, if nothing of it is
    kept or printed.
    """

    def main(self, args: Sequence[str] | None = None, *others: Any, **how: Any) -> Any:
        """Runs the command, more than once where that may help."""
        given = list(sys.argv[1:] if args is None else args)
        try:
            return retry_lost(partial(super().main, given, *others, **how))
        except (SeqclsError, OSError, UnicodeError):
            raise
        except Exception as error:
            if (damage := _damage_of_last_opened()) is None:
                raise
            raise StoreDamagedError(damage) from error


def _damage_of_last_opened() -> str | None:
    """What is damaged of the database that a failing command read; None where nothing is."""
    if "sweeps.store.opening" not in sys.modules:
        return None
    from sweeps.store.verification import damage_of_last_opened

    return damage_of_last_opened()


EXIT_CODES = """Exit status: 0 success; 1 runs failed, or data is damaged or in conflict; 2 invalid
request, nothing written; 3 the database, the cluster or this machine is unavailable; 4 runs remain,
stopped or claimed by another worker; 128 + N ended by signal N."""

app = Commands(
    cls=TriedAgain,
    name="seqcls",
    help="Train thousands of tiny sequence models, and see which fail on longer strings.",
    no_args_is_help=True,
    epilog=EXIT_CODES,
    pretty_exceptions_enable=False,
)
app.add_typer(sweeps.app)
app.add_typer(strings.app)

_OF_THE_SYSTEM = ("can't start new thread", "failed to map segment", "annot allocate memory")
"""In errors of libraries to which the system gave too little, as `ulimit` says."""


def main() -> None:
    """Runs the command; what goes wrong is told in one line and by the exit status."""
    for end in (ends := ending_signals()):
        signal.signal(end, _terminate)
    begin_output()
    plugins.before_loading = keep_output_apart
    _show_log()
    name_database(None)
    warnings.showwarning = _show_warning
    try:
        app()
    except BrokenPipeError:
        _end_without_reader()
    except SystemExit as ended:
        # Typer and Rich end by 1 then.
        if isinstance(ended.__context__, BrokenPipeError):
            _end_without_reader()
        raise
    except (ClusterError, MachineError, StoreUnavailableError, OSError, MemoryError) as error:
        _fail(error, UNAVAILABLE)
    except (SeqclsError, UnicodeError) as error:
        _fail(error, BAD_INPUT)
    except (ImportError, RuntimeError) as error:
        if not any(said in str(error) for said in _OF_THE_SYSTEM):
            raise
        _fail(error, UNAVAILABLE)
    finally:
        plugins.before_loading = None
        end_output()
        # What Python does at its very end cannot be interrupted without a traceback.
        for end in ends:
            signal.signal(end, signal.SIG_DFL)
        end_without_collecting()


def _end_without_reader() -> NoReturn:
    """Ends where the reader of our output, such as `head`, has left: no message can reach it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), output().fileno())
    sys.exit(128 + signal.SIGPIPE)


def _terminate(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def _fail(error: Exception, status: int) -> NoReturn:
    said = error.render(option) if isinstance(error, SeqclsError) else str(error)
    said = said or "this machine has no memory left"
    say(f"seqcls: {' '.join(said.split())}", err=True)
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


for command, example in models.COMMANDS.items():
    app.command(rich_help_panel=models.MODELS, epilog=example)(command)

app.add_typer(interpretability.app)
app.add_typer(any_model.app)
app.add_typer(states.app)
app.add_typer(automata.app)
app.add_typer(causes.app)
app.add_typer(storage.files_app)
app.add_typer(storage.app)


@app.command(rich_help_panel="This machine", epilog="Example: seqcls cache --clear")
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete everything in the cache.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the cache of this machine: sampled strings and compiled code."""
    import pandas as pd

    from seqcls import cache as kept
    from sweeps.cli.printing import print_json, print_table

    if clear:
        removed = kept.clear()
        say(f"{kept.cache_folder()}: {count(removed, 'byte')} removed.", err=True)
    rows = [
        {"what": kind.name, "files": kind.files, "bytes": kind.size}
        for kind in kept.cache_entries()
    ]
    frame = pd.DataFrame(rows, columns=["what", "files", "bytes"])
    if as_json:
        print_json(frame)
    else:
        print_table(frame, f"kept in {kept.cache_folder()}")


@app.command(rich_help_panel="Dashboard", epilog="Example: seqcls dashboard --db runs.db -p 8600")
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


@app.command(rich_help_panel="Dashboard", epilog="Example: seqcls mcp --db runs.db")
def mcp(
    db: Db = None,
    allow_launch: Annotated[
        int,
        typer.Option(
            min=0,
            max=1_000_000,
            help="How many models agents may launch in this database in all; by default none.",
        ),
    ] = 0,
) -> None:
    """Answer an agent's questions about the database, by the Model Context Protocol."""
    from sweeps.mcp_server import serve

    serve(db, allow_launch)
