"""Arguments and options of commands, and how a function becomes a command.

A command is a function of its own arguments and of objects that many commands share: `store`,
`opened`, `chosen`, `look`, `training`. A shared one is a parameter in its signature; `SHARED` has
the function that makes it, whose parameters become options. A returned `Answer` is printed.
"""

import os
import re
from collections.abc import Callable
from copy import copy
from dataclasses import asdict, dataclass
from functools import cached_property, wraps
from inspect import Parameter as Argument
from inspect import Signature, cleandoc, signature
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.models import OptionInfo

from seqcls.errors import ConfigError, Parameter
from seqcls.interpretability import rows
from seqcls.text import count
from sweeps import api
from sweeps.cli.printing import Answer, TableOptions, print_answer
from sweeps.terminal import name_database, say

if TYPE_CHECKING:
    from seqcls.questions import RunModel
    from sweeps.api import Store
    from sweeps.work.machine import WorkOptions

RUNS_FAILED = 1
"""Some runs failed, a proof is not decided, or checked data is damaged or in conflict."""

BAD_INPUT = 2
"""A mistake of the user's; nothing was written."""

UNAVAILABLE = 3
"""The database, the cluster or this machine is unavailable; committed data is intact."""

RUNS_LEFT = 4
"""Runs are left: another worker trains them, or their sweep was stopped."""

INTERRUPTED = 130
"""Ended by Ctrl-C."""

LEARNED_AT = 0.99
"""The value of `sweeps.results`, not imported, so that `seqcls --help` is fast."""

# Optional arguments.
Text = Annotated[str | None, typer.Argument()]
Texts = Annotated[list[str] | None, typer.Argument()]

NAMES: dict[str, tuple[str, ...]] = {
    "adapter": ("--as",), "as_json": ("--json", "-j"), "conditions": ("--where",),
    "db": ("--db",), "epoch": ("--epoch", "-e"), "form": ("--as",), "kind": ("--format",),
    "kinds": ("--part",), "limit": ("--limit", "-n"), "model": ("--name",),
    "model_seeds": ("--seed",), "names": ("--name",), "number": ("-n", "--number"),
    "out": ("--out", "-o"), "port": ("--port", "-p"), "settings": ("--set",),
    "sweeps": ("--sweep",), "workers": ("--workers", "-w"), "yes": ("--yes", "-y"),
}  # fmt: skip
"""Names of options that differ from the parameter's, or have a short form."""

HELP = {
    "as_json": "Print JSON instead of a table.",
    "below": "A run fails below this accuracy, on longer strings or on the whole test.",
    "columns": "Show these columns, separated by commas; by default, as many as fit.",
    "conditions": "Only where a field has this value, such as hidden_size=16; repeatable.",
    "dask": "Train on the Dask cluster with this scheduler address, such as tcp://host:8786.",
    "db": "Database file or URL; by default, SEQCLS_DB, else runs.db in this folder.",
    "device": "auto, cpu or cuda; compiled engines do not use a GPU.",
    "engine": "auto, fused, lanes or torch.",
    "epoch": "Use the weights of this epoch; by default, of the best one.",
    "failing": "Only runs that get a test string wrong, or whose accuracy is below --below.",
    "folder": "The folder to write to.",
    "force": "Overwrite existing files (never a database).",
    "learned_at": "A run counts as learned from this accuracy on strings of trained lengths.",
    "model_seeds": "Only this model seed; repeatable.",
    "outcome": "Only runs with this outcome: generalizes, 'at every length', 'fails beyond', 'not "
    "learned' or 'not known'; repeatable.",
    "precision": "Train the same runs at this precision, float32 or float64, as a separate sweep.",
    "queue": "Only queue the runs; `seqcls work` trains them.",
    "run": "A run's id, or SWEEP/SEED.",
    "spec": "A TOML file, a folder of them, or the name of a shipped one, such as `report`.",
    "string": "A string, such as 0110 or ab{100}c{55}; b{3} is bbb, and <ab>{2} is abab.",
    "strings": "Strings, such as baac or ab{100}c{55}; b{3} is bbb, and <ab>{2} is abab.",
    "sweep": "The name of a sweep.",
    "sweeps": "Names of sweeps; by default, all.",
    "where": "Only configurations with this value, such as task=dyck.",
    "wide": "Show all columns, however wide the terminal is.",
    "workers": "Training processes, by default one per core; 0 trains in this process.",
}
"""Help texts of parameters of several commands."""


def _find_database(context: typer.Context, db: str | None) -> str | None:
    """Returns the given database; by default, if this folder has none, that of the dashboard."""
    # Shell completion parses the line, and runs nothing.
    if context.resilient_parsing or _name_database(context, db):
        return db
    # Imported where it is used: `seqcls --help` needs none of it.
    from sweeps.access import NONE_HERE, to_begin_with

    copy = to_begin_with(db)
    if copy is None:
        return db
    say(NONE_HERE, err=True)
    return str(copy)


def _name_database(context: typer.Context, db: str | None) -> str | None:
    if not context.resilient_parsing:
        name_database(db)
    return db


Db = Annotated[str | None, typer.Option(callback=_find_database)]
NewDb = Annotated[str | None, typer.Option(callback=_name_database)]
"""A database that is made where there is none, or that the command itself reports."""


# Objects that many commands share, and the options that make them.


@dataclass(frozen=True)
class OpenedModel:
    """The model of a command: of a run, at an epoch."""

    store: "Store"
    run: int
    epoch: int | None

    @cached_property
    def model(self) -> "RunModel":
        """The opened model."""
        return api.model(self.store, self.run, self.epoch)

    def ask(self, question: str, *given: Any, **how: Any) -> Answer:
        """Calls a method of the model, and returns its answer."""
        return self.tell(getattr(self.model, question)(*given, **how))

    def tell(self, found: Any) -> Answer:
        """Returns the answer to print of a result; as data it names the run."""
        if hasattr(found, "record"):
            record = found.record()
        else:
            record = rows.record(found) if hasattr(found, "_asdict") else asdict(found)
        return Answer({"run": self.run, **record}, self.model.describe(found))


def _open(run: str, db: Db = None, epoch: int | None = None) -> OpenedModel:
    store = api.open_reader(db)
    return OpenedModel(store, api.find_run(store, run), epoch)


def _store(db: Db = None) -> "Store":
    return api.open_reader(db)


def _choose(
    sweeps: list[str] | None = None,
    model_seeds: Annotated[list[int] | None, typer.Option(min=0, max=2**63 - 1)] = None,
    failing: bool = False,
    outcome: list[str] | None = None,
    learned_at: float = LEARNED_AT,
    below: float = 1.0,
    conditions: list[str] | None = None,
) -> dict[str, Any]:
    """Returns the filters of runs, as `sweeps.api.selecting.selection_of` takes them."""
    # No other name is bound here, so that these are exactly the parameters.
    return {name: value for name, value in locals().items() if value is not None}


def _look(wide: bool = False, columns: str | None = None) -> TableOptions:
    return TableOptions(wide, columns)


def _training(
    workers: Annotated[int | None, typer.Option(min=0)] = None,
    engine: str = "auto",
    device: str = "auto",
    dask: str | None = None,
) -> "WorkOptions":
    from sweeps.work.machine import WorkOptions

    return WorkOptions(processes_of(workers), engine, device, dask)


def processes_of(workers: int | None) -> int:
    """Limits the number of processes to that of cores: more would only wait for each other."""
    cores = os.cpu_count() or 1
    if workers is not None and workers > cores:
        has = count(cores, "core")
        say(f"seqcls: --workers {workers}: this machine has {has}; using {cores}", err=True)
    return cores if workers is None else min(workers, cores)


SHARED: dict[str, Callable[..., Any]] = {
    "store": _store, "opened": _open, "chosen": _choose, "look": _look, "training": _training,
}  # fmt: skip


# How a function becomes a command.


class PlainHelp:
    """A command or group whose help omits the type of flags, `<bool>`, and ranges of numbers."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Returns the parameters."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for flag in (x for x in parameters if getattr(x, "is_flag", False)):
            flag.metavar = ""
        return parameters

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the help."""
        # Imported where it is used: Rich takes long to load.
        from typer import rich_utils

        # The message about a number out of range has the range.
        rich_utils.RANGE_STRING = ""
        super().format_help(ctx, formatter)  # type: ignore[misc]


class Group(PlainHelp, TyperGroup):
    """A group of commands."""


class Command(PlainHelp, TyperCommand):
    """A command that refuses a repeated option of one value, of which one would be lost."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the command line."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        single = [x for x in given if isinstance(x, TyperOption) and not (x.multiple or x.is_flag)]
        for place, single_option in enumerate(single):
            if single_option in single[:place]:
                hint = ", with commas between several" if single_option.name == "columns" else ""
                raise ConfigError(f"{single_option.opts[0]} is given twice; give it once{hint}")
        return super().parse_args(ctx, args)


Function = TypeVar("Function", bound=Callable[..., Any])


class Panel(typer.Typer):
    """A panel of commands in the help."""

    def __init__(self, title: str | None, **how: Any) -> None:
        super().__init__(cls=Group, **how)
        self.title = title

    def add(self, example: str, name: str | None = None) -> Callable[[Function], Function]:
        """Registers a function as a command, whose help ends with an example."""

        def register(function: Function) -> Function:
            text = cleandoc(function.__doc__ or "").partition("\n\nArgs:")[0]
            how: Any = {"help": text, "epilog": f"Example: seqcls {example}", "cls": Command}
            self.command(name, rich_help_panel=self.title, **how)(with_options(function))
            return function

        return register


def with_options(function: Callable[..., Any]) -> Callable[..., None]:
    """Returns a function with the options of its shared objects, which prints its answer.

    Help texts of parameters are those of the function's docstring, or `HELP`. A parameter without a
    default is an argument. A command with an argument for sweeps has no option `--sweep`.
    """
    own = signature(function).parameters
    makes = {name: SHARED[name] for name in own if name in SHARED}
    named = {*own, *(["sweeps"] if "sweep" in own else [])}
    options = {
        name: {x: y for x, y in signature(make).parameters.items() if x not in named}
        for name, make in makes.items()
    }
    parameters: dict[str, Argument] = {}
    for name, parameter in own.items():
        parameters |= options.get(name, {name: parameter})
    prints = signature(function).return_annotation is Answer
    if prints and "as_json" not in own:
        kind = Argument.KEYWORD_ONLY
        parameters["as_json"] = Argument("as_json", kind, default=False, annotation=bool)

    @wraps(function)
    def command(**given: Any) -> None:
        as_json = given["as_json"] if "as_json" in own else given.pop("as_json", False)
        for name, make in makes.items():
            given[name] = make(**{x: given.pop(x) for x in options[name]})
        answer = function(**given)
        if prints and (status := print_answer(answer, as_json=as_json)):
            raise typer.Exit(status)

    words = {x: " ".join(y.split()) for x, y in _ARGUMENT.findall(cleandoc(function.__doc__ or ""))}
    keywords = [_declare(x, words.get(x.name)) for x in parameters.values()]
    # Typer reads the signature and the annotations of the wrapper.
    command.__signature__ = Signature(keywords)  # type: ignore[attr-defined]
    command.__annotations__ = {x.name: x.annotation for x in keywords}
    return command


_ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n        .*)*)", re.MULTILINE)
"""An argument in a docstring."""


def _declare(parameter: Argument, words: str | None) -> Argument:
    """Returns a parameter as Typer takes it."""
    kind, given = parameter.annotation, []
    if get_origin(kind) is Annotated:
        kind, *given = get_args(kind)
    is_argument = parameter.default is Argument.empty
    made = typer.Argument(show_default=False) if is_argument else typer.Option()
    # A copy, since commands share a declaration and differ in the help.
    info = copy(given[0] if given else made)
    info.help = f"{words[0].upper()}{words[1:]}" if words else HELP[parameter.name]
    if isinstance(info, OptionInfo) and not info.param_decls:
        usual = (f"--{parameter.name.replace('_', '-')}",)
        info.param_decls = NAMES.get(parameter.name, usual)
    return parameter.replace(kind=Argument.KEYWORD_ONLY, annotation=Annotated[kind, info])


def option(parameter: Parameter) -> str:
    """Formats a parameter for the command line: `--sort length`, `--force`."""
    name, value = parameter
    written = NAMES.get(name, (f"--{name.replace('_', '-')}",))[0]
    return written if value is None or value is True else f"{written} {value}"
