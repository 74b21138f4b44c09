"""An agent asks a database by the Model Context Protocol, over standard input and output."""

import asyncio
import json
import shutil
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from sweeps import api
from sweeps.mcp_server import MOST_CHARACTERS
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


def run(talk: Callable[[], Awaitable[None]]) -> None:
    """Waits for an answer in another thread: where a browser was opened, this one has a loop that
    runs already.
    """

    async def wait() -> None:
        await talk()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(wait())).result()


def session(db: Path, talk: Callable[[Client, Ask], Awaitable[None]], *options: str) -> None:
    """Has an agent talk to the server of a database."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", "sweeps", "mcp", "--db", str(db), *options],
        env={"PYTHONPATH": str(ROOT)},
    )

    async def connect() -> None:
        async with Client(server) as client:

            async def ask(tool: str, **asked: Any) -> Any:
                answer = await client.call_tool(tool, asked)
                (content,) = answer.content
                text = content.text  # type: ignore[union-attr]
                return text if answer.is_error else json.loads(text)

            await talk(client, ask)

    run(connect)


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    return Path(shutil.copy(ROOT / "runs.db", tmp_path))


def test_an_agent_learns_what_the_database_holds_and_writes_nothing(shipped: Path) -> None:
    async def talk(client: Client, ask: Ask) -> None:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == READING
        assert all(tool.description for tool in tools)
        listed = await ask("sweeps")
        own = next(row for row in listed["rows"] if row["sweep"] == "all_initializations")
        assert own["learned"]["n"] == own["done"] == 8
        low, high = own["generalize_of_learned"]["interval"]
        assert 0 < low < own["generalize_of_learned"]["count"] / 8 < high < 1

        frame = api.runs(api.open_store(shipped), "all_initializations", outcome="fails beyond")
        found = await ask("runs", sweep="all_initializations", outcome="fails beyond", rows=3)
        assert found["of"] == len(frame)
        assert [row["id"] for row in found["rows"]] == frame["id"].tolist()[:3]
        rest = await ask("runs", sweep="all_initializations", outcome="fails beyond", first=3)
        assert [row["id"] for row in rest["rows"]] == frame["id"].tolist()[3:]

        run = "all_initializations/2"
        wrong = api.errors_of_run(api.open_store(shipped), run)
        answered = await ask("errors", run=run, rows=5)
        assert answered["of"] == len(wrong)
        strings = [row["string"] for row in answered["rows"]]
        assert strings == wrong["string"].tolist()[:5]
        asked = await ask("predict", run=run, strings=strings)
        assert all(row["label"] != row["predicted"] for row in asked["rows"])

        # Neither is stored in the shipped database, and neither is kept.
        (cause,) = (await ask("causes", run=run))["rows"]
        assert cause["share"]["count"] == cause["share"]["n"] == cause["strings"]
        assert cause["share"]["interval"][0] < 1 == cause["share"]["interval"][1]
        helps = await ask("remedies", run=run)
        assert helps["mechanisms"] == [cause["mechanism"]]
        assert helps["suggestions"]
        verdict = await ask("verdict", run=run)
        assert verdict["inputs"] == 1_373_700
        assert verdict["false_negatives"] > 0

        compared = await ask("compare", a="all_initializations", b="walkthrough")
        assert compared["verdict"]
        assert (await ask("theory", task="parity"))["classes"][0]["name"] == "Zp"
        assert (await ask("estimate", specification=SMALL))["runs"] == 2

    before = sha256(shipped.read_bytes()).hexdigest()
    session(shipped, talk)
    assert sha256(shipped.read_bytes()).hexdigest() == before


@pytest.mark.parametrize(
    ("tool", "asked", "said"),
    [
        ("errors", {"run": "nix"}, "no run 'nix'"),
        ("runs", {"outcome": "well"}, "outcome"),
        ("runs", {"where": ["hiden_size=2"]}, "hidden_size"),
        ("predict", {"run": "1", "strings": ["xyz"]}, "xyz"),
        ("estimate", {"specification": "/etc/passwd"}, "a shipped one such as known/tomita"),
        ("estimate", {"specification": "known/../../x"}, "a shipped one such as known/tomita"),
        ("estimate", {"specification": "name = ["}, "it is no TOML"),
        (
            "estimate",
            {"specification": 'name = "x"\nmodel_seeds = [0]\n[fixed]\npath = "/etc/passwd"'},
            "no file of this machine is read",
        ),
        ("theory", {"task": "party"}, "parity"),
    ],
)
def test_what_is_asked_wrongly_is_answered_in_one_line(
    tool: str, asked: dict[str, Any], said: str
) -> None:
    from sweeps.mcp_server import server_of

    async def talk() -> None:
        async with Client(server_of(api.open_reader(str(ROOT / "runs.db")), 0)) as client:
            answer = await client.call_tool(tool, asked)
            (content,) = answer.content
            text = content.text  # type: ignore[union-attr]
            assert answer.is_error
            assert said in text
            assert "\n" not in text
            assert "Traceback" not in text

    run(talk)


def test_an_answer_is_no_longer_than_an_agent_can_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from sweeps.mcp_server import server_of

    async def talk() -> None:
        async with Client(server_of(api.open_reader(str(ROOT / "runs.db")), 0)) as client:
            errors = await client.call_tool("errors", {"run": "1", "rows": 200})
            assert len(errors.content[0].text) < MOST_CHARACTERS  # type: ignore[union-attr]
            monkeypatch.setattr("sweeps.mcp_server.MOST_CHARACTERS", 100)
            errors = await client.call_tool("errors", {"run": "1", "rows": 200})
            assert errors.is_error
            assert "ask for fewer rows" in errors.content[0].text  # type: ignore[union-attr]

    run(talk)


def test_an_agent_launches_as_many_models_as_it_may_and_no_more(tmp_path: Path) -> None:
    db = tmp_path / "own.db"

    async def talk(_: Client, ask: Ask) -> None:
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

    session(db, talk, "--allow-launch", "3")
