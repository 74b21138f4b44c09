"""Agents that talk to servers of this process."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mcp import Client
from mcp.server import MCPServer

from sweeps.mcp_server import server_of
from sweeps.store.database import Store


def wait(talk: Callable[[], Awaitable[None]]) -> None:
    """Waits in another thread: where a browser was opened, this one runs a loop already."""

    async def run() -> None:
        await talk()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(run())).result()


def converse(server: MCPServer, talk: Callable[[Client], Awaitable[None]]) -> None:
    """Has an agent talk to a server."""

    async def connect() -> None:
        async with Client(server) as client:
            await talk(client)

    wait(connect)


def answers(store: Store, calls: Iterable[tuple[str, dict[str, Any]]]) -> list[Any]:
    """The replies of tools to calls, in order."""
    found: list[Any] = []

    async def talk(client: Client) -> None:
        found.extend([await client.call_tool(tool, arguments) for tool, arguments in calls])

    converse(server_of(store, 0), talk)
    return found
