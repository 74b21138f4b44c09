"""A server of the Model Context Protocol, by which agents read a database: `seqcls mcp`.

Each tool is a function of `sweeps.api`. An answer is bounded in size, gives its total number of
rows, and n and a 95% interval beside each share. Nothing is written unless launching is allowed.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from seqcls import __version__
from seqcls.errors import ConfigError, Parameter, PluginError, SeqclsError
from seqcls.interpretability import rows
from seqcls.interpretability.verdicts import OutputVerdict
from seqcls.text import nearest, with_nulls
from sweeps import api
from sweeps.access import READ_ONLY_VARIABLE
from sweeps.api.sweeping import launch_for_agent, read_specs
from sweeps.grid.spec import parse_toml
from sweeps.results import LEARNED_AT, rows_of
from sweeps.statistics.intervals import wilson
from sweeps.store.reads.explained import forgettings
from sweeps.store.reads.selection import as_list
from sweeps.store.reads.sweep_queries import find_sweep, sweep_outcomes

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool
except ModuleNotFoundError as error:
    raise PluginError(
        "seqcls mcp needs the package mcp, which is not installed: pip install 'seqcls[mcp]'"
    ) from error

MOST_ROWS = 200
"""The maximum of rows in one answer; further ones are requested by `first`."""

MOST_CHARACTERS = 30_000
"""The maximum length of an answer as JSON, which leaves an agent room for its other context."""

INSTRUCTIONS = """seqcls trains many small sequence models on formal languages and transductions,
and tests which generalize to longer strings. A run is one trained model: a configuration and a
seed. Its outcome is: not learned (too few strings of trained lengths are right), fails beyond
(learned, wrong on longer strings), generalizes, at every length (proved right on every string), or
not known. Judge generalization of runs that learned alone, and give n and the interval with each
share; call none that is refuted general. Strings write a repeated letter as a power: a{3}b is
aaab. Runs are named by id or as SWEEP/SEED."""


def _text(value: Any) -> Any:
    """A number as text, since agents write ids of runs as numbers."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # Fifteen digits format a whole number as 12 and not 12.0.
    return f"{value:.15g}" if is_number else value


def _texts(value: Any) -> Any:
    """A list of texts from one text, a list, or null."""
    return [value] if isinstance(value, str | int | float) else [] if value is None else value


Text = Annotated[str, BeforeValidator(_text)]
Texts = Annotated[list[Text], BeforeValidator(_texts)]
Run = Annotated[Text, Field(description="A run: its id, or SWEEP/SEED.")]
Rows = Annotated[int, Field(ge=1, le=MOST_ROWS, description="Rows at most.")]
First = Annotated[int, Field(ge=0, description="The first row to give, from 0.")]
Threshold = Annotated[float, Field(gt=0, le=1)]
Specification = Annotated[
    Text, Field(description="TOML, or the name of a shipped one, as known/tomita.")
]


def serve(db: str | None, allowed: int) -> None:
    """Serves on standard input and output until the agent leaves.

    Args:
        db: the database.
        allowed: the number of models that `launch` may queue in all; with 0 there is no such tool.
    """
    before = os.environ.get(READ_ONLY_VARIABLE, "")
    # Without launching, no tool stores its results, such as causes or verdicts.
    os.environ[READ_ONLY_VARIABLE] = before if allowed else "1"
    try:
        server_of(api.open_writer(db) if allowed else api.open_reader(db), allowed).run()
    finally:
        os.environ[READ_ONLY_VARIABLE] = before


def server_of(store: "api.Store", allowed: int) -> MCPServer:
    """The server of a database, whose tool `launch` may queue so many models in all."""
    questions = Questions(store, allowed)
    names = [name for name in vars(Questions) if not name.startswith("_")]
    offered = names if allowed else [name for name in names if name != "launch"]
    # Structured output would repeat every answer beside its text.
    tools = [
        _Tool.from_function(getattr(questions, name), structured_output=False) for name in offered
    ]
    instructions: dict[str, Any] = {"instructions": INSTRUCTIONS, "version": __version__}
    return MCPServer("seqcls", **instructions, log_level="ERROR", tools=tools)


class _Tool(Tool):
    """A tool with answers of at most `MOST_CHARACTERS`, and errors of one line."""

    async def run(
        self, arguments: dict[str, Any], context: Any, convert_result: bool = False
    ) -> Any:
        """Runs the tool and returns its answer as JSON."""
        known = self.parameters["properties"]
        # Unknown arguments are refused: ignoring them would answer another question.
        if unknown := sorted(arguments.keys() - known):
            hint = nearest(unknown[0], sorted(known))
            raise ToolError(f"{self.name}: unknown argument {unknown[0]!r:.60}: {hint}")
        try:
            answer = await super().run(arguments, context)
        except ToolError as error:
            raise ToolError(" ".join(self._describe(error, arguments).split())) from None
        # JSON has no NaN; values of other types become text.
        text = json.dumps(with_nulls(answer), allow_nan=False, default=str)
        if len(text) > MOST_CHARACTERS:
            raise ToolError(
                f"the answer has {len(text):,} characters, of which {MOST_CHARACTERS:,} are given "
                "at most; ask for fewer rows, or for one run"
            )
        return self.fn_metadata.convert_result(text) if convert_result else text

    def _describe(self, error: ToolError, arguments: dict[str, Any]) -> str:
        match error.__cause__:
            case ValidationError() as cause:
                wrong = cause.errors()[0]
                name = str(wrong["loc"][0])
                value = f"={json.dumps(arguments[name]):.60}" if name in arguments else ""
                return f"{self.name}: {name}{value}: {wrong['msg']}"
            case SeqclsError() as cause:
                return cause.render(_argument)
            case OSError() | UnicodeError() as cause:
                return str(cause)
        # Any other cause is a fault of this program, and not the agent's.
        raise error


def _argument(parameter: Parameter) -> str:
    """A parameter by its name in tools."""
    return str(parameter._replace(name={"conditions": "where"}.get(*[parameter.name] * 2)))


def share(count: int, n: int) -> dict[str, Any]:
    """A share with its n and its 95% interval (Wilson)."""
    found = wilson(count, n)
    return {"count": count, "n": n, "interval": [found.low, found.high] if n else None}


class Questions:
    """The tools, one for each method."""

    def __init__(self, store: "api.Store", allowed: int) -> None:
        self._store, self._allowed = store, allowed

    def sweeps(self, first: First = 0) -> Any:
        """List the sweeps: how many models each has, and the shares that learned and generalize."""
        outcomes, listed = sweep_outcomes(self._store), []
        for sweep in api.status(self._store):
            row: dict[str, Any] = {"sweep": sweep.name, "state": sweep.state}
            row |= {"models": sweep.total, "done": sweep.done}
            if found := outcomes.get(sweep.id):
                row["learned"] = share(found.learned, found.judged)
                row["generalize_of_learned"] = share(found.generalize, found.judged_beyond)
            listed.append(row)
        return _rows(listed, first)

    def runs(
        self,
        sweep: Annotated[Text | None, Field(description="Only of this sweep.")] = None,
        outcome: Annotated[
            Text | None,
            Field(
                description="not learned, fails beyond, generalizes, at every length or not known."
            ),
        ] = None,
        where: Annotated[
            Texts, Field(description="Only where fields have values, as hidden_size=16.")
        ] = (),  # type: ignore[assignment]
        learned_at: Threshold = LEARNED_AT,
        below: Threshold = 1.0,
        first: First = 0,
        rows: Rows = 50,
    ) -> Any:
        """List runs with their outcomes and accuracies, and the settings in which they differ."""
        from sweeps.api.results import stored_runs
        from sweeps.results import differing_fields

        frame = stored_runs(
            self._store,
            (sweep,) if sweep else (),
            outcome=outcome or (),
            learned_at=learned_at,
            below=below,
            conditions=where,
        )
        counts = frame.loc[frame["state"] == "done", "outcome"].value_counts().to_dict()
        columns = [
            *("id", "sweeps", "model_seed", "state", "outcome", "tested", "errors"),
            *("accuracy_within", "accuracy_beyond", "solved_length", "predicted", "counting"),
        ]
        columns += [x for x in ("every_length", "refuted_by") if x in frame]
        shown = frame[[*columns, *(x for x in differing_fields(frame) if x not in columns)]]
        return {"outcomes": counts, **_rows(shown, first, rows)}

    def errors(self, run: Run, first: First = 0, rows: Rows = 50) -> Any:
        """List the test strings that a run gets wrong, the shortest first."""
        return _rows(api.errors_of_run(self._store, run), first, rows)

    def lengths(self, run: Run, first: First = 0) -> Any:
        """Give how many test strings of each length a run was tested on and gets wrong."""
        return _rows(api.lengths(self._store, api.find_run(self._store, run)), first)

    def causes(self, run: Run, learned_at: Threshold = LEARNED_AT) -> Any:
        """Say why a run fails: causes, each with its share of the errors looked at."""
        from sweeps.api.failures import causes_of_run

        run_id = api.find_run(self._store, run)
        found = rows_of(causes_of_run(self._store, run_id, learned_at))
        n = sum(row["strings"] for row in found)
        forgets = {"forgetting": x} if (x := forgettings(self._store).get(run_id)) else {}
        return {**_rows([{**row, "share": share(row["strings"], n)} for row in found]), **forgets}

    def remedies(self, run: Run, learned_at: Threshold = LEARNED_AT, below: Threshold = 1.0) -> Any:
        """Suggest what to change so that a failing run works, and what came of it where tried."""
        judged = {"learned_at": learned_at, "below": below}
        mechanisms, trials = api.remedies(self._store, run, **judged)
        return {"mechanisms": mechanisms, "suggestions": [trial.record() for trial in trials]}

    def verdict(self, run: Run) -> Any:
        """Check a model on every string up to its longest test length: exact, may take a minute."""
        found = api.verdict(self._store, run)
        return rows.record(found) if isinstance(found, OutputVerdict) else asdict(found)

    def predict(
        self,
        run: Run,
        strings: Annotated[
            Texts, Field(max_length=MOST_ROWS, description="Such as aab or a{100}b.")
        ],
    ) -> Any:
        """Ask a model about strings: its answer, its logit and the right label or output."""
        return _rows(api.predict(self._store, run, strings))

    def compare(
        self,
        a: Annotated[Text, Field(description="A run, a sweep, or SWEEP:field=value.")],
        b: Annotated[Text, Field(description="Likewise.")],
        learned_at: Threshold = LEARNED_AT,
        below: Threshold = 1.0,
    ) -> Any:
        """Compare two configurations: exact tests with n and intervals, and a verdict in words."""
        found = api.compare(self._store, a, b, learned_at=learned_at, below=below).record()
        # With a row for each length and string, the answer could be longer than may be given.
        return {name: value for name, value in found.items() if name not in ("lengths", "strings")}

    def theory(
        self,
        task: Annotated[Text, Field(description="Such as parity, dyck or regular.")],
        settings: Annotated[Texts, Field(description="Its fields, as pattern=(ab)*.")] = (),  # type: ignore[assignment]
    ) -> Any:
        """Say which class a language is in, and which networks can recognize it at every length."""
        from sweeps.api.selecting import condition

        return api.theory(task, **dict(condition(text, text) for text in settings)).record()

    def estimate(self, specification: Specification) -> Any:
        """Say how many models a specification asks for and may grow to, and how long the first
        take on this machine.
        """
        specs = read_specs(_spec(specification))
        found = asdict(api.estimate(self._store, specs))
        if any(spec.until for spec in specs):
            found["may_grow_to"] = sum(spec.most_runs() for spec in specs)
        return found

    def launch(self, specification: Specification) -> Any:
        """Train a specification's models in the background; `sweeps` shows how far they are.

        Of the models that agents may have trained, all count that a sweep may grow to. Names of
        sweeps that no agent launched are refused.
        """
        from sweeps.work.background_worker import start_worker

        launched = launch_for_agent(self._store, _spec(specification), self._allowed)
        names = launched["sweeps"]
        start_worker(self._store, {find_sweep(self._store, name): name for name in names})
        return launched


def _spec(text: str) -> str | Mapping[str, Any]:
    """A specification; no path of this machine is read."""
    if "\n" not in text and "=" not in text:
        # Two dots would lead out of the folder of shipped specifications.
        if text.startswith(("known", "report")) and ".." not in text:
            return text
        raise ConfigError(
            f"specification={text!r:.60}: expected TOML, or a shipped one such as known/tomita"
        )
    try:
        spec = parse_toml(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"specification: it is no TOML: {error}") from error
    tables = [spec.get("fixed"), spec.get("axes"), *as_list(spec.get("configurations", []))]
    if any(isinstance(table, Mapping) and "path" in table for table in tables):
        raise ConfigError(
            "path: no file of this machine is read for an agent; expected a dataset that the "
            'database has, by its digest: dataset = "…"'
        )
    return spec


def _rows(found: Any, first: int = 0, most: int = MOST_ROWS) -> dict[str, Any]:
    """Some rows of a frame or a list, with the total number."""
    rows: Sequence[Mapping[Any, Any]] = found if isinstance(found, list) else rows_of(found)
    shown = [dict(row) for row in rows[first : first + most]]
    return {"of": len(rows), "first": first, "shown": len(shown), "rows": shown}
