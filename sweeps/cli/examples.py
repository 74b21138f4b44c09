"""An example for each command, which its help ends with."""

from collections.abc import Iterator, Mapping

import typer
from typer.models import CommandInfo

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
