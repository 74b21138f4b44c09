"""Agents query a database by the Model Context Protocol, over standard input and output."""

import asyncio
import json
import shutil
import sys
import tomllib
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.server import MCPServer

from seqcls.errors import ConfigError
from sweeps import api
from sweeps.api.sweeping import launch_for_agent
from sweeps.mcp_server import MOST_CHARACTERS, server_of
from sweeps.store.database import Store
from tests.commands import run_main
from tests.commands.agents import converse, wait
from tests.conftest import ROOT

Ask = Callable[..., Awaitable[Any]]

READING = {
    "sweeps", "runs", "errors", "lengths", "causes", "remedies", "verdict", "predict", "compare",
    "theory", "estimate",
}  # fmt: skip

SMALL = """name = "small"
model_seeds = "0..1"
[fixed]
hidden_size = 2
train_size = 256
test_size = 256
validation_size = 256
min_num_epochs = 1
max_num_epochs = 1
"""


def talking(client: Client) -> Ask:
    """Asks a tool, and gives its answer, or the text of a refusal."""

    async def ask(tool: str, **arguments: Any) -> Any:
        answer = await client.call_tool(tool, arguments)
        (content,) = answer.content
        text = content.text  # type: ignore[union-attr]
        return text if answer.is_error else json.loads(text)

    return ask


def within(store: Store, talk: Callable[[Ask], Awaitable[None]], allowed: int = 0) -> None:
    converse(server_of(store, allowed), lambda client: talk(talking(client)))


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    return Path(shutil.copy(ROOT / "runs.db", tmp_path))


def test_an_agent_reads_the_database_and_writes_nothing(
    shipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command, in this process."""
    store = api.open_reader(str(ROOT / "runs.db"))

    async def talk(ask: Ask) -> None:
        assert isinstance(await ask("launch", specification=SMALL), str), "there is no such tool"
        listed = await ask("sweeps")
        own = next(row for row in listed["rows"] if row["sweep"] == "all_initializations")
        assert own["learned"]["n"] == own["done"] == 8
        low, high = own["generalize_of_learned"]["interval"]
        assert 0 < low < own["generalize_of_learned"]["count"] / 8 < high < 1

        frame = api.runs(store, "all_initializations", outcome="fails beyond")
        found = await ask("runs", sweep="all_initializations", outcome="fails beyond", rows=3)
        assert found["of"] == len(frame)
        assert [row["id"] for row in found["rows"]] == frame["id"].tolist()[:3]
        rest = await ask("runs", sweep="all_initializations", outcome="fails beyond", first=3)
        assert [row["id"] for row in rest["rows"]] == frame["id"].tolist()[3:]

        run = "all_initializations/2"
        # Neither is stored in the shipped database, before or after.
        (cause,) = (await ask("causes", run=run))["rows"]
        assert cause["share"]["count"] == cause["share"]["n"] == cause["strings"]
        assert cause["share"]["interval"][0] < 1 == cause["share"]["interval"][1]
        assert (await ask("remedies", run=run))["mechanisms"] == [cause["mechanism"]]
        assert (await ask("verdict", run=run))["inputs"] == 1_373_700
        assert (await ask("theory", task="parity"))["classes"][0]["name"] == "Zp"
        assert (await ask("estimate", specification=SMALL))["runs"] == 2

    before = sha256(shipped.read_bytes()).hexdigest()
    monkeypatch.setattr(
        MCPServer, "run", lambda server: converse(server, lambda own: talk(talking(own)))
    )
    assert run_main("mcp", "--db", str(shipped), SEQCLS_READ_ONLY="").returncode == 0
    assert sha256(shipped.read_bytes()).hexdigest() == before


ALIKE: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("errors", {"run": 1, "rows": "3"}, {"run": "1", "rows": 3}),
    ("lengths", {"run": 1.0}, {"run": "1"}),
    ("runs", {"where": "model_seed=0", "rows": 2.0}, {"where": ["model_seed=0"], "rows": 2}),
    ("predict", {"run": 1, "strings": "a{3}"}, {"run": "1", "strings": ["a{3}"]}),
    ("predict", {"run": 1, "strings": '["a"]'}, {"run": "1", "strings": ["a"]}),
    ("predict", {"run": 1, "strings": []}, {"run": "1", "strings": []}),
    ("runs", {"sweep": None}, {}),
]


def test_an_agent_gets_shares_of_judged_models(shipped: Path) -> None:
    store = api.open_store(shipped)
    report = "all_initializations"
    more = {
        "name": "more",
        "model_seeds": "0..9",
        "fixed": api.config(store, f"{report}/0").changed,
    }
    api.submit(store, more)

    async def talk(ask: Ask) -> None:
        (own,) = (row for row in (await ask("sweeps"))["rows"] if row["sweep"] == "more")
        assert (own["models"], own["done"], own["learned"]["n"]) == (10, 8, 8)

    within(store, talk)


def test_arguments_of_agents_are_converted_and_answers_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def talk(ask: Ask) -> None:
        for tool, arguments, same in ALIKE:
            one, other = await ask(tool, **arguments), await ask(tool, **same)
            assert one == other
            assert not isinstance(one, str), (tool, arguments, one)
        answer = await ask("errors", run="1", rows=200)
        assert len(json.dumps(answer)) < MOST_CHARACTERS
        monkeypatch.setattr("sweeps.mcp_server.MOST_CHARACTERS", 100)
        assert "ask for fewer rows" in await ask("errors", run="1", rows=200)

    within(api.open_reader(str(ROOT / "runs.db")), talk)


def test_an_agent_launches_no_more_models_than_allowed(tmp_path: Path) -> None:
    """Uses a server in a new process."""
    arguments = ["-P", "-m", "sweeps", "mcp", "--db", str(tmp_path / "own.db"), "--allow-launch=3"]
    command = StdioServerParameters(
        command=sys.executable, args=arguments, env={"PYTHONPATH": str(ROOT)}
    )

    async def talk() -> None:
        async with Client(command) as client:
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == {*READING, "launch"}
            assert all(tool.description for tool in tools)
            await launch(talking(client))

    async def launch(ask: Ask) -> None:
        many = await ask("launch", specification=SMALL.replace("0..1", "0..3"))
        assert "asks for 4 models, and 3 may still be launched" in many
        launched = await ask("launch", specification=SMALL)
        assert launched == {"sweeps": ["small"], "models": 2, "may_still_be_launched": 1}
        more = SMALL.replace('"small"', '"other"').replace("0..1", "2..3")
        assert "asks for 2 models, and 1 may still be launched" in await ask(
            "launch", specification=more
        )
        assert [row["sweep"] for row in (await ask("sweeps"))["rows"]] == ["small"]
        for _tick in range(600):
            (row, *_) = (await ask("sweeps"))["rows"]
            if row["state"] == "done":
                break
            await asyncio.sleep(0.1)
        assert row["models"] == row["done"] == 2

    wait(talk)


def test_the_allowance_of_agents_counts_the_greatest_size_of_a_sweep(tmp_path: Path) -> None:
    """The allowance is shared by servers and by concurrent requests."""
    store = api.open_store(tmp_path / "own.db")
    grows = SMALL.replace("[fixed]", 'until = "learned ± 10 %"\nmost_seeds = 12\n[fixed]')

    async def talk(ask: Ask) -> None:
        assert (await ask("estimate", specification=grows))["may_grow_to"] == 12
        refusal = await ask("launch", specification=grows)
        assert "asks for up to 12 models, and 5 may still" in refusal
        named = [SMALL.replace("small", f"{x}").replace("0..1", f"{x}..{x + 1}") for x in (2, 4, 6)]
        at_once = await asyncio.gather(*(ask("launch", specification=own) for own in named))
        assert sorted(isinstance(answer, str) for answer in at_once) == [False, False, True]
        assert {row["models"] for row in (await ask("sweeps"))["rows"]} == {2}
        # What is launched already costs nothing.
        again = next(
            x for x, answer in zip(named, at_once, strict=True) if isinstance(answer, dict)
        )
        assert (await ask("launch", specification=again))["models"] == 0

    async def another(ask: Ask) -> None:
        assert (await ask("launch", specification=SMALL)).endswith("larger allowance")
        few = SMALL.replace("0..1", "0..0").replace("[fixed]", 'until = "learned ± 45 %"\n[fixed]')
        assert "asks for up to 1 model" not in await ask("launch", specification=few)
        few = few.replace("[fixed]", "most_seeds = 1\n[fixed]")
        assert (await ask("launch", specification=few))["may_still_be_launched"] == 0

    within(store, talk, 5)
    within(api.open_store(str(store.path)), another, 5)


def test_growth_leaves_a_sweep_to_the_agents(tmp_path: Path) -> None:
    store = api.open_store(tmp_path / "own.db")
    table = tomllib.loads(SMALL)
    grows = {**table, "until": "learned ± 10 %", "most_seeds": 4}
    launched = launch_for_agent(store, grows, 4)
    assert launched == {"sweeps": [table["name"]], "models": 4, "may_still_be_launched": 0}
    api.work(store, shortcuts=False)
    assert api.status(store)[0].done == 4
    with pytest.raises(ConfigError, match="1 model, and 0 may still be launched"):
        launch_for_agent(store, {**table, "name": "more", "model_seeds": [9]}, 4)
    assert launch_for_agent(store, grows, 4)["models"] == 0
    # Trained models are anybody's, and queued ones of a person are not trained for nothing.
    assert launch_for_agent(store, {**table, "name": "same"}, 4)["models"] == 0
    api.submit(store, {**table, "name": "own", "model_seeds": [7, 8]})
    with pytest.raises(ConfigError, match="asks for 2 models"):
        launch_for_agent(store, {**table, "name": "thief", "model_seeds": [7, 8]}, 5)


def test_an_agent_cannot_change_sweeps_of_others(tmp_path: Path) -> None:
    store = api.open_store(tmp_path / "own.db")
    table = tomllib.loads(SMALL)
    api.submit(store, table)
    for spec in (table, {**table, "model_seeds": [5]}):
        with pytest.raises(ConfigError, match=r"a sweep 'small' already, which no agent launched"):
            launch_for_agent(store, spec, 9)
    launch_for_agent(store, {**table, "name": "agents"}, 9)
    with pytest.raises(ConfigError, match="2 of the runs of the sweep 'agents' would leave it"):
        launch_for_agent(store, {**table, "name": "agents", "model_seeds": [5]}, 9)
    assert {sweep.name: sweep.total for sweep in api.status(store)} == {"small": 2, "agents": 2}
    wider = launch_for_agent(store, {**table, "name": "agents", "model_seeds": "0..2"}, 9)
    assert (wider["models"], wider["may_still_be_launched"]) == (1, 6)
    # What a person submits is the person's from then on.
    api.submit(store, {**table, "name": "agents"})
    with pytest.raises(ConfigError, match="which no agent launched"):
        launch_for_agent(store, {**table, "name": "agents"}, 9)
    # What agents had trained by it still counts, however often it is submitted.
    api.submit(store, {**table, "name": "agents"})
    with pytest.raises(ConfigError, match="asks for 7 models, and 6 may still be launched"):
        launch_for_agent(store, {**table, "name": "rest", "model_seeds": "20..26"}, 9)
