"""Every command on every kind of model, generated from the program.

Commands and their options come from Typer, formats from the exporter: what is added there is tried
here, without a line of this file. A cell may succeed, and then every number that SQL
knows is that of SQL; or refuse in one line, for a reason that follows from the kind. All cells are
tried in `make chaos`, a part of them where all tests run.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import tomli_w
import typer.main

from dashboard.cli import app as seqcls
from seqcls.errors import ConfigError
from sweeps.api import log_results
from sweeps.api.exports import JSONL, WRITERS
from sweeps.cli.parameters import BAD_INPUT, RUNS_FAILED
from tests.commands import refuse, run_main
from tests.conftest import ASSETS, LONG
from tests.oracles.compared import Compared, Matrix, records, spelled_out, stored_counts_agree
from tests.oracles.reasons import Models, check_refusal, natures
from tests.shown import Tables, page_data, printed_rows
from tests.stock import stock
from tests.world import KINDS, TESTED, Kind, parts_from_outside

ENDLESS = {"dashboard", "mcp"}
"""Commands that run until they are ended."""

OWN_FILES = {"check", "try"}
"""The commands on certificates, `test_proofs`, and of a first question, `test_trying`."""

ALWAYS = {
    "db", "yes", "workers", "times", "seconds", "rounds", "length",
    "automaton strings", "import task", "import dataset", "import sweep",
    "more budget", "report names", "report out", "compare names",
}  # fmt: skip
"""Options that are always given: they keep a command short, or name its subject."""

INSTEAD = {
    "more until": "budget", "more seeds": "budget",
    "report site": "out", "report as_json": "out", "report failing": "out",
}  # fmt: skip
"""Options that replace one that is always given."""

NOT_ALONE = {
    "watch", "force", "replace", "columns", "engine", "device", "dask", "precision",
    "import adapter", "import tokens", "import seed", "import settings",
    "compare sweeps", "compare every_pair",
}  # fmt: skip
"""Options that have no cell: they are about how and not what, have a command wait, are about
weights from elsewhere (`test_loading`), or of many configurations (`test_every_pair`).
"""

TOGETHER = ("conditions", "outcome", "learned_at")
"""Choices that are given together, unless all cells are tried."""

LONG_ALONE = {"sensitive references"}
"""Commands that train again, and so take long."""

EXPLAINING = {
    (name, (choice,))
    for name in ("causes", "remedies")
    for choice in ("failing", "below", "model_seeds")
}
"""Choices of commands that explain again, which takes long; combined choices are tested."""

PART = 1 if LONG else len(KINDS)
"""Stride of tested cells: every option of a command, each with another kind of model."""

RUN_COMMANDS = {"status", "sweep", "work", "more"}
"""Commands whose exit status reports failed runs."""

NUMBER_COMMANDS = {"runs", "errors", "export", "report", "status", "failing", "sweeps"}
"""Commands that must show numbers known to SQL for a kind with results."""


class Cell(Models):
    """A command on one kind of model, with a copy of the database and a folder."""

    def __init__(self, matrix: Matrix, kind: Kind, folder: Path) -> None:
        super().__init__(kind, matrix.facts)
        self.matrix, self.folder = matrix, folder
        self.db = folder / "kinds.db"
        shutil.copy(matrix.db, self.db)

    def spec(self) -> str:
        path = self.folder / "again.toml"
        path.write_text(tomli_w.dumps(self.kind.spec(self.matrix.folder, "again")))
        return str(path)

    @cached_property
    def strings(self) -> list[dict[str, Any]]:
        """The kind's test strings: their tokens, and a label or a target."""
        fields = {**TESTED, **self.kind.task}
        own = self.matrix.folder / self.kind.file if self.kind.file else None
        source: dict[str, Any] = {"dataset": own} if own else {"task": fields}
        try:
            with log_results(str(self.folder / "other.db"), sweep="other", **source) as log:
                found = log.strings.to_dict("records")
        except ConfigError:
            # Results of such kinds cannot be imported, which the command has to refuse.
            strings = map(spelled_out, self.facts.test_strings(self.run_id))
            found = [{"tokens": list(text), "label": 0} for text in strings]
        return [{str(name): value for name, value in row.items()} for row in found]

    def data(self) -> str:
        """The file of the kind; of one that has none, its test strings."""
        if self.kind.file is not None:
            return str(self.matrix.folder / self.kind.file)
        path = self.folder / "strings.jsonl"
        rows = [
            {name: int(value > 0) if name == "label" else value for name, value in row.items()}
            for row in self.strings
        ]
        path.write_text("\n".join(map(json.dumps, rows)))
        return str(path)

    def predictions(self) -> str:
        """Predictions of a foreign model for the kind's test strings: all but two are right."""
        path = self.folder / "predictions.jsonl"
        with path.open("w") as file:
            for number, row in enumerate(self.strings):
                (answer,) = (row[name] for name in row if name != "tokens")
                right = answer if isinstance(answer, str) else int(answer)
                wrong = "" if isinstance(answer, str) else int(not answer)
                given = {"tokens": row["tokens"], "prediction": wrong if number < 2 else right}
                file.write(json.dumps({"model": "m", "seed": 0, **given}) + "\n")
        return str(path)

    def value(self, command: str, name: str) -> str | None:
        """The value of a parameter of a command; None where it takes none."""
        own: dict[str, Callable[[], str | None]] = {
            "theory task": lambda: str(self.kind.task["task"]),
            "import task": lambda: (
                None if self.kind.file else json.dumps({**TESTED, **self.kind.task})
            ),
            "import dataset": lambda: self.data() if self.kind.file else None,
            "import file": self.predictions,
            "import sweep": lambda: "foreign",
            "data file": self.data,
            "family strings": lambda: self.family,
            "automaton strings": lambda: "60",
            "report out": lambda: str(self.folder / "report.html"),
            "db merge others": lambda: str(self.matrix.db),
            "theory settings": lambda: "positions=rotary",
            "draw part": lambda: "test",
            "give form": lambda: "torch",
            "more budget": lambda: "2x",
            "more name": lambda: "longer",
            "more until": lambda: "learned ± 49 %",
            "more seeds": lambda: "1",
            "more most": lambda: "3",
            "prove certificate": lambda: str(self.folder / "proof.json"),
            "prove regions": lambda: "20",
            "db convert old": lambda: str(ASSETS / "databases" / "0005.db"),
            "db convert new": lambda: str(self.folder / "new.db"),
            "runs by": lambda: "architecture",
            "report names": lambda: self.kind.name,
            "report site": lambda: str(self.folder / "site"),
            "import name": lambda: "renamed",
            "import what": lambda: "predictions",
        }
        if (given := own.get(f"{command} {name}")) is not None:
            return given()
        values: dict[str, Callable[[], str | None]] = {
            "run": lambda: str(self.run_id), "references": lambda: str(self.run_id),
            "string": lambda: self.string, "strings": lambda: self.string,
            "source": lambda: self.string,
            "sweep": lambda: self.kind.name, "sweeps": lambda: self.kind.name,
            "spec": self.spec,
            "names": lambda: f"{self.run_id}\n{self.runs[-1]['run_id']}",
            "folder": lambda: str(self.folder / "out"), "out": lambda: str(self.folder / "out"),
            "save": lambda: str(self.folder / "saved"), "yes": lambda: None,
            "db": lambda: str(self.db), "epoch": lambda: "1", "beam": lambda: "2",
            "seed": lambda: "0", "limit": lambda: "1000", "sample": lambda: "20",
            "sort": lambda: "occurrences", "how": lambda: "mean", "part": lambda: "unit",
            "times": lambda: "1", "seconds": lambda: "2", "length": lambda: "5",
            "rounds": lambda: "4", "states": lambda: "9", "workers": lambda: "0",
            "precision": lambda: "float64", "kind": lambda: "csv", "form": lambda: "csv",
            "number": lambda: "3", "label": lambda: "positive",
            "learned_at": lambda: "0.5", "below": lambda: "0.75",
            **dict.fromkeys(("conditions", "where"), lambda: f"task={self.kind.task['task']}"),
            "model_seeds": lambda: "0", "outcome": lambda: "not learned",
        }  # fmt: skip
        assert name in values, f"{command}: say here what is given for {name!r}"
        return values[name]()


Command = tuple[tuple[str, ...], Any]


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[Command]:
    """Every command, with the words that call it."""
    for name, command in group.commands.items():
        inner = getattr(command, "commands", None)
        yield from commands(command, (*path, name)) if inner else [((*path, name), command)]


COMMANDS = {
    " ".join(path[path[0] == "model" :]): command
    for path, command in commands(typer.main.get_command(seqcls))
}
"""By their words; those on one model are called as they were once, without `model`."""


def is_always(command: str, parameter: Any) -> bool:
    names = {str(parameter.name), f"{command} {parameter.name}"}
    return bool(parameter.required or names & ALWAYS)


def variants(command: str) -> Iterator[tuple[str, ...]]:
    """Only required parameters; each other parameter alone; every format."""
    if LONG or f"{command} " not in LONG_ALONE:
        yield ()
    known = {str(parameter.name) for parameter in COMMANDS[command].params}
    together = TOGETHER if not LONG and known >= {*TOGETHER} else ()
    if together and f"{command} {together[0]}" not in LONG_ALONE:
        yield together
    for parameter in COMMANDS[command].params:
        name = str(parameter.name)
        if name == "kind":
            yield from ((name, known) for known in [*WRITERS, JSONL])
        elif not (
            is_always(command, parameter)
            or {name, f"{command} {name}"} & NOT_ALONE
            or name in together
        ):
            yield from [(name,)] * (LONG or f"{command} {name}" not in LONG_ALONE)


def arguments(cell: Cell, command: str, variant: tuple[str, ...]) -> list[str]:
    """The command as a user types it."""
    found, is_of_many = command.split(), len(variant) > 2
    left_out = {INSTEAD.get(f"{command} {name}") for name in variant}
    for parameter in COMMANDS[command].params:
        name = str(parameter.name)
        if name in left_out:
            continue
        if not is_always(command, parameter) and name not in (variant[:1], variant)[is_of_many]:
            continue
        is_flag = bool(getattr(parameter, "is_flag", False))
        value = None if is_flag else cell.value(command, name)
        if len(variant) == 2 and name == variant[0]:
            value = variant[1]
        if parameter.param_type_name == "option" and (is_flag or value is not None):
            found.append(parameter.opts[0])
        if value is not None:
            found += value.split("\n")
    return found


CELLS = [
    (surface, kind)
    for number, surface in enumerate(
        [
            (name, variant)
            for name in COMMANDS
            if name not in ENDLESS | OWN_FILES
            for variant in variants(name)
        ]
    )
    for kind_number, kind in enumerate(KINDS)
    if (number + kind_number) % PART == 0 and (LONG or surface not in EXPLAINING)
]


@pytest.fixture(scope="module")
def matrix() -> Iterator[Matrix]:
    with parts_from_outside():
        yield Matrix(stock("kinds"))


def check_file(compared: Compared, path: Path) -> None:
    """The numbers of a file that was written."""
    if path.suffix in (".csv", ".parquet"):
        read = pd.read_parquet if path.suffix == ".parquet" else pd.read_csv
        options: dict[str, Any] = {} if path.suffix == ".parquet" else {"keep_default_na": False}
        compared.rows(read(path, **options).to_dict("records"), path.name)
    elif path.suffix == ".jsonl":
        check_answers(compared, [json.loads(line) for line in path.read_text().splitlines()])
    elif path.suffix == ".html":
        text = path.read_text()
        compared.rows(Tables(text).rows, path.name)
        compared.headline(text, path.name)
        for name, content in page_data(text).items():
            (run_id,) = re.findall(r"\d+", name)
            at = content["columns"].index("Occurrences")
            wrong = sum(row[at] for row in content["rows"])
            true = compared.facts.runs[int(run_id)]["wrong"]
            compared.equal(f"{path.name}: wrong of run {run_id}", wrong, true)


def check_answers(compared: Compared, answers: list[dict[str, Any]]) -> None:
    """Every tested string has one answer, and the wrong ones are those of SQL."""
    for run_id in {answer["run"] for answer in answers}:
        own = [answer for answer in answers if answer["run"] == run_id]
        wrong = {answer["input"] for answer in own if not answer["correct"]}
        assert wrong == set(compared.facts.wrong_strings(run_id)), f"run {run_id}"
        compared.equal("answers", len(own), len(compared.facts.test_strings(run_id)))


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("surface", "kind"), CELLS, ids=str)
def test_every_command_works_or_refuses_on_every_kind_of_model(
    matrix: Matrix, surface: tuple[str, tuple[str, ...]], kind: Kind, tmp_path: Path
) -> None:
    command, variant = surface
    cell = Cell(matrix, kind, tmp_path)
    typed = arguments(cell, command, variant)
    environment = {"SEQCLS_CACHE": str(tmp_path / "cache")} if command == "db cache" else {}
    before = set(tmp_path.iterdir())
    completed = run_main(*typed, **environment)
    facts = matrix.facts_of(cell.db)
    failed = any(run["state"] == "failed" for run in facts.runs.values())
    if completed.returncode not in (
        (0, RUNS_FAILED) if failed and command in RUN_COMMANDS else (0,)
    ):
        assert completed.returncode == BAD_INPUT, completed
        assert re.fullmatch(r"seqcls: [^\n]+\n", completed.stderr), completed
        assert not completed.stdout
        check_refusal(cell, completed.stderr)
        return
    compared = Compared(facts, kind.name)
    stored_counts_agree(compared.facts)
    if "model_seeds" in variant:
        compared.seed = int(str(cell.value(command, "model_seeds")))
    if "below" in variant:
        compared.below = float(str(cell.value(command, "below")))
    if "learned_at" in variant:
        compared.learned_at = float(str(cell.value(command, "learned_at")))
    if "outcome" in variant:
        compared.outcome = str(cell.value(command, "outcome"))
    if command == "errors":
        compared.run_id = cell.run_id
    if "as_json" in variant:
        compared.rows(records(json.loads(completed.stdout, parse_constant=refuse)), command)
    elif kind.name in compared.facts.sweeps:
        # A report has several tables, each with a title and a blank line before it.
        for part in re.split(r"\n\s*\n", completed.stdout):
            compared.rows(printed_rows(part), command)
        compared.headline(completed.stdout, command)
    for path in sorted(set(tmp_path.iterdir()) - before):
        for file in [path] if path.is_file() else sorted(path.iterdir()):
            check_file(compared, file)
            if (
                file.name == "runs.csv"
                and compared.outcome
                and len(file.read_text().splitlines()) == 1
            ):
                chosen = sum(map(compared.has_outcome, facts.sweeps[kind.name]))
                compared.equal(f"{command}: runs that are {compared.outcome}", 0, chosen)
    if command in NUMBER_COMMANDS and "untrained" not in natures(cell) and "by" not in variant:
        assert compared.number, f"no number of {typed} was held against SQL: {completed.stdout}"


def test_all_commands_are_in_the_matrix() -> None:
    tried = {command for (command, _), _ in CELLS}
    assert tried.isdisjoint(ENDLESS | OWN_FILES)
    assert tried | ENDLESS | OWN_FILES == set(COMMANDS)
