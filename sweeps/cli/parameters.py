"""Arguments and options that several commands share, and what exit statuses mean."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter as Argument
from inspect import Signature, signature
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperOption

from seqcls.errors import ConfigError, Parameter
from sweeps.terminal import name_database, say

RUNS_FAILED = 1
"""Everything was tried, and some runs failed; or what was checked is damaged or in conflict."""

BAD_INPUT = 2
"""A mistake of the user's; nothing was written."""

UNAVAILABLE = 3
"""The database, the cluster or this machine cannot be used at the moment; what was committed is
intact."""

RUNS_LEFT = 4
"""Runs are left: another worker trains them, or their sweep was stopped."""

INTERRUPTED = 130
"""Ended by Ctrl-C."""


INSIDE = "Inside a model"
"""The panel of help with the commands on one model."""

MAX_SEED = 2**63 - 1


Function = TypeVar("Function", bound=Callable[..., Any])


class Command(TyperCommand):
    """A command that refuses an option of one value that is given twice: one would be lost."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the command line."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        single = [x for x in given if isinstance(x, TyperOption) and not (x.multiple or x.is_flag)]
        for place, each in enumerate(single):
            if each in single[:place]:
                hint = ", with commas between several" if each.name == "columns" else ""
                raise ConfigError(f"{each.opts[0]} is given twice; give it once{hint}")
        return super().parse_args(ctx, args)


class Commands(typer.Typer):
    """A set of commands, each a `Command`."""

    def command(self, name: str | None = None, **how: Any) -> Callable[[Function], Function]:
        """As that of Typer."""
        return super().command(name, **{"cls": Command, **how})


MAKE_DATABASES = (
    *("sweep", "submit", "import", "load", "work", "merge", "dashboard", "engines", "mcp"),
)
"""Commands that make a database in this folder where there is none, or say themselves what they
show."""


def _database(context: typer.Context, db: str | None) -> str | None:
    """The database that is named; else, where this folder has none, what the dashboard shows."""
    if context.resilient_parsing:
        return db
    name_database(db)
    if context.info_name in MAKE_DATABASES:
        return db
    # Imported where it is used: `seqcls --help` needs none of it.
    from sweeps.access import NONE_HERE, to_begin_with

    copy = to_begin_with(db)
    if copy is None:
        return db
    say(NONE_HERE, err=True)
    return str(copy)


Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        callback=_database,
        help="The database: a file or a URL.",
        show_default="SEQCLS_DB, else runs.db in this folder",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", "-j", help="Print JSON instead of a table.")]
Run = Annotated[str, typer.Argument(help="A run's id, or SWEEP/SEED.", show_default=False)]
Wide = Annotated[bool, typer.Option("--wide", help="All columns, however wide the terminal is.")]
Columns = Annotated[
    str | None,
    typer.Option(help="These columns, separated by commas.", show_default="as many as fit"),
]
LEARNED_AT = 0.99
"""That of `sweeps.results`, whose import `seqcls --help` does not wait for."""

LearnedAt = Annotated[
    float,
    typer.Option(
        help="The accuracy on strings of trained lengths from which on a run has learned."
    ),
]
Below = Annotated[
    float,
    typer.Option(
        help="The accuracy below which a run fails, on longer strings or on the whole test."
    ),
]


def _choose(
    sweeps: Annotated[
        list[str] | None, typer.Option("--sweep", help="Only runs of this sweep; repeatable.")
    ] = None,
    model_seeds: Annotated[
        list[int] | None,
        typer.Option("--seed", min=0, max=MAX_SEED, help="Only this model seed; repeatable."),
    ] = None,
    failing: Annotated[
        bool,
        typer.Option(
            "--failing",
            help="Only runs that get a test string wrong, or whose accuracy is less than --below.",
        ),
    ] = False,
    outcome: Annotated[
        list[str] | None,
        typer.Option(
            "--outcome",
            help="Only runs of this outcome: generalizes, 'at every length', 'fails beyond', "
            "'not learned' or 'not known'; repeatable.",
        ),
    ] = None,
    learned_at: LearnedAt = LEARNED_AT,
    below: Below = 1.0,
    conditions: Annotated[
        list[str] | None,
        typer.Option(
            "--where", help="Only where a field has this value, as hidden_size=16; repeatable."
        ),
    ] = None,
) -> None:
    """The options of every command on many runs, which are the filters of every page."""


def filtered(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options that choose among runs, which it is given as `chosen`: what
    `sweeps.api.configurations.view_of` takes. One that names its sweeps itself has no `--sweep`.
    """
    own = {name: x for name, x in signature(command).parameters.items() if name != "chosen"}
    every = signature(_choose).parameters
    named = {*own, *(("sweeps",) if "sweep" in own else ())}
    options = {name: x for name, x in every.items() if name not in named}

    @wraps(command)
    def with_options(**given: Any) -> None:
        chosen = {name: given.pop(name) for name in options}
        command(**given, chosen={name: x for name, x in chosen.items() if x is not None})

    parameters = [x.replace(kind=Argument.KEYWORD_ONLY) for x in (*own.values(), *options.values())]
    with_options.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {x.name: x.annotation for x in parameters}
    return with_options


Force = Annotated[
    bool,
    typer.Option(
        "--force", help="Replace files: no database; several, only in a folder of their own."
    ),
]
Epoch = Annotated[
    int | None,
    typer.Option(
        "--epoch", "-e", help="The epoch whose weights to use.", show_default="the best one"
    ),
]

Spec = Annotated[
    str,
    typer.Argument(
        help="A TOML file, a folder of them, or the name of a shipped one, such as `report`.",
        show_default=False,
    ),
]
Engine = Annotated[str, typer.Option(help="auto, fused, lanes or torch.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda; compiled engines need no GPU.")]
Precision = Annotated[
    str | None,
    typer.Option(
        help="Train the same runs at this precision, float32 or float64, as a separate sweep.",
        show_default="as the specification says",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        "-w",
        min=0,
        help="Training processes; 0 trains in this process.",
        show_default="one per core",
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        help="Train on the Dask cluster with this scheduler address, such as tcp://host:8786.",
        show_default="this machine",
    ),
]
SweepName = Annotated[str, typer.Argument(help="The name of a sweep.", show_default=False)]
SweepNames = Annotated[list[str], typer.Argument(help="Names of sweeps.", show_default=False)]
OptionalSweepNames = Annotated[
    list[str] | None, typer.Argument(help="Names of sweeps.", show_default="all")
]

OPTIONS = {"adapter": "--as", "conditions": "--where", "kinds": "--part", "number": "-n"}
"""Options of another name than the parameter of `sweeps.api` that they are."""


def option(parameter: Parameter) -> str:
    """A parameter as it is written on the command line: `--sort length`, `--force`."""
    name, value = parameter
    written = OPTIONS.get(name, f"--{name.replace('_', '-')}")
    return written if value is None or value is True else f"{written} {value}"
