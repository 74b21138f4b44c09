"""What lies in the working directory and the environment changes nothing of who may do what."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest

from benchmarks.served import wait_for
from sweeps.grid.spec import read_spec
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from sweeps.work import background_worker
from tests.commands import run_main

SEQCLS = Path(sys.executable).with_name("seqcls")

NAMES = ("array", "queue", "random", "sweeps", "seqcls", "dashboard", "streamlit", "numba", "numpy")
"""Modules that this program loads, of Python, of others and its own."""

OPEN_TO_ALL = """
[server]
address = "0.0.0.0"
baseUrlPath = "elsewhere"
enableCORS = false
enableXsrfProtection = false
enableStaticServing = true
sslCertFile = "nowhere.pem"

[client]
showErrorLinks = true
"""
FOREIGN = {
    "STREAMLIT_SERVER_ADDRESS": "0.0.0.0",
    "STREAMLIT_SERVER_ENABLE_XSRF_PROTECTION": "false",
    "STREAMLIT_SERVER_ENABLE_CORS": "false",
}


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory whose Python files say that they were run."""
    folder = tmp_path / "hostile"
    (folder / ".streamlit").mkdir(parents=True)
    (folder / ".streamlit" / "config.toml").write_text(OPEN_TO_ALL)
    for name in NAMES:
        said = f"open({str(folder / 'was_run')!r}, 'a').write({name!r})\nraise SystemExit(9)\n"
        (folder / f"{name}.py").write_text(said)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SEQCLS_DB", str(tmp_path / "x.db"))
    return folder


def run_files(folder: Path) -> str:
    marks = folder / "was_run"
    return marks.read_text() if marks.exists() else ""


def test_no_python_file_of_the_working_directory_is_run_by_a_sweep_or_a_pages_worker(
    hostile: Path, short_spec: Path
) -> None:
    command = [str(SEQCLS), "sweep", str(short_spec), "--workers", "1"]
    said = subprocess.run(command, capture_output=True, text=True)
    assert (said.returncode, run_files(hostile)) == (0, ""), said.stderr
    assert "trained 6 runs" in said.stdout
    store = open_writer()
    short_spec.write_text(short_spec.read_text().replace('"0..2"', "[3]"))
    writer.submit(store, read_spec(short_spec))
    assert background_worker.start_worker(store, {1: "short"})
    while background_worker.has_worker(store, 1):
        time.sleep(0.1)
    assert sweep_queries.counts_by_state(store, [1]) == {"done": 2}, background_worker.read_log(
        store, 1
    )
    assert run_files(hostile) == ""


def asked(port: int, method: str, path: str, **headers: str) -> tuple[int, dict[str, str]]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}


def is_answered(port: int) -> bool:
    try:
        return asked(port, "GET", "/_stcore/health")[0] == 200
    except OSError:
        return False


def websocket(port: int, **headers: str) -> int:
    """What the server says to a page that wants to talk to it; 101 is a yes."""
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    return asked(port, "GET", "/_stcore/stream", **upgrade, **key, **headers)[0]


def test_the_dashboard_is_open_to_this_machine_and_its_own_pages_only_whatever_it_finds(
    hostile: Path,
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [str(SEQCLS), "dashboard", "--port", str(port)]
    process = subprocess.Popen(
        command, env={**os.environ, **FOREIGN}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: is_answered(port), 60)
        listening = psutil.Process(process.pid).net_connections("inet")
        assert {one.laddr.ip for one in listening if one.status == "LISTEN"} == {"127.0.0.1"}
        _, headers = asked(port, "GET", "/_stcore/health", Origin="http://evil.example")
        assert "access-control-allow-origin" not in headers
        assert asked(port, "PUT", "/_stcore/upload_file/none/none")[0] == 403
        # Its own pages, by either name of this machine, and those of nobody else.
        own, here = f"127.0.0.1:{port}", f"localhost:{port}"
        assert websocket(port) == 101
        assert websocket(port, Origin=f"http://{own}") == 101
        assert websocket(port, Host=here, Origin=f"http://{here}") == 101
        assert asked(port, "GET", "/", Origin=f"http://{own}")[0] == 200
        for origin in (
            *(f"http://localhost:{port + 1}", f"http://127.0.0.1:{port + 1}", "http://localhost"),
            *(f"http://{here}", f"http://evil.example:{port}", "http://[", "null", ""),
        ):
            assert websocket(port, Origin=origin) == 403, origin
            status, headers = asked(port, "GET", "/_stcore/host-config", Origin=origin)
            assert status == 403, origin
            assert "access-control-allow-origin" not in headers
        # A second one says so, at once, and leaves the first alone.
        second = run_main("dashboard", "--port", str(port))
        assert (second.returncode, second.stdout) == (3, "")
        assert second.stderr.startswith(f"seqcls: port {port} is taken")
        assert len(second.stderr.splitlines()) == 1
        assert is_answered(port)
        # Where nobody waits for an answer it ends by itself.
        process.send_signal(signal.SIGINT)
        assert process.wait() != 128 + signal.SIGINT
    finally:
        process.kill()
        process.wait()
    assert run_files(hostile) == ""
