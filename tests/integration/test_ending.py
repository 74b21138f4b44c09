"""A dashboard that is asked to end does, whatever it is still asked for."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.conftest import ROOT

SERVER = """
import asyncio

import uvicorn

import dashboard.server.serving
from dashboard.app import app

dashboard.server.serving.END_SECONDS = 0.5


async def also_never(scope, receive, send):
    if scope["type"] == "http" and scope["path"] == "/never":
        print("asked", flush=True)
        await asyncio.Event().wait()
    await app(scope, receive, send)


async def begin():
    server = uvicorn.Server(uvicorn.Config(also_never, port=0, log_level="error"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    print(server.servers[0].sockets[0].getsockname()[1], flush=True)
    await serving


asyncio.run(begin())
"""
"""The dashboard, and one path more that is never answered."""

SECONDS = 60


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("waits", [True, False])
def test_a_dashboard_that_is_asked_to_end_does(asked: signal.Signals, waits: bool) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        cwd=ROOT,
        env={**os.environ, "SEQCLS_DB": "runs.db"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        assert server.stdout is not None
        try:
            assert server.stdout.readline() == b"Showing runs.db.\n"
            with socket.create_connection(("127.0.0.1", int(server.stdout.readline()))) as browser:
                if waits:
                    browser.sendall(b"GET /never HTTP/1.1\r\nHost: here\r\n\r\n")
                    assert server.stdout.readline() == b"asked\n"
                server.send_signal(asked)
                status = server.wait(SECONDS)
        finally:
            server.kill()
    # What nobody waits for ends by itself.
    assert (status == 128 + asked) == waits
