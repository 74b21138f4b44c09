"""The `seqcls` command: its panels, exit statuses and error messages.

Heavy imports are in the commands that need them, so that help is fast.
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

from seqcls import __version__, cancellation
from seqcls.errors import (
    ClusterError,
    MachineError,
    SeqclsError,
    StoreDamagedError,
    StoreUnavailableError,
)
from sweeps.cli.asking import ask
from sweeps.cli.files import db_app, files
from sweeps.cli.model import model
from sweeps.cli.parameters import BAD_INPUT, UNAVAILABLE, Group, NewDb, Panel, option
from sweeps.cli.results import results
from sweeps.cli.training import train
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

OLD_WORDS = {
    "submit": "sweep --queue",
    "engines": "estimate --engines",
    "retry": "resume --failed",
    "seeds": "more",
    "seeds --submit": "more --queue",
    "more --submit": "more --queue",
    "populations": "runs --by class",
    "site": "report --site",
    "load": "import --what weights",
    "load --model": "import --name",
    **{x: f"db {x}" for x in ("pack", "merge", "verify", "cache")},
    **{x: f"model {x}" for x in ("predict", "explain", "minimal", "family", "rules", "states")},
    **{x: f"model {x}" for x in ("patch", "ablate", "automaton", "verdict", "prove", "check")},
    **{x: f"model {x}" for x in ("figures", "sensitive")},
}
"""Names of commands and options until 0.3, with the present ones."""


def in_new_words(given: Sequence[str]) -> list[str]:
    """Translates a command line with old names."""
    old, rest = (given or [""])[0], list(given[1:])
    if old == "site":
        # Its argument, which was the first or the last, is a value now.
        place = 0 if rest and rest[0][:1] != "-" else -1
        if not rest or rest[place][:1] == "-":
            return ["report", *rest]
        rest.insert(0, rest.pop(place))
    for place, word in enumerate(rest):
        name, equals, value = word.partition("=")
        if new := OLD_WORDS.get(f"{old} {name}"):
            rest[place] = f"{new.split()[-1]}{equals}{value}"
    return [*OLD_WORDS.get(old, old).split(), *rest]


class Root(Group):
    """The group of all commands, also by their old names; one that lost its connection to a server
    is run again, if nothing is stored or printed yet.
    """

    def main(self, args: Sequence[str] | None = None, *others: Any, **how: Any) -> Any:
        """Runs the command, more than once where that may help."""
        given = in_new_words(sys.argv[1:] if args is None else args)
        try:
            return retry_lost(partial(super().main, given, *others, **how))
        except (SeqclsError, OSError, UnicodeError):
            raise
        except Exception as error:
            # Nothing was opened that could be damaged.
            if "sweeps.store.opening" not in sys.modules:
                raise
            from sweeps.api import damage_of_last_opened

            # Damaged data may be the cause of any error.
            if (damage := damage_of_last_opened()) is None:
                raise
            raise StoreDamagedError(damage) from error


EXIT_CODES = (
    "Exit status: 0 success; 1 runs failed, a proof is undecided, or data is damaged or in "
    "conflict; 2 invalid request, nothing was written; 3 the database, the cluster or this machine "
    "is unavailable; 4 runs are left, stopped or claimed by another worker; 128 + N ended by "
    "signal N."
)

app = typer.Typer(
    cls=Root,
    name="seqcls",
    help="Train thousands of tiny sequence models, and see which fail on longer strings.\n\n"
    "Example: seqcls sweep report",
    no_args_is_help=True,
    epilog=EXIT_CODES,
    pretty_exceptions_enable=False,
)
watch = Panel("Watch")

_OF_THE_SYSTEM = ("can't start new thread", "failed to map segment", "annot allocate memory")
"""Parts of messages of libraries about limits of the system, such as those of `ulimit`."""


def main() -> None:
    """Runs the command; an error is reported in one line and by the exit status."""
    # SystemExit unwinds the stack, so that files and transactions are closed.
    for end in (ends := ending_signals()):
        signal.signal(end, lambda number, _: sys.exit(128 + number))
    begin_output()
    # Output of plug-ins must not mix with that of the command.
    cancellation.before_loading = keep_output_apart
    _show_log()
    name_database(None)
    # A warning of a library is one line, without a path into its code.
    warnings.showwarning = lambda message, *_, **__: say(f"seqcls: {message}", err=True)
    try:
        app()
    except BrokenPipeError:
        _end_without_reader()
    except SystemExit as ended:
        # Typer and Rich exit with 1 then.
        if isinstance(ended.__context__, BrokenPipeError):
            _end_without_reader()
        raise
    except (ClusterError, MachineError, StoreUnavailableError, OSError, MemoryError) as error:
        _fail(error, UNAVAILABLE)
    except (SeqclsError, UnicodeError) as error:
        _fail(error, BAD_INPUT)
    except (ImportError, RuntimeError) as error:
        if not any(sign in str(error) for sign in _OF_THE_SYSTEM):
            raise
        _fail(error, UNAVAILABLE)
    finally:
        cancellation.before_loading = None
        end_output()
        # Python's finalization cannot be interrupted without a traceback.
        for end in ends:
            signal.signal(end, signal.SIG_DFL)
        end_without_collecting()


def _end_without_reader() -> NoReturn:
    """Ends the process when the reader of its output, such as `head`, has left."""
    # Python flushes stdout at its end, and would fail there again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), output().fileno())
    sys.exit(128 + signal.SIGPIPE)


def _fail(error: Exception, status: int) -> NoReturn:
    message = error.render(option) if isinstance(error, SeqclsError) else str(error)
    message = message or "this machine has no memory left"
    # Messages of libraries may have several lines.
    say(f"seqcls: {' '.join(message.split())}", err=True)
    sys.exit(status)


def _show_log() -> None:
    # Only this program's own messages, not those of libraries.
    handler = logging.StreamHandler()
    handler.setFormatter(VisibleFormatter("seqcls: %(message)s"))
    logging.getLogger("sweeps").addHandler(handler)
    # SQLAlchemy logs all that interrupts the closing of a connection; a signal is no error.
    others, ends = logging.StreamHandler(), (KeyboardInterrupt, SystemExit)
    others.addFilter(lambda record: not isinstance((record.exc_info or (None,) * 2)[1], ends))
    logging.getLogger("sqlalchemy").addHandler(others)


def _print_version(requested: bool) -> None:
    if requested:
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
    """Take the options of all commands."""


@watch.add("dashboard --db runs.db -p 8600")
def dashboard(
    db: NewDb = None,
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8501,
    host: str = "127.0.0.1",
    read_only: bool = False,
    base_path: str = "",
    names: list[str] | None = None,
) -> None:
    """Open the database in a browser: launch sweeps, compare them, see what fails.

    Args:
        port: the port to serve on.
        host: the address to serve on. There is no login: any address but this machine's own needs
            --read-only.
        read_only: write nothing and start no training, so that others may use the page.
        base_path: the path under which a reverse proxy serves it, such as /models.
        names: another host name by which browsers reach it, such as a reverse proxy's; repeatable.
            Names other than this machine's are refused.
    """
    from sweeps.serve import show_dashboard

    show_dashboard(db, port, host, read_only=read_only, base_path=base_path, names=names or ())


@watch.add("mcp --db runs.db")
def mcp(
    db: NewDb = None, allow_launch: Annotated[int, typer.Option(min=0, max=1000000)] = 0
) -> None:
    """Answer an agent's questions about the database, through the Model Context Protocol.

    Args:
        allow_launch: how many models agents may train in this database, in all; by default, none.
    """
    from sweeps.mcp_server import serve

    serve(db, allow_launch)


for panel in (ask, train, results):
    app.add_typer(panel)
app.add_typer(model, name="model", rich_help_panel="One model")
app.add_typer(files)
app.add_typer(db_app, name="db", rich_help_panel="Files")
app.add_typer(watch)
